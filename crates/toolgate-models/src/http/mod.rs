//! HTTP requests to a provider: bounded in size, with one time limit for the first byte and one
//! for the whole response.

mod body;
mod failure;
mod lines;
mod retry_after;

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolgate_core::Redactor;
use toolgate_net::root_cause;

use self::body::{ProviderBody, ResponseLimit};
use self::failure::unreachable;
pub(crate) use self::failure::{ErrorResponse, contains_any};

pub(crate) use self::lines::{ResponseLines, ServerEvent};
use crate::{ModelError, ModelSettings, Provider};

// Many local servers close an idle connection after five seconds, and a request that is sent on a
// closing connection is lost.
const LOCAL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
// Other servers keep connections longer, and a new one costs a TLS handshake. Tools may run for a
// while between two rounds.
const REMOTE_IDLE_TIMEOUT: Duration = Duration::from_secs(50);
// How many characters of a provider's text are shown.
const MAX_SHOWN: usize = 500;

pub(crate) struct ProviderHttp {
    provider: Provider,
    base: Url,
    client: Client,
    pub(crate) headers: HeaderMap,
    redactor: Redactor,
    first_byte: Duration,
}

impl ProviderHttp {
    /// `url` is the base of all paths. Its login and the settings' key are never shown.
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
            url: display_url(&base),
            reason: format!(
                "no HTTPS client could be made ({cause}); are the machine's CA certificates installed?"
            ),
        })?;
        Ok(Self {
            provider,
            base,
            client,
            headers: (provider.entry().headers)(&settings.key)?,
            redactor: Redactor::new(secrets),
            first_byte: settings.first_byte,
        })
    }

    pub(crate) fn display_url(&self) -> String {
        display_url(&self.base)
    }

    /// A provider's text for a message: one bounded line, escaped and without secrets.
    pub(crate) fn display_line(&self, text: &str) -> String {
        self.redactor.line(text, MAX_SHOWN)
    }

    /// Posts JSON and returns the lines of the response. `to_model_error` turns error responses
    /// into errors: it knows what they mean at this provider.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        deadline: Instant,
        to_model_error: impl Fn(ErrorResponse) -> ModelError,
    ) -> Result<ResponseLines, ModelError> {
        let json = HeaderValue::from_static("application/json");
        let url = self.url(path);
        let request = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, json)
            .body(body.into());
        self.send(url, request, deadline, to_model_error).await
    }

    pub(crate) async fn get_json(
        &self,
        path: &str,
        deadline: Instant,
        to_model_error: impl Fn(ErrorResponse) -> ModelError,
    ) -> Result<Value, ModelError> {
        let url = self.url(path);
        let request = self.client.get(url.clone());
        self.send(url, request, deadline, to_model_error)
            .await?
            .json()
            .await
    }

    async fn send(
        &self,
        url: Url,
        request: RequestBuilder,
        deadline: Instant,
        to_model_error: impl Fn(ErrorResponse) -> ModelError,
    ) -> Result<ResponseLines, ModelError> {
        let limit = ResponseLimit::new(self.provider, self.first_byte, deadline);
        // Compression would delay the pieces of a stream, and could hide a body a thousand times
        // larger.
        let request = request
            .headers(self.headers.clone())
            .header(ACCEPT_ENCODING, "identity");
        let response = timeout_at(limit.first_byte(), request.send())
            .await
            .map_err(|_| limit.first_byte_timeout())?
            .map_err(|error| self.send_error(&url, error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.redirect_error(&url, &response));
        }
        if !status.is_success() {
            let failure = ErrorResponse::read(self, &url, response, deadline).await;
            return Err(to_model_error(failure));
        }
        let body = ProviderBody::begin(response, limit, self.redactor.clone()).await?;
        Ok(ResponseLines::new(body))
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let (below, query) = path.split_once('?').unwrap_or((path, ""));
        url.set_path(&format!(
            "{}{below}",
            self.base.path().trim_end_matches('/')
        ));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.split_once('='));
        }
        url
    }

    fn send_error(&self, url: &Url, error: reqwest::Error) -> ModelError {
        let provider = self.provider;
        if error.is_connect() {
            return ModelError::Unreachable {
                provider,
                url: display_url(url),
                reason: unreachable(provider, url, &error),
            };
        }
        let cause = self.display_line(&root_cause(&error.without_url()));
        let reason = format!("the connection broke off before an answer ({cause})");
        ModelError::Truncated { provider, reason }
    }

    // Redirects are not followed: the key must not travel to an address that no one configured.
    fn redirect_error(&self, from: &Url, response: &Response) -> ModelError {
        let to = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
        let to = from.join(&String::from_utf8_lossy(to.unwrap_or_default()));
        let to = to.map_or_else(|_| "another address".to_owned(), |to| display_url(&to));
        let (from, provider) = (display_url(from), self.provider);
        let setting = provider.address_setting();
        let reason = format!(
            "{from} redirects to {to}, where the key must not go; if you trust that address, set it ({setting})"
        );
        ModelError::Refused { provider, reason }
    }
}

pub(crate) fn secret_header(provider: Provider, value: &str) -> Result<HeaderValue, ModelError> {
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
        // Doesn't quote the text, because it may contain a login.
        _ => Err(ModelError::Refused {
            provider,
            reason: format!(
                "its address is not a URL ({}): write https://… or http://…",
                provider.address_setting()
            ),
        }),
    }
}

fn client(base: &Url) -> Result<Client, String> {
    let is_local = toolgate_net::is_local_url(base);
    let is_near = is_local || base.scheme() == "http";
    toolgate_net::client_builder(is_local)
        .pool_idle_timeout(if is_near {
            LOCAL_IDLE_TIMEOUT
        } else {
            REMOTE_IDLE_TIMEOUT
        })
        .build()
        .map_err(|error| root_cause(&error))
}

fn display_url(url: &Url) -> String {
    crate::settings::display_url(url.as_str())
}

#[cfg(test)]
mod tests;
