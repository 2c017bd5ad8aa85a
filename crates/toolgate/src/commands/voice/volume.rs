//! Lets the `volume` tool control the gateway's voice instead of the machine's speakers.

use std::sync::OnceLock;

use toolgate_tools::builtin::{VolumeControl, VolumeState};
use toolgate_voice::{VoiceSettings, VoiceVolume};

#[derive(Debug, Default)]
pub(super) struct GatewayVoice {
    pub(super) volume: VoiceVolume,
    inaudible: OnceLock<&'static str>,
}

impl GatewayVoice {
    pub(super) fn check_audible(&self, settings: &VoiceSettings, has_listeners: bool) {
        let why = match (settings.tts.as_str(), settings.output.as_str()) {
            _ if !has_listeners => "Answers are given as text here, so the volume cannot be set.",
            ("none", _) | (_, "none") => {
                "Nothing is spoken aloud here, so the volume cannot be set."
            }
            _ => return,
        };
        self.inaudible.get_or_init(|| why);
    }
}

impl VolumeControl for GatewayVoice {
    fn volume(&self) -> VolumeState {
        VolumeState {
            level: self.volume.level().into(),
            muted: self.volume.muted(),
        }
    }

    fn set_volume(&self, state: VolumeState) {
        let level = u8::try_from(state.level).unwrap_or(u8::MAX);
        self.volume.set(level);
        self.volume.mute(state.muted);
    }

    fn inaudible_reason(&self) -> Option<String> {
        self.inaudible.get().map(|why| (*why).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_tool_controls_the_voice() {
        let voice = GatewayVoice::default();
        voice.check_audible(&VoiceSettings::default(), true);
        assert_eq!(voice.inaudible_reason(), None);
        for (level, muted, kept) in [(30, true, 30), (0, false, 0), (1000, false, 100)] {
            voice.set_volume(VolumeState { level, muted });
            let volume = &voice.volume;
            assert_eq!((volume.level(), volume.muted()), (kept, muted));
            let level = kept.into();
            assert_eq!(voice.volume(), VolumeState { level, muted });
        }
    }

    #[test]
    fn without_sound_the_volume_explains_why() {
        for (tts, output, has_listeners, expected) in [
            ("espeak-ng", "x.wav", true, None),
            ("espeak-ng", "none", true, Some("Nothing is spoken aloud")),
            ("none", "", true, Some("Nothing is spoken aloud")),
            ("espeak-ng", "", false, Some("Answers are given as text")),
        ] {
            let voice = GatewayVoice::default();
            let mut settings = VoiceSettings::default();
            tts.clone_into(&mut settings.tts);
            output.clone_into(&mut settings.output);
            voice.check_audible(&settings, has_listeners);
            let why = voice.inaudible_reason();
            let begins = expected.map(|begins| why.as_ref().unwrap().starts_with(begins));
            assert_eq!(
                (why.is_some(), begins),
                (expected.is_some(), expected.map(|_| true))
            );
        }
    }
}
