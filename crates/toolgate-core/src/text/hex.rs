//! [`Hex`]: formats hexadecimal numbers. Ids are formatted several times per call, and the standard
//! formatter is too slow for that.

use std::fmt;

pub(crate) struct Hex<const N: usize>([u8; N]);

impl<const N: usize> Hex<N> {
    pub(crate) fn new(mut number: u128) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; N];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(number & 0xf) as usize];
            number >>= 4;
        }
        Self(digits)
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_equal_those_of_the_standard_formatter() {
        for number in [0, 1, 0xab, 0x0123_4567_89ab_cdef, u128::MAX, u128::MAX / 3] {
            assert_eq!(Hex::<32>::new(number).to_string(), format!("{number:032x}"));
            let low = number as u8;
            assert_eq!(Hex::<2>::new(number).as_str(), format!("{low:02x}"));
        }
    }
}
