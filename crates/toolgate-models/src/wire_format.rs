//! What differs between providers: how a request is written and how its reply is read.

use std::future::ready;

use futures::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::catalog::ToolDialect;
use crate::choose::address::normalize_url;
use crate::compat::{LearnedCompat, RequestCompat};
use crate::http::{ErrorResponse, ProviderHttp, secret_header};
use crate::lowering::{LoweredTool, as_stored};
use crate::reply_buffer::ReplyBuffer;
use crate::{Catalog, ModelError, ModelReply, ModelRequest, ModelSettings, Provider};

/// What every provider's format needs.
pub(crate) struct FormatCore<H> {
    pub(crate) http: ProviderHttp,
    pub(crate) options: RequestOptions,
    pub(crate) compat: LearnedCompat<H>,
    pub(crate) tool_limit: Option<usize>,
    /// Whether calls that the model writes as text are run.
    pub(crate) rescue: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct RequestOptions {
    pub(crate) model: String,
    pub(crate) max_tokens: usize,
    // In tokens, the answer included.
    pub(crate) window: usize,
    pub(crate) temperature: Option<f64>,
    pub(crate) seed: Option<i64>,
    pub(crate) think: Option<bool>,
}

impl<H: RequestCompat> FormatCore<H> {
    /// `window` is used unless the settings have one. Fails if the provider's own address requires
    /// a key and none is set.
    pub(crate) fn new(
        provider: Provider,
        settings: &ModelSettings,
        window: usize,
        compat: H,
    ) -> Result<Self, ModelError> {
        let entry = provider.entry();
        // An invalid address is reported when the HTTP client is built from it.
        let url = normalize_url(provider, &settings.url);
        let url = url.unwrap_or_else(|_| settings.url.clone());
        if entry.needs_key && url == entry.url && settings.key.trim().is_empty() {
            return Err(provider.missing_key_error());
        }
        let model = match settings.name.trim() {
            "" => provider.default_model(),
            name => name,
        };
        Ok(Self {
            http: ProviderHttp::new(provider, &url, settings)?,
            options: RequestOptions {
                model: model.to_owned(),
                max_tokens: settings.max_tokens,
                window: settings.context_tokens.unwrap_or(window),
                temperature: settings.temperature,
                seed: settings.seed,
                think: settings.think,
            },
            compat: LearnedCompat::new(compat),
            tool_limit: None,
            rescue: false,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFraming {
    Events,
    Lines,
}

pub(crate) type ToolEncoder = fn(&LoweredTool<'_>, &str) -> Result<Box<RawValue>, String>;

/// One provider's API. `ProviderClient` does everything that providers have in common.
pub(crate) trait WireFormat: Send + Sync + 'static {
    const PROVIDER: Provider;
    const FRAMING: StreamFraming = StreamFraming::Events;
    /// The reason of the error for a reply whose end didn't arrive.
    const TRUNCATED_MESSAGE: &'static str = "it ended in the middle";
    const ENCODE_TOOL: ToolEncoder;
    const DIALECT: &'static ToolDialect;
    /// Like `DIALECT`, but with unchanged schemas.
    const ORIGINAL_DIALECT: &'static ToolDialect = &ToolDialect {
        convert: |definition, wire_name| (Self::ENCODE_TOOL)(&as_stored(definition), wire_name),
        ..*Self::DIALECT
    };

    type Compat: RequestCompat;
    type Reader<'a>: ReplyReader;

    fn core(&self) -> &FormatCore<Self::Compat>;

    fn path(&self) -> &str;

    fn window(&self) -> usize {
        self.core().options.window
    }

    fn log_catalog(_catalog: &Catalog) {}

    /// The request as JSON. The error is a reason for the user.
    fn body(&self, request: &ModelRequest<'_>, compat: Self::Compat) -> Result<Vec<u8>, String>;

    fn reader<'a>(&self, request: &ModelRequest<'a>) -> Self::Reader<'a>;

    /// The HTTP status that an error in the stream would have had before the stream began.
    fn status(error: &Value) -> u16;

    /// Turns a provider's error into a sentence for the user.
    fn to_model_error(&self, failure: ErrorResponse) -> ModelError {
        failure.into_model_error(&self.core().options.model)
    }

    /// Does what [`ModelClient::prepare`](crate::ModelClient::prepare) describes.
    fn prepare(&self, _deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// A notice for the user before the request is sent.
    fn notice_before(&self, _request: &ModelRequest<'_>) -> Option<String> {
        None
    }

    /// A notice for the user about a complete reply.
    fn notice_after<'a>(
        &'a self,
        _request: &'a ModelRequest<'_>,
        _reply: &'a ModelReply,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(ready(None))
    }
}

pub(crate) type ReadResult = Result<(), ReplyStreamError>;

/// Reads one reply, piece by piece, without touching a socket. Text goes into the
/// buffer as it arrives.
pub(crate) trait ReplyReader: Send {
    /// Reads an event or a line. `name` is empty for events without a name and for lines.
    fn read_event(&mut self, name: &str, data: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult;

    /// Reads a reply that a server sent as one JSON value instead of a stream.
    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        self.read_event("", body, reply)
    }

    /// True once there is text, thinking or a call.
    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool;

    fn progress(&self) -> StreamProgress;

    /// The reply, if all of it arrived. The caller fills in `first_token`.
    fn finish(self, reply: &mut ReplyBuffer<'_>) -> Result<ModelReply, ReplyStreamError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamProgress {
    Open,
    // The answer is complete, but its token usage may follow.
    Ended,
    Done,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ReplyStreamError {
    // The provider reports an error, in the stream or instead of an answer.
    Reported(Value),
    Malformed(String),
    Truncated,
    // The model's context window was full before it answered.
    ContextExceeded,
    Connection(ModelError),
}

impl From<ModelError> for ReplyStreamError {
    fn from(error: ModelError) -> Self {
        Self::Connection(error)
    }
}

pub(crate) fn parse_utf8(data: &[u8]) -> Result<&str, ReplyStreamError> {
    str::from_utf8(data).map_err(|error| ReplyStreamError::Malformed(error.to_string()))
}

/// The error for JSON that isn't part of a reply. It may be the error of a proxy.
pub(crate) fn unexpected_json_error(json: &str, error: &serde_json::Error) -> ReplyStreamError {
    match serde_json::from_str::<Value>(json) {
        Ok(value) if value.get("error").is_some() => ReplyStreamError::Reported(value),
        _ => ReplyStreamError::Malformed(format!("a chunk is not part of an answer ({error})")),
    }
}

/// Fails if JSON that isn't part of a reply reports an error: if it has one of these keys.
pub(crate) fn expect_no_error(json: &[u8], keys: &[&str]) -> ReadResult {
    let value = serde_json::from_slice::<Value>(json).unwrap_or_default();
    match keys.iter().any(|key| value.get(key).is_some()) {
        true => Err(ReplyStreamError::Reported(value)),
        false => Ok(()),
    }
}

/// An `Authorization` header with the key; empty without a key.
pub(crate) fn bearer_header(provider: Provider, key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let key = key.trim();
    if !key.is_empty() {
        headers.insert(
            AUTHORIZATION,
            secret_header(provider, &format!("Bearer {key}"))?,
        );
    }
    Ok(headers)
}
