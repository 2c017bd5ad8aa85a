//! Counts durations in buckets that grow by about a tenth each, so that they take little memory and
//! are exact enough for plots.

use std::time::Duration;

// In milliseconds.
const MIN_LATENCY_MS: f64 = 0.01;
// Buckets per doubling.
const BUCKETS_PER_DOUBLING: f64 = 8.0;
// The last bucket holds durations of about three minutes and all longer ones.
const LAST_BUCKET: u8 = 194;

// Upper bounds of the histogram in plots, in milliseconds.
pub(super) const BOUNDS_MS: [f64; 16] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
    10_000.0,
];

#[derive(Debug, Clone, Default)]
pub(crate) struct LatencyBuckets {
    // Counts by bucket, sorted. Only buckets in use are stored, because few are.
    buckets: Vec<(u8, u32)>,
    longest_ms: f64,
}

impl LatencyBuckets {
    pub(super) fn count(&mut self, elapsed: Duration) {
        let whole_micros = elapsed.as_micros() as f64 / 1e3;
        self.longest_ms = self.longest_ms.max(whole_micros);
        self.add(bucket(elapsed.as_secs_f64() * 1e3), 1);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        for (bucket, count) in &other.buckets {
            self.add(*bucket, *count);
        }
    }

    fn add(&mut self, bucket: u8, count: u32) {
        let buckets = &mut self.buckets;
        match buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => buckets[at].1 = buckets[at].1.saturating_add(count),
            Err(at) => buckets.insert(at, (bucket, count)),
        }
    }

    /// The time in milliseconds within which this share of the calls ended. `None` without calls.
    pub(crate) fn percentile(&self, share: f64) -> Option<f64> {
        let total: u64 = self
            .buckets
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum();
        let rank = (total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u64::from(*count);
            if seen >= rank {
                // The middle of a bucket may exceed every duration in it.
                return Some(round(middle(*bucket)).min(self.longest_ms));
            }
        }
        None
    }

    pub(super) fn histogram(&self) -> Vec<u64> {
        let mut counts = vec![0; BOUNDS_MS.len() + 1];
        for (bucket, count) in &self.buckets {
            let at = BOUNDS_MS.partition_point(|bound| *bound < middle(*bucket));
            counts[at] += u64::from(*count);
        }
        counts
    }
}

fn bucket(milliseconds: f64) -> u8 {
    let doublings = (milliseconds / MIN_LATENCY_MS).max(1.0).log2();
    ((doublings * BUCKETS_PER_DOUBLING) as u64).min(u64::from(LAST_BUCKET)) as u8
}

fn middle(bucket: u8) -> f64 {
    MIN_LATENCY_MS * ((f64::from(bucket) + 0.5) / BUCKETS_PER_DOUBLING).exp2()
}

/// More than three digits would be noise.
fn round(milliseconds: f64) -> f64 {
    let digits = 10f64.powf(2.0 - milliseconds.abs().log10().floor());
    (milliseconds * digits).round() / digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_tenth() {
        for (times, share, expected) in [
            (vec![1.0], 0.5, 1.0),
            ((1..=100).map(f64::from).collect(), 0.5, 50.0),
            ((1..=100).map(f64::from).collect(), 0.95, 95.0),
            (vec![0.02, 0.02, 900.0], 0.99, 900.0),
        ] {
            let mut latency = LatencyBuckets::default();
            for time in times {
                latency.count(Duration::from_secs_f64(time / 1e3));
            }
            let found = latency.percentile(share).unwrap();
            assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        }
        assert_eq!(LatencyBuckets::default().percentile(0.5), None);
    }

    #[test]
    fn no_percentile_is_beyond_the_longest_call() {
        let mut latency = LatencyBuckets::default();
        for time in [0.0, 0.002, 4510.0] {
            latency.count(Duration::from_secs_f64(time / 1e3));
            let found = latency.percentile(1.0).unwrap();
            assert_eq!(found, time);
        }
    }

    #[test]
    fn a_histogram_loses_nothing_and_centuries_fit_in() {
        let mut latency = LatencyBuckets::default();
        for time in [0.05, 0.15, 3.0, 9000.0, 1e12] {
            latency.count(Duration::from_secs_f64(time / 1e3));
        }
        let counts = latency.histogram();
        assert_eq!(counts.iter().sum::<u64>(), 5);
        assert_eq!((counts[0], counts[1], counts[16]), (1, 1, 1));
    }
}
