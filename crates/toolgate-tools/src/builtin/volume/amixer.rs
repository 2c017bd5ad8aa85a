//! Commands and output of ALSA's `amixer`, for machines without a sound server.

use super::mixer::{MixerCommands, SinkState};

pub(super) const COMMANDS: MixerCommands = MixerCommands {
    program: "amixer",
    state: &[&["-M", "sget", "Master"]],
    parse_state,
    set: SET_MASTER,
    mute: SET_MASTER,
    mute_words: ("mute", "unmute"),
};

// `-M` is the scale of perceived loudness, which `alsamixer` shows.
const SET_MASTER: &[&str] = &["-M", "sset", "Master"];

// Lines like `Front Left: Playback 26214 [40%] [-23.88dB] [on]`. The loudest channel counts, and
// the sound is on if any channel is.
fn parse_state(output: &str) -> Option<SinkState> {
    let channels = output
        .lines()
        .filter_map(playback)
        .map(channel)
        .collect::<Option<Vec<SinkState>>>()?;
    let level = channels.iter().map(|channel| channel.level).max()?;
    let switches: Vec<bool> = channels
        .iter()
        .filter_map(|channel| channel.muted)
        .collect();
    Some(SinkState {
        level,
        muted: (!switches.is_empty()).then(|| switches.iter().all(|muted| *muted)),
    })
}

/// The playback part of a channel's line; `None` for other lines.
fn playback(line: &str) -> Option<&str> {
    let (_, values) = line.split_once(": Playback ")?;
    let values = values.split("Capture").next()?;
    values.contains('[').then_some(values)
}

/// `26214 [40%] [-23.88dB] [on]`
fn channel(values: &str) -> Option<SinkState> {
    let (mut level, mut muted) = (None, None);
    for value in values.split_whitespace().skip(1) {
        match value.strip_prefix('[')?.strip_suffix(']')? {
            "on" => muted = Some(false),
            "off" => muted = Some(true),
            decibels if decibels.ends_with("dB") => {}
            percent => level = Some(percent.strip_suffix('%')?.parse().ok()?),
        }
    }
    Some(SinkState {
        level: level?,
        muted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(channels: &str) -> String {
        format!(
            "Simple mixer control 'Master',0\n  Capabilities: pvolume pswitch pswitch-joined\n  Playback channels: Front Left - \
             Front Right\n  Limits: Playback 0 - 65536\n{channels}"
        )
    }

    #[test]
    fn only_the_expected_output_is_understood() {
        for (channels, expected) in [
            (
                "  Mono:\n  Front Left: Playback 26214 [40%] [on]\n  Front Right: Playback 26214 [40%] [on]\n",
                Some((40, Some(false))),
            ),
            (
                "  Front Left: Playback 26214 [40%] [off]\n  Front Right: Playback 0 [0%] [off]\n",
                Some((40, Some(true))),
            ),
            (
                "  Front Left: Playback 1 [1%] [off]\n  Front Right: Playback 2 [2%] [on]\n",
                Some((2, Some(false))),
            ),
            (
                "  Mono: Playback 60 [69%] [-20.25dB] [on]\n",
                Some((69, Some(false))),
            ),
            (
                "  Mono: Playback 60 [69%] [on] Capture 0 [0%] [off]\n",
                Some((69, Some(false))),
            ),
            ("  Mono: Playback 255 [100%] [0.00dB]\n", Some((100, None))),
            ("  Mono: Playback [on]\n", None),
            ("  Mono: Playback 60 [loud] [on]\n", None),
            ("  Mono: Playback 60 [40%] on\n", None),
            ("", None),
        ] {
            assert_eq!(
                parse_state(&block(channels)),
                expected.map(|(level, muted)| SinkState { level, muted }),
                "{channels}"
            );
        }
    }
}
