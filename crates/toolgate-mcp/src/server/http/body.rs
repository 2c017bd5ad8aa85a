//! Bodies: a request's, read within bounds, and a response's.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};

/// The body of a response: a whole message, or events as they come. Dropping it tells that the client is gone.
pub struct HttpBody(Kind);

enum Kind {
    Whole(Bytes),
    Events(BoxStream<'static, Bytes>),
}

impl HttpBody {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(bytes.into()))
    }

    pub(super) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Events(Box::pin(events)))
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
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Events(events) => {
                let next = events.as_mut().poll_next(context);
                next.map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "HttpBody({} bytes)", bytes.len()),
            Kind::Events(_) => f.write_str("HttpBody(events)"),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum BodyError {
    TooLarge,
    /// The client broke off, or whoever hands the body on has had enough of it.
    Broken(String),
}

/// Reads a body of at most `longest` bytes; one that came in one piece is not copied.
pub(super) async fn read<B>(body: B, longest: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display>,
{
    if body.size_hint().lower() > longest as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut body = pin!(body);
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if first.len() + more.len() + piece.len() > longest {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = piece;
        } else {
            more.extend_from_slice(&piece);
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut all = BytesMut::with_capacity(first.len() + more.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&more);
    Ok(all.freeze())
}
