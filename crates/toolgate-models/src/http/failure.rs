//! Reads a provider's error response, and maps it to a `ModelError`.

use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolgate_net::root_cause;

use super::retry_after::{MAX_RETRY_AFTER, retry_after};
use super::{MAX_SHOWN, ProviderHttp, display_url};
use crate::{ModelError, Provider};

const MAX_BODY_BYTES: usize = 64 << 10;
// The body only explains a status that is known already, so it isn't worth a longer wait.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ErrorResponse {
    pub(crate) provider: Provider,
    // For messages: without login and query.
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    // The provider's own words: taken from its JSON, bounded, escaped and redacted.
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) code: String,
}

impl ErrorResponse {
    pub(super) async fn read(
        http: &ProviderHttp,
        url: &Url,
        mut response: Response,
        deadline: Instant,
    ) -> Self {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let until = deadline.min(Instant::now() + ERROR_BODY_TIMEOUT);
        let mut body = Vec::new();
        while body.len() < MAX_BODY_BYTES {
            match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                _ => break,
            }
        }
        body.truncate(MAX_BODY_BYTES);
        let body = String::from_utf8_lossy(&body);
        let mut failure = Self::from_body(http, status.as_u16(), &body);
        if failure.message.trim().is_empty() {
            failure.message = default_message(status);
        }
        failure.url = display_url(url);
        failure.retry_after = retry_after.or_else(|| retry_delay(&body));
        failure
    }

    /// An error that was reported in a stream. `status` is the one that it would have had.
    pub(crate) fn in_stream(http: &ProviderHttp, status: u16, error: &Value) -> Self {
        Self::from_body(http, status, &error.to_string())
    }

    fn from_body(http: &ProviderHttp, status: u16, body: &str) -> Self {
        let (message, kind, code) = error_fields(body);
        Self {
            provider: http.provider,
            url: http.display_url(),
            status,
            retry_after: None,
            message: http.display_line(&message),
            kind: http.display_line(&kind),
            code: http.display_line(&code),
        }
    }

    /// Maps statuses and error texts as most providers mean them. `model` is empty if the request
    /// wasn't for a model, such as a list of models.
    pub(crate) fn into_model_error(self, model: &str) -> ModelError {
        let provider = self.provider;
        let words = format!("{} {} {}", self.message, self.kind, self.code).to_lowercase();
        let has = |phrases| contains_any(&words, phrases);
        let is_asked = !model.is_empty();
        match self.status {
            400 | 402 | 403 | 429 if has(SPENT) && !has(PER_MINUTE) => ModelError::Limited {
                provider,
                reason: format!(
                    "{}; waiting does not help: look at the plan and the budget of the key's account",
                    self.message
                ),
                retry_after: self.retry_after,
                retryable: false,
            },
            400 | 413 | 422 if is_asked && (self.status == 413 || has(TOO_LONG)) => {
                ModelError::TooLong {
                    model: model.to_owned(),
                    reason: format!(
                        "{}; start a new conversation, or offer fewer tools",
                        self.message
                    ),
                }
            }
            401 | 403 => self.into_key_error(),
            404 if is_asked && has(&["model"]) => ModelError::Model {
                reason: format!(
                    "{provider} has no model '{}' ({}); choose another with --model, or as model.name in the configuration",
                    toolgate_core::text::escape(model),
                    self.message
                ),
            },
            404 => ModelError::Refused {
                provider,
                reason: format!(
                    "nothing was found at {} ({}); check the address ({})",
                    self.url,
                    self.message,
                    provider.address_setting()
                ),
            },
            429 => self.into_limited_error(),
            408 | 409 | 425 | 500.. => self.into_failed_error(),
            _ => ModelError::Refused {
                provider,
                reason: self.message,
            },
        }
    }

    pub(crate) fn into_key_error(self) -> ModelError {
        let setting = self.provider.key_setting();
        ModelError::Key {
            provider: self.provider,
            reason: format!("{}; set {setting}", self.message),
        }
    }

    pub(crate) fn into_limited_error(self) -> ModelError {
        let when = match self.retry_after {
            Some(after) => format!("try again in {} s", after.as_secs_f64().ceil()),
            None => "try again in a minute".to_owned(),
        };
        ModelError::Limited {
            provider: self.provider,
            reason: format!("{}; {when}", self.message),
            retry_after: self.retry_after,
            retryable: true,
        }
    }

    fn into_failed_error(self) -> ModelError {
        let status = format!("(status {})", self.status);
        let reason = match self.message {
            // The message is our own, because the provider gave none, and has the status already.
            message if message.ends_with(&status) => message,
            message => format!("{message} {status}"),
        };
        ModelError::Failed {
            provider: self.provider,
            reason,
            retry_after: self.retry_after,
        }
    }
}

const SPENT: &[&str] = &[
    "billing",
    "credit balance",
    "insufficient_quota",
    "insufficient credits",
    "payment required",
    "quota",
    "spend limit",
    "spending limit",
    "api usage limits",
];
// Marks a rate limit, which passes by itself, even if the text also mentions a quota.
const PER_MINUTE: &[&str] = &["per minute", "per-minute", "per second", "per-second"];
const TOO_LONG: &[&str] = &[
    "context length",
    "context limit",
    "context size",
    "context window",
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context",
    "model_context_window_exceeded",
    "prompt is too long",
    "too many tokens",
];

pub(crate) fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

fn error_fields(body: &str) -> (String, String, String) {
    let Ok(value) = serde_json::from_str::<Value>(body.trim_start_matches('\u{feff}')) else {
        return (page_title(body), String::new(), String::new());
    };
    let error = value.get("error").unwrap_or(&value);
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let field = |name: &str| error.get(name).and_then(text).unwrap_or_default();
    let message = find_message(&value, 5).unwrap_or_else(|| body.to_owned());
    (message, field("type"), field("code"))
}

// Google's services put the delay in the details of an error: `"retryDelay": "36.5s"`.
fn retry_delay(body: &str) -> Option<Duration> {
    let value: Value = serde_json::from_str(body).ok()?;
    let details = value.pointer("/error/details")?.as_array()?;
    let mut delays = details.iter().filter_map(|detail| {
        let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    delays.next().map(|delay| delay.min(MAX_RETRY_AFTER))
}

fn find_message(value: &Value, deeper: usize) -> Option<String> {
    const KEYS: &str = "error message msg detail errors error_description title reason";
    if deeper == 0 {
        return None;
    }
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(list) => list
            .first()
            .and_then(|first| find_message(first, deeper - 1)),
        Value::Object(object) => {
            let mut inner = KEYS.split(' ').filter_map(|key| object.get(key));
            let words = inner.find_map(|inner| find_message(inner, deeper - 1))?;
            let place = object.get("loc").map(field_path).unwrap_or_default();
            Some(place + &words)
        }
        _ => None,
    }
}

// FastAPI servers have the path to the invalid field in `loc`, next to the message.
fn field_path(loc: &Value) -> String {
    let steps = loc.as_array().into_iter().flatten();
    let names = steps.map(|step| step.as_str().map_or(step.to_string(), str::to_owned));
    let names: Vec<String> = names.skip_while(|name| name == "body").collect();
    match names.is_empty() {
        true => String::new(),
        false => names.join(".") + ": ",
    }
}

// Only the title of an HTML page is worth showing.
fn page_title(body: &str) -> String {
    let text = body.trim();
    if !text.starts_with('<') {
        return text.to_owned();
    }
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        let length = lower[start..].find('<')?;
        Some(text[start..start + length].trim().to_owned())
    });
    title.unwrap_or_else(|| "it answered with a page for a browser".to_owned())
}

fn default_message(status: StatusCode) -> String {
    let words = status.canonical_reason().unwrap_or("no reason given");
    format!("{words} (status {})", status.as_u16())
}

pub(super) fn unreachable(provider: Provider, url: &Url, error: &(dyn Error + 'static)) -> String {
    let (cause, address) = (cause(url, error), provider.address_setting());
    match provider {
        Provider::Ollama => {
            format!("{cause}; start it with 'ollama serve', or say where it is ({address})")
        }
        _ => format!("{cause}; check the network, and the address ({address})"),
    }
}

fn cause(url: &Url, error: &(dyn Error + 'static)) -> String {
    let host = toolgate_core::text::escape(url.host_str().unwrap_or_default());
    for cause in chain(error) {
        if cause.is::<rustls::Error>() {
            return format!("no secure connection could be made ({})", cause_line(cause));
        }
        if cause.to_string().starts_with("dns error") {
            return format!("the host '{host}' was not found ({})", cause_line(cause));
        }
        match cause
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind)
        {
            Some(ErrorKind::ConnectionRefused) => {
                return "nothing listens there (connection refused)".to_owned();
            }
            Some(ErrorKind::TimedOut) => return "no connection in time".to_owned(),
            _ => {}
        }
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_timeout() => {
            let limit = toolgate_net::CONNECT_TIMEOUT.as_secs();
            format!("no connection within {limit} s")
        }
        _ => toolgate_core::text::escape(&root_cause(error)),
    }
}

fn cause_line(error: &dyn Error) -> String {
    let text: String = root_cause(error).chars().take(MAX_SHOWN).collect();
    toolgate_core::text::escape(&text)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let inner = |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<std::io::Error>() {
            // `source()` of an I/O error skips the error that it wraps.
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    };
    std::iter::successors(Some(error), inner)
}

#[cfg(test)]
mod tests;
