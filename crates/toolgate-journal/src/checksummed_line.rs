//! The line format of a run's files: a checksum and JSON on each line. JSON contains no line
//! breaks, so a damaged line doesn't affect the next one.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The length of the checksum in hexadecimal, and a space.
const HEAD: usize = 17;

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(1024);
    line.resize(HEAD, b' ');
    if serde_json::to_writer(&mut line, value).is_err() {
        // Can't happen for the types used here. If it did, the line would count as damaged.
        line.truncate(HEAD);
    }
    let sum = checksum(&line[HEAD..]);
    for (index, digit) in line[..HEAD - 1].iter_mut().enumerate() {
        let bits = (sum >> (60 - 4 * index)) as usize & 0xf;
        *digit = b"0123456789abcdef"[bits];
    }
    line.push(b'\n');
    line
}

/// Decodes a line without its line break; `None` if it is damaged.
pub(crate) fn decode<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (head, json) = line.split_at_checked(HEAD)?;
    let digits = str::from_utf8(head).ok()?.strip_suffix(' ')?;
    let is_whole = u64::from_str_radix(digits, 16).ok()? == checksum(json);
    is_whole.then(|| serde_json::from_slice(json).ok())?
}

/// Detects every change within eight adjacent bytes, and nearly every other.
fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(ODD).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| {
        mix(sum, u64::from_le_bytes(*word))
    });
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(sum, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_decoded_unless_any_bit_of_it_changed() {
        for text in ["", "a", "line\nbreak \u{2028} \" \\", &"x".repeat(5000)] {
            let line = encode(&text);
            let (end, line) = line.split_last().unwrap();
            assert_eq!((*end, line.contains(&b'\n')), (b'\n', false));
            assert_eq!(decode::<String>(line).as_deref(), Some(text));
            for at in (0..line.len()).step_by(1 + line.len() / 100) {
                for bit in 0..8 {
                    let mut flipped = line.to_vec();
                    flipped[at] ^= 1 << bit;
                    // Only the case of the checksum's digits doesn't matter.
                    let is_same = flipped.eq_ignore_ascii_case(line) && at < HEAD;
                    assert_eq!(decode::<String>(&flipped).is_some(), is_same, "{at} {bit}");
                }
                assert_eq!(decode::<String>(&line[..at]), None, "cut at {at}");
            }
        }
    }
}
