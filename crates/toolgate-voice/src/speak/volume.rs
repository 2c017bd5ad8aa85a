//! The volume of the voice, independent of the machine's mixer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::audio::AudioClip;

const LOUDEST: u8 = 100;
const MUTED: u8 = 0x80;

/// The volume of the voice, from 0 to 100, and whether it is muted.
///
/// Clones share both. A change takes effect in the middle of a sentence.
#[derive(Debug, Clone)]
pub struct VoiceVolume {
    // One atomic for both, so that nobody sees one change without the other.
    state: Arc<AtomicU8>,
}

impl Default for VoiceVolume {
    fn default() -> Self {
        Self::new(LOUDEST)
    }
}

impl VoiceVolume {
    pub fn new(level: u8) -> Self {
        Self {
            state: Arc::new(AtomicU8::new(level.min(LOUDEST))),
        }
    }

    /// In percent. Kept while muted.
    pub fn level(&self) -> u8 {
        self.state.load(Ordering::Relaxed) & !MUTED
    }

    pub fn muted(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MUTED != 0
    }

    /// True if nothing would be heard, so nothing needs to be synthesized.
    pub fn is_silent(&self) -> bool {
        self.muted() || self.level() == 0
    }

    /// Sets the volume, at most 100. Doesn't unmute.
    pub fn set(&self, level: u8) {
        self.update(|state| (state & MUTED) | level.min(LOUDEST));
    }

    /// Mutes the voice, or restores the previous level.
    pub fn mute(&self, muted: bool) {
        self.update(|state| (state & !MUTED) | if muted { MUTED } else { 0 });
    }

    fn update(&self, change: impl Fn(u8) -> u8) {
        let order = Ordering::Relaxed;
        let update = self
            .state
            .fetch_update(order, order, |state| Some(change(state)));
        update.ok();
    }

    // Cubed, as the mixers of sound servers do it: half the volume sounds half as loud.
    fn factor(&self) -> f32 {
        let share = f32::from(self.level()) / f32::from(LOUDEST);
        if self.muted() { 0.0 } else { share.powi(3) }
    }
}

pub(super) struct VolumeRamp {
    volume: VoiceVolume,
    // The next piece ramps from this factor, because a jump would click.
    factor: f32,
}

impl VolumeRamp {
    pub(super) fn new(volume: &VoiceVolume) -> Self {
        Self {
            volume: volume.clone(),
            factor: volume.factor(),
        }
    }

    pub(super) fn apply(&mut self, sound: AudioClip) -> AudioClip {
        let (from, to) = (self.factor, self.volume.factor());
        self.factor = to;
        if from == 1.0 && to == 1.0 {
            return sound;
        }
        let samples = (sound.bytes.len() / 2).max(1) as f32;
        let bytes = sound.bytes.chunks_exact(2).enumerate();
        let bytes = bytes.flat_map(|(index, sample)| {
            let factor = from + (to - from) * (index as f32 / samples);
            let sample = f32::from(i16::from_le_bytes([sample[0], sample[1]]));
            ((sample * factor).round() as i16).to_le_bytes()
        });
        AudioClip {
            format: sound.format,
            bytes: bytes.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::audio::AudioFormat;

    use super::*;

    fn sound(samples: &[i16]) -> AudioClip {
        AudioClip {
            format: AudioFormat::CAPTURE,
            bytes: samples
                .iter()
                .flat_map(|sample| sample.to_le_bytes())
                .collect(),
        }
    }

    fn samples(sound: &AudioClip) -> Vec<i16> {
        sound
            .bytes
            .chunks_exact(2)
            .map(|sample| i16::from_le_bytes([sample[0], sample[1]]))
            .collect()
    }

    #[test]
    fn the_level_is_bounded_and_kept_while_muted() {
        for (asked, level) in [(0, 0), (1, 1), (50, 50), (100, 100), (101, 100), (255, 100)] {
            assert_eq!(VoiceVolume::new(asked).level(), level);
            let volume = VoiceVolume::default();
            volume.clone().mute(true);
            volume.set(asked);
            assert_eq!((volume.level(), volume.muted()), (level, true));
            volume.mute(false);
            assert_eq!(volume.is_silent(), level == 0);
        }
    }

    #[test]
    fn samples_are_scaled_by_the_level() {
        for (level, muted, expected) in [
            (100, false, [i16::MAX, i16::MIN, 1000, 0]),
            (50, false, [4096, -4096, 125, 0]),
            (10, false, [33, -33, 1, 0]),
            (0, false, [0; 4]),
            (100, true, [0; 4]),
        ] {
            let volume = VoiceVolume::new(level);
            volume.mute(muted);
            let heard = VolumeRamp::new(&volume).apply(sound(&[i16::MAX, i16::MIN, 1000, 0]));
            assert_eq!(samples(&heard), expected, "{level} {muted}");
        }
    }

    #[test]
    fn a_change_ramps_over_one_piece_and_then_holds() {
        let volume = VoiceVolume::default();
        let mut gain = VolumeRamp::new(&volume);
        volume.mute(true);
        assert_eq!(
            samples(&gain.apply(sound(&[1000; 4]))),
            [1000, 750, 500, 250]
        );
        assert_eq!(samples(&gain.apply(sound(&[1000; 4]))), [0; 4]);
        assert_eq!(samples(&gain.apply(sound(&[]))), [0; 0]);
    }
}
