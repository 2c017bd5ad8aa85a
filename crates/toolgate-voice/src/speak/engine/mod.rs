//! Speech engines: programs and Wyoming services.

use std::sync::Arc;

use super::{NoSpeech, SpeechSynthesizer};
use crate::EngineError;
use crate::wyoming::WyomingAddress;

mod command_lines;
mod command_tts;
mod wyoming_tts;

pub(crate) use command_tts::CommandTts;
pub(crate) use wyoming_tts::WyomingTts;

/// Builds the engine of the setting `tts`: an address, a program, a command, or `none`. An empty
/// setting picks an installed program, an empty `voice` the engine's default voice.
pub(crate) fn create_synthesizer(
    setting: &str,
    voice: &str,
) -> Result<Arc<dyn SpeechSynthesizer>, EngineError> {
    Ok(match setting.trim() {
        "" => Arc::new(CommandTts::probe(voice)?),
        "none" => Arc::new(NoSpeech),
        address if address.contains("://") => {
            let address: WyomingAddress = address
                .parse()
                .map_err(|error| EngineError::program("tts", format!("{error}")))?;
            Arc::new(WyomingTts::new(address, voice))
        }
        command => Arc::new(CommandTts::parse(command, voice)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected() {
        for (setting, voice, expected) in [
            ("none", "", None),
            ("tcp://127.0.0.1:10200", "", None),
            ("flite", "slt", None),
            ("my-engine --wav", "", None),
            (
                "my 'engine",
                "",
                Some("my 'engine: it has an unclosed quote"),
            ),
        ] {
            let problem = create_synthesizer(setting, voice)
                .err()
                .map(|error| error.to_string());
            assert_eq!(problem.as_deref(), expected, "{setting}");
        }
        let problem = create_synthesizer("tcp://nowhere", "")
            .err()
            .unwrap()
            .to_string();
        assert!(problem.starts_with("tts: "), "{problem}");
    }
}
