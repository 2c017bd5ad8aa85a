//! Streams of events: opened, read, and taken up again where they broke off.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;
use toolgate_net::{SseEvent, SseParser};
use tracing::{debug, warn};

use super::endpoint::Trouble;
use super::response::{self, Content};
use super::wire::Wire;
use crate::client::message::Message;
use crate::client::transport::{Lost, Reason};

/// A stream that breaks off this often without having said anything is not opened again.
pub(super) const FRUITLESS: u32 = 5;
/// Before the standing stream is opened again, if the server named no time.
const COME_BACK: Duration = Duration::from_secs(1);
/// A stream that lasted this long was worth opening, even if nothing was said.
const WORTHWHILE: Duration = Duration::from_secs(5);

pub(super) enum Opened {
    Stream(Response),
    Later(Reason),
    Never(Reason),
    Expired,
    Gone(Reason),
}

/// Opens the stream of the session, behind the last event that was heard.
pub(super) async fn open(wire: &Wire, parser: &mut SseParser) -> Opened {
    let response = match wire.open_stream(parser.last_id()).await {
        Ok(response) => response,
        Err(Trouble::Unreachable(reason)) => return Opened::Gone(reason),
        Err(Trouble::Moved(reason)) => return Opened::Never(reason),
        Err(Trouble::Broken(reason)) => return Opened::Later(reason),
    };
    let status = response.status();
    if status.is_success() {
        return match response::content(&wire.endpoint, &response) {
            Content::Events => {
                parser.restart();
                Opened::Stream(response)
            }
            Content::Json => Opened::Never("the server answered with no stream".into()),
            Content::Unfit(reason) => Opened::Never(reason.into()),
        };
    }
    let code = status.as_u16();
    response::drain(response).await;
    match code {
        404 if wire.has_session() => Opened::Expired,
        408 | 429 | 500..=599 => Opened::Later(format!("HTTP {code}").into()),
        _ => Opened::Never(format!("HTTP {code}").into()),
    }
}

pub(super) async fn next(
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

/// How long to wait before coming back: as the server wants it, within reason.
pub(super) fn pause(parser: &SseParser, otherwise: Duration) -> Duration {
    const SHORTEST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(300);
    parser.retry().unwrap_or(otherwise).clamp(SHORTEST, LONGEST)
}

/// Delivers everything a stream says, to its end.
pub(super) async fn deliver(wire: &Wire, response: &mut Response, parser: &mut SseParser) {
    loop {
        match next(response, parser).await {
            Ok(Some(event)) => deliver_event(wire, event),
            Ok(None) => return,
            Err(error) => {
                let trouble = wire.endpoint.trouble(error);
                return debug!(server = %wire.server, error = ?trouble, "the stream of the server's messages broke off");
            }
        }
    }
}

fn deliver_event(wire: &Wire, event: SseEvent) {
    match event {
        SseEvent::Data { kind, data } if kind == "message" => match Message::parse(&data) {
            Ok(message) => wire.outlet.message(message),
            Err(error) => wire
                .outlet
                .lost(id_in(&data), Lost::Broken(error.to_string())),
        },
        SseEvent::Data { .. } => {}
        SseEvent::TooLarge { bytes, head } => {
            let limit = wire.endpoint.max_message() as u64;
            let problem = Lost::TooLarge { bytes, limit };
            wire.outlet.lost(id_in(&head), problem);
        }
    }
}

/// Listens to what the server has to say on its own, for as long as there is a session.
pub(super) async fn listen(wire: &Wire) {
    let mut parser = SseParser::new(wire.endpoint.max_message());
    let mut was_open = false;
    let mut fruitless = 0;
    let server = &wire.server;
    while fruitless < FRUITLESS {
        let since = Instant::now();
        fruitless += 1;
        let opened = open(wire, &mut parser).await;
        wire.gate.open();
        match opened {
            Opened::Stream(mut response) => {
                was_open = true;
                deliver(wire, &mut response, &mut parser).await;
                if parser.take_progress() || since.elapsed() >= WORTHWHILE {
                    fruitless = 0;
                }
            }
            Opened::Later(reason) => {
                debug!(%server, %reason, "no stream of the server's messages yet");
            }
            Opened::Never(reason) => {
                return debug!(%server, %reason, "the server has no stream of messages of its own");
            }
            // Right after the handshake it only means that there is no such stream.
            Opened::Expired if !was_open => return,
            Opened::Expired => return wire.session_lost(),
            Opened::Gone(reason) => return wire.outlet.closed(reason),
        }
        tokio::time::sleep(pause(&parser, COME_BACK)).await;
    }
    warn!(%server, "the stream of the server's messages ends again and again; going on without it");
}

/// The id of an answer of which only the beginning is known, or which is broken.
fn id_in(head: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"id\"";
    let head = &head[..head.len().min(256)];
    let at = head.windows(NAME.len()).position(|part| part == NAME)?;
    let rest = head[at + NAME.len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A number that is cut off, or only begins like an id, is none.
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
            assert_eq!(id_in(head.as_bytes()), expected, "{head}");
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
            let pause = pause(&parser, Duration::from_millis(700));
            assert_eq!(pause, Duration::from_millis(expected), "{text}");
        }
    }
}
