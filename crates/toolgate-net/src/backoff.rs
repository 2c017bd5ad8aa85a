//! How long to wait before the next try. Each caller says how far a delay may move at random.

use std::ops::Range;
use std::time::Duration;

/// The delay after a number of `failures` in a row, of which the current one isn't counted:
/// `first`, doubled with each, up to `longest`.
///
/// ```
/// use std::time::Duration;
/// use toolgate_net::backoff;
///
/// let [first, longest] = [2, 15].map(Duration::from_secs);
/// let delays = [0, 1, 2, 3, 1000].map(|failures| backoff(first, failures, longest).as_secs());
/// assert_eq!(delays, [2, 4, 8, 15, 15]);
/// ```
pub fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(longest)
}

/// A delay times a random factor in `factors`, so that many clients don't come back in step.
///
/// ```
/// use std::time::Duration;
///
/// let delay = toolgate_net::jittered(Duration::from_secs(10), 0.5..1.0);
/// assert!((5.0..=10.0).contains(&delay.as_secs_f64()));
/// ```
pub fn jittered(delay: Duration, factors: Range<f64>) -> Duration {
    let factor = factors.start + (factors.end - factors.start) * fastrand::f64();
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_failures_overflows() {
        let delay = backoff(Duration::MAX, u32::MAX, Duration::MAX);
        assert_eq!(delay, Duration::MAX);
        assert_eq!(jittered(delay, 1.5..2.0), Duration::MAX);
        let nothing = backoff(Duration::ZERO, u32::MAX, Duration::MAX);
        assert_eq!(jittered(nothing, 0.5..1.0), Duration::ZERO);
    }

    #[test]
    fn jitter_uses_all_of_its_range_and_no_more() {
        let delays: Vec<f64> = (0..1000)
            .map(|_| jittered(Duration::from_secs(1), 0.75..1.25).as_secs_f64())
            .collect();
        assert!(delays.iter().all(|delay| (0.75..=1.25).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < 0.8));
        assert!(delays.iter().any(|delay| *delay > 1.2));
    }
}
