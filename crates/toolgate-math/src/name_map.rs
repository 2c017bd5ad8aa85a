//! A fast hash map for fixed tables of names. Its keys aren't chosen by users, so it needs
//! no protection against collisions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type NameMap<T> = HashMap<&'static str, T, BuildHasherDefault<NameHasher>>;

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
