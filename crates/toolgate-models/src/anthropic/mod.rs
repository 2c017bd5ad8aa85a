//! Claude, by the Messages API.

mod block;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use self::request::Options;
use self::stream::{Stream, Trouble};
use crate::catalog::CatalogCache;
use crate::http::{Failure, Http, secret};
use crate::learned::{Learned, Sent};
use crate::retry::{Retries, Told, retrying};
use crate::{
    Catalog, Listener, ModelClient, ModelError, ModelSettings, Provider, Reply, Request,
    SchemaForm, ToolList,
};

const PROVIDER: Provider = Provider::Anthropic;
const URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
/// What every model of this provider can hold at least.
const WINDOW: usize = 200_000;

/// A client of Anthropic, or of another server that speaks its Messages API.
///
/// The key and the address are those of the settings; the environment is not looked at.
///
/// ```
/// use toolgate_models::{AnthropicClient, ModelClient, ModelSettings};
///
/// let mut settings = ModelSettings::default();
/// settings.key = "sk-ant-…".to_owned();
/// # settings.key = "sk-ant-0".to_owned();
/// let client = AnthropicClient::new(&settings)?;
/// assert_eq!((client.model(), client.window()), ("claude-sonnet-5", 200_000));
/// # Ok::<_, toolgate_models::ModelError>(())
/// ```
pub struct AnthropicClient {
    http: Http,
    headers: HeaderMap,
    options: Options,
    /// What the model was found to take.
    sent: Learned<Sent>,
    retries: Retries,
    schemas: SchemaForm,
    catalogs: CatalogCache,
}

impl AnthropicClient {
    /// Asks nobody yet. Anthropic itself wants a key; another server may do without.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let url = match settings.url.trim() {
            "" => URL,
            // The path begins with it, and many write it already.
            url => url.trim_end_matches('/').trim_end_matches("/v1"),
        };
        let model = match settings.name.as_str() {
            "" => PROVIDER.default_model(),
            name => name,
        };
        Ok(Self {
            http: Http::new(PROVIDER, url, settings)?,
            headers: headers(url, &settings.key)?,
            options: Options {
                model: model.to_owned(),
                max_tokens: settings.max_tokens,
                window: settings.context_tokens.unwrap_or(WINDOW),
                temperature: settings.temperature,
            },
            sent: Learned::new(Sent {
                temperature: settings.temperature.is_some(),
                seed: false,
                think: settings.think == Some(true),
            }),
            retries: Retries::new(settings.attempts),
            schemas: settings.schemas,
            catalogs: CatalogCache::default(),
        })
    }

    /// One attempt, and again at once each time the model was found not to take a setting.
    async fn ask(&self, request: Request<'_>, told: &mut Told<'_>) -> Result<Reply, ModelError> {
        loop {
            let sent = self.sent.get();
            let reply = self.ask_once(sent, request, told).await;
            let learned = self.sent.get();
            match reply {
                Err(error @ ModelError::Refused { .. }) if learned != sent => {
                    told.take_back();
                    learned.tell(sent, &self.options.model, &error, told);
                }
                reply => return reply,
            }
        }
    }

    async fn ask_once(
        &self,
        sent: Sent,
        request: Request<'_>,
        told: &mut Told<'_>,
    ) -> Result<Reply, ModelError> {
        let body = request::body(&self.options, sent, &request);
        let body = body.map_err(|reason| ModelError::Refused {
            provider: PROVIDER,
            reason,
        })?;
        let headers = self.headers.clone();
        let explain = |failure: Failure| self.explain(failure, sent);
        let answer = self
            .http
            .post("/v1/messages", headers, body, request.deadline, explain);
        let mut lines = answer.await?;
        let mut stream = Stream::new(request.tools.catalog());
        let mut first_token = None;
        if lines.is_json() {
            let whole = lines.rest().await?;
            first_token = Some(Instant::now());
            stream
                .whole(&whole, told)
                .map_err(|trouble| self.error(trouble, sent))?;
        }
        while !stream.is_finished()
            && let Some(event) = lines.next_event().await?
        {
            stream
                .event(&event, told)
                .map_err(|trouble| self.error(trouble, sent))?;
            if stream.has_begun() {
                first_token = first_token.or_else(|| Some(Instant::now()));
            }
        }
        lines.finish();
        let reply = stream.finish();
        let reply = reply.map_err(|trouble| self.error(trouble, sent))?;
        Ok(Reply {
            first_token,
            ..reply
        })
    }

    fn explain(&self, failure: Failure, used: Sent) -> ModelError {
        self.sent
            .learn(used, |sent| sent.after(failure.status, &failure.message));
        failure.usual(&self.options.model)
    }

    fn error(&self, trouble: Trouble, used: Sent) -> ModelError {
        let provider = PROVIDER;
        match trouble {
            Trouble::Said(error) => {
                let kind = error["error"]["type"].as_str().unwrap_or_default();
                let failure = Failure::in_stream(&self.http, status(kind), &error);
                self.explain(failure, used)
            }
            Trouble::Garbled(reason) => ModelError::Garbled {
                provider,
                reason: self.http.line(&reason),
            },
            Trouble::Cut => ModelError::Cut {
                provider,
                reason: "it ended in the middle".to_owned(),
            },
            Trouble::Full => ModelError::TooLong {
                model: self.options.model.clone(),
                reason: "its window is full; begin a new conversation, or offer fewer tools"
                    .to_owned(),
            },
        }
    }
}

impl ModelClient for AnthropicClient {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn model(&self) -> &str {
        &self.options.model
    }

    fn window(&self) -> usize {
        self.options.window
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = match self.schemas {
            SchemaForm::Lowered => &tools::DIALECT,
            SchemaForm::Original => &tools::ORIGINAL,
        };
        self.catalogs.get(tools, dialect)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let deadline = request.deadline;
        Box::pin(retrying(&self.retries, deadline, listener, move |told| {
            Box::pin(self.ask(request, told))
        }))
    }
}

fn headers(url: &str, key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if !key.trim().is_empty() {
        headers.insert("x-api-key", secret(PROVIDER, key)?);
    } else if url == URL {
        return Err(ModelError::Key {
            provider: PROVIDER,
            reason: format!("there is none; set {}", PROVIDER.key_setting()),
        });
    }
    Ok(headers)
}

/// The status that an error would have had, had it come before the stream began.
fn status(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

#[cfg(test)]
mod tests;
