//! Response bodies, and reading request bodies within limits.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// The body of a response: one message, or a stream of events. Dropping it before its end means
/// that the client has disconnected.
pub struct HttpBody(BodyKind);

enum BodyKind {
    Whole(Bytes),
    Events(BoxStream<'static, Bytes>),
}

impl HttpBody {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(BodyKind::Whole(bytes.into()))
    }

    pub(super) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(BodyKind::Events(Box::pin(events)))
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            BodyKind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodyKind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodyKind::Events(events) => {
                let next = events.as_mut().poll_next(context);
                next.map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, BodyKind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyKind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            BodyKind::Whole(bytes) => write!(f, "HttpBody({} bytes)", bytes.len()),
            BodyKind::Events(_) => f.write_str("HttpBody(events)"),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum HttpBodyError {
    TooLarge,
    // The client disconnected, or the server in front stopped reading.
    Broken(String),
}

/// Reads a body of at most `longest` bytes. One that arrives in a single piece isn't copied.
pub(super) async fn read<B>(body: B, longest: usize) -> Result<Bytes, HttpBodyError>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    if body.size_hint().lower() > longest as u64 {
        return Err(HttpBodyError::TooLarge);
    }
    match Limited::new(body, longest).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(HttpBodyError::TooLarge),
        Err(error) => Err(HttpBodyError::Broken(error.to_string())),
    }
}
