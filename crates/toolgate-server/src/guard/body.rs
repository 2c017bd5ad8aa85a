//! What comes in and what goes out, bounded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{LengthLimitError, Limited};
use tokio::time::Sleep;

use super::evicting::EvictingPlace;
use super::memory::{JsonMeter, MemoryError, MemoryLease};
use super::room::Place;
use crate::listener::{Fault, Watch};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A request's body: no more than so many bytes, within so much time. What is wrong with it stands in the watch too: not
/// every route looks closely at an error.
pub(super) struct Bounded<B> {
    inner: Limited<B>,
    patience: Duration,
    /// Set once the body had to be waited for; most come along with their head.
    ends: Option<Pin<Box<Sleep>>>,
    meter: Option<JsonMeter>,
    watch: Arc<Watch>,
    done: bool,
}

impl<B> Bounded<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Failure>> + Send + Unpin + 'static,
{
    pub(super) fn wrap(
        body: B,
        limit: usize,
        patience: Duration,
        meter: Option<JsonMeter>,
        watch: &Arc<Watch>,
    ) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(Self {
            inner: Limited::new(body, limit),
            patience,
            ends: None,
            meter,
            watch: Arc::clone(watch),
            done: false,
        })
    }
}

impl<B: HttpBody<Data = Bytes>> Bounded<B> {
    fn measure(
        &mut self,
        frame: Option<&Result<Frame<Bytes>, Failure>>,
    ) -> Result<(), MemoryError> {
        let Some(meter) = &mut self.meter else {
            return Ok(());
        };
        match frame {
            Some(Ok(frame)) => frame.data_ref().map_or(Ok(()), |bytes| meter.feed(bytes)),
            Some(Err(_)) => Ok(()),
            None => meter.finish(),
        }
    }
}

impl<B> HttpBody for Bounded<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Failure>> + Unpin,
{
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.done = frame.is_none();
            if let Some(Err(error)) = &frame
                && error.is::<LengthLimitError>()
            {
                this.watch.body_failed(Fault::TooLarge);
            }
            if let Err(error) = this.measure(frame.as_ref()) {
                this.watch.body_failed(error.into());
                return Poll::Ready(Some(Err(error.into())));
            }
            return Poll::Ready(frame);
        }
        let patience = this.patience;
        let ends = this
            .ends
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(ends.as_mut().poll(context));
        this.watch.body_failed(Fault::Late);
        Poll::Ready(Some(Err("the body did not arrive in time".into())))
    }

    fn is_end_stream(&self) -> bool {
        // Whoever reads has to come to the end, where a measured body may still be refused.
        self.done || self.meter.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for Bounded<B> {
    fn drop(&mut self) {
        if !self.done {
            self.watch.leaves_body_unread();
        }
    }
}

impl From<MemoryError> for Fault {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::TooManyValues { .. } => Self::TooManyValues,
            MemoryError::Exhausted => Self::NoMemory,
        }
    }
}

/// An answer on its way out. With its end the connection is idle again.
pub(crate) struct Answer {
    body: Body,
    stream: Option<Stream>,
    watch: Arc<Watch>,
}

/// An answer without an end of its own.
pub(super) struct Stream {
    pub(super) _place: Option<Place>,
    pub(super) _anonymous: Option<EvictingPlace>,
    pub(super) _memory: Option<Arc<MemoryLease>>,
    pub(super) cut: BoxFuture<'static, ()>,
}

impl Answer {
    pub(super) fn new(body: Body, stream: Option<Stream>, watch: Arc<Watch>) -> Self {
        Self {
            body,
            stream,
            watch,
        }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_pending()
            && let Some(stream) = &mut self.stream
        {
            ready!(stream.cut.as_mut().poll(context));
            return Poll::Ready(None);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.watch.is_idle();
    }
}
