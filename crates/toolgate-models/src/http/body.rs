//! Reads the body of a response, within limits of size and time.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};
use toolgate_core::Redactor;
use toolgate_net::root_cause;

use super::MAX_SHOWN;
use crate::error::{BEGIN_TO_ANSWER, FINISH, seconds};
use crate::{ModelError, Provider};

const MAX_BODY_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy)]
pub(super) struct ResponseLimit {
    provider: Provider,
    started: Instant,
    first_byte: Duration,
    deadline: Instant,
}

impl ResponseLimit {
    pub(super) fn new(provider: Provider, first_byte: Duration, deadline: Instant) -> Self {
        Self {
            provider,
            started: Instant::now(),
            first_byte,
            deadline,
        }
    }

    pub(super) fn first_byte(&self) -> Instant {
        self.deadline.min(self.started + self.first_byte)
    }

    pub(super) fn first_byte_timeout(&self) -> ModelError {
        self.timed_out(BEGIN_TO_ANSWER, self.first_byte())
    }

    fn deadline_timeout(&self) -> ModelError {
        self.timed_out(FINISH, self.deadline)
    }

    fn timed_out(&self, what: &'static str, end: Instant) -> ModelError {
        ModelError::TimedOut {
            provider: self.provider,
            what,
            after: end.saturating_duration_since(self.started),
        }
    }
}

pub(super) struct ProviderBody {
    response: Response,
    first: Option<Bytes>,
    received: u64,
    ended: bool,
    limit: ResponseLimit,
    redactor: Redactor,
}

impl ProviderBody {
    pub(super) async fn begin(
        mut response: Response,
        limit: ResponseLimit,
        redactor: Redactor,
    ) -> Result<Self, ModelError> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ModelError::Malformed {
                provider: limit.provider,
                reason: "it is compressed, which was not asked for; is there a proxy in between?"
                    .to_owned(),
            });
        }
        let first = timeout_at(limit.first_byte(), response.chunk())
            .await
            .map_err(|_| limit.first_byte_timeout())?;
        let mut body = Self {
            response,
            first: None,
            received: 0,
            ended: false,
            limit,
            redactor,
        };
        body.first = body.track_chunk(first)?;
        if body.is_page() {
            return Err(body.wrong_address_error("it answered with a page for a browser"));
        }
        Ok(body)
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.ended {
            return Ok(None);
        }
        // The pause between two chunks may be as long as the wait for the first byte.
        let idle = Instant::now() + self.limit.first_byte;
        let until = idle.min(self.limit.deadline);
        match timeout_at(until, self.response.chunk()).await {
            Ok(chunk) => self.track_chunk(chunk),
            Err(_) if until == idle => {
                let silence = seconds(self.limit.first_byte);
                Err(self.cut_error(format!("nothing more came for {silence} s")))
            }
            Err(_) => Err(self.limit.deadline_timeout()),
        }
    }

    fn track_chunk(
        &mut self,
        chunk: Result<Option<Bytes>, reqwest::Error>,
    ) -> Result<Option<Bytes>, ModelError> {
        let chunk = chunk.map_err(|error| {
            let cause = self.redactor.line(&root_cause(&error.without_url()), 200);
            self.cut_error(format!("the connection broke off ({cause})"))
        })?;
        self.ended = chunk.is_none();
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > MAX_BODY_BYTES {
            let most = MAX_BODY_BYTES >> 20;
            return Err(self.malformed_error(format!("it is longer than {most} MiB")));
        }
        Ok(chunk)
    }

    pub(super) fn cut_error(&self, reason: String) -> ModelError {
        let provider = self.limit.provider;
        ModelError::Truncated { provider, reason }
    }

    pub(super) fn malformed_error(&self, reason: String) -> ModelError {
        let provider = self.limit.provider;
        ModelError::Malformed { provider, reason }
    }

    pub(super) fn wrong_address_error(&self, what: &str) -> ModelError {
        let address = self.limit.provider.address_setting();
        self.malformed_error(format!("{what}; check the address ({address})"))
    }

    pub(super) fn garbled_content_error(&self, reason: &str) -> ModelError {
        self.malformed_error(self.redactor.line(reason, MAX_SHOWN))
    }

    pub(super) fn is_json(&self) -> bool {
        self.has_content_type("application/json")
    }

    // True if another program listens at the address, or a proxy shows a login page.
    fn is_page(&self) -> bool {
        let start = self.first.as_deref().unwrap_or_default().trim_ascii_start();
        let begins = |with: &str| {
            let start = start.get(..with.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
        };
        self.has_content_type("text/html") || begins("<!doctype") || begins("<html")
    }

    fn has_content_type(&self, wanted: &str) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE);
        kind.and_then(|kind| kind.to_str().ok())
            .and_then(|kind| kind.split(';').next())
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
    }
}
