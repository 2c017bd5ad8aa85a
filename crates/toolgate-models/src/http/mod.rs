//! One request to a provider: bounded, with a limit for the first byte and one for all of it, and a stream of lines back.

mod body;
mod failure;
mod lines;
mod retry_after;

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolgate_core::Redactor;
use toolgate_net::root_cause;

use self::body::{Body, Limit};
pub(crate) use self::failure::Failure;
use self::failure::unreachable;

pub(crate) use self::lines::{Lines, ServerEvent};
use crate::{ModelError, ModelSettings, Provider};

/// Many servers on the own machine close an idle connection after five seconds: a request on a closing one would be lost.
const IDLE_AT_HOME: Duration = Duration::from_secs(4);
/// Others keep it longer, and a new one costs a handshake: tools may run for a while between two rounds.
const IDLE_OUTSIDE: Duration = Duration::from_secs(50);
/// The part of a foreign text or address that is shown.
const SHOWN: usize = 500;

pub(crate) struct Http {
    provider: Provider,
    base: Url,
    /// The path that was asked last and its address: most often it is asked again, and putting it together takes a parser.
    last: Mutex<Option<(String, Url)>>,
    client: Client,
    /// Everything that must never be shown.
    redactor: Redactor,
    first_byte: Duration,
}

impl Http {
    /// `url` is where the provider's paths begin; its login and the settings' key are never shown.
    pub(crate) fn new(
        provider: Provider,
        url: &str,
        settings: &ModelSettings,
    ) -> Result<Self, ModelError> {
        let base = read_url(provider, url)?;
        let mut secrets = vec![settings.key.trim().to_owned()];
        secrets.extend(base.password().map(str::to_owned));
        if base.password().is_none() {
            secrets.push(base.username().to_owned());
        }
        let client = client(&base).map_err(|cause| ModelError::Unreachable {
            provider,
            url: shown(&base),
            reason: format!(
                "no HTTPS client could be made ({cause}); are the machine's CA certificates installed?"
            ),
        })?;
        Ok(Self {
            provider,
            base,
            last: Mutex::default(),
            client,
            redactor: Redactor::new(secrets),
            first_byte: settings.first_byte,
        })
    }

    pub(crate) fn shown(&self) -> String {
        shown(&self.base)
    }

    /// A text from outside on one bounded line: secrets out, escaped.
    pub(crate) fn line(&self, text: &str) -> String {
        self.redactor.line(text, SHOWN)
    }

    /// Posts JSON and gives the lines of the answer. Statuses other than 2xx become errors by `explain`, which knows the
    /// provider's own meanings and may leave the rest to [`Failure::usual`].
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        deadline: Instant,
        explain: impl Fn(Failure) -> ModelError,
    ) -> Result<Lines, ModelError> {
        let body = Some(body.into());
        let body = self.send(Method::POST, path, headers, body, deadline, explain);
        Ok(Lines::new(body.await?))
    }

    /// Posts JSON; the answer is one JSON value.
    pub(crate) async fn post_json(
        &self,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        deadline: Instant,
        explain: impl Fn(Failure) -> ModelError,
    ) -> Result<Value, ModelError> {
        let lines = self.post(path, headers, body, deadline, explain).await?;
        lines.json().await
    }

    pub(crate) async fn get_json(
        &self,
        path: &str,
        headers: HeaderMap,
        deadline: Instant,
        explain: impl Fn(Failure) -> ModelError,
    ) -> Result<Value, ModelError> {
        let body = self.send(Method::GET, path, headers, None, deadline, explain);
        Lines::new(body.await?).json().await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Option<Bytes>,
        deadline: Instant,
        explain: impl Fn(Failure) -> ModelError,
    ) -> Result<Body, ModelError> {
        let limit = Limit::new(self.provider, self.first_byte, deadline);
        let url = self.url(path);
        // A compressed stream arrives in lumps, and can be a thousand times longer than it looks.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut request = self.client.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            let json = HeaderValue::from_static("application/json");
            request = request.header(CONTENT_TYPE, json).body(body);
        }
        let response = timeout_at(limit.first_byte(), request.send())
            .await
            .map_err(|_| limit.not_begun())?
            .map_err(|error| self.not_sent(&url, error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.moved(&url, &response));
        }
        if !status.is_success() {
            let failure = Failure::read(self, &url, response, deadline).await;
            return Err(explain(failure));
        }
        Body::begin(response, limit, self.redactor.clone()).await
    }

    fn url(&self, path: &str) -> Url {
        let mut last = self.last.lock();
        if let Some((of, url)) = &*last
            && of == path
        {
            return url.clone();
        }
        let mut url = self.base.clone();
        let (below, query) = path.split_once('?').unwrap_or((path, ""));
        url.set_path(&format!(
            "{}{below}",
            self.base.path().trim_end_matches('/')
        ));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.split_once('='));
        }
        *last = Some((path.to_owned(), url.clone()));
        url
    }

    fn not_sent(&self, url: &Url, error: reqwest::Error) -> ModelError {
        let provider = self.provider;
        if error.is_connect() {
            return ModelError::Unreachable {
                provider,
                url: shown(url),
                reason: unreachable(provider, url, &error),
            };
        }
        let cause = self.line(&root_cause(&error.without_url()));
        let reason = format!("the connection broke off before an answer ({cause})");
        ModelError::Cut { provider, reason }
    }

    /// Redirects are not followed: the key must not travel to an address nobody configured.
    fn moved(&self, from: &Url, response: &Response) -> ModelError {
        let to = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
        let to = from.join(&String::from_utf8_lossy(to.unwrap_or_default()));
        let to = to.map_or_else(|_| "another address".to_owned(), |to| shown(&to));
        let (from, provider) = (shown(from), self.provider);
        let setting = provider.address_setting();
        let reason = format!(
            "{from} redirects to {to}, where the key must not go; if you trust that address, set it ({setting})"
        );
        ModelError::Refused { provider, reason }
    }
}

/// A header's value that is not shown, such as a key.
pub(crate) fn secret(provider: Provider, value: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| ModelError::Key {
        provider,
        reason: "it has characters that no header can carry; copy it again".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn read_url(provider: Provider, text: &str) -> Result<Url, ModelError> {
    let url = Url::parse(text.trim());
    match url {
        Ok(mut url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            url.set_fragment(None);
            Ok(url)
        }
        // Not the text itself: there may be a login in it.
        _ => Err(ModelError::Refused {
            provider,
            reason: format!(
                "its address is none ({}): write https://… or http://…",
                provider.address_setting()
            ),
        }),
    }
}

fn client(base: &Url) -> Result<Client, String> {
    let is_local = toolgate_net::is_this_machine(base);
    let at_home = is_local || base.scheme() == "http";
    toolgate_net::client_builder(is_local)
        .pool_idle_timeout(if at_home { IDLE_AT_HOME } else { IDLE_OUTSIDE })
        .build()
        .map_err(|error| root_cause(&error))
}

fn shown(url: &Url) -> String {
    crate::settings::shown(url.as_str())
}

#[cfg(test)]
mod tests;
