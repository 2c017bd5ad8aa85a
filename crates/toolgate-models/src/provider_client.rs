//! The client that all providers share: asks, retries, adapts to what a model refuses, and reads
//! the reply as it arrives.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::catalog::CatalogCache;
use crate::compat::RequestCompat;
use crate::http::{ErrorResponse, ResponseLines};
use crate::reply_buffer::ReplyBuffer;
use crate::retry::{RetryBudget, with_retries};
use crate::wire_format::{
    ReplyReader, ReplyStreamError, StreamFraming, StreamProgress, WireFormat,
};
use crate::{
    Catalog, ModelClient, ModelError, ModelListener, ModelReply, ModelRequest, ModelSettings,
    Provider, SchemaForm, ToolList,
};

// How long to wait for the token usage, which follows a complete answer.
const USAGE_TIMEOUT: Duration = Duration::from_secs(5);

pub struct ProviderClient<W> {
    pub(crate) format: W,
    retries: RetryBudget,
    schemas: SchemaForm,
    catalogs: CatalogCache,
}

impl<W> ProviderClient<W> {
    pub(crate) fn with_format(format: W, settings: &ModelSettings) -> Self {
        Self {
            format,
            retries: RetryBudget::new(settings.attempts),
            schemas: settings.schemas,
            catalogs: CatalogCache::default(),
        }
    }
}

async fn ask_once<W: WireFormat>(
    format: &W,
    request: &ModelRequest<'_>,
    compat: W::Compat,
    buffer: &mut ReplyBuffer<'_>,
) -> Result<ModelReply, ModelError> {
    let body = format.body(request, compat);
    let body = body.map_err(|reason| ModelError::Refused {
        provider: W::PROVIDER,
        reason,
    })?;
    let core = format.core();
    let to_error = |failure: ErrorResponse| to_model_error(format, failure, compat);
    let answer = core
        .http
        .post(format.path(), body, request.deadline, to_error);
    let mut lines = answer.await?;
    buffer.begin(core.rescue && !request.forbid_tools);
    let mut reader = format.reader(request);
    let first_token = read_reply(W::FRAMING, &mut lines, &mut reader, buffer).await;
    let first_token = first_token.map_err(|error| stream_error(format, error, compat))?;
    lines.finish();
    let reply = reader.finish(buffer);
    let mut reply = reply.map_err(|error| stream_error(format, error, compat))?;
    reply.first_token = first_token;
    if let Some(notice) = format.notice_after(request, &reply).await {
        buffer.notice(&notice);
    }
    Ok(reply)
}

fn to_model_error<W: WireFormat>(
    format: &W,
    failure: ErrorResponse,
    used: W::Compat,
) -> ModelError {
    let learned = &format.core().compat;
    learned.learn(used, |compat| {
        compat.adapted_to(failure.status, &failure.message)
    });
    format.to_model_error(failure)
}

fn stream_error<W: WireFormat>(format: &W, error: ReplyStreamError, used: W::Compat) -> ModelError {
    let (provider, core) = (W::PROVIDER, format.core());
    match error {
        ReplyStreamError::Connection(error) => error,
        ReplyStreamError::Reported(error) => {
            let failure = ErrorResponse::in_stream(&core.http, W::status(&error), &error);
            to_model_error(format, failure, used)
        }
        ReplyStreamError::Malformed(reason) => ModelError::Malformed {
            provider,
            reason: core.http.display_line(&reason),
        },
        ReplyStreamError::Truncated => ModelError::Truncated {
            provider,
            reason: W::TRUNCATED_MESSAGE.to_owned(),
        },
        ReplyStreamError::ContextExceeded => ModelError::TooLong {
            model: core.options.model.clone(),
            reason: "its window is full; start a new conversation, or offer fewer tools".to_owned(),
        },
    }
}

async fn read_reply(
    framing: StreamFraming,
    lines: &mut ResponseLines,
    reader: &mut impl ReplyReader,
    buffer: &mut ReplyBuffer<'_>,
) -> Result<Option<Instant>, ReplyStreamError> {
    let mut first_token = None;
    if framing == StreamFraming::Events && lines.is_json() {
        let whole = lines.read_rest().await?;
        first_token = Some(Instant::now());
        reader.read_whole(&whole, buffer)?;
    }
    loop {
        if first_token.is_none() && reader.has_begun(buffer) {
            first_token = Some(Instant::now());
        }
        let progress = reader.progress();
        if progress == StreamProgress::Done {
            return Ok(first_token);
        }
        let read = match framing {
            StreamFraming::Events => {
                match next_event(lines, progress == StreamProgress::Ended).await? {
                    Some(event) => reader.read_event(&event.name, event.data.as_bytes(), buffer),
                    None => return Ok(first_token),
                }
            }
            StreamFraming::Lines => match lines.next().await? {
                Some(line) => reader.read_event("", &line, buffer),
                None => return Ok(first_token),
            },
        };
        read?;
    }
}

// Once the answer is complete, it doesn't matter if the connection breaks.
async fn next_event(
    lines: &mut ResponseLines,
    has_ended: bool,
) -> Result<Option<crate::http::ServerEvent>, ModelError> {
    if !has_ended {
        return lines.next_event().await;
    }
    match timeout(USAGE_TIMEOUT, lines.next_event()).await {
        Ok(Ok(event)) => Ok(event),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the answer was complete already");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

impl<W: WireFormat> ModelClient for ProviderClient<W> {
    fn provider(&self) -> Provider {
        W::PROVIDER
    }

    fn model(&self) -> &str {
        &self.format.core().options.model
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.format.prepare(deadline)
    }

    fn window(&self) -> usize {
        self.format.window()
    }

    fn tool_limit(&self) -> Option<usize> {
        self.format.core().tool_limit
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = match self.schemas {
            SchemaForm::Lowered => W::DIALECT,
            SchemaForm::Original => W::ORIGINAL_DIALECT,
        };
        self.catalogs.get_or_convert(tools, dialect, W::log_catalog)
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            self.prepare(request.deadline).await;
            let (format, core) = (&self.format, self.format.core());
            with_retries(&self.retries, request.deadline, listener, move |buffer| {
                Box::pin(async move {
                    if let Some(notice) = format.notice_before(&request) {
                        buffer.notice(&notice);
                    }
                    // Each time an error shows what the model doesn't accept, asks again at once
                    // without it.
                    loop {
                        let compat = core.compat.get();
                        let reply = ask_once(format, &request, compat, buffer).await;
                        let learned = core.compat.get();
                        match reply {
                            Err(error @ ModelError::Refused { .. }) if learned != compat => {
                                buffer.withdraw();
                                let model = toolgate_core::text::escape(&core.options.model);
                                for notice in learned.notices(compat, &model, &error) {
                                    buffer.notice(&notice);
                                }
                            }
                            reply => return reply,
                        }
                    }
                })
            })
            .await
        })
    }
}
