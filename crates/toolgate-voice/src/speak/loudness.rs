//! How loud the voice is: a volume and a mute of its own, whatever the machine's mixer does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::audio::Sound;

const LOUDEST: u8 = 100;

/// The bit beside the seven of the level.
const MUTED: u8 = 0x80;

/// The volume of the voice, from 0 to 100, and whether it is muted. Clones share both, and a change is heard in what is being
/// said.
///
/// ```
/// use toolgate_voice::Loudness;
///
/// let loudness = Loudness::new(80);
/// loudness.clone().mute(true);
/// assert!(loudness.is_silent() && loudness.level() == 80);
/// ```
#[derive(Debug, Clone)]
pub struct Loudness {
    /// Both in one place: nobody sees the one without the other.
    state: Arc<AtomicU8>,
}

impl Default for Loudness {
    fn default() -> Self {
        Self::new(LOUDEST)
    }
}

impl Loudness {
    /// At this level, and not muted.
    pub fn new(level: u8) -> Self {
        Self {
            state: Arc::new(AtomicU8::new(level.min(LOUDEST))),
        }
    }

    /// The volume in percent; kept while muted.
    pub fn level(&self) -> u8 {
        self.state.load(Ordering::Relaxed) & !MUTED
    }

    /// True while nothing may be heard, whatever the level.
    pub fn muted(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MUTED != 0
    }

    /// True if nothing can be heard: nothing needs to be synthesised either.
    pub fn is_silent(&self) -> bool {
        self.muted() || self.level() == 0
    }

    /// Changes the volume, to 100 at most; muted stays muted.
    pub fn set(&self, level: u8) {
        self.update(|state| (state & MUTED) | level.min(LOUDEST));
    }

    /// Falls silent, or comes back at the level from before.
    pub fn mute(&self, muted: bool) {
        self.update(|state| (state & !MUTED) | if muted { MUTED } else { 0 });
    }

    fn update(&self, change: impl Fn(u8) -> u8) {
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                Some(change(state))
            })
            .ok();
    }

    /// What samples are multiplied with. A cube, as the mixers of sound servers have it: half way sounds half as loud.
    fn factor(&self) -> f32 {
        let share = f32::from(self.level()) / f32::from(LOUDEST);
        if self.muted() { 0.0 } else { share.powi(3) }
    }
}

pub(super) struct Gain {
    loudness: Loudness,
    /// Where the last piece ended: the next one starts there and ramps, so that a change does not click.
    factor: f32,
}

impl Gain {
    pub(super) fn new(loudness: &Loudness) -> Self {
        Self {
            loudness: loudness.clone(),
            factor: loudness.factor(),
        }
    }

    /// 16-bit sound, as loud as it shall be now.
    pub(super) fn apply(&mut self, sound: Sound) -> Sound {
        let (from, to) = (self.factor, self.loudness.factor());
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
        Sound {
            format: sound.format,
            bytes: bytes.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::audio::Format;

    use super::*;

    fn sound(samples: &[i16]) -> Sound {
        Sound {
            format: Format::HEARD,
            bytes: samples
                .iter()
                .flat_map(|sample| sample.to_le_bytes())
                .collect(),
        }
    }

    fn samples(sound: &Sound) -> Vec<i16> {
        sound
            .bytes
            .chunks_exact(2)
            .map(|sample| i16::from_le_bytes([sample[0], sample[1]]))
            .collect()
    }

    #[test]
    fn the_level_is_bounded_and_kept_while_muted() {
        for (asked, level) in [(0, 0), (1, 1), (50, 50), (100, 100), (101, 100), (255, 100)] {
            assert_eq!(Loudness::new(asked).level(), level);
            let loudness = Loudness::default();
            loudness.mute(true);
            loudness.set(asked);
            assert_eq!((loudness.level(), loudness.muted()), (level, true));
            loudness.mute(false);
            assert_eq!(loudness.is_silent(), level == 0);
        }
    }

    #[test]
    fn samples_are_as_loud_as_the_level_says() {
        for (level, muted, expected) in [
            (100, false, [i16::MAX, i16::MIN, 1000, 0]),
            (50, false, [4096, -4096, 125, 0]),
            (10, false, [33, -33, 1, 0]),
            (0, false, [0; 4]),
            (100, true, [0; 4]),
        ] {
            let loudness = Loudness::new(level);
            loudness.mute(muted);
            let heard = Gain::new(&loudness).apply(sound(&[i16::MAX, i16::MIN, 1000, 0]));
            assert_eq!(samples(&heard), expected, "{level} {muted}");
        }
    }

    #[test]
    fn a_change_ramps_over_one_piece_and_then_holds() {
        let loudness = Loudness::default();
        let mut gain = Gain::new(&loudness);
        loudness.mute(true);
        assert_eq!(
            samples(&gain.apply(sound(&[1000; 4]))),
            [1000, 750, 500, 250]
        );
        assert_eq!(samples(&gain.apply(sound(&[1000; 4]))), [0; 4]);
        assert_eq!(samples(&gain.apply(sound(&[]))), [0; 0]);
    }
}
