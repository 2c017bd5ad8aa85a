//! Where in the table a call stands: a number made of its id, so that the table is sorted by time and needs no index of ids.
//!
//! An id is 48 bits of milliseconds, 8 of the process, 12 of a number within the millisecond, 20 more of the process and 40 of a
//! counter, in hexadecimal. A place is the milliseconds, 6 bits of the process and 14 of the counter. Two calls of one process
//! never have the same; where those of two processes do, the later one takes the next place that is free.

/// How far from its place a call may stand.
pub(crate) const NEARBY: i64 = 16;

/// The place of a call; of one whose id is not understood, the first of all.
pub(crate) fn of(id: &str) -> i64 {
    /// Of an id, in digits: all of it, the milliseconds and eight bits of the process, and all but the end of the counter.
    const DIGITS: (usize, usize, usize) = (32, 14, 28);
    let number = |digits: Option<&str>| i64::from_str_radix(digits?, 16).ok();
    let head = number(id.get(..DIGITS.1)).filter(|_| id.len() == DIGITS.0);
    let (Some(head), Some(end)) = (head, number(id.get(DIGITS.2..))) else {
        return 0;
    };
    let (process, counter) = (head >> 2 & 0x3f, end & 0x3fff);
    first_at(head >> 8) | process << 14 | counter
}

pub(crate) fn first_at(millis: i64) -> i64 {
    millis.clamp(0, (1 << 43) - 1) << 20
}

/// The places of all ids that begin like this: from the first up to, but not including, the second.
pub(crate) fn range(prefix: &str) -> (i64, i64) {
    let start = of(&format!("{prefix:0<32}")) >> 20;
    let end = of(&format!("{prefix:f<32}")) >> 20;
    (first_at(start), first_at(end + 1) + NEARBY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_core::ToolCall;

    use super::*;

    #[test]
    fn places_are_sorted_like_ids_and_found_by_their_beginning() {
        let calls: Vec<String> = (0..20_000)
            .map(|_| ToolCall::new("t", json!({})).id().to_string())
            .collect();
        for pair in calls.windows(2) {
            let same_millisecond = pair[0][..12] == pair[1][..12];
            // Other tests make calls as well: it need not be zero.
            let wraps = of(&pair[1]) & 0x3fff < of(&pair[0]) & 0x3fff;
            assert!(of(&pair[0]) < of(&pair[1]) || (same_millisecond && wraps));
        }
        for length in 1..=32 {
            let (start, end) = range(&calls[0][..length]);
            assert!((start..end).contains(&of(&calls[0])), "{length}");
        }
        let now = i64::from_str_radix(&calls[0][..12], 16).unwrap();
        assert_eq!(first_at(now), of(&calls[0]) >> 20 << 20);
        assert_eq!(of("no id"), 0);
    }
}
