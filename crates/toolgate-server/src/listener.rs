//! Connections: accepted, bounded, and ended in an orderly way.

use std::io;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{Gateway, router};

/// Serves until `stop`.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let routes = router::build(gateway);
    loop {
        let (stream, _from) = tokio::select! {
            accepted = listener.accept() => accepted?,
            () = stop.cancelled() => return Ok(()),
        };
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                debug!(%error, "a connection broke");
            }
        });
    }
}
