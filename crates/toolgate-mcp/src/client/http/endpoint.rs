//! Sends HTTP requests to the address of a server, and never to another origin.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, LOCATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Method, Response, Url};
use toolgate_core::Redactor;
use toolgate_core::text::escape;
use toolgate_net::root_cause;

use super::HttpClients;
use crate::SecretHeaders;
use crate::client::transport::{FailureReason, TransportError};

const MAX_REDIRECTS: usize = 5;
const MAX_SHOWN_CHARS: usize = 200;
// These headers belong to the connection and are set by the HTTP client.
const RESERVED: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING, UPGRADE];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointError {
    Unreachable(FailureReason),
    /// The request was not executed: the server redirects elsewhere, or it could not be built.
    NotSent(FailureReason),
    // The connection broke; whether the request was executed is unknown.
    Broken(FailureReason),
}

impl From<EndpointError> for TransportError {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Unreachable(reason) | EndpointError::NotSent(reason) => {
                Self::NotSent(reason)
            }
            EndpointError::Broken(reason) => Self::Interrupted(reason),
        }
    }
}

pub(super) struct ServerEndpoint {
    shared: Arc<HttpClients>,
    url: Url,
    headers: HeaderMap,
    redactor: Redactor,
}

impl ServerEndpoint {
    pub(super) fn new(
        url: &str,
        headers: &SecretHeaders,
        shared: Arc<HttpClients>,
    ) -> Result<Self, String> {
        let mut parsed = Url::parse(url).map_err(|error| {
            format!("its 'url' is invalid ({error}): write https://… or http://…")
        })?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err("its 'url' must begin with https:// or http://".to_owned());
        }
        parsed.set_fragment(None);
        let mut secrets = vec![parsed.password().unwrap_or_default().to_owned()];
        for (_, value) in &headers.0 {
            secrets.push(value.clone());
            // The token of `Bearer <token>`.
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

    pub(super) fn redact_line(&self, text: &str, longest: usize) -> String {
        self.redactor.line(text, longest)
    }

    pub(super) async fn request(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, EndpointError> {
        let client = self.shared.client(&self.url).await?;
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            // Protocol headers last, so that the configuration can't override them.
            let mut request = client
                .request(method.clone(), url.clone())
                .headers(self.headers.clone())
                .headers(headers.clone());
            if !body.is_empty() {
                request = request.body(body.clone());
            }
            let response = request
                .send()
                .await
                .map_err(|error| self.classify_error(error))?;
            match self.redirect_target(&method, &url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(EndpointError::NotSent(format!(
            "{} redirects more than {MAX_REDIRECTS} times; check its 'url' in the configuration",
            display_url(&self.url)
        ).into()))
    }

    fn redirect_target(
        &self,
        method: &Method,
        from: &Url,
        response: &Response,
    ) -> Result<Option<Url>, EndpointError> {
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION);
        let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else {
            return Ok(None);
        };
        let next = self.resolve_same_origin(from, &String::from_utf8_lossy(location.as_bytes()))?;
        // Other statuses turn a POST into a GET, which would lose the message.
        match status {
            307 | 308 => Ok(Some(next)),
            _ if *method == Method::GET => Ok(Some(next)),
            // The request may have been executed, with the response at that address.
            303 => Err(EndpointError::Broken(
                format!(
                    "the server redirects to {} (HTTP 303), which is not followed",
                    display_url(&next)
                )
                .into(),
            )),
            _ => Err(redirect_error(&next)),
        }
    }

    /// Resolves an address that the server sends, and rejects any other origin.
    pub(super) fn resolve_same_origin(&self, from: &Url, to: &str) -> Result<Url, EndpointError> {
        let mut next = from.join(to).map_err(|error| {
            let to = escape(&to.chars().take(MAX_SHOWN_CHARS).collect::<String>());
            EndpointError::NotSent(
                format!("it redirects to '{to}', which is not a valid address ({error})").into(),
            )
        })?;
        if next.origin() != self.url.origin() {
            return Err(redirect_error(&next));
        }
        // Keep the configured login, because the server must not choose another one.
        let login = (self.url.username(), self.url.password());
        let is_kept = next.set_username(login.0).is_ok() && next.set_password(login.1).is_ok();
        if !is_kept {
            return Err(redirect_error(&next));
        }
        next.set_fragment(None);
        Ok(next)
    }

    pub(super) fn classify_error(&self, error: reqwest::Error) -> EndpointError {
        let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
        let cause = self.redact_line(&root_cause(&error.without_url()), MAX_SHOWN_CHARS);
        if is_connect {
            let at = display_url(&self.url);
            return EndpointError::Unreachable(FailureReason::new(
                "can't connect to the server",
                format!("{at}: {cause}"),
                "; check that it runs, and its 'url' in the configuration",
            ));
        }
        if is_builder {
            return EndpointError::NotSent(FailureReason::new(
                "the request could not be built",
                cause,
                "",
            ));
        }
        EndpointError::Broken(FailureReason::new("the connection was lost", cause, ""))
    }
}

fn redirect_error(to: &Url) -> EndpointError {
    let to = display_url(to);
    EndpointError::NotSent(format!(
        "the server redirects to {to}: if you trust that address, put it into 'url' in the configuration"
    ).into())
}

// The address without login and query, which may hold secrets.
fn display_url(url: &Url) -> String {
    let text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    escape(&text.chars().take(MAX_SHOWN_CHARS).collect::<String>())
}

fn header_map(headers: &SecretHeaders) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in &headers.0 {
        let shown = escape(name);
        let parsed = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| format!("'{shown}' in its 'headers' is not a valid header name"))?;
        if RESERVED.contains(&parsed) {
            return Err(format!("'{shown}' can't be set in its 'headers'"));
        }
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
            format!(
                "the value of '{shown}' in its 'headers' has characters that aren't allowed in a header"
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

    fn endpoint(url: &str, headers: &[(&str, &str)]) -> Result<ServerEndpoint, String> {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        ServerEndpoint::new(
            url,
            &SecretHeaders(headers),
            Arc::new(HttpClients::new(100)),
        )
    }

    #[test]
    fn redirects_to_another_origin_are_rejected() {
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
            let url = endpoint.resolve_same_origin(endpoint.url(), to).unwrap();
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
            let refused = endpoint.resolve_same_origin(endpoint.url(), to);
            assert!(
                matches!(refused, Err(EndpointError::NotSent(_))),
                "{to}: {refused:?}"
            );
        }
    }

    #[test]
    fn invalid_urls_and_headers_are_rejected_early() {
        for (url, headers, expected) in [
            (
                "nonsense",
                vec![],
                "its 'url' is invalid (relative URL without a base): write https://… or http://…",
            ),
            (
                "ftp://example.com",
                vec![],
                "its 'url' must begin with https:// or http://",
            ),
            (
                "http://x/",
                vec![("a b", "c")],
                "'a b' in its 'headers' is not a valid header name",
            ),
            (
                "http://x/",
                vec![("Content-Length", "5")],
                "'Content-Length' can't be set in its 'headers'",
            ),
            (
                "http://x/",
                vec![("a", "b\nc")],
                "the value of 'a' in its 'headers' has characters that aren't allowed in a header",
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
        assert_eq!(display_url(&url), "https://example.com/a");
        let endpoint = endpoint(url.as_str(), &[("Authorization", "Bearer tok-123")]).unwrap();
        assert_eq!(
            endpoint.redact_line("no tok-123\nand no password", 100),
            "no [REDACTED]\\nand no [REDACTED]"
        );
    }
}
