//! Serves one connection from its first request to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::connection_watch::{CloseReason, ConnectionWatch};
use super::head_scanner::HeadScanner;
use crate::guard::{ConnectionAddresses, RequestGuard};

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_BUFFER_BYTES: usize = 64 << 10;
// How long a closing connection still reads and discards what the peer sends.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
const HEAD_TIMEOUT_RESPONSE: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until either side ends the connection. Once `stop` is cancelled it ends
/// after the current request.
pub(super) async fn serve_connection<I>(
    guard: Arc<RequestGuard>,
    io: I,
    addresses: ConnectionAddresses,
    watch: Arc<ConnectionWatch>,
    stop: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(|request| {
        watch.mark_busy();
        let (guard, watch) = (&guard, &watch);
        Box::pin(async move { Ok::<_, Infallible>(guard.handle(addresses, watch, request).await) })
    });
    let io = TokioIo::new(ObservedIo::new(io, Arc::clone(&watch)));
    let mut connection = http1::Builder::new()
        .header_read_timeout(None) // The watch does this, without a timer for each request.
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(io, service);
    let mut stopped = std::pin::pin!(stop.cancelled());
    let mut is_shutting_down = false;
    let ended = poll_fn(|context| {
        if let Some(reason) = watch.poll_close(context.waker()) {
            return Poll::Ready(Err(reason));
        }
        if !is_shutting_down && stopped.as_mut().poll(context).is_ready() {
            is_shutting_down = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(context).map(Ok)
    })
    .await;
    let mut io = connection.into_parts().io.into_inner().io;
    match ended {
        Err(CloseReason::Idle) => {}
        Err(CloseReason::HeadTimeout) => {
            drop(tokio::time::timeout(LINGER_TIMEOUT, io.write_all(HEAD_TIMEOUT_RESPONSE)).await);
            linger(io).await;
        }
        Ok(Err(error)) if !error.is_parse() => debug!(%error, "a connection failed"),
        Ok(Err(_)) => linger(io).await,
        Ok(Ok(())) if watch.has_unread_body() => linger(io).await,
        Ok(Ok(())) => drop(io.shutdown().await),
    }
}

/// Closes without losing the last response: if bytes of the peer arrived at a closed socket, the
/// system would reset the connection and the peer might never read the response.
pub(super) async fn linger<I: AsyncRead + AsyncWrite + Unpin>(mut io: I) {
    let drain = async {
        drop(io.shutdown().await);
        let mut discarded = [0_u8; 4096];
        while io.read(&mut discarded).await.is_ok_and(|count| count > 0) {}
    };
    drop(tokio::time::timeout(LINGER_TIMEOUT, drain).await);
}

struct ObservedIo<I> {
    io: I,
    watch: Arc<ConnectionWatch>,
    heads: HeadScanner,
}

impl<I> ObservedIo<I> {
    fn new(io: I, watch: Arc<ConnectionWatch>) -> Self {
        let heads = HeadScanner::default();
        Self { io, watch, heads }
    }

    fn record_write<T>(&self, written: Poll<T>) -> Poll<T> {
        self.watch.set_blocked(written.is_pending());
        written
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ObservedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        let new = &buffer.filled()[before..];
        if !new.is_empty() {
            self.watch.mark_reading();
            self.heads.scan(new);
            self.watch.record_heads(&self.heads);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ObservedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.record_write(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
