//! What differs from provider to provider: how a question is written and how its answer is read.

use std::future::ready;

use futures::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::catalog::Dialect;
use crate::http::{Failure, Http, secret};
use crate::learned::{Habits, Learned};
use crate::lowering::{Lowered, as_stored};
use crate::reply_buffer::ReplyBuffer;
use crate::{Catalog, ModelError, Provider, Reply, Request};

pub(crate) struct Endpoint {
    pub(crate) http: Http,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events. A server that doesn't stream answers with one JSON value.
    Events,
    /// One JSON value per line.
    Lines,
}

/// A tool as a provider wants it, under its name there.
pub(crate) type ToolForm = fn(&Lowered<'_>, &str) -> Result<Box<RawValue>, String>;

/// One provider's API. [`ProviderClient`](crate::provider_client::ProviderClient) does everything else.
pub(crate) trait WireFormat: Send + Sync + 'static {
    const PROVIDER: Provider;
    const FRAMING: Framing = Framing::Events;
    /// For a person, of an answer whose end didn't come.
    const CUT: &'static str = "it ended in the middle";
    const FORM: ToolForm;
    const DIALECT: &'static Dialect;
    /// The same with schemas as they are stored.
    const ORIGINAL: &'static Dialect = &Dialect {
        convert: |definition, wire_name| (Self::FORM)(&as_stored(definition), wire_name),
        ..*Self::DIALECT
    };

    type Habits: Habits;
    type Reader<'a>: ReplyReader;

    fn endpoint(&self) -> &Endpoint;

    fn path(&self) -> &str;

    fn model(&self) -> &str;

    /// How many tokens the model can hold, the answer included.
    fn window(&self) -> usize;

    fn most_tools(&self) -> Option<usize> {
        None
    }

    fn log_catalog(_catalog: &Catalog) {}

    fn habits(&self) -> &Learned<Self::Habits>;

    /// Whether calls that the model wrote as text are run.
    fn rescues(&self) -> bool {
        false
    }

    fn body(&self, request: &Request<'_>, habits: Self::Habits) -> Result<Vec<u8>, String>;

    fn reader<'a>(&self, request: &Request<'a>) -> Self::Reader<'a>;

    /// The status that an error would have had, had it come before the stream began.
    fn status(error: &Value) -> u16;

    fn explain(&self, failure: Failure) -> ModelError {
        failure.usual(self.model())
    }

    fn prepare(&self, _deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn caution(&self, _request: &Request<'_>) -> Option<String> {
        None
    }

    fn review<'a>(
        &'a self,
        _request: &'a Request<'_>,
        _reply: &'a Reply,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(ready(None))
    }
}

/// Reads one answer, piece by piece, without a socket. Words go into the buffer as they come.
pub(crate) trait ReplyReader: Send {
    /// One event or line; `name` is that of the event.
    fn read(
        &mut self,
        name: &str,
        data: &[u8],
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError>;

    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        self.read("", body, reply)
    }

    /// True once the first words or the first call came.
    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool;

    fn progress(&self) -> Progress;

    /// The reply, if all of it came. How long it took is not known here.
    fn finish(self, reply: &mut ReplyBuffer<'_>) -> Result<Reply, StreamError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    /// The model is done; what it cost may still come.
    Ended,
    Done,
}

#[derive(Debug, PartialEq)]
pub(crate) enum StreamError {
    /// The provider says so: an error in the stream, or instead of an answer.
    Said(Value),
    /// This is not what the provider sends.
    Garbled(String),
    Cut,
    Full,
    Connection(ModelError),
}

impl From<ModelError> for StreamError {
    fn from(error: ModelError) -> Self {
        Self::Connection(error)
    }
}

pub(crate) fn utf8(data: &[u8]) -> Result<&str, StreamError> {
    str::from_utf8(data).map_err(|error| StreamError::Garbled(error.to_string()))
}

/// The key as most want it; nothing where there is none.
pub(crate) fn bearer(provider: Provider, key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let key = key.trim();
    if !key.is_empty() {
        headers.insert(AUTHORIZATION, secret(provider, &format!("Bearer {key}"))?);
    }
    Ok(headers)
}
