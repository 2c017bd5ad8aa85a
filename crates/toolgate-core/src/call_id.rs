//! [`CallId`]: tells calls apart, in every process and over restarts.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::text::Hex;

/// Identifies one call. Ids are unique across processes and machines, and sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u128);

impl CallId {
    // From the highest bit: 48 bits of milliseconds, 8 random bits of the process, 12 bits that
    // count calls within the millisecond, 20 more random bits of the process, a counter of 40 bits.
    // The first 17 digits are unique within a process, so people can abbreviate ids.
    pub(crate) fn next() -> Self {
        static PROCESS: LazyLock<u64> =
            LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let tick = u128::from(next_tick());
        let (millis, in_millisecond) = (tick >> TICK_BITS, tick & ((1 << TICK_BITS) - 1));
        let (process_high, process_low) = (
            u128::from(*PROCESS >> 56),
            u128::from(*PROCESS >> 36 & 0xf_ffff),
        );
        let counter = u128::from(COUNTER.fetch_add(1, Ordering::Relaxed)) & 0xff_ffff_ffff;
        Self(millis << 80 | process_high << 72 | in_millisecond << 60 | process_low << 40 | counter)
    }

    pub(crate) fn as_u128(self) -> u128 {
        self.0
    }
}

// Bits that count calls within a millisecond.
const TICK_BITS: u32 = 12;

// Strictly increasing. When a millisecond runs out of ticks, the next millisecond's are used.
fn next_tick() -> u64 {
    // If the clock was set back by more than this, ids follow the clock.
    const MAX_AHEAD_MILLIS: u64 = 1000;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.unwrap_or_default().as_millis() as u64;
    // Ids must sort by time even if the clock steps back a little, so an earlier time
    // only adds a tick.
    let now = millis << TICK_BITS;
    let after = |last: u64| match last >= now && last < now + (MAX_AHEAD_MILLIS << TICK_BITS) {
        true => last + 1,
        false => now,
    };
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(after(last))
    });
    last.map_or(now, after)
}

impl FromStr for CallId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Hex::<32>::new(self.0).as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_sorted() {
        let ids: Vec<CallId> = (0..10_000).map(|_| CallId::next()).collect();
        assert!(ids.is_sorted());
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ids[0].to_string().len(), 32);
        assert_eq!(ids[0].to_string().parse(), Ok(ids[0]));
        let short: std::collections::HashSet<String> = ids
            .iter()
            .map(|id| id.to_string()[..17].to_owned())
            .collect();
        assert_eq!(short.len(), ids.len(), "17 digits tell them apart");
    }
}
