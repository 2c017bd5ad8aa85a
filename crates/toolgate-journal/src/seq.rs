//! Computes `seq`, the primary key of a call, from the call's id. So the table is sorted by time
//! and needs no index of ids.
//!
//! An id is 48 bits of milliseconds, 8 of the process, 12 of a number within the millisecond, 20
//! more of the process and 40 of a counter, in hexadecimal. A `seq` is the milliseconds, 6 bits of
//! the process and 14 of the counter. Two calls of one process never have the same `seq`. If calls
//! of two processes do, the later one takes the next free number.

/// How many numbers are tried for a call, beginning with the one computed from its id.
pub(crate) const MAX_PROBES: i64 = 16;

/// The first `seq` to try for a call, or 0 if the id can't be parsed.
pub(crate) fn for_id(id: &str) -> i64 {
    /// Digits of an id: all of it, the milliseconds and eight bits of the process, and everything
    /// but the end of the counter.
    const DIGITS: (usize, usize, usize) = (32, 14, 28);
    let number = |digits: Option<&str>| i64::from_str_radix(digits?, 16).ok();
    let head = number(id.get(..DIGITS.1)).filter(|_| id.len() == DIGITS.0);
    let (Some(head), Some(end)) = (head, number(id.get(DIGITS.2..))) else {
        return 0;
    };
    let (process, counter) = (head >> 2 & 0x3f, end & 0x3fff);
    first_at(head >> 8) | process << 14 | counter
}

/// The smallest `seq` of calls in this millisecond since 1970.
pub(crate) fn first_at(millis: i64) -> i64 {
    millis.clamp(0, (1 << 43) - 1) << 20
}

/// The half-open range of `seq` of all calls whose id has this prefix.
pub(crate) fn range_for_prefix(prefix: &str) -> (i64, i64) {
    let start = for_id(&format!("{prefix:0<32}")) >> 20;
    let end = for_id(&format!("{prefix:f<32}")) >> 20;
    (first_at(start), first_at(end + 1) + MAX_PROBES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_core::ToolCall;

    use super::*;

    #[test]
    fn seqs_are_sorted_like_ids_and_found_by_prefix() {
        let calls: Vec<String> = (0..20_000)
            .map(|_| ToolCall::new("t", json!({})).id().to_string())
            .collect();
        for pair in calls.windows(2) {
            let same_millisecond = pair[0][..12] == pair[1][..12];
            // Other tests make calls as well, so the counter may wrap around in between.
            let wraps = for_id(&pair[1]) & 0x3fff < for_id(&pair[0]) & 0x3fff;
            assert!(for_id(&pair[0]) < for_id(&pair[1]) || (same_millisecond && wraps));
        }
        for length in 1..=32 {
            let (start, end) = range_for_prefix(&calls[0][..length]);
            assert!((start..end).contains(&for_id(&calls[0])), "{length}");
        }
        let now = i64::from_str_radix(&calls[0][..12], 16).unwrap();
        assert_eq!(first_at(now), for_id(&calls[0]) >> 20 << 20);
        assert_eq!(for_id("no id"), 0);
    }
}
