//! The one address a server may be reached at. Wherever it sends us, we stay on its origin: nothing else is ever fetched.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, LOCATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Method, Response, Url};
use toolgate_core::{Redactor, escape};
use toolgate_net::root_cause;

use super::Shared;
use crate::Headers;
use crate::client::transport::{Reason, TransportError};

const MOST_REDIRECTS: usize = 5;
/// The part of an address that is shown.
const SHOWN: usize = 200;
/// They belong to the connection, not to what it carries.
const RESERVED: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING, UPGRADE];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody is there.
    Unreachable(Reason),
    /// It is somewhere else, where we do not follow. It has not done what we asked.
    Moved(Reason),
    /// It was there. What it did with the request, nobody knows.
    Broken(Reason),
}

impl From<Trouble> for TransportError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unreachable(reason) | Trouble::Moved(reason) => Self::NotSent(reason),
            Trouble::Broken(reason) => Self::Interrupted(reason),
        }
    }
}

pub(super) struct Endpoint {
    shared: Arc<Shared>,
    url: Url,
    headers: HeaderMap,
    redactor: Redactor,
}

impl Endpoint {
    pub(super) fn new(url: &str, headers: &Headers, shared: Arc<Shared>) -> Result<Self, String> {
        let mut parsed = Url::parse(url).map_err(|error| {
            format!("its 'url' can not be read ({error}): write https://… or http://…")
        })?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err("its 'url' must begin with https:// or http://".to_owned());
        }
        parsed.set_fragment(None);
        let mut secrets = vec![parsed.password().unwrap_or_default().to_owned()];
        for (_, value) in &headers.0 {
            secrets.push(value.clone());
            // A token without its "Bearer".
            secrets.extend(value.split_once(' ').map(|(_, token)| token.to_owned()));
        }
        Ok(Self {
            shared,
            url: parsed,
            headers: header_map(headers)?,
            redactor: Redactor::new(secrets),
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn max_message(&self) -> usize {
        self.shared.max_message
    }

    /// A text of the server on one line, without our secrets.
    pub(super) fn line(&self, text: &str, longest: usize) -> String {
        self.redactor.line(text, longest)
    }

    pub(super) async fn request(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Trouble> {
        let client = self.shared.client(&self.url).await?;
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            // Ours last: what the protocol needs can not be configured away.
            let mut request = client
                .request(method.clone(), url.clone())
                .headers(self.headers.clone())
                .headers(headers.clone());
            if !body.is_empty() {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(|error| self.trouble(error))?;
            match self.redirected(&method, &url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(Trouble::Moved(format!(
            "{} redirects more than {MOST_REDIRECTS} times; check its 'url' in the configuration",
            shown(&self.url)
        ).into()))
    }

    fn redirected(
        &self,
        method: &Method,
        from: &Url,
        response: &Response,
    ) -> Result<Option<Url>, Trouble> {
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION);
        let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else {
            return Ok(None);
        };
        let next = self.steered(from, &String::from_utf8_lossy(location.as_bytes()))?;
        // The others mean "ask there with GET", and what we have to say would be lost.
        match status {
            307 | 308 => Ok(Some(next)),
            _ if *method == Method::GET => Ok(Some(next)),
            // It may have done what we asked, and the answer be there.
            303 => Err(Trouble::Broken(
                format!(
                    "the server answers with 303, see {}, which is not followed",
                    shown(&next)
                )
                .into(),
            )),
            _ => Err(moved(&next)),
        }
    }

    /// The address a server names for us, if it is its own.
    pub(super) fn steered(&self, from: &Url, to: &str) -> Result<Url, Trouble> {
        let mut next = from.join(to).map_err(|error| {
            let to = escape(&to.chars().take(SHOWN).collect::<String>());
            Trouble::Moved(format!("it sends us to '{to}', which is no address ({error})").into())
        })?;
        if next.origin() != self.url.origin() {
            return Err(moved(&next));
        }
        // The same login as before, not one of the server's choice.
        let login = (self.url.username(), self.url.password());
        let same = next.set_username(login.0).is_ok() && next.set_password(login.1).is_ok();
        if !same {
            return Err(moved(&next));
        }
        next.set_fragment(None);
        Ok(next)
    }

    pub(super) fn trouble(&self, error: reqwest::Error) -> Trouble {
        let (connect, unsent) = (error.is_connect(), error.is_builder());
        let cause = self.line(&root_cause(&error.without_url()), SHOWN);
        if connect {
            let at = shown(&self.url);
            return Trouble::Unreachable(Reason::new(
                "the server can not be reached",
                format!("{at}: {cause}"),
                "; check that it runs, and its 'url' in the configuration",
            ));
        }
        if unsent {
            return Trouble::Moved(Reason::new("the request could not be made", cause, ""));
        }
        Trouble::Broken(Reason::new("the connection broke off", cause, ""))
    }
}

fn moved(to: &Url) -> Trouble {
    let to = shown(to);
    Trouble::Moved(format!(
        "the server sends us to {to}: if you trust that address, put it into 'url' in the configuration"
    ).into())
}

/// Without login and query: both may hold secrets.
fn shown(url: &Url) -> String {
    let text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    escape(&text.chars().take(SHOWN).collect::<String>())
}

fn header_map(headers: &Headers) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in &headers.0 {
        let shown = escape(name);
        let parsed = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| format!("'{shown}' in its 'headers' is no name for a header"))?;
        if RESERVED.contains(&parsed) {
            return Err(format!("'{shown}' can not be set in its 'headers'"));
        }
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
            format!(
                "the value of '{shown}' in its 'headers' has characters that no header can carry"
            )
        })?;
        value.set_sensitive(true);
        map.append(parsed, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, headers: &[(&str, &str)]) -> Result<Endpoint, String> {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Endpoint::new(url, &Headers(headers), Arc::new(Shared::new(100)))
    }

    #[test]
    fn a_server_can_not_steer_us_off_its_origin() {
        let endpoint = endpoint("http://me:pw@localhost:8000/mcp", &[]).unwrap();
        for (to, expected) in [
            ("/x?s=1#f", "http://me:pw@localhost:8000/x?s=1"),
            ("x", "http://me:pw@localhost:8000/x"),
            ("http://localhost:8000/y", "http://me:pw@localhost:8000/y"),
            (
                "http://you@localhost:8000/y",
                "http://me:pw@localhost:8000/y",
            ),
        ] {
            let url = endpoint.steered(endpoint.url(), to).unwrap();
            assert_eq!(url.as_str(), expected, "{to}");
        }
        for to in [
            "http://localhost:8001/mcp",
            "https://localhost:8000/mcp",
            "http://127.0.0.1:8000/mcp",
            "//example.com/mcp",
            "\\\\example.com/mcp",
            "http://localhost:8000@example.com/",
            "http://0x7f000001:8000/",
            "http://[::ffff:127.0.0.1]:8000/",
            "http://169.254.169.254/",
            "file:///etc/passwd",
            "data:text/plain,x",
            "http://",
        ] {
            let refused = endpoint.steered(endpoint.url(), to);
            assert!(
                matches!(refused, Err(Trouble::Moved(_))),
                "{to}: {refused:?}"
            );
        }
    }

    #[test]
    fn what_can_not_be_sent_is_said_before_anything_is() {
        for (url, headers, expected) in [
            (
                "nonsense",
                vec![],
                "its 'url' can not be read (relative URL without a base): write https://… or http://…",
            ),
            (
                "ftp://example.com",
                vec![],
                "its 'url' must begin with https:// or http://",
            ),
            (
                "http://x/",
                vec![("a b", "c")],
                "'a b' in its 'headers' is no name for a header",
            ),
            (
                "http://x/",
                vec![("Content-Length", "5")],
                "'Content-Length' can not be set in its 'headers'",
            ),
            (
                "http://x/",
                vec![("a", "b\nc")],
                "the value of 'a' in its 'headers' has characters that no header can carry",
            ),
        ] {
            assert_eq!(
                endpoint(url, &headers).err().as_deref(),
                Some(expected),
                "{url}"
            );
        }
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        let url = "https://user:password@example.com/a?key=secret"
            .parse()
            .unwrap();
        assert_eq!(shown(&url), "https://example.com/a");
        let endpoint = endpoint(url.as_str(), &[("Authorization", "Bearer tok-123")]).unwrap();
        assert_eq!(
            endpoint.line("no tok-123\nand no password", 100),
            "no [REDACTED]\\nand no [REDACTED]"
        );
    }
}
