//! [`nearest_names`]: suggestions for misspelled names.

const MIN_SIMILARITY: f64 = 0.6;

/// Returns up to `max` candidates that resemble `wanted`, best first.
///
/// They differ only in case and separators or by a few typing errors, or one contains the other.
pub fn nearest_names<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<String> {
    // The time for each candidate grows with the square of the length.
    const MAX_LEN: usize = 100;
    if wanted.is_empty() || wanted.len() > MAX_LEN {
        return Vec::new();
    }
    let wanted = plain(wanted);
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LEN)
        .map(|candidate| (similarity(&wanted, &plain(candidate)), candidate))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    scored
        .into_iter()
        .take(max)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn similarity(wanted: &str, candidate: &str) -> f64 {
    let (short, long) = if wanted.len() < candidate.len() {
        (wanted, candidate)
    } else {
        (candidate, wanted)
    };
    // "time" for "datetime", "get_weather" for "weather". Two letters are contained in too many
    // names.
    let inside = short.len() >= 3 && long.contains(short);
    let length = long.len().max(1) as f64;
    let typed = match short.len() as f64 / length {
        // The lengths alone differ too much, so the expensive distance isn't needed.
        upper_bound if upper_bound < MIN_SIMILARITY => upper_bound,
        _ => 1.0 - strsim::osa_distance(short, long) as f64 / length,
    };
    if inside { typed.max(0.7) } else { typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_found() {
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
            assert_eq!(nearest_names(wanted, names, 3), expected, "{wanted}");
        }
        assert!(nearest_names(&"a".repeat(1_000_000), names, 3).is_empty());
    }

    #[test]
    fn no_more_than_max_names_are_returned() {
        assert_eq!(
            nearest_names("tool", ["tool1", "tool2", "tool3", "tool4"], 3),
            ["tool1", "tool2", "tool3"]
        );
    }
}
