//! Outputs that play sound.

use std::sync::Arc;

use toolgate_net::split_command;

use crate::EngineError;
use crate::wyoming::WyomingAddress;

use super::{AudioOutput, NoOutput};

mod player_program;
mod satellite;
mod wav_file;
mod wyoming_snd;

pub(crate) use player_program::PlayerProgram;
pub(crate) use wav_file::WavFile;
pub(crate) use wyoming_snd::WyomingSnd;

/// Builds the output of the setting `output`: an address, a `.wav` file, a program, a command, or
/// `none`. An empty setting picks an installed program.
pub(crate) fn create_output(setting: &str) -> Result<Arc<dyn AudioOutput>, EngineError> {
    let problem = |why: String| EngineError::program("output", why);
    Ok(match setting.trim() {
        "" => Arc::new(PlayerProgram::probe()?),
        "none" => Arc::new(NoOutput),
        address if address.contains("://") => {
            let address: WyomingAddress = address
                .parse()
                .map_err(|error| problem(format!("{error}")))?;
            Arc::new(WyomingSnd::new(address))
        }
        command => {
            let words = split_command(command)
                .ok_or_else(|| problem("it has an unclosed quote".to_owned()))?;
            match words.as_slice() {
                [file] if file.ends_with(".wav") => Arc::new(WavFile::new(file)),
                _ => Arc::new(PlayerProgram::new(words)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected() {
        for (setting, expected) in [
            ("none", None),
            ("tcp://127.0.0.1:10500", None),
            ("answers.wav", None),
            ("aplay", None),
            ("aplay -D 'my device'", None),
            ("play 'this", Some("output: it has an unclosed quote")),
        ] {
            let problem = create_output(setting).err().map(|error| error.to_string());
            assert_eq!(problem.as_deref(), expected, "{setting}");
        }
        let problem = create_output("tcp://nowhere").err().unwrap().to_string();
        assert!(problem.starts_with("output: "), "{problem}");
    }
}
