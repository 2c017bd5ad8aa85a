//! What makes speech of text.

use std::sync::Arc;

use super::{NoSpeech, Synthesize};
use crate::EngineError;
use crate::wyoming::Address;

mod command;
mod dialect;
mod service;

pub(crate) use command::CommandTts;
pub(crate) use service::WyomingTts;

/// The engine that the setting `tts` names: an address, a program, a command, or `none`. Empty, it is the first program that this
/// machine has. An empty `voice` is the engine's usual one.
pub(crate) fn engine(setting: &str, voice: &str) -> Result<Arc<dyn Synthesize>, EngineError> {
    Ok(match setting.trim() {
        "" => Arc::new(CommandTts::probe(voice)?),
        "none" => Arc::new(NoSpeech),
        address if address.contains("://") => {
            let address: Address = address
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
    fn a_setting_that_makes_no_sense_says_so() {
        for (setting, voice, expected) in [
            ("none", "", None),
            ("tcp://127.0.0.1:10200", "", None),
            ("flite", "slt", None),
            ("my-engine --wav", "", None),
            ("my 'engine", "", Some("my 'engine: a quote is not closed")),
        ] {
            let problem = engine(setting, voice).err().map(|error| error.to_string());
            assert_eq!(problem.as_deref(), expected, "{setting}");
        }
        let problem = engine("tcp://nowhere", "").err().unwrap().to_string();
        assert!(problem.starts_with("tts: "), "{problem}");
    }
}
