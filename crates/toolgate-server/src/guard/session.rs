//! Browser sessions: after signing in, a cookie identifies the caller instead of a token.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

use super::token::digest;

const LIFETIME: Duration = Duration::from_secs(12 * 3600);
// If there are more, the oldest session ends.
const MAX_SESSIONS: usize = 1024;
/// The port becomes part of the name, because browsers send a cookie to every port of a host, and
/// other programs listen there.
pub(crate) const COOKIE: &str = "toolgate_session";
// Browsers accept this prefix over HTTPS only, and from this very host.
const HOST_ONLY: &str = "__Host-";

/// Sessions by the hash of their id, so that the time of a lookup reveals nothing useful.
pub(crate) struct BrowserSessions {
    name: String,
    all: Mutex<HashMap<[u8; 32], BrowserSession>>,
}

struct BrowserSession {
    number: u64,
    ends: Instant,
}

impl BrowserSessions {
    pub(crate) fn new(port: u16) -> Self {
        Self {
            name: format!("{COOKIE}_{port}"),
            all: Mutex::default(),
        }
    }

    /// Opens a session and returns its cookie. Fails if the system has no random numbers.
    pub(crate) fn open(&self, number: u64, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut id = [0_u8; 32];
        SystemRandom::new().fill(&mut id).ok()?;
        let id = BASE64_URL_SAFE_NO_PAD.encode(id);
        let now = Instant::now();
        let mut sessions = self.all.lock();
        sessions.retain(|_, session| session.ends > now);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.ends);
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                sessions.remove(&oldest);
            }
        }
        let ends = now + LIFETIME;
        sessions.insert(digest(id.as_bytes()), BrowserSession { number, ends });
        HeaderValue::from_maybe_shared(self.cookie(&id, LIFETIME, headers)).ok()
    }

    pub(super) fn find(&self, headers: &HeaderMap) -> Option<u64> {
        let hash = digest(self.session_id(headers)?.as_bytes());
        let mut sessions = self.all.lock();
        let session = sessions.get(&hash)?;
        if session.ends > Instant::now() {
            return Some(session.number);
        }
        sessions.remove(&hash);
        None
    }

    pub(crate) fn close(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if let Some(id) = self.session_id(headers) {
            self.all.lock().remove(&digest(id.as_bytes()));
        }
        HeaderValue::from_maybe_shared(self.cookie("", Duration::ZERO, headers)).ok()
    }

    /// Without `Secure` on plain HTTP, where a browser would drop it. Behind a TLS proxy the
    /// page's origin reveals HTTPS.
    fn cookie(&self, id: &str, life: Duration, headers: &HeaderMap) -> String {
        let (name, seconds) = (&self.name, life.as_secs());
        let attributes = format!("Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict");
        let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
        match origin.is_some_and(|origin| origin.starts_with(b"https://")) {
            true => format!("{HOST_ONLY}{name}={id}; {attributes}; Secure"),
            false => format!("{name}={id}; {attributes}"),
        }
    }

    /// Returns the id of a request's session. If there are two, neither counts, because somebody
    /// else may have planted one.
    fn session_id<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let pairs = cookies
            .filter_map(|cookie| cookie.to_str().ok())
            .flat_map(|cookie| cookie.split(';'));
        let mut ids = pairs.filter_map(|pair| {
            let pair = pair.trim();
            let pair = pair.strip_prefix(HOST_ONLY).unwrap_or(pair);
            pair.strip_prefix(&*self.name)?.strip_prefix('=')
        });
        let id = ids.next()?;
        ids.next().is_none().then_some(id)
    }
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

    fn open(sessions: &BrowserSessions, number: u64) -> HeaderMap {
        headers(
            sessions
                .open(number, &HeaderMap::new())
                .unwrap()
                .to_str()
                .unwrap(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_twelve_hours() {
        let sessions = BrowserSessions::new(7460);
        let shown = open(&sessions, 3);
        assert_eq!(sessions.find(&shown), Some(3));
        tokio::time::advance(LIFETIME - Duration::from_secs(1)).await;
        assert_eq!(sessions.find(&shown), Some(3));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(sessions.find(&shown), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_session_is_gone_and_others_stay() {
        let sessions = BrowserSessions::new(7460);
        let (first, second) = (open(&sessions, 1), open(&sessions, 2));
        let cookie = sessions.close(&first).unwrap();
        assert!(cookie.to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(
            (sessions.find(&first), sessions.find(&second)),
            (None, Some(2))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_session_is_evicted() {
        let sessions = BrowserSessions::new(7460);
        let first = open(&sessions, 1);
        for _ in 0..MAX_SESSIONS {
            tokio::time::advance(Duration::from_secs(1)).await;
            open(&sessions, 2);
        }
        assert_eq!(sessions.find(&first), None);
        assert_eq!(sessions.all.lock().len(), MAX_SESSIONS);
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_cookies_are_not_sessions() {
        let sessions = BrowserSessions::new(7460);
        let cookie = sessions.open(1, &HeaderMap::new()).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(
            cookie.ends_with("; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"),
            "{cookie}"
        );
        let id = cookie.split(['=', ';']).nth(1).unwrap();
        assert_eq!(id.len(), 43, "256 bits");
        let guesses = [
            "toolgate_session_7460=",
            "toolgate_session_7460=x",
            "toolgate_session=",
            "x=y",
        ];
        for guess in guesses {
            assert_eq!(sessions.find(&headers(guess)), None, "{guess}");
        }
        let twice = format!("toolgate_session_7460={id}; toolgate_session_7460={id}");
        let twice = HeaderMap::from_iter([(header::COOKIE, twice.parse().unwrap())]);
        assert_eq!(sessions.find(&twice), None);
    }

    #[tokio::test(start_paused = true)]
    async fn f23_a_cookie_is_bound_to_the_port_and_over_https_to_the_host() {
        let sessions = BrowserSessions::new(7460);
        let cookie = sessions.open(1, &HeaderMap::new()).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.starts_with("toolgate_session_7460="), "{cookie}");
        let id = cookie.split(['=', ';']).nth(1).unwrap();
        // A cookie of another gateway on this host means nothing here, even with the same id.
        let foreign = headers(&format!("toolgate_session_7461={id}"));
        assert_eq!(sessions.find(&foreign), None);
        let origin = "https://tools.example.org".parse().unwrap();
        let https = HeaderMap::from_iter([(header::ORIGIN, origin)]);
        let cookie = sessions.open(2, &https).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.starts_with("__Host-toolgate_session_7460="));
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"));
        assert_eq!(sessions.find(&headers(cookie)), Some(2));
    }
}
