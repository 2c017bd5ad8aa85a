//! A gateway that runs already, here or elsewhere, over its HTTP API.

mod events;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{anyhow, bail};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;
use toolgate_core::escape;

use crate::cli::RemoteOptions;
use crate::exit::Exit;
use crate::{operator_key, say, wiring};

/// A gateway that is there answers a connection at once.
const CONNECT: Duration = Duration::from_secs(5);
/// More than any list or result of a gateway has.
const LARGEST: usize = 256 << 20;

pub(crate) struct Remote {
    client: Client,
    base: Url,
    token: Option<HeaderValue>,
    /// False for our own key of a gateway on this machine.
    has_named_token: bool,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Nobody is there, or not any more: the same later may succeed.
    #[error("{0}")]
    Away(String),
    /// It will not, as long as nothing changes.
    #[error("{0}")]
    Refused(String),
}

impl Trouble {
    pub(crate) fn told(self) -> Exit {
        let exit = match &self {
            Self::Away(_) => Exit::Failure,
            Self::Refused(_) => Exit::Usage,
        };
        say::error(&anyhow::Error::new(self));
        exit
    }
}

impl Remote {
    pub(crate) fn of(options: &RemoteOptions) -> anyhow::Result<Option<Self>> {
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
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                .map_err(|_| anyhow!("the token has characters that no header can carry"))?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        };
        let token = token.map(header).transpose()?;
        if token.is_some() && is_overheard(&base) {
            say::note(&format!(
                "the token goes to {} unencrypted, and whoever is in between can read it; use https, or a tunnel such as ssh -L",
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

    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Answer, Trouble> {
        self.send(Method::GET, path, query, None).await
    }

    pub(crate) async fn post(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, Trouble> {
        self.send(Method::POST, path, query, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Trouble> {
        let mut request = self.request(method, path, query);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(|error| self.away(&error))?;
        let status = response.status();
        let bytes = self.bytes(response).await?;
        self.admitted(status, &bytes)?;
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(Answer { status, body }),
            Err(_) => Err(Trouble::Refused(format!(
                "what answers at {} is no Toolgate gateway (HTTP {status})",
                self.shown()
            ))),
        }
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
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

    async fn bytes(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.away(&error))? {
            if bytes.len() + chunk.len() > LARGEST {
                return Err(Trouble::Refused(format!(
                    "the answer has more than {} MiB",
                    LARGEST >> 20
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn admitted(&self, status: StatusCode, bytes: &[u8]) -> Result<(), Trouble> {
        let shown = self.shown();
        let detail = || {
            let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
            let detail = problem["detail"].as_str().map(escape);
            detail.unwrap_or_else(|| format!("HTTP {status}"))
        };
        match status {
            StatusCode::UNAUTHORIZED if self.has_named_token => Err(Trouble::Refused(format!(
                "the gateway at {shown} does not know this token"
            ))),
            StatusCode::UNAUTHORIZED => Err(Trouble::Refused(format!(
                "the gateway at {shown} wants a token: set TOOLGATE_TOKEN, or give --token"
            ))),
            StatusCode::FORBIDDEN => Err(Trouble::Refused(format!(
                "the gateway at {shown} refuses: {}",
                detail()
            ))),
            StatusCode::TOO_MANY_REQUESTS => Err(Trouble::Away(format!(
                "the gateway at {shown} is asked too often: {}",
                detail()
            ))),
            _ => Ok(()),
        }
    }

    fn away(&self, error: &reqwest::Error) -> Trouble {
        let shown = self.shown();
        let cause = toolgate_net::root_cause(error);
        Trouble::Away(match error.is_connect() {
            true => format!("no gateway answers at {shown} ({cause}); 'toolgate serve' starts one"),
            false => format!("the gateway at {shown} went away before it answered ({cause})"),
        })
    }

    /// Its address, for a person; it holds no login.
    fn shown(&self) -> String {
        escape(self.base.as_str().trim_end_matches('/'))
    }
}

/// A problem of a route, in its own words.
pub(crate) fn detail(answer: &Answer) -> String {
    let detail = answer.body["detail"].as_str().map(escape);
    detail.unwrap_or_else(|| format!("the gateway answered HTTP {}", answer.status))
}

/// `http://` unless something else is said.
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

/// `reached` is where a gateway listens whose key is sent: nobody else on this machine gets it.
fn client(base: &Url, reached: Option<IpAddr>) -> anyhow::Result<Client> {
    let is_local = toolgate_net::is_this_machine(base);
    let mut builder = toolgate_net::client_builder(is_local).connect_timeout(CONNECT);
    if let Some(ip) = reached.filter(|_| is_local) {
        builder = builder.resolve_to_addrs("localhost", &[SocketAddr::new(ip, 0)]);
    }
    builder
        .build()
        .map_err(|error| anyhow!("no HTTP client could be made: {error}"))
}

/// True if what is sent there goes over a network as it is.
fn is_overheard(base: &Url) -> bool {
    base.scheme() == "http" && !toolgate_net::is_this_machine(base)
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
    fn a_token_is_overheard_beyond_this_machine_unless_it_is_encrypted() {
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
