//! How often one may ask.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Buckets kept at once; beyond that, whoever is new shares one.
const MOST: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Token(u64),
    /// An address; of IPv6 the half that a provider gives to one customer.
    V4([u8; 4]),
    V6([u8; 8]),
    /// Everybody there was no room for.
    Others,
}

impl From<IpAddr> for Who {
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

/// Token buckets: `burst` at once, then `per_second`.
pub(super) struct Rate {
    burst: f64,
    per_second: f64,
    buckets: Mutex<HashMap<Who, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    pub(super) fn new(burst: f64, per_second: f64) -> Self {
        Self {
            burst,
            per_second,
            buckets: Mutex::default(),
        }
    }

    /// Takes one; an error is the number of seconds after which there is one again.
    pub(super) fn take(&self, who: Who) -> Result<(), u32> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        let full = Bucket {
            left: self.burst,
            at: now,
        };
        let who = if buckets.contains_key(&who) || self.has_room(&mut buckets, now) {
            who
        } else {
            Who::Others
        };
        let bucket = buckets.entry(who).or_insert(full);
        bucket.left = self.level(bucket, now);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - bucket.left) / self.per_second;
        Err(seconds.ceil().max(1.0) as u32)
    }

    fn has_room(&self, buckets: &mut HashMap<Who, Bucket>, now: Instant) -> bool {
        if buckets.len() >= MOST {
            // One that is full again is as good as none.
            buckets.retain(|_, bucket| self.level(bucket, now) < self.burst);
        }
        buckets.len() < MOST
    }

    fn level(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_second).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn v4(last: u8) -> Who {
        Who::from(IpAddr::from([10, 0, 0, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_fills_again() {
        let rate = Rate::new(10.0, 10.0 / 60.0);
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
            "it holds no more than it holds"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_take_no_more_memory_and_share_what_is_left() {
        let rate = Rate::new(2.0, 1.0);
        let of = |number: u32| Who::from(IpAddr::from(number.to_be_bytes()));
        for number in 0..MOST as u32 {
            assert_eq!(rate.take(of(number)), Ok(()));
        }
        assert_eq!(rate.take(of(1_000_000)), Ok(()));
        assert_eq!(rate.take(of(1_000_001)), Ok(()));
        assert_eq!(rate.take(of(1_000_002)), Err(1));
        assert_eq!(rate.buckets.lock().len(), MOST + 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(rate.take(of(1_000_003)), Ok(()));
        assert_eq!(rate.buckets.lock().len(), 1, "full buckets are let go");
    }

    #[test]
    fn neighbours_behind_one_ipv6_prefix_are_one() {
        let who = |ip: &str| Who::from(ip.parse::<IpAddr>().unwrap());
        assert_eq!(who("2001:db8::1"), who("2001:db8::ffff:1"));
        assert_ne!(who("2001:db8::1"), who("2001:db8:1::1"));
        assert_eq!(who("::ffff:10.0.0.1"), who("10.0.0.1"));
    }
}
