//! `amixer`, of ALSA, for machines without a sound server.

use super::mixer::{Language, Sink};

pub(super) const LANGUAGE: Language = Language {
    program: "amixer",
    look: &[&["-M", "sget", "Master"]],
    read,
    set: ORDER,
    mute: ORDER,
    mute_words: ("mute", "unmute"),
};

/// `-M` is the scale of loudness people hear, the one `alsamixer` shows.
const ORDER: &[&str] = &["-M", "sset", "Master"];

/// Lines like `Front Left: Playback 26214 [40%] [-23.88dB] [on]`. The loudest channel counts, and one that is on.
fn read(output: &str) -> Option<Sink> {
    let channels = output
        .lines()
        .filter_map(playback)
        .map(channel)
        .collect::<Option<Vec<Sink>>>()?;
    let level = channels.iter().map(|channel| channel.level).max()?;
    let switches: Vec<bool> = channels
        .iter()
        .filter_map(|channel| channel.muted)
        .collect();
    Some(Sink {
        level,
        muted: (!switches.is_empty()).then(|| switches.iter().all(|muted| *muted)),
    })
}

/// The part of a channel's line that is about playback; nothing for other lines.
fn playback(line: &str) -> Option<&str> {
    let (_, values) = line.split_once(": Playback ")?;
    let values = values.split("Capture").next()?;
    values.contains('[').then_some(values)
}

/// `26214 [40%] [-23.88dB] [on]`
fn channel(values: &str) -> Option<Sink> {
    let (mut level, mut muted) = (None, None);
    for value in values.split_whitespace().skip(1) {
        match value.strip_prefix('[')?.strip_suffix(']')? {
            "on" => muted = Some(false),
            "off" => muted = Some(true),
            decibels if decibels.ends_with("dB") => {}
            percent => level = Some(percent.strip_suffix('%')?.parse().ok()?),
        }
    }
    Some(Sink {
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
                read(&block(channels)),
                expected.map(|(level, muted)| Sink { level, muted }),
                "{channels}"
            );
        }
    }
}
