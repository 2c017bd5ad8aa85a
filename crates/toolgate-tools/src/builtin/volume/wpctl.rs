//! Commands and output of WirePlumber's `wpctl`, for PipeWire.

use super::mixer::{MixerCommands, SinkState};

const SINK: &str = "@DEFAULT_AUDIO_SINK@";

pub(super) const COMMANDS: MixerCommands = MixerCommands {
    program: "wpctl",
    state: &[&["get-volume", SINK]],
    parse_state,
    set: &["set-volume", SINK],
    mute: &["set-mute", SINK],
    mute_words: ("1", "0"),
};

/// `Volume: 0.40` or `Volume: 0.40 [MUTED]`
fn parse_state(output: &str) -> Option<SinkState> {
    let state = output.trim_end().strip_prefix("Volume: ")?;
    let (fraction, muted) = match state.strip_suffix(" [MUTED]") {
        Some(fraction) => (fraction, true),
        None => (state, false),
    };
    let (whole, hundredths) = fraction.split_once('.')?;
    let digits = format!("{whole}{hundredths}");
    let is_expected = hundredths.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let level = digits.parse().ok().filter(|_| is_expected)?;
    Some(SinkState {
        level,
        muted: Some(muted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_output_is_understood() {
        for (output, expected) in [
            ("Volume: 0.40\n", Some((40, false))),
            ("Volume: 0.40 [MUTED]\n", Some((40, true))),
            ("Volume: 1.00", Some((100, false))),
            ("Volume: 0.01", Some((1, false))),
            ("Volume: 1.53", Some((153, false))),
            ("Volume: 0.4", None),
            ("Volume: nan", None),
            ("Volume: -0.40", None),
            ("Volume: 0.+4", None),
            ("Volume: 99999999.00", None),
            ("Volume: 0.40 [LOUD]", None),
            ("Lautstärke: 0.40", None),
            ("", None),
        ] {
            assert_eq!(
                parse_state(output),
                expected.map(|(level, muted)| SinkState {
                    level,
                    muted: Some(muted)
                }),
                "{output}"
            );
        }
    }
}
