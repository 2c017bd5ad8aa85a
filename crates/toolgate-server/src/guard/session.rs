//! Sessions: a browser that has signed in shows a cookie instead of the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::token::digest;

/// How long one lasts.
const LIFE: Duration = Duration::from_secs(12 * 3600);
/// With more the oldest ends.
const MOST: usize = 1024;
pub(crate) const COOKIE: &str = "toolgate_session";

/// The sessions there are, by the hash of their id: what an attacker could learn from the time of a look-up is worth nothing.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    /// The token it was opened with.
    number: u64,
    ends: Instant,
}

impl Sessions {
    /// Opens one; the answer is the cookie to set. Nothing if the system has no randomness to give.
    pub(crate) fn open(&self, number: u64) -> Option<HeaderValue> {
        let mut id = [0_u8; 32];
        getrandom::fill(&mut id).ok()?;
        let id = BASE64_URL_SAFE_NO_PAD.encode(id);
        let now = Instant::now();
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.ends > now);
        if sessions.len() >= MOST {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.ends);
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                sessions.remove(&oldest);
            }
        }
        let ends = now + LIFE;
        sessions.insert(digest(id.as_bytes()), Session { number, ends });
        HeaderValue::from_maybe_shared(cookie(&id, LIFE)).ok()
    }

    /// The token with which the shown session was opened.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<u64> {
        let hash = digest(shown(headers)?.as_bytes());
        let mut sessions = self.lock();
        let session = sessions.get(&hash)?;
        if session.ends > Instant::now() {
            return Some(session.number);
        }
        sessions.remove(&hash);
        None
    }

    /// Ends the shown session; the answer is the cookie that takes it from the browser.
    pub(crate) fn close(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if let Some(id) = shown(headers) {
            self.lock().remove(&digest(id.as_bytes()));
        }
        HeaderValue::from_maybe_shared(cookie("", Duration::ZERO)).ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without `Secure`: a browser would not keep it on plain HTTP, and this gateway speaks nothing else. A proxy that adds TLS
/// can add the attribute too.
fn cookie(id: &str, life: Duration) -> String {
    let seconds = life.as_secs();
    format!("{COOKIE}={id}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict")
}

/// The session a request shows. One that shows two shows none: somebody else may have planted the other.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|cookie| cookie.to_str().ok())
        .flat_map(|cookie| cookie.split(';'));
    let mut ids = pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    let id = ids.next()?;
    ids.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(
            header::COOKIE,
            format!("theme=dark; {pair}").parse().unwrap(),
        )])
    }

    fn open(sessions: &Sessions, number: u64) -> HeaderMap {
        headers(sessions.open(number).unwrap().to_str().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_twelve_hours() {
        let sessions = Sessions::default();
        let shown = open(&sessions, 3);
        assert_eq!(sessions.find(&shown), Some(3));
        tokio::time::advance(LIFE - Duration::from_secs(1)).await;
        assert_eq!(sessions.find(&shown), Some(3));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(sessions.find(&shown), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_session_is_gone_and_others_stay() {
        let sessions = Sessions::default();
        let (first, second) = (open(&sessions, 1), open(&sessions, 2));
        let cookie = sessions.close(&first).unwrap();
        assert!(cookie.to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(
            (sessions.find(&first), sessions.find(&second)),
            (None, Some(2))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_makes_room() {
        let sessions = Sessions::default();
        let first = open(&sessions, 1);
        for _ in 0..MOST {
            tokio::time::advance(Duration::from_secs(1)).await;
            open(&sessions, 2);
        }
        assert_eq!(sessions.find(&first), None);
        assert_eq!(sessions.lock().len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_session_opens_nothing() {
        let sessions = Sessions::default();
        let cookie = sessions.open(1).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(
            cookie.ends_with("; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"),
            "{cookie}"
        );
        let id = cookie.split(['=', ';']).nth(1).unwrap();
        assert_eq!(id.len(), 43, "256 bits");
        let guesses = [
            "toolgate_session=",
            "toolgate_session=x",
            "toolgate_sessions=",
            "x=y",
        ];
        for guess in guesses {
            assert_eq!(sessions.find(&headers(guess)), None, "{guess}");
        }
        let twice = format!("toolgate_session={id}; toolgate_session={id}");
        let twice = HeaderMap::from_iter([(header::COOKIE, twice.parse().unwrap())]);
        assert_eq!(sessions.find(&twice), None);
    }
}
