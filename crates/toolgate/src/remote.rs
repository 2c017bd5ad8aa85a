//! An HTTP client for a running gateway.

mod events;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{anyhow, bail};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;
use toolgate_core::text::escape;

use crate::cli::RemoteOptions;
use crate::exit::Exit;
use crate::{operator_key, output, wiring};

// A running gateway accepts a connection almost at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
// Bytes. No list or result of a gateway is larger.
const MAX_BODY_BYTES: usize = 256 << 20;

pub(crate) struct RemoteGateway {
    client: Client,
    base: Url,
    token: Option<HeaderValue>,
    /// False if `token` is our own key for a gateway on this machine.
    has_named_token: bool,
}

pub(crate) struct GatewayResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The gateway can't be reached, stopped answering, or gave no usable answer.
    /// A retry may succeed.
    #[error("{0}")]
    Unreachable(String),
    /// The gateway rejects the request. A retry would fail too.
    #[error("{0}")]
    Refused(String),
}

type RemoteResult = Result<GatewayResponse, RemoteError>;
type Query<'a> = &'a [(&'a str, String)];

impl RemoteError {
    pub(crate) fn report(self) -> Exit {
        let exit = match &self {
            Self::Unreachable(_) => Exit::Failure,
            Self::Refused(_) => Exit::Usage,
        };
        output::print_error(&anyhow::Error::new(self));
        exit
    }
}

impl RemoteGateway {
    pub(crate) fn from_options(options: &RemoteOptions) -> anyhow::Result<Option<Self>> {
        let Some(at) = options.at.as_deref() else {
            return Ok(None);
        };
        let base = address(at)?;
        let variable = || wiring::environment("TOOLGATE_TOKEN");
        let token = options.token.clone().or_else(variable);
        let token = token.filter(|token| !token.is_empty());
        let has_named_token = token.is_some();
        let ours = match has_named_token {
            true => None,
            false => operator_key::find(&base),
        };
        let reached = ours.as_ref().map(|(address, _)| address.ip());
        let token = token.or(ours.map(|(_, key)| key));
        let header = |token: String| {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| {
                    anyhow!("the token contains characters that an HTTP header can't carry")
                })?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        };
        let token = token.map(header).transpose()?;
        if token.is_some() && is_overheard(&base) {
            output::print_note(&format!(
                "the token goes to {} unencrypted, so others on the network can read it; use https, or a tunnel such as ssh -L",
                escape(base.host_str().unwrap_or_default())
            ));
        }
        Ok(Some(Self {
            client: client(&base, reached)?,
            token,
            has_named_token,
            base,
        }))
    }

    pub(crate) async fn get(&self, path: &[&str], query: Query<'_>) -> RemoteResult {
        self.send(Method::GET, path, query, None).await
    }

    pub(crate) async fn post(
        &self,
        path: &[&str],
        query: Query<'_>,
        body: Vec<u8>,
    ) -> RemoteResult {
        self.send(Method::POST, path, query, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: Query<'_>,
        body: Option<Vec<u8>>,
    ) -> RemoteResult {
        let mut request = self.request(method, path, query);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.connection_error(&error))?;
        let status = response.status();
        let bytes = self.bytes(response).await?;
        self.check_status(status, &bytes)?;
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(GatewayResponse { status, body }),
            Err(_) => Err(RemoteError::Refused(format!(
                "the server at {} is not a Toolgate gateway (HTTP {status})",
                self.display_address()
            ))),
        }
    }

    fn request(&self, method: Method, path: &[&str], query: Query<'_>) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        for (name, value) in query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let request = self.client.request(method, url);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        }
    }

    async fn bytes(&self, mut response: reqwest::Response) -> Result<Vec<u8>, RemoteError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.connection_error(&error))?
        {
            if bytes.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(RemoteError::Refused(format!(
                    "the response is larger than {} MiB",
                    MAX_BODY_BYTES >> 20
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn check_status(&self, status: StatusCode, bytes: &[u8]) -> Result<(), RemoteError> {
        let detail = || {
            let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
            let detail = problem["detail"].as_str().map(escape);
            detail.unwrap_or_else(|| format!("HTTP {status}"))
        };
        let (is_temporary, text) = match status {
            StatusCode::UNAUTHORIZED if self.has_named_token => {
                (false, "does not know this token".to_owned())
            }
            StatusCode::UNAUTHORIZED => (
                false,
                "needs a token: set TOOLGATE_TOKEN, or use --token".to_owned(),
            ),
            StatusCode::FORBIDDEN => (false, format!("refuses: {}", detail())),
            StatusCode::TOO_MANY_REQUESTS => {
                (true, format!("gets too many requests: {}", detail()))
            }
            _ => return Ok(()),
        };
        let text = format!("the gateway at {} {text}", self.display_address());
        Err(if is_temporary {
            RemoteError::Unreachable(text)
        } else {
            RemoteError::Refused(text)
        })
    }

    fn connection_error(&self, error: &reqwest::Error) -> RemoteError {
        let shown = self.display_address();
        let cause = toolgate_net::root_cause(error);
        RemoteError::Unreachable(match error.is_connect() {
            true => format!("no gateway answers at {shown} ({cause}); 'toolgate serve' starts one"),
            false => format!("the gateway at {shown} went away before it answered ({cause})"),
        })
    }

    fn display_address(&self) -> String {
        escape(self.base.as_str().trim_end_matches('/'))
    }
}

pub(crate) fn problem_detail(answer: &GatewayResponse) -> String {
    let detail = answer.body["detail"].as_str().map(escape);
    detail.unwrap_or_else(|| format!("the gateway answered HTTP {}", answer.status))
}

fn address(text: &str) -> anyhow::Result<Url> {
    let text = text.trim();
    let full = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let is_usable = |url: &Url| {
        let is_bare = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare
    };
    match Url::parse(&full).ok().filter(is_usable) {
        Some(mut url) => {
            url.set_query(None);
            url.set_fragment(None);
            Ok(url)
        }
        None => bail!(
            "'{}' is not the address of a gateway, such as http://localhost:7460",
            escape(text)
        ),
    }
}

// `reached` is where the gateway listens whose key is sent. `localhost` is pinned to it, so that
// nobody else on this machine gets the key.
fn client(base: &Url, reached: Option<IpAddr>) -> anyhow::Result<Client> {
    let is_local = toolgate_net::is_local_url(base);
    let mut builder = toolgate_net::client_builder(is_local).connect_timeout(CONNECT_TIMEOUT);
    if let Some(ip) = reached.filter(|_| is_local) {
        builder = builder.resolve_to_addrs("localhost", &[SocketAddr::new(ip, 0)]);
    }
    builder
        .build()
        .map_err(|error| anyhow!("cannot create an HTTP client: {error}"))
}

fn is_overheard(base: &Url) -> bool {
    base.scheme() == "http" && !toolgate_net::is_local_url(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme_and_carries_no_login() {
        for (text, expected) in [
            ("localhost:7460", Some("http://localhost:7460/")),
            ("127.0.0.1:1", Some("http://127.0.0.1:1/")),
            ("https://h/tools/", Some("https://h/tools/")),
            ("http://h/?a=b#c", Some("http://h/")),
            ("http://me:pw@h/", None),
            ("ftp://h/", None),
            ("", None),
            ("http://", None),
        ] {
            let found = address(text).ok().map(String::from);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_unencrypted_remote_connections_can_be_overheard() {
        for (url, expected) in [
            ("http://127.0.0.1:7460/", false),
            ("http://localhost:7460/", false),
            ("http://[::1]:7460/", false),
            ("https://gateway.example/", false),
            ("http://gateway.example/", true),
            ("http://192.168.1.2:7460/", true),
            ("http://localhost.evil.example/", true),
        ] {
            assert_eq!(is_overheard(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
