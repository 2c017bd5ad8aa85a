//! Cuts sound of any width into short slices of 16-bit frames.

use bytes::{Bytes, BytesMut};

use crate::audio::{AudioClip, AudioFormat, AudioFormatError};

// A stop or a change of volume takes effect with the next slice, within 40 ms.
const SLICES_PER_SECOND: u32 = 25;

pub(super) struct SliceCutter {
    from: AudioFormat,
    rest: BytesMut,
}

impl SliceCutter {
    pub(super) fn new(from: AudioFormat) -> Result<Self, AudioFormatError> {
        Ok(Self {
            from: from.validated()?,
            rest: BytesMut::new(),
        })
    }

    pub(super) fn cut(&mut self, chunk: &[u8]) -> Vec<AudioClip> {
        self.rest.extend_from_slice(chunk);
        let frame = self.from.frame_bytes();
        let slice = frame * (self.from.rate / SLICES_PER_SECOND) as usize;
        let whole = self.rest.len() / slice * slice;
        let whole = self.rest.split_to(whole);
        whole
            .chunks_exact(slice)
            .map(|slice| self.sound(slice))
            .collect()
    }

    pub(super) fn take_rest(&mut self) -> Option<AudioClip> {
        let rest = self.rest.split();
        let frames = &rest[..rest.len() / self.from.frame_bytes() * self.from.frame_bytes()];
        (!frames.is_empty()).then(|| self.sound(frames))
    }

    fn sound(&self, frames: &[u8]) -> AudioClip {
        let width = usize::from(self.from.width);
        let bytes = match width {
            // Little-endian: the last two bytes are the most significant ones.
            2.. => frames
                .chunks_exact(width)
                .flat_map(|sample| [sample[width - 2], sample[width - 1]])
                .collect(),
            _ => frames
                .iter()
                .flat_map(|sample| [0, *sample])
                .collect::<Bytes>(),
        };
        AudioClip {
            format: AudioFormat {
                width: 2,
                ..self.from
            },
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_becomes_sixteen_bits() {
        for (width, samples, expected) in [
            (1, vec![0x7f, 0x80], vec![0x00, 0x7f, 0x00, 0x80]),
            (
                2,
                vec![0x34, 0x12, 0xff, 0xff],
                vec![0x34, 0x12, 0xff, 0xff],
            ),
            (3, vec![0x56, 0x34, 0x12], vec![0x34, 0x12]),
            (4, vec![0x78, 0x56, 0x34, 0x12], vec![0x34, 0x12]),
        ] {
            let mut slices = SliceCutter::new(AudioFormat::new(16_000, width, 1)).unwrap();
            assert_eq!(slices.cut(&samples), []);
            let rest = slices.take_rest().unwrap();
            assert_eq!(
                (rest.format, &rest.bytes[..]),
                (AudioFormat::new(16_000, 2, 1), &expected[..])
            );
        }
    }

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let sound: Vec<u8> = (0..16_000_u32)
            .flat_map(|n| (n as u16).to_le_bytes())
            .collect();
        for size in [1, 3, 7, 2560, 9999, 40_000] {
            let mut slices = SliceCutter::new(AudioFormat::new(16_000, 2, 2)).unwrap();
            let mut pieces: Vec<AudioClip> = sound
                .chunks(size)
                .flat_map(|chunk| slices.cut(chunk))
                .collect();
            assert!(pieces.iter().all(|piece| piece.bytes.len() == 640 * 4));
            pieces.extend(slices.take_rest());
            let all: Vec<u8> = pieces
                .iter()
                .flat_map(|piece| piece.bytes.to_vec())
                .collect();
            assert_eq!(all, sound, "{size}");
        }
    }

    #[test]
    fn partial_frame_is_dropped_and_invalid_format_rejected() {
        let mut slices = SliceCutter::new(AudioFormat::new(16_000, 2, 2)).unwrap();
        slices.cut(&[1, 2, 3, 4, 5]);
        assert_eq!(slices.take_rest().unwrap().bytes, [1, 2, 3, 4][..]);
        assert_eq!(slices.take_rest(), None);
        assert!(SliceCutter::new(AudioFormat::new(0, 2, 1)).is_err());
    }
}
