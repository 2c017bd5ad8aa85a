//! One request and its answer: a body, or a stream of events that ends with it and may have to be taken up again.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use toolgate_net::{SseEvent, SseParser};

use super::response::{self, Content, NoBody, Refusal};
use super::stream::{self, FRUITLESS, Opened};
use super::wire::{EXPIRED, Wire};
use crate::client::message::{Message, Outgoing};
use crate::client::transport::{Lost, Reason, TransportError};

/// Before coming back to a stream whose server named no time: a call must not wait long to hear that its server is gone.
const COME_BACK: Duration = Duration::from_millis(300);

/// Sends a request and delivers what comes back: one answer, loss or failure.
pub(super) async fn run(wire: &Wire, id: u64, message: Outgoing) {
    let (response, in_session) = match wire.post(message).await {
        Ok(sent) => sent,
        Err(trouble) => {
            wire.outlet.failed(id, trouble.clone().into());
            return wire.outlet.after(&trouble);
        }
    };
    if !response.status().is_success() {
        return refused(wire, id, response, in_session).await;
    }
    if wire.post_to.is_some() {
        // In the oldest form the answer comes on the stream.
        return response::drain(response).await;
    }
    match response::content(&wire.endpoint, &response) {
        Content::Json => whole(wire, id, response).await,
        Content::Events => events(wire, id, response).await,
        Content::Unfit(reason) => interrupted(wire, id, reason),
    }
}

async fn refused(wire: &Wire, id: u64, response: Response, in_session: bool) {
    match response::refusal(&wire.endpoint, response, in_session, Some(id)).await {
        Refusal::Answer(answer) => wire.outlet.message(answer),
        Refusal::Error(error) => wire.outlet.failed(id, error),
        Refusal::SessionLost => {
            let error = TransportError::NotSent(EXPIRED.into());
            wire.outlet.failed(id, error);
            wire.session_lost();
        }
    }
}

async fn whole(wire: &Wire, id: u64, mut response: Response) {
    let body = match response::body(&mut response, wire.endpoint.max_message()).await {
        Ok(body) => body,
        Err(NoBody::TooLarge(problem)) => return wire.outlet.lost(Some(id), problem),
        Err(NoBody::Broken(error)) => {
            return wire.outlet.failed(id, wire.endpoint.trouble(error).into());
        }
    };
    if body.trim_ascii().is_empty() {
        return interrupted(wire, id, "the server answered with an empty body");
    }
    match Message::parse(&body) {
        Ok(message) if answers(&message, id) => wire.outlet.message(message),
        // Without an id, but it came back with our request.
        Ok(Message::Response {
            id: Value::Null,
            answer,
        }) => wire.outlet.message(Message::Response {
            id: Value::from(id),
            answer,
        }),
        Ok(other) => {
            wire.outlet.message(other);
            interrupted(wire, id, "the server answered with another message");
        }
        Err(error) => wire.outlet.lost(Some(id), Lost::Broken(error.to_string())),
    }
}

async fn events(wire: &Wire, id: u64, mut response: Response) {
    let mut parser = SseParser::new(wire.endpoint.max_message());
    let mut fruitless = 0;
    loop {
        let reason = match hear(wire, id, &mut response, &mut parser).await {
            Heard::Answer => return response::drain(response).await,
            Heard::Lost(problem) => return wire.outlet.lost(Some(id), problem),
            Heard::End(reason) => reason,
        };
        response = match come_back(wire, &mut parser, &mut fruitless).await {
            Ok(Opened::Stream(response)) => response,
            Ok(Opened::Never(why) | Opened::Later(why)) => {
                let before = format!("{reason}, and can not be taken up again (");
                return interrupted(wire, id, why.within(&before, ")"));
            }
            Ok(Opened::Expired) => {
                interrupted(wire, id, format!("{reason}, and the {EXPIRED}"));
                return wire.session_lost();
            }
            Ok(Opened::Gone(why)) => {
                interrupted(wire, id, reason);
                return wire.outlet.closed(why);
            }
            Err(CanNot) => return interrupted(wire, id, reason),
        };
    }
}

enum Heard {
    Answer,
    Lost(Lost),
    End(&'static str),
}

async fn hear(wire: &Wire, id: u64, response: &mut Response, parser: &mut SseParser) -> Heard {
    let mut unreadable = None;
    let end = loop {
        let data = match stream::next(response, parser).await {
            Ok(Some(SseEvent::Data { kind, data })) if kind == "message" => data,
            Ok(Some(SseEvent::Data { .. })) => continue,
            Ok(Some(SseEvent::TooLarge { bytes, .. })) => {
                let limit = wire.endpoint.max_message() as u64;
                return Heard::Lost(Lost::TooLarge { bytes, limit });
            }
            Ok(None) => break "the stream ended before the answer",
            Err(_) => break "the stream broke off before the answer",
        };
        match Message::parse(&data) {
            Ok(message) => {
                let is_answer = answers(&message, id);
                wire.outlet.message(message);
                if is_answer {
                    return Heard::Answer;
                }
            }
            Err(error) => {
                let problem = Lost::Broken(error.to_string());
                wire.outlet.lost(None, problem.clone());
                unreadable = Some(problem);
            }
        }
    };
    // Something unreadable and no answer: that was the answer.
    unreadable.map_or_else(|| Heard::End(end), Heard::Lost)
}

/// The stream has no place to come back to.
struct CanNot;

/// Takes a stream up again behind its last event, if the server named its events. The modern era does not have that.
async fn come_back(
    wire: &Wire,
    parser: &mut SseParser,
    fruitless: &mut u32,
) -> Result<Opened, CanNot> {
    if wire.is_modern() || parser.last_id().is_none() {
        return Err(CanNot);
    }
    if parser.take_progress() {
        *fruitless = 0;
    }
    while *fruitless < FRUITLESS {
        *fruitless += 1;
        tokio::time::sleep(stream::pause(parser, COME_BACK)).await;
        match stream::open(wire, parser).await {
            Opened::Later(_) => {}
            other => return Ok(other),
        }
    }
    Ok(Opened::Later(format!("tried {FRUITLESS} times").into()))
}

fn answers(message: &Message, id: u64) -> bool {
    matches!(message, Message::Response { id: theirs, .. } if *theirs == id)
}

fn interrupted(wire: &Wire, id: u64, reason: impl Into<Reason>) {
    wire.outlet
        .failed(id, TransportError::Interrupted(reason.into()));
}
