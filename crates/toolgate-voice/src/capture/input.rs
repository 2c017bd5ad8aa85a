//! Parses the `input` setting.

use std::path::PathBuf;

use toolgate_net::split_command;

use super::RECORDERS;
use super::sound_server::first_usable;
use crate::audio::SAMPLE_RATE;
use crate::wyoming::{WyomingAddress, WyomingAddressError};

/// Where sound comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AudioInput {
    /// Our stdin: raw 16-bit mono, or WAV, which is detected.
    Stdin {
        rate: u32,
    },
    /// Files, read one after the other as fast as possible, with silence after each.
    Wav(Vec<PathBuf>),
    /// A recording program that Toolgate knows, such as `pw-record`.
    Program(&'static str),
    /// A command that writes 16-bit mono at 16 kHz, or WAV.
    Command(Vec<String>),
    Wyoming(WyomingAddress),
}

/// Why the `input` setting can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AudioInputError {
    #[error(transparent)]
    Address(#[from] WyomingAddressError),
    /// The text looks like a command but can't be split into words.
    #[error("the recording command has an unclosed quote: {command}")]
    Quote { command: String },
    #[error(
        "no recording program found: install pipewire-bin (pw-record), pulseaudio-utils (parecord) or alsa-utils (arecord), or set 'input' of 'voice'"
    )]
    NoProgram,
}

impl AudioInput {
    /// Parses `-`, an address, a recorder's name, a file ending in `.wav`, or a command. Empty text
    /// picks an installed recorder.
    ///
    /// # Errors
    ///
    /// If the text is invalid or no recorder is installed.
    pub fn parse(text: &str) -> Result<Self, AudioInputError> {
        let text = text.trim();
        if text.is_empty() {
            let recorder = first_usable(&RECORDERS).map(Self::Program);
            return recorder.ok_or(AudioInputError::NoProgram);
        }
        if text == "-" {
            return Ok(Self::Stdin { rate: SAMPLE_RATE });
        }
        if text.starts_with("tcp://") || text.starts_with("unix://") {
            return Ok(Self::Wyoming(text.parse()?));
        }
        if let Some(recorder) = RECORDERS.into_iter().find(|recorder| *recorder == text) {
            return Ok(Self::Program(recorder));
        }
        let command = split_command(text).ok_or_else(|| AudioInputError::Quote {
            command: toolgate_core::text::escape(text),
        })?;
        match command.as_slice() {
            [file] if file.to_ascii_lowercase().ends_with(".wav") => {
                Ok(Self::Wav(vec![file.into()]))
            }
            _ => Ok(Self::Command(command)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_selects_one_source() {
        let command = |words: &[&str]| {
            AudioInput::Command(words.iter().map(|word| (*word).to_owned()).collect())
        };
        for (text, expected) in [
            ("-", AudioInput::Stdin { rate: 16_000 }),
            (" parecord ", AudioInput::Program("parecord")),
            ("pw-record", AudioInput::Program("pw-record")),
            ("arecord -D hw:1", command(&["arecord", "-D", "hw:1"])),
            ("/opt/mic", command(&["/opt/mic"])),
            (
                "sox a.wav -t raw b.wav",
                command(&["sox", "a.wav", "-t", "raw", "b.wav"]),
            ),
            ("'my own.WAV'", AudioInput::Wav(vec!["my own.WAV".into()])),
            (
                "unix:///run/mic.sock",
                AudioInput::Wyoming("unix:///run/mic.sock".parse().unwrap()),
            ),
            (
                "tcp://127.0.0.1:10700",
                AudioInput::Wyoming("tcp://127.0.0.1:10700".parse().unwrap()),
            ),
        ] {
            assert_eq!(AudioInput::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_setting_is_rejected_with_advice() {
        for (text, expected) in [
            (
                "tcp://x",
                "'tcp://x' is not a Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path",
            ),
            (
                "sox 'a",
                "the recording command has an unclosed quote: sox 'a",
            ),
        ] {
            assert_eq!(AudioInput::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn empty_setting_selects_an_installed_recorder() {
        let probed = first_usable(&RECORDERS).map(AudioInput::Program);
        let expected = probed.ok_or(AudioInputError::NoProgram);
        assert_eq!(AudioInput::parse(""), expected);
    }
}
