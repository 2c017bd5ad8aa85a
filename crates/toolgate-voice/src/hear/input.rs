//! Which source is meant.

use std::path::PathBuf;

use toolgate_net::command_words;

use super::Recorder;
use crate::audio::RATE;
use crate::wyoming::{Address, AddressError};

/// Where sound comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// This program's stdin: 16-bit mono, or WAV, which says itself what it is.
    Stdin {
        /// Samples per second.
        rate: u32,
    },
    /// Files, one after the other, as fast as they can be read, with silence behind each.
    Wav(Vec<PathBuf>),
    /// A program that is known to record.
    Program(Recorder),
    /// A command that writes 16-bit mono at 16 kHz, or WAV.
    Command(Vec<String>),
    /// A Wyoming microphone or satellite.
    Wyoming(Address),
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It looks like an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It looks like a command.
    #[error("the command that records has a quote that is not closed: {command}")]
    Quote {
        /// The text.
        command: String,
    },
    /// There is none.
    #[error(
        "there is no program that records: install pipewire-bin (pw-record), pulseaudio-utils (parecord) or alsa-utils (arecord), or set 'input' of 'voice'"
    )]
    NoProgram,
}

impl Input {
    /// The source that a text means: `-`, an address, a recorder's name, a file that ends in `.wav`, a command; and if it is
    /// empty, what there is to record with.
    ///
    /// # Errors
    ///
    /// If it means none.
    ///
    /// ```
    /// use toolgate_voice::Input;
    ///
    /// assert_eq!(Input::parse("-"), Ok(Input::Stdin { rate: 16_000 }));
    /// assert!(Input::parse("tcp://kitchen").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let text = text.trim();
        if text.is_empty() {
            return Self::probe().ok_or(InputError::NoProgram);
        }
        if text == "-" {
            return Ok(Self::Stdin { rate: RATE });
        }
        if text.starts_with("tcp://") || text.starts_with("unix://") {
            return Ok(Self::Wyoming(text.parse()?));
        }
        if let Some(recorder) = Recorder::ALL
            .into_iter()
            .find(|recorder| recorder.name() == text)
        {
            return Ok(Self::Program(recorder));
        }
        let command = command_words(text).ok_or_else(|| InputError::Quote {
            command: toolgate_core::escape(text),
        })?;
        match command.as_slice() {
            [file] if file.to_ascii_lowercase().ends_with(".wav") => {
                Ok(Self::Wav(vec![file.into()]))
            }
            _ => Ok(Self::Command(command)),
        }
    }

    pub(crate) fn probe() -> Option<Self> {
        Recorder::probe().map(Self::Program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_means_one_source() {
        let command =
            |words: &[&str]| Input::Command(words.iter().map(|word| (*word).to_owned()).collect());
        for (text, expected) in [
            ("-", Input::Stdin { rate: 16_000 }),
            (" parecord ", Input::Program(Recorder::Parecord)),
            ("pw-record", Input::Program(Recorder::PwRecord)),
            ("arecord -D hw:1", command(&["arecord", "-D", "hw:1"])),
            ("/opt/mic", command(&["/opt/mic"])),
            (
                "sox a.wav -t raw b.wav",
                command(&["sox", "a.wav", "-t", "raw", "b.wav"]),
            ),
            ("'my own.WAV'", Input::Wav(vec!["my own.WAV".into()])),
            (
                "unix:///run/mic.sock",
                Input::Wyoming("unix:///run/mic.sock".parse().unwrap()),
            ),
            (
                "tcp://127.0.0.1:10700",
                Input::Wyoming("tcp://127.0.0.1:10700".parse().unwrap()),
            ),
        ] {
            assert_eq!(Input::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_text_that_means_none_is_refused_with_what_to_do() {
        for (text, expected) in [
            (
                "tcp://x",
                "'tcp://x' is no Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path",
            ),
            (
                "sox 'a",
                "the command that records has a quote that is not closed: sox 'a",
            ),
        ] {
            assert_eq!(Input::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn nothing_means_what_this_machine_has() {
        match (Input::parse(""), Input::probe()) {
            (Ok(found), Some(probed)) => assert_eq!(found, probed),
            (found, probed) => assert_eq!((found, probed), (Err(InputError::NoProgram), None)),
        }
    }
}
