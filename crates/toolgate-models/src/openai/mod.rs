//! OpenAI itself, and the many servers that speak its chat completions: llama.cpp, vLLM, LM Studio and the like.

mod calls;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use self::request::{Habits, Options};
use self::stream::{Stream, Trouble};
use crate::catalog::CatalogCache;
use crate::http::{Failure, Http, Lines, ServerEvent, secret};
use crate::learned::Learned;
use crate::retry::{Retries, Told, retrying};
use crate::{
    Catalog, Listener, ModelClient, ModelError, ModelSettings, Provider, Reply, Request,
    SchemaForm, ToolList,
};

const PROVIDER: Provider = Provider::OpenAi;
const URL: &str = "https://api.openai.com/v1";
const PATH: &str = "/chat/completions";
/// What OpenAI's own models can hold at least.
const WINDOW: usize = 128_000;
/// What others can hold, as far as nobody says more.
const WINDOW_ELSEWHERE: usize = 8192;
/// OpenAI refuses a request with more.
const MOST_TOOLS: usize = 128;
/// How long to wait for what comes after the answer: what it cost.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of OpenAI, or of another server that speaks its chat completions.
///
/// The key and the address are those of the settings; the environment is not looked at.
///
/// ```
/// use toolgate_models::{ModelClient, ModelSettings, OpenAiClient};
///
/// let mut settings = ModelSettings::default();
/// settings.url = "http://127.0.0.1:8080/v1".to_owned();
/// settings.name = "qwen3".to_owned();
/// let client = OpenAiClient::new(&settings)?;
/// assert_eq!((client.model(), client.window()), ("qwen3", 8192));
/// # Ok::<_, toolgate_models::ModelError>(())
/// ```
pub struct OpenAiClient {
    http: Http,
    headers: HeaderMap,
    options: Options,
    rescue: bool,
    /// What was found out about the server.
    habits: Learned<Habits>,
    retries: Retries,
    most_tools: Option<usize>,
    schemas: SchemaForm,
    catalogs: CatalogCache,
}

impl OpenAiClient {
    /// Asks nobody yet. OpenAI itself wants a key; another server may do without.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let url = match settings.url.trim() {
            "" => URL,
            // The path ends with it, and some write all of it.
            url => url.trim_end_matches('/').trim_end_matches(PATH),
        };
        let official = is_official(url);
        let model = match settings.name.trim() {
            "" => PROVIDER.default_model(),
            name => name,
        };
        let window = if official { WINDOW } else { WINDOW_ELSEWHERE };
        let options = Options {
            model: model.to_owned(),
            max_tokens: settings.max_tokens,
            window: settings.context_tokens.unwrap_or(window),
            temperature: settings.temperature,
            seed: settings.seed,
            enable_thinking: settings.think.filter(|_| !official),
        };
        Ok(Self {
            http: Http::new(PROVIDER, url, settings)?,
            headers: headers(official, &settings.key)?,
            habits: Learned::new(Habits::new(official, &options)),
            options,
            // Its own models never write a call as text: what looks like one is an example.
            rescue: settings.rescue && !official,
            retries: Retries::new(settings.attempts),
            most_tools: official.then_some(MOST_TOOLS),
            schemas: settings.schemas,
            catalogs: CatalogCache::default(),
        })
    }

    /// One attempt, and again at once each time something was learned about the server.
    async fn ask(&self, request: Request<'_>, told: &mut Told<'_>) -> Result<Reply, ModelError> {
        loop {
            let habits = self.habits.get();
            let reply = self.ask_once(habits, request, told).await;
            let learned = self.habits.get();
            match reply {
                Err(error @ ModelError::Refused { .. }) if learned != habits => {
                    told.take_back();
                    let model = &self.options.model;
                    learned.sent.tell(habits.sent, model, &error, told);
                }
                reply => return reply,
            }
        }
    }

    async fn ask_once(
        &self,
        habits: Habits,
        request: Request<'_>,
        told: &mut Told<'_>,
    ) -> Result<Reply, ModelError> {
        let body = request::body(&self.options, habits, &request);
        let body = body.map_err(|reason| ModelError::Refused {
            provider: PROVIDER,
            reason,
        })?;
        let headers = self.headers.clone();
        let explain = |failure: Failure| self.explain(failure, habits);
        let answer = self
            .http
            .post(PATH, headers, body, request.deadline, explain);
        let mut lines = answer.await?;
        let rescue = self.rescue && !request.words_only;
        let mut stream = Stream::new(request.tools, rescue);
        let mut first_token = None;
        if lines.is_json() {
            let whole = lines.rest().await?;
            first_token = Some(Instant::now());
            let read = stream.whole(&whole, told);
            read.map_err(|trouble| self.error(trouble, habits))?;
        }
        while !stream.is_done()
            && let Some(event) = next(&mut lines, stream.has_ended()).await?
        {
            let read = stream.data(&event.data, told);
            read.map_err(|trouble| self.error(trouble, habits))?;
            if stream.has_begun() {
                first_token = first_token.or_else(|| Some(Instant::now()));
            }
        }
        lines.finish();
        let reply = stream.finish(told);
        let reply = reply.map_err(|trouble| self.error(trouble, habits))?;
        Ok(Reply {
            first_token,
            ..reply
        })
    }

    fn explain(&self, mut failure: Failure, used: Habits) -> ModelError {
        self.habits.learn(used, |habits| {
            habits.after(failure.status, &failure.message)
        });
        if failure.status == 404 && !self.http.shown().ends_with("/v1") {
            failure.message += "; the address usually ends in /v1";
        }
        failure.usual(&self.options.model)
    }

    fn error(&self, trouble: Trouble, used: Habits) -> ModelError {
        let provider = PROVIDER;
        match trouble {
            Trouble::Said(error) => {
                let failure = Failure::in_stream(&self.http, status(&error), &error);
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
        }
    }
}

impl ModelClient for OpenAiClient {
    fn provider(&self) -> Provider {
        PROVIDER
    }

    fn model(&self) -> &str {
        &self.options.model
    }

    fn window(&self) -> usize {
        self.options.window
    }

    fn most_tools(&self) -> Option<usize> {
        self.most_tools
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

/// The next event. Once the answer is complete, what breaks breaks nothing.
async fn next(lines: &mut Lines, has_ended: bool) -> Result<Option<ServerEvent>, ModelError> {
    if !has_ended {
        return lines.next_event().await;
    }
    match timeout(PATIENCE, lines.next_event()).await {
        Ok(Ok(event)) => Ok(event),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the answer was complete already");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

fn is_official(url: &str) -> bool {
    let url = Url::parse(url).ok();
    url.is_some_and(|url| url.host_str() == Some("api.openai.com"))
}

fn headers(official: bool, key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let key = key.trim();
    if !key.is_empty() {
        headers.insert(AUTHORIZATION, secret(PROVIDER, &format!("Bearer {key}"))?);
    } else if official {
        return Err(ModelError::Key {
            provider: PROVIDER,
            reason: format!("there is none; set {}", PROVIDER.key_setting()),
        });
    }
    Ok(headers)
}

/// The status that an error would have had, had it come before the stream began.
fn status(error: &Value) -> u16 {
    let error = error.get("error").unwrap_or(error);
    let code = &error["code"];
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
    if let Some(status @ 400..=599) = number.and_then(|number| u16::try_from(number).ok()) {
        return status;
    }
    let word = |value: &Value| match value.as_str()? {
        "invalid_request_error" | "context_length_exceeded" | "exceed_context_size_error" => {
            Some(400)
        }
        "authentication_error" | "invalid_api_key" => Some(401),
        "not_found_error" | "model_not_found" => Some(404),
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
        _ => None,
    };
    word(code).or_else(|| word(&error["type"])).unwrap_or(500)
}

#[cfg(test)]
mod tests;
