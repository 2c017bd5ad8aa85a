//! Suggestions for names that do not exist.

/// How similar a suggestion must be.
const ALIKE: f64 = 0.6;

/// Up to `most` candidates that look like `wanted`, best first: the same but for case and separators, one inside the other,
/// or a few typing errors away.
///
/// ```
/// assert_eq!(toolgate_core::nearest("math_evl", ["echo", "math_eval", "search"], 3), ["math_eval"]);
/// ```
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<String> {
    /// The time goes with the square of it, for each candidate.
    const LONGEST: usize = 100;
    if wanted.is_empty() || wanted.len() > LONGEST {
        return Vec::new();
    }
    let wanted = plain(wanted);
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (similarity(&wanted, &plain(candidate)), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    scored
        .into_iter()
        .take(most)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// From 0 to 1.
fn similarity(wanted: &str, candidate: &str) -> f64 {
    let (short, long) = if wanted.len() < candidate.len() {
        (wanted, candidate)
    } else {
        (candidate, wanted)
    };
    // "time" for "datetime", "get_weather" for "weather"; two letters are inside of anything.
    let inside = short.len() >= 3 && long.contains(short);
    let length = long.len().max(1) as f64;
    let typed = match short.len() as f64 / length {
        // Letters that are missing are typing errors already.
        hopeless if hopeless < ALIKE => hopeless,
        _ => 1.0 - strsim::osa_distance(short, long) as f64 / length,
    };
    if inside { typed.max(0.7) } else { typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_found_and_strangers_are_not() {
        let names = [
            "control_zwave_device",
            "datetime",
            "echo",
            "math_eval",
            "search",
            "volume",
        ];
        for (wanted, expected) in [
            ("math_evl", vec!["math_eval"]),
            ("mathEval", vec!["math_eval"]),
            ("MATH-EVAL", vec!["math_eval"]),
            ("ehco", vec!["echo"]),
            ("time", vec!["datetime"]),
            ("zwave_device", vec!["control_zwave_device"]),
            ("frobnicate", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest(wanted, names, 3), expected, "{wanted}");
        }
        assert!(nearest(&"a".repeat(1_000_000), names, 3).is_empty());
    }

    #[test]
    fn at_most_as_many_as_wanted() {
        assert_eq!(
            nearest("tool", ["tool1", "tool2", "tool3", "tool4"], 3),
            ["tool1", "tool2", "tool3"]
        );
    }
}
