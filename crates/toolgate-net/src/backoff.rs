//! Delays between retries.

use std::ops::Range;
use std::time::Duration;

/// Returns `first` doubled `doublings` times, at most `max`. Before the first retry
/// there are zero doublings.
pub fn backoff(first: Duration, doublings: u32, max: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(doublings))
        .min(max)
}

/// Multiplies a delay by a random factor from `factors`, so that many clients don't retry
/// at the same time.
pub fn jitter(delay: Duration, factors: Range<f64>) -> Duration {
    let factor = factors.start + (factors.end - factors.start) * fastrand::f64();
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_values_do_not_overflow() {
        let delay = backoff(Duration::MAX, u32::MAX, Duration::MAX);
        assert_eq!(delay, Duration::MAX);
        assert_eq!(jitter(delay, 1.5..2.0), Duration::MAX);
        let nothing = backoff(Duration::ZERO, u32::MAX, Duration::MAX);
        assert_eq!(jitter(nothing, 0.5..1.0), Duration::ZERO);
    }

    #[test]
    fn jitter_covers_its_range_and_stays_within_it() {
        let delays: Vec<f64> = (0..1000)
            .map(|_| jitter(Duration::from_secs(1), 0.75..1.25).as_secs_f64())
            .collect();
        assert!(delays.iter().all(|delay| (0.75..=1.25).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < 0.8));
        assert!(delays.iter().any(|delay| *delay > 1.2));
    }
}
