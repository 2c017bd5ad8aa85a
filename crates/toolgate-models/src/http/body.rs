//! The bytes of an answer, within their limits.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};
use toolgate_core::Redactor;
use toolgate_net::root_cause;

use super::SHOWN;
use crate::error::{NOT_BEGUN, NOT_FINISHED, seconds};
use crate::{ModelError, Provider};

const LONGEST_BODY: u64 = 64 << 20;

#[derive(Clone, Copy)]
pub(super) struct Limit {
    provider: Provider,
    started: Instant,
    first_byte: Duration,
    deadline: Instant,
}

impl Limit {
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

    pub(super) fn not_begun(&self) -> ModelError {
        self.timed_out(NOT_BEGUN, self.first_byte())
    }

    fn not_finished(&self) -> ModelError {
        self.timed_out(NOT_FINISHED, self.deadline)
    }

    fn timed_out(&self, what: &'static str, end: Instant) -> ModelError {
        ModelError::TimedOut {
            provider: self.provider,
            what,
            after: end.saturating_duration_since(self.started),
        }
    }
}

pub(super) struct Body {
    response: Response,
    first: Option<Bytes>,
    received: u64,
    ended: bool,
    limit: Limit,
    redactor: Redactor,
}

impl Body {
    pub(super) async fn begin(
        mut response: Response,
        limit: Limit,
        redactor: Redactor,
    ) -> Result<Self, ModelError> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ModelError::Garbled {
                provider: limit.provider,
                reason: "it is compressed, which was not asked for; is there a proxy in between?"
                    .to_owned(),
            });
        }
        let first = timeout_at(limit.first_byte(), response.chunk())
            .await
            .map_err(|_| limit.not_begun())?;
        let mut body = Self {
            response,
            first: None,
            received: 0,
            ended: false,
            limit,
            redactor,
        };
        body.first = body.count(first)?;
        if body.is_page() {
            return Err(body.not_from_there("it answered with a page for a browser"));
        }
        Ok(body)
    }

    /// The next bytes; `None` once the body has ended properly.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.ended {
            return Ok(None);
        }
        // Between two bytes a provider may take as long as before the first.
        let idle = Instant::now() + self.limit.first_byte;
        let until = idle.min(self.limit.deadline);
        match timeout_at(until, self.response.chunk()).await {
            Ok(chunk) => self.count(chunk),
            Err(_) if until == idle => {
                let silence = seconds(self.limit.first_byte);
                Err(self.cut(format!("nothing more came for {silence} s")))
            }
            Err(_) => Err(self.limit.not_finished()),
        }
    }

    fn count(
        &mut self,
        chunk: Result<Option<Bytes>, reqwest::Error>,
    ) -> Result<Option<Bytes>, ModelError> {
        let chunk = chunk.map_err(|error| {
            let cause = self.redactor.line(&root_cause(&error.without_url()), 200);
            self.cut(format!("the connection broke off ({cause})"))
        })?;
        self.ended = chunk.is_none();
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > LONGEST_BODY {
            let most = LONGEST_BODY >> 20;
            return Err(self.garbled(format!("it is longer than {most} MiB")));
        }
        Ok(chunk)
    }

    pub(super) fn cut(&self, reason: String) -> ModelError {
        let provider = self.limit.provider;
        ModelError::Cut { provider, reason }
    }

    pub(super) fn garbled(&self, reason: String) -> ModelError {
        let provider = self.limit.provider;
        ModelError::Garbled { provider, reason }
    }

    pub(super) fn not_from_there(&self, what: &str) -> ModelError {
        let address = self.limit.provider.address_setting();
        self.garbled(format!("{what}; check the address ({address})"))
    }

    pub(super) fn garbled_by(&self, reason: &str) -> ModelError {
        self.garbled(self.redactor.line(reason, SHOWN))
    }

    pub(super) fn is_json(&self) -> bool {
        self.is("application/json")
    }

    /// Another program listens there, or a proxy asks for a login.
    fn is_page(&self) -> bool {
        let start = self.first.as_deref().unwrap_or_default().trim_ascii_start();
        let begins = |with: &str| {
            let start = start.get(..with.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
        };
        self.is("text/html") || begins("<!doctype") || begins("<html")
    }

    fn is(&self, wanted: &str) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE);
        kind.and_then(|kind| kind.to_str().ok())
            .and_then(|kind| kind.split(';').next())
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
    }
}
