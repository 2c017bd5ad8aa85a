//! Opens, reads and reopens event streams.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;
use toolgate_net::{SseEvent, SseParser};
use tracing::{debug, warn};

use super::endpoint::EndpointError;
use super::response::{self, ResponseContent};
use super::wire::HttpWire;
use crate::client::message::RpcMessage;
use crate::client::transport::{FailureReason, UnreadableAnswer};

// How often in a row a stream may be opened without receiving anything.
pub(super) const MAX_FRUITLESS_OPENS: u32 = 5;
const REOPEN_DELAY: Duration = Duration::from_secs(1);
// A stream that stays open this long counts as useful even if it was silent.
const USEFUL_STREAM_TIME: Duration = Duration::from_secs(5);

pub(super) enum StreamOpenOutcome {
    Stream(Response),
    Retry(FailureReason),
    Unsupported(FailureReason),
    SessionExpired,
    Unreachable(FailureReason),
}

pub(super) async fn open(wire: &HttpWire, parser: &mut SseParser) -> StreamOpenOutcome {
    let response = match wire.open_stream(parser.last_id()).await {
        Ok(response) => response,
        Err(EndpointError::Unreachable(reason)) => return StreamOpenOutcome::Unreachable(reason),
        Err(EndpointError::NotSent(reason)) => return StreamOpenOutcome::Unsupported(reason),
        Err(EndpointError::Broken(reason)) => return StreamOpenOutcome::Retry(reason),
    };
    let status = response.status();
    if status.is_success() {
        return match response::classify_content(&wire.endpoint, &response) {
            ResponseContent::Events => {
                parser.restart();
                StreamOpenOutcome::Stream(response)
            }
            ResponseContent::Json => {
                StreamOpenOutcome::Unsupported("the server did not respond with a stream".into())
            }
            ResponseContent::Unusable(reason) => StreamOpenOutcome::Unsupported(reason.into()),
        };
    }
    let code = status.as_u16();
    response::drain(response).await;
    match code {
        404 if wire.has_session() => StreamOpenOutcome::SessionExpired,
        408 | 429 | 500..=599 => StreamOpenOutcome::Retry(format!("HTTP {code}").into()),
        _ => StreamOpenOutcome::Unsupported(format!("HTTP {code}").into()),
    }
}

pub(super) async fn next_event(
    response: &mut Response,
    parser: &mut SseParser,
) -> Result<Option<SseEvent>, reqwest::Error> {
    loop {
        if let Some(event) = parser.next() {
            return Ok(Some(event));
        }
        match response.chunk().await? {
            Some(chunk) => parser.feed(&chunk),
            None => return Ok(None),
        }
    }
}

pub(super) fn reconnect_delay(parser: &SseParser, default: Duration) -> Duration {
    const MIN_DELAY: Duration = Duration::from_millis(100);
    const MAX_DELAY: Duration = Duration::from_secs(300);
    parser
        .retry()
        .unwrap_or(default)
        .clamp(MIN_DELAY, MAX_DELAY)
}

pub(super) async fn deliver(wire: &HttpWire, response: &mut Response, parser: &mut SseParser) {
    loop {
        match next_event(response, parser).await {
            Ok(Some(event)) => deliver_event(wire, event),
            Ok(None) => return,
            Err(error) => {
                let error = wire.endpoint.classify_error(error);
                return debug!(server = %wire.server, error = ?error, "the stream of the server's messages was interrupted");
            }
        }
    }
}

fn deliver_event(wire: &HttpWire, event: SseEvent) {
    match event {
        SseEvent::Data { kind, data } if kind == "message" => match RpcMessage::parse(&data) {
            Ok(message) => wire.inbox.on_message(message, None),
            Err(error) => wire.inbox.on_unreadable(
                leading_id(&data),
                UnreadableAnswer::Broken(error.to_string()),
            ),
        },
        SseEvent::Data { .. } => {}
        SseEvent::TooLarge { bytes, head } => {
            let limit = wire.endpoint.max_message() as u64;
            let problem = UnreadableAnswer::TooLarge { bytes, limit };
            wire.inbox.on_unreadable(leading_id(&head), problem);
        }
    }
}

/// Keeps the server's own stream open. Returns if the server doesn't have one, or
/// if it keeps ending.
pub(super) async fn listen(wire: &HttpWire) {
    let mut parser = SseParser::new(wire.endpoint.max_message());
    let mut was_open = false;
    let mut fruitless = 0;
    let server = &wire.server;
    while fruitless < MAX_FRUITLESS_OPENS {
        let since = Instant::now();
        fruitless += 1;
        let opened = open(wire, &mut parser).await;
        wire.gate.open();
        match opened {
            StreamOpenOutcome::Stream(mut response) => {
                was_open = true;
                deliver(wire, &mut response, &mut parser).await;
                if parser.take_progress() || since.elapsed() >= USEFUL_STREAM_TIME {
                    fruitless = 0;
                }
            }
            StreamOpenOutcome::Retry(reason) => {
                debug!(%server, %reason, "no stream of the server's messages yet");
            }
            StreamOpenOutcome::Unsupported(reason) => {
                return debug!(%server, %reason, "the server has no stream of messages of its own");
            }
            // Right after the handshake, 404 only means that the server has no such stream.
            StreamOpenOutcome::SessionExpired if !was_open => return,
            StreamOpenOutcome::SessionExpired => return wire.handle_lost_session(),
            StreamOpenOutcome::Unreachable(reason) => return wire.inbox.on_closed(reason),
        }
        tokio::time::sleep(reconnect_delay(&parser, REOPEN_DELAY)).await;
    }
    warn!(%server, "the server's event stream keeps ending; continuing without it");
}

// Finds the id in the first bytes of a response that is truncated or broken.
fn leading_id(head: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"id\"";
    let head = &head[..head.len().min(256)];
    let at = head.windows(NAME.len()).position(|part| part == NAME)?;
    let rest = head[at + NAME.len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // The number must be complete.
    if !matches!(rest.get(digits)?, b',' | b'}' | b' ') {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_from_the_beginning_of_an_answer() {
        for (head, expected) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":"#, Some(17)),
            (r#" {"id" : 17 , "result":"#, Some(17)),
            (r#"{"id":17"#, None),
            (r#"{"id":17.5,"#, None),
            (r#"{"id":"17","#, None),
            (r#"{"id":99999999999999999999,"#, None),
            (r#"{"result":"#, None),
            (r#"{"id"#, None),
        ] {
            assert_eq!(leading_id(head.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn the_servers_delay_is_obeyed_within_reason() {
        for (text, expected) in [
            ("", 700),
            ("retry: 500\n\n", 500),
            ("retry: 0\n\n", 100),
            ("retry: 99999999999999999999\n\n", 300_000),
        ] {
            let mut parser = SseParser::new(100);
            parser.feed(text.as_bytes());
            assert_eq!(parser.next(), None);
            let pause = reconnect_delay(&parser, Duration::from_millis(700));
            assert_eq!(pause, Duration::from_millis(expected), "{text}");
        }
    }
}
