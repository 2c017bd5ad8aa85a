//! Limits how often a caller may send requests.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use tokio::time::Instant;

// Beyond this many buckets, new callers share one.
const MAX_BUCKETS: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RateKey {
    Token(u64),
    // An address. For IPv6 only the first 64 bits, because a customer usually gets a whole prefix.
    V4([u8; 4]),
    V6([u8; 8]),
    // Shared by all callers without their own bucket.
    Others,
}

impl From<IpAddr> for RateKey {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// Token buckets that hold `burst` and refill at `per_second`.
pub(super) struct RateLimiter {
    burst: f64,
    per_second: f64,
    buckets: Mutex<HashMap<RateKey, TokenBucket>>,
}

#[derive(Clone, Copy)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl RateLimiter {
    pub(super) fn new(burst: f64, per_second: f64) -> Self {
        Self {
            burst,
            per_second,
            buckets: Mutex::default(),
        }
    }

    /// Takes a token. The error is the number of seconds until there is one.
    pub(super) fn take(&self, who: RateKey) -> Result<(), u32> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        let has_bucket = buckets.contains_key(&who) || self.has_room(&mut buckets, now);
        let who = if has_bucket { who } else { RateKey::Others };
        let (left, at) = (self.burst, now);
        let bucket = buckets.entry(who).or_insert(TokenBucket { left, at });
        bucket.left = self.level(bucket, now);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - bucket.left) / self.per_second;
        Err(seconds.ceil().max(1.0) as u32)
    }

    fn has_room(&self, buckets: &mut HashMap<RateKey, TokenBucket>, now: Instant) -> bool {
        if buckets.len() >= MAX_BUCKETS {
            // A full bucket behaves like a new one.
            buckets.retain(|_, bucket| self.level(bucket, now) < self.burst);
        }
        buckets.len() < MAX_BUCKETS
    }

    fn level(&self, bucket: &TokenBucket, now: Instant) -> f64 {
        let passed = now.duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_second).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn v4(last: u8) -> RateKey {
        RateKey::from(IpAddr::from([10, 0, 0, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_fills_again() {
        let rate = RateLimiter::new(10.0, 10.0 / 60.0);
        assert!((0..10).all(|_| rate.take(v4(1)).is_ok()));
        assert_eq!(rate.take(v4(1)), Err(6));
        assert_eq!(rate.take(v4(2)), Ok(()), "another has its own");
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(rate.take(v4(1)), Ok(()));
        assert_eq!(rate.take(v4(1)), Err(6));
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(
            (0..20).filter(|_| rate.take(v4(1)).is_ok()).count(),
            10,
            "a bucket never holds more than the burst"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_maximum_new_addresses_share_a_bucket() {
        let rate = RateLimiter::new(2.0, 1.0);
        let of = |number: u32| RateKey::from(IpAddr::from(number.to_be_bytes()));
        for number in 0..MAX_BUCKETS as u32 {
            assert_eq!(rate.take(of(number)), Ok(()));
        }
        assert_eq!(rate.take(of(1_000_000)), Ok(()));
        assert_eq!(rate.take(of(1_000_001)), Ok(()));
        assert_eq!(rate.take(of(1_000_002)), Err(1));
        assert_eq!(rate.buckets.lock().len(), MAX_BUCKETS + 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(rate.take(of(1_000_003)), Ok(()));
        assert_eq!(rate.buckets.lock().len(), 1, "full buckets are dropped");
    }

    #[test]
    fn addresses_with_the_same_ipv6_prefix_share_a_bucket() {
        let who = |ip: &str| RateKey::from(ip.parse::<IpAddr>().unwrap());
        assert_eq!(who("2001:db8::1"), who("2001:db8::ffff:1"));
        assert_ne!(who("2001:db8::1"), who("2001:db8:1::1"));
        assert_eq!(who("::ffff:10.0.0.1"), who("10.0.0.1"));
    }
}
