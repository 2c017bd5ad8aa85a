//! One client for all providers: asks, asks again, learns what a model refuses, reads the answer as it comes, and turns every
//! failure into a sentence.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::catalog::CatalogCache;
use crate::http::{Failure, Lines};
use crate::learned::Habits;
use crate::reply_buffer::ReplyBuffer;
use crate::retry::{Retries, retrying};
use crate::wire_format::{Framing, Progress, ReplyReader, StreamError, WireFormat};
use crate::{
    Catalog, Listener, ModelClient, ModelError, ModelSettings, Provider, Reply, Request,
    SchemaForm, ToolList,
};

/// How long to wait for what comes after the answer: what it cost.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of one provider, by its wire format.
pub struct ProviderClient<W> {
    pub(crate) format: W,
    retries: Retries,
    schemas: SchemaForm,
    catalogs: CatalogCache,
}

impl<W> ProviderClient<W> {
    pub(crate) fn with_format(format: W, settings: &ModelSettings) -> Self {
        Self {
            format,
            retries: Retries::new(settings.attempts),
            schemas: settings.schemas,
            catalogs: CatalogCache::default(),
        }
    }
}

async fn ask_once<W: WireFormat>(
    format: &W,
    request: &Request<'_>,
    habits: W::Habits,
    buffer: &mut ReplyBuffer<'_>,
) -> Result<Reply, ModelError> {
    let body = format.body(request, habits);
    let body = body.map_err(|reason| ModelError::Refused {
        provider: W::PROVIDER,
        reason,
    })?;
    let endpoint = format.endpoint();
    let headers = endpoint.headers.clone();
    let explain = |failure: Failure| explain(format, failure, habits);
    let answer = endpoint
        .http
        .post(format.path(), headers, body, request.deadline, explain);
    let mut lines = answer.await?;
    buffer.begin(format.rescues() && !request.words_only);
    let mut reader = format.reader(request);
    let first_token = read(W::FRAMING, &mut lines, &mut reader, buffer).await;
    let first_token = first_token.map_err(|error| stream_error(format, error, habits))?;
    lines.finish();
    let reply = reader.finish(buffer);
    let mut reply = reply.map_err(|error| stream_error(format, error, habits))?;
    reply.first_token = first_token;
    if let Some(notice) = format.review(request, &reply).await {
        buffer.notice(&notice);
    }
    Ok(reply)
}

fn explain<W: WireFormat>(format: &W, failure: Failure, used: W::Habits) -> ModelError {
    let learned = format.habits();
    learned.learn(used, |habits| {
        habits.after(failure.status, &failure.message)
    });
    format.explain(failure)
}

fn stream_error<W: WireFormat>(format: &W, error: StreamError, used: W::Habits) -> ModelError {
    let (provider, http) = (W::PROVIDER, &format.endpoint().http);
    match error {
        StreamError::Connection(error) => error,
        StreamError::Said(error) => {
            let failure = Failure::in_stream(http, W::status(&error), &error);
            explain(format, failure, used)
        }
        StreamError::Garbled(reason) => ModelError::Garbled {
            provider,
            reason: http.line(&reason),
        },
        StreamError::Cut => ModelError::Cut {
            provider,
            reason: W::CUT.to_owned(),
        },
        StreamError::Full => ModelError::TooLong {
            model: format.model().to_owned(),
            reason: "its window is full; begin a new conversation, or offer fewer tools".to_owned(),
        },
    }
}

/// Reads an answer to its end, and tells when its first words or call came.
async fn read(
    framing: Framing,
    lines: &mut Lines,
    reader: &mut impl ReplyReader,
    buffer: &mut ReplyBuffer<'_>,
) -> Result<Option<Instant>, StreamError> {
    let mut first_token = None;
    if framing == Framing::Events && lines.is_json() {
        let whole = lines.rest().await?;
        first_token = Some(Instant::now());
        reader.read_whole(&whole, buffer)?;
    }
    loop {
        if first_token.is_none() && reader.has_begun(buffer) {
            first_token = Some(Instant::now());
        }
        let progress = reader.progress();
        if progress == Progress::Done {
            return Ok(first_token);
        }
        let read = match framing {
            Framing::Events => match next_event(lines, progress == Progress::Ended).await? {
                Some(event) => reader.read(&event.name, event.data.as_bytes(), buffer),
                None => return Ok(first_token),
            },
            Framing::Lines => match lines.next().await? {
                Some(line) => reader.read("", &line, buffer),
                None => return Ok(first_token),
            },
        };
        read?;
    }
}

/// The next event. Once the answer is complete, what breaks breaks nothing.
async fn next_event(
    lines: &mut Lines,
    has_ended: bool,
) -> Result<Option<crate::http::ServerEvent>, ModelError> {
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

impl<W: WireFormat> ModelClient for ProviderClient<W> {
    fn provider(&self) -> Provider {
        W::PROVIDER
    }

    fn model(&self) -> &str {
        self.format.model()
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.format.prepare(deadline)
    }

    fn window(&self) -> usize {
        self.format.window()
    }

    fn most_tools(&self) -> Option<usize> {
        self.format.most_tools()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = match self.schemas {
            SchemaForm::Lowered => W::DIALECT,
            SchemaForm::Original => W::ORIGINAL,
        };
        self.catalogs.get_or(tools, dialect, W::log_catalog)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.prepare(request.deadline).await;
            let format = &self.format;
            retrying(&self.retries, request.deadline, listener, move |buffer| {
                Box::pin(async move {
                    if let Some(caution) = format.caution(&request) {
                        buffer.notice(&caution);
                    }
                    // Again at once each time something was learned about the model.
                    loop {
                        let habits = format.habits().get();
                        let reply = ask_once(format, &request, habits, buffer).await;
                        let learned = format.habits().get();
                        match reply {
                            Err(error @ ModelError::Refused { .. }) if learned != habits => {
                                buffer.take_back();
                                let model = toolgate_core::escape(format.model());
                                for notice in learned.notices(habits, &model, &error) {
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
