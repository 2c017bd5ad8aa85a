//! Where sound is played.

use std::sync::Arc;

use toolgate_net::command_words;

use crate::EngineError;
use crate::hear::SatelliteLink;
use crate::wyoming::Address;

use super::{NoOutput, Output};

mod file;
mod program;
mod satellite;
mod service;

pub(crate) use file::WavFile;
pub(crate) use program::Program;
pub(crate) use service::WyomingSnd;

/// The output that the setting `output` names: an address, a file that ends in `.wav`, a program, a command, or `none`. Empty, it
/// is the satellite if one is heard, else the first program that this machine has.
pub(crate) fn output(
    setting: &str,
    satellite: Option<SatelliteLink>,
) -> Result<Arc<dyn Output>, EngineError> {
    let problem = |why: String| EngineError::program("output", why);
    Ok(match setting.trim() {
        "" => match satellite {
            Some(link) => Arc::new(link),
            None => Arc::new(Program::probe()?),
        },
        "none" => Arc::new(NoOutput),
        address if address.contains("://") => {
            let address: Address = address
                .parse()
                .map_err(|error| problem(format!("{error}")))?;
            Arc::new(WyomingSnd::new(address))
        }
        command => {
            let words = command_words(command)
                .ok_or_else(|| problem("a quote is not closed".to_owned()))?;
            match words.as_slice() {
                [file] if file.ends_with(".wav") => Arc::new(WavFile::new(file)),
                _ => Arc::new(Program::new(words)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_says_so() {
        for (setting, expected) in [
            ("none", None),
            ("tcp://127.0.0.1:10500", None),
            ("answers.wav", None),
            ("aplay", None),
            ("aplay -D 'my device'", None),
            ("play 'this", Some("output: a quote is not closed")),
        ] {
            let problem = output(setting, None).err().map(|error| error.to_string());
            assert_eq!(problem.as_deref(), expected, "{setting}");
        }
        let problem = output("tcp://nowhere", None).err().unwrap().to_string();
        assert!(problem.starts_with("output: "), "{problem}");
    }
}
