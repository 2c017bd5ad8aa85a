//! Wrong tokens: told to the operator, and answered slowly once there are many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use parking_lot::Mutex;
use tracing::warn;

use super::rate::{Rate, Who};
use crate::problem::Problem;

/// Wrong tokens from one address, at once and per minute.
const ATTEMPTS: f64 = 10.0;
/// How long an answer beyond that is kept back.
pub(super) const SLOW: Duration = Duration::from_secs(1);
/// One address is told of this often.
const TOLD: Duration = Duration::from_secs(60);
/// Addresses that are told of at once.
const MOST: usize = 1024;

/// Counts wrong tokens by where they come from. A right one never passes here: behind a proxy everybody comes from one address,
/// and whoever guesses there must not keep the others out.
pub(super) struct WrongTokens {
    rate: Rate,
    untold: Arc<Mutex<HashMap<Who, u64>>>,
}

/// Marks an answer that is kept back for [`SLOW`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowly;

impl Default for WrongTokens {
    fn default() -> Self {
        Self {
            rate: Rate::new(ATTEMPTS, ATTEMPTS / 60.0),
            untold: Arc::default(),
        }
    }
}

impl WrongTokens {
    /// Counts one. If there were too many, this is the answer.
    pub(super) fn note(&self, peer: IpAddr) -> Option<Response> {
        self.tell(peer);
        let seconds = self.rate.take(peer.into()).err()?;
        let detail = format!("that were too many wrong tokens; try again in {seconds} s");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail);
        let mut response = problem.retry_after(seconds).into_response();
        response.extensions_mut().insert(Slowly);
        Some(response)
    }

    /// The first at once; what follows is counted, and told once a minute.
    fn tell(&self, peer: IpAddr) {
        let who = Who::from(peer);
        {
            let mut untold = self.untold.lock();
            if let Some(count) = untold.get_mut(&who) {
                *count += 1;
                return;
            }
            if untold.len() >= MOST {
                return;
            }
            untold.insert(who, 0);
        }
        warn!(from = %peer, count = 1, "somebody shows a wrong token");
        let untold = Arc::downgrade(&self.untold);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TOLD).await;
                let Some(untold) = untold.upgrade() else {
                    return;
                };
                let mut untold = untold.lock();
                let count = untold.insert(who, 0).unwrap_or(0);
                if count == 0 {
                    untold.remove(&who);
                    return;
                }
                drop(untold);
                warn!(from = %peer, count, "somebody shows wrong tokens");
            }
        });
    }
}
