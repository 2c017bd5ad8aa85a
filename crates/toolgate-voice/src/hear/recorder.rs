//! Programs that record from the sound card.

use std::time::Duration;

use tokio::time::timeout;

use super::program::{Running, read_some};
use super::server::first_of;

/// How long a program may take to say what it can do.
const HELP: Duration = Duration::from_secs(3);

/// A program that records from the sound card, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorder {
    /// PipeWire's.
    PwRecord,
    /// PulseAudio's.
    Parecord,
    /// ALSA's.
    Arecord,
}

impl Recorder {
    /// All of them, the best first.
    pub(crate) const ALL: [Self; 3] = [Self::PwRecord, Self::Parecord, Self::Arecord];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PwRecord => "pw-record",
            Self::Parecord => "parecord",
            Self::Arecord => "arecord",
        }
    }

    /// The first that this machine has, with the sound server it needs.
    pub(super) fn probe() -> Option<Self> {
        let found = first_of(&Self::ALL.map(Self::name))?;
        Self::ALL.into_iter().find(|one| one.name() == found)
    }

    /// The command that writes raw sound, 16-bit mono at 16 kHz, to its stdout.
    pub(super) async fn command(self) -> Vec<String> {
        let plain: &[&str] = match self {
            Self::PwRecord => &[
                "--rate=16000",
                "--channels=1",
                "--format=s16",
                "--latency=20ms",
                "-",
            ],
            Self::Parecord => &[
                "--raw",
                "--format=s16le",
                "--rate=16000",
                "--channels=1",
                "--latency-msec=20",
            ],
            Self::Arecord => &["-q", "-t", "raw", "-f", "S16_LE", "-r", "16000", "-c", "1"],
        };
        let mut words = vec![self.name().to_owned()];
        if self == Self::PwRecord && knows(self.name(), "--raw").await {
            // Older ones write raw sound to stdout without being told, and do not know the word; newer ones write a file otherwise.
            words.push("--raw".to_owned());
        }
        words.extend(plain.iter().map(|word| (*word).to_owned()));
        words
    }
}

async fn knows(program: &str, option: &str) -> bool {
    let command = [program.to_owned(), "--help".to_owned()];
    let Ok((_running, _, stdout)) = Running::start(&command) else {
        return false;
    };
    let help = timeout(HELP, read_some(stdout, 64 << 10)).await;
    help.is_ok_and(|help| memchr::memmem::find(&help, option.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_recorder_is_asked_for_what_is_heard() {
        for recorder in Recorder::ALL {
            let command = recorder.command().await;
            assert_eq!(command[0], recorder.name());
            let arguments = command[1..].join(" ");
            for word in ["16000", "16", "1"] {
                assert!(arguments.contains(word), "{command:?}");
            }
            assert!(!arguments.contains(".wav"), "{command:?}");
        }
    }

    #[tokio::test]
    async fn an_option_is_known_if_the_help_says_so() {
        assert!(knows("env", "--ignore-environment").await);
        assert!(!knows("env", "--no-such-option").await);
        assert!(!knows("/no/such/program", "--raw").await);
    }
}
