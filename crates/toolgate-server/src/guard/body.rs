//! Wraps request and response bodies with limits.

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

use super::caller_permits::CallerPermit;
use super::evicting_permits::EvictingPermit;
use super::memory::{JsonMeter, MemoryError, MemoryLease};
use crate::listener::{BodyLimitError, ConnectionWatch};

type BoxedBodyError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) trait RequestBody:
    HttpBody<Data = Bytes, Error: Into<BoxedBodyError>> + Send + Unpin + 'static
{
}

impl<B> RequestBody for B where
    B: HttpBody<Data = Bytes, Error: Into<BoxedBodyError>> + Send + Unpin + 'static
{
}

/// Limits a request's body in size and time. Errors are also recorded in the watch, because not
/// every route reports why a body couldn't be read.
pub(super) struct BoundedBody<B> {
    inner: Limited<B>,
    timeout: Duration,
    // Created at the first wait for the body. Most bodies arrive together with their head and need
    // no timer.
    deadline: Option<Pin<Box<Sleep>>>,
    meter: Option<JsonMeter>,
    watch: Arc<ConnectionWatch>,
    done: bool,
}

impl<B: RequestBody> BoundedBody<B> {
    pub(super) fn wrap(
        body: B,
        limit: usize,
        timeout: Duration,
        meter: Option<JsonMeter>,
        watch: &Arc<ConnectionWatch>,
    ) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(Self {
            inner: Limited::new(body, limit),
            timeout,
            deadline: None,
            meter,
            watch: Arc::clone(watch),
            done: false,
        })
    }

    fn measure(
        &mut self,
        frame: Option<&Result<Frame<Bytes>, BoxedBodyError>>,
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

impl<B: RequestBody> HttpBody for BoundedBody<B> {
    type Data = Bytes;
    type Error = BoxedBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedBodyError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.done = frame.is_none();
            if let Some(Err(error)) = &frame
                && error.is::<LengthLimitError>()
            {
                this.watch.record_body_error(BodyLimitError::TooLarge);
            }
            if let Err(error) = this.measure(frame.as_ref()) {
                this.watch.record_body_error(error.into());
                return Poll::Ready(Some(Err(error.into())));
            }
            return Poll::Ready(frame);
        }
        let timeout = this.timeout;
        let deadline = this
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(deadline.as_mut().poll(context));
        this.watch.record_body_error(BodyLimitError::Timeout);
        Poll::Ready(Some(Err("the body did not arrive in time".into())))
    }

    fn is_end_stream(&self) -> bool {
        // Reading to the end triggers the final measurement, which may still reject the body.
        self.done || self.meter.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for BoundedBody<B> {
    fn drop(&mut self) {
        // The rest of the body would be taken for the next request.
        if !self.done {
            self.watch.mark_body_unread();
        }
    }
}

impl From<MemoryError> for BodyLimitError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::TooManyValues { .. } => Self::TooManyValues,
            MemoryError::Exhausted => Self::NoMemory,
        }
    }
}

/// The body of a response. Once it is dropped, the connection is idle again.
pub(crate) struct ResponseBody {
    pub(super) body: Body,
    pub(super) stream: Option<StreamLease>,
    pub(super) watch: Arc<ConnectionWatch>,
}

/// What an endless response holds until it is dropped, and the future that deadline it.
pub(super) struct StreamLease {
    pub(super) _permit: Option<CallerPermit>,
    pub(super) _anonymous: Option<EvictingPermit>,
    pub(super) _memory: Arc<MemoryLease>,
    pub(super) end: BoxFuture<'static, ()>,
}

impl HttpBody for ResponseBody {
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
            ready!(stream.end.as_mut().poll(context));
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

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.watch.mark_idle();
    }
}
