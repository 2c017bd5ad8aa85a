//! A fast hash for the fixed tables of names; nobody from outside chooses their keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table of names that are known when the program is built.
pub(crate) type NameMap<T> = HashMap<&'static str, T, BuildHasherDefault<NameHasher>>;

/// Multiplies and rotates, eight bytes at a time.
#[derive(Default)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word))
                .wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
