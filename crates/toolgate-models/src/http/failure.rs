//! What a provider says instead of an answer, and what it means.

use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolgate_net::root_cause;

use super::retry_after::{LONGEST, retry_after};
use super::{Http, SHOWN, shown};
use crate::{ModelError, Provider};

const LONGEST_BODY: usize = 64 << 10;
/// The status is known already: its explanation is not waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) provider: Provider,
    /// Where, without secrets.
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// The provider's own words: taken out of its JSON, bounded, escaped, redacted.
    pub(crate) message: String,
    /// The `error.type` of the body, where there is one.
    pub(crate) kind: String,
    /// The `error.code` of the body, where there is one.
    pub(crate) code: String,
}

impl Failure {
    pub(super) async fn read(
        http: &Http,
        url: &Url,
        mut response: Response,
        deadline: Instant,
    ) -> Self {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let until = deadline.min(Instant::now() + PATIENCE);
        let mut body = Vec::new();
        while body.len() < LONGEST_BODY {
            match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                _ => break,
            }
        }
        body.truncate(LONGEST_BODY);
        let body = String::from_utf8_lossy(&body);
        let (mut message, kind, code) = said(&body);
        let retry_after = retry_after.or_else(|| retry_delay(&body));
        if message.trim().is_empty() {
            message = usual_words(status);
        }
        Self {
            provider: http.provider,
            url: shown(url),
            status: status.as_u16(),
            retry_after,
            message: http.line(&message),
            kind: http.line(&kind),
            code: http.line(&code),
        }
    }

    pub(crate) fn in_stream(http: &Http, status: u16, error: &Value) -> Self {
        let (message, kind, code) = said(&error.to_string());
        Self {
            provider: http.provider,
            url: http.shown(),
            status,
            retry_after: None,
            message: http.line(&message),
            kind: http.line(&kind),
            code: http.line(&code),
        }
    }

    /// What statuses and words mean with most providers. An empty `model`: no model was asked, so the words are about something
    /// else.
    pub(crate) fn usual(self, model: &str) -> ModelError {
        let provider = self.provider;
        let words = format!("{} {} {}", self.message, self.kind, self.code).to_lowercase();
        let has = |any: &[&str]| any.iter().any(|text| words.contains(text));
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
                        "{}; begin a new conversation, or offer fewer tools",
                        self.message
                    ),
                }
            }
            401 | 403 => self.wrong_key(),
            404 if is_asked && has(&["model"]) => ModelError::Model {
                reason: format!(
                    "{provider} has no model '{}' ({}); choose another with --model, or as model.name in the configuration",
                    toolgate_core::escape(model),
                    self.message
                ),
            },
            404 => ModelError::Refused {
                provider,
                reason: format!(
                    "there is nothing at {} ({}); check the address ({})",
                    self.url,
                    self.message,
                    provider.address_setting()
                ),
            },
            429 => self.limited(),
            408 | 409 | 425 | 500.. => self.failed(),
            _ => ModelError::Refused {
                provider,
                reason: self.message,
            },
        }
    }

    pub(crate) fn wrong_key(self) -> ModelError {
        let setting = self.provider.key_setting();
        ModelError::Key {
            provider: self.provider,
            reason: format!("{}; set {setting}", self.message),
        }
    }

    pub(crate) fn limited(self) -> ModelError {
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

    fn failed(self) -> ModelError {
        let status = format!("(status {})", self.status);
        let reason = match self.message {
            // Words of ours, where the provider had none.
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

/// Words of a budget that is used up, in lower case.
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
/// Words of a rate that is too high, which passes.
const PER_MINUTE: &[&str] = &["per minute", "per-minute", "per second", "per-second"];
/// Words of a prompt that is too long, in lower case.
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

/// The message, type and code of an error, under whichever key they stand.
fn said(body: &str) -> (String, String, String) {
    let Ok(value) = serde_json::from_str::<Value>(body.trim_start_matches('\u{feff}')) else {
        return (page(body), String::new(), String::new());
    };
    let error = value.get("error").unwrap_or(&value);
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let field = |name: &str| error.get(name).and_then(text).unwrap_or_default();
    let message = words(&value, 5).unwrap_or_else(|| body.to_owned());
    (message, field("type"), field("code"))
}

/// The pause that Google's services tell among the details of an error, as in `"retryDelay": "36.5s"`.
fn retry_delay(body: &str) -> Option<Duration> {
    let value: Value = serde_json::from_str(body).ok()?;
    let details = value.pointer("/error/details")?.as_array()?;
    let mut delays = details.iter().filter_map(|detail| {
        let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    delays.next().map(|delay| delay.min(LONGEST))
}

fn words(value: &Value, deeper: usize) -> Option<String> {
    const KEYS: [&str; 8] = [
        "error",
        "message",
        "msg",
        "detail",
        "errors",
        "error_description",
        "title",
        "reason",
    ];
    if deeper == 0 {
        return None;
    }
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(list) => list.first().and_then(|first| words(first, deeper - 1)),
        Value::Object(object) => {
            let mut inner = KEYS.iter().filter_map(|key| object.get(*key));
            let words = inner.find_map(|inner| words(inner, deeper - 1))?;
            let place = object.get("loc").map(place).unwrap_or_default();
            Some(place + &words)
        }
        _ => None,
    }
}

/// The part of the body that is meant, `seed: `, which servers in Python tell beside their words.
fn place(loc: &Value) -> String {
    let steps = loc.as_array().into_iter().flatten();
    let names = steps.map(|step| step.as_str().map_or(step.to_string(), str::to_owned));
    let names: Vec<String> = names.skip_while(|name| name == "body").collect();
    match names.is_empty() {
        true => String::new(),
        false => names.join(".") + ": ",
    }
}

/// Text as it is; of a page for a browser only its title.
fn page(body: &str) -> String {
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

fn usual_words(status: StatusCode) -> String {
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
    let host = toolgate_core::escape(url.host_str().unwrap_or_default());
    for cause in chain(error) {
        if cause.is::<rustls::Error>() {
            return format!("no secure connection could be made ({})", line(cause));
        }
        if cause.to_string().starts_with("dns error") {
            return format!("there is no machine named '{host}' ({})", line(cause));
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
        _ => toolgate_core::escape(&root_cause(error)),
    }
}

fn line(error: &dyn Error) -> String {
    let text: String = root_cause(error).chars().take(SHOWN).collect();
    toolgate_core::escape(&text)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let inner = |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<std::io::Error>() {
            // What an I/O error wraps is not its source.
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    };
    std::iter::successors(Some(error), inner)
}

#[cfg(test)]
mod tests;
