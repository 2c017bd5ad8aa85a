//! Known recording programs and their command lines.

use std::time::Duration;

use tokio::time::timeout;

use super::child_program::{ChildProgram, read_up_to};

const HELP_TIMEOUT: Duration = Duration::from_secs(3);

/// Known recording programs, in order of preference.
pub(crate) const RECORDERS: [&str; 3] = ["pw-record", "parecord", "arecord"];

/// The command line that writes raw 16-bit mono at 16 kHz to stdout.
pub(super) async fn recorder_command(recorder: &str) -> Vec<String> {
    let line = match recorder {
        // Older versions write raw sound to stdout anyway and reject the option. Newer ones would
        // write a file header.
        "pw-record" if supports_option(recorder, "--raw").await => {
            "pw-record --raw --rate=16000 --channels=1 --format=s16 --latency=20ms -"
        }
        "pw-record" => "pw-record --rate=16000 --channels=1 --format=s16 --latency=20ms -",
        "parecord" => "parecord --raw --format=s16le --rate=16000 --channels=1 --latency-msec=20",
        _ => "arecord -q -t raw -f S16_LE -r 16000 -c 1",
    };
    line.split(' ').map(str::to_owned).collect()
}

async fn supports_option(program: &str, option: &str) -> bool {
    let command = [program.to_owned(), "--help".to_owned()];
    let Ok((_running, _, stdout)) = ChildProgram::start(&command) else {
        return false;
    };
    let help = timeout(HELP_TIMEOUT, read_up_to(stdout, 64 << 10)).await;
    help.is_ok_and(|help| memchr::memmem::find(&help, option.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_recorder_is_asked_for_the_capture_format() {
        for recorder in RECORDERS {
            let command = recorder_command(recorder).await;
            assert_eq!(command[0], recorder);
            let arguments = command[1..].join(" ");
            for word in ["16000", "16", "1"] {
                assert!(arguments.contains(word), "{command:?}");
            }
            assert!(!arguments.contains(".wav"), "{command:?}");
        }
    }

    #[tokio::test]
    async fn option_is_supported_if_the_help_lists_it() {
        assert!(supports_option("env", "--ignore-environment").await);
        assert!(!supports_option("env", "--no-such-option").await);
        assert!(!supports_option("/no/such/program", "--raw").await);
    }
}
