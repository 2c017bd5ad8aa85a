//! Sends an answer: whole, in pieces, late, cut, or never.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::answer::{AnswerBody, Fault};
use crate::rules::Api;
use crate::{Answer, http, render};

/// Sends an answer with its delays and faults. Returns false if the client disconnected first.
pub(crate) async fn send(stream: &mut TcpStream, answer: &Answer, api: Api) -> io::Result<bool> {
    if !wait(stream, answer).await {
        return Ok(false);
    }
    let content_type = match (&answer.body, api) {
        (AnswerBody::Error { .. }, _) => "application/json",
        (_, Api::Ollama) => "application/x-ndjson",
        _ => "text/event-stream",
    };
    http::write_head(stream, answer.status, &answer.headers, content_type).await?;
    let mut left = answer.fault.map_or(usize::MAX, |(bytes, _)| bytes);
    for piece in pieces(answer, api) {
        let piece = &piece[..piece.len().min(left)];
        left -= piece.len();
        if !piece.is_empty() {
            http::write_chunk(stream, piece).await?;
        }
    }
    match answer.fault {
        None => http::write_chunk(stream, b"").await.map(|()| true),
        Some((_, Fault::Cut)) => Ok(true),
        Some((_, Fault::Reset)) => stream.set_zero_linger().map(|()| true),
        Some((_, Fault::Stall)) => {
            until_closed(stream).await;
            Ok(false)
        }
    }
}

fn pieces(answer: &Answer, api: Api) -> Vec<Vec<u8>> {
    let body = render::body(answer, api);
    if answer.pieces == 0 {
        return body;
    }
    let whole = body.concat();
    whole.chunks(answer.pieces).map(<[u8]>::to_vec).collect()
}

/// Waits before an answer. Returns false if the client disconnects meanwhile.
async fn wait(stream: &mut TcpStream, answer: &Answer) -> bool {
    let silence = async {
        tokio::time::sleep(answer.silence).await;
        if let Some(gate) = &answer.gate {
            // The gate is never closed, so this is a permit.
            drop(
                gate.acquire()
                    .await
                    .map(tokio::sync::SemaphorePermit::forget),
            );
        }
    };
    if answer.silence.is_zero() && answer.gate.is_none() {
        return true;
    }
    tokio::select! {
        () = silence => true,
        () = until_closed(stream) => false,
    }
}

async fn until_closed(stream: &mut TcpStream) {
    let mut byte = [0; 1];
    while stream.read(&mut byte).await.is_ok_and(|count| count > 0) {}
}
