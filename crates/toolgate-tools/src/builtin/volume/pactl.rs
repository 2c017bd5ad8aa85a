//! Commands and output of PulseAudio's `pactl`, for all servers with its protocol.

use super::mixer::{MixerCommands, SinkState};

const SINK: &str = "@DEFAULT_SINK@";

pub(super) const COMMANDS: MixerCommands = MixerCommands {
    program: "pactl",
    state: &[&["get-sink-volume", SINK], &["get-sink-mute", SINK]],
    parse_state,
    set: &["set-sink-volume", SINK],
    mute: &["set-sink-mute", SINK],
    mute_words: ("1", "0"),
};

// `Volume: front-left: 26214 /  40% / -23.88 dB,   front-right: …`, the balance, `Mute: no`.
// The loudest channel counts.
fn parse_state(output: &str) -> Option<SinkState> {
    let field = |name: &str| output.lines().find_map(|line| line.strip_prefix(name));
    let channels = field("Volume: ")?
        .split(',')
        .map(percent)
        .collect::<Option<Vec<u32>>>()?;
    let muted = match field("Mute: ")? {
        "yes" => true,
        "no" => false,
        _ => return None,
    };
    Some(SinkState {
        level: channels.into_iter().max()?,
        muted: Some(muted),
    })
}

fn percent(channel: &str) -> Option<u32> {
    channel
        .split('/')
        .nth(1)?
        .trim()
        .strip_suffix('%')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_output_is_understood() {
        for (output, expected) in [
            (
                "Volume: front-left: 26214 /  40% / -23.88 dB,   front-right: 26214 /  40% / -23.88 dB\n        balance 0.00\nMute: no\n",
                Some((40, false)),
            ),
            (
                "Volume: front-left: 0 /   0% / -inf dB,   front-right: 655 /   1% / -120.01 dB\n        balance 1.00\nMute: yes\n",
                Some((1, true)),
            ),
            (
                "Volume: mono: 98304 / 150%\n        balance 0.00\nMute: no\n",
                Some((150, false)),
            ),
            ("Volume: mono: 98304 / 150%\nMute: maybe\n", None),
            ("Volume: mono: 98304 / 150%\n", None),
            (
                "Volume: front-left: 26214 /  40%, front-right: loud\nMute: no\n",
                None,
            ),
            ("Volume: (invalid)\nMute: no\n", None),
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
