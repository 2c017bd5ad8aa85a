//! What the tool `volume` governs here: the voice that speaks, not the machine's speakers.

use toolgate_tools::builtin::{Sounding, VolumeState};
use toolgate_voice::Loudness;

/// The gateway's voice.
#[derive(Debug)]
pub(super) struct Voice(pub(super) Loudness);

impl Sounding for Voice {
    fn volume(&self) -> VolumeState {
        VolumeState {
            level: self.0.level().into(),
            muted: self.0.muted(),
        }
    }

    fn set_volume(&self, state: VolumeState) {
        self.0.set(u8::try_from(state.level).unwrap_or(u8::MAX));
        self.0.mute(state.muted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_is_that_of_the_voice() {
        let loudness = Loudness::new(80);
        let voice = Voice(loudness.clone());
        for (level, muted, kept) in [(30, true, 30), (0, false, 0), (1000, false, 100)] {
            voice.set_volume(VolumeState { level, muted });
            assert_eq!((loudness.level(), loudness.muted()), (kept, muted));
            let level = kept.into();
            assert_eq!(voice.volume(), VolumeState { level, muted });
        }
    }
}
