//! Logs wrong tokens, and delays responses once there are many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use parking_lot::Mutex;
use tracing::warn;

use super::rate::{RateKey, RateLimiter};
use crate::problem::Problem;

// How many wrong tokens an address may send, at once and per minute.
const ATTEMPTS: f64 = 10.0;
// How long such a response is delayed.
pub(super) const RESPONSE_DELAY: Duration = Duration::from_secs(1);
// How often one address is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
// Addresses that are tracked for logging.
const MAX_ADDRESSES: usize = 1024;

/// Counts wrong tokens by address. Valid tokens are never delayed: behind a proxy all callers share
/// one address, and a caller who guesses tokens must not lock out the others.
pub(crate) struct WrongTokens {
    rate: RateLimiter,
    unlogged: Arc<Mutex<HashMap<RateKey, u64>>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DelayedResponse;

impl Default for WrongTokens {
    fn default() -> Self {
        Self {
            rate: RateLimiter::new(ATTEMPTS, ATTEMPTS / 60.0),
            unlogged: Arc::default(),
        }
    }
}

impl WrongTokens {
    /// Counts a wrong token. Returns a refusal if the address has sent too many.
    pub(crate) fn record(&self, peer: IpAddr) -> Option<Response> {
        self.log_attempt(peer);
        let seconds = self.rate.take(peer.into()).err()?;
        let detail = format!("too many wrong tokens; try again in {seconds} s");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail);
        let mut response = problem.retry_after(seconds).into_response();
        response.extensions_mut().insert(DelayedResponse);
        Some(response)
    }

    /// Logs the first wrong token of an address at once, and the number of further
    /// ones once a minute.
    fn log_attempt(&self, peer: IpAddr) {
        let who = RateKey::from(peer);
        {
            let mut unlogged = self.unlogged.lock();
            if let Some(count) = unlogged.get_mut(&who) {
                *count += 1;
                return;
            }
            if unlogged.len() >= MAX_ADDRESSES {
                return;
            }
            unlogged.insert(who, 0);
        }
        warn!(from = %peer, count = 1, "received a wrong token");
        let weak = Arc::downgrade(&self.unlogged);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOG_INTERVAL).await;
                let Some(unlogged) = weak.upgrade() else {
                    return;
                };
                let mut unlogged = unlogged.lock();
                let count = unlogged.insert(who, 0).unwrap_or(0);
                if count == 0 {
                    unlogged.remove(&who);
                    return;
                }
                drop(unlogged);
                warn!(from = %peer, count, "received more wrong tokens");
            }
        });
    }
}
