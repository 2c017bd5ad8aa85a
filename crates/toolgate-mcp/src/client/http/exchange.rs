//! Performs one request: reads a JSON body, or an event stream that ends with the response and may
//! have to be resumed.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use toolgate_net::{SseEvent, SseParser};

use super::response::{self, HttpRefusal, ResponseBodyError, ResponseContent};
use super::stream::{self, MAX_FRUITLESS_OPENS, StreamOpenOutcome};
use super::wire::{EXPIRED, HttpWire};
use crate::client::message::{OutgoingMessage, RpcMessage};
use crate::client::transport::{FailureReason, TransportError, UnreadableAnswer};

// Delay before resuming a stream if the server sets none. Short, so that a call soon learns that
// its server is gone.
const RESUME_DELAY: Duration = Duration::from_millis(300);

pub(super) async fn run(wire: &HttpWire, id: u64, message: OutgoingMessage) {
    let (response, in_session) = match wire.post(message).await {
        Ok(sent) => sent,
        Err(error) => {
            wire.inbox.failed(id, error.clone().into());
            return wire.inbox.close_if_unreachable(&error);
        }
    };
    if !response.status().is_success() {
        return deliver_refusal(wire, id, response, in_session).await;
    }
    if wire.post_to.is_some() {
        // In HTTP of 2024-11-05 the response arrives on the stream.
        return response::drain(response).await;
    }
    match response::content(&wire.endpoint, &response) {
        ResponseContent::Json => deliver_body(wire, id, response).await,
        ResponseContent::Events => deliver_events(wire, id, response).await,
        ResponseContent::Unusable(reason) => deliver_interruption(wire, id, reason),
    }
}

async fn deliver_refusal(wire: &HttpWire, id: u64, response: Response, in_session: bool) {
    match response::refusal(&wire.endpoint, response, in_session, Some(id)).await {
        HttpRefusal::Answer(answer) => wire.inbox.message(answer),
        HttpRefusal::Error(error) => wire.inbox.failed(id, error),
        HttpRefusal::SessionLost => {
            let error = TransportError::NotSent(EXPIRED.into());
            wire.inbox.failed(id, error);
            wire.session_lost();
        }
    }
}

async fn deliver_body(wire: &HttpWire, id: u64, mut response: Response) {
    let body = match response::body(&mut response, wire.endpoint.max_message()).await {
        Ok(body) => body,
        Err(ResponseBodyError::TooLarge(problem)) => return wire.inbox.lost(Some(id), problem),
        Err(ResponseBodyError::Broken(error)) => {
            return wire
                .inbox
                .failed(id, wire.endpoint.classify_error(error).into());
        }
    };
    if body.trim_ascii().is_empty() {
        return deliver_interruption(wire, id, "the server answered with an empty body");
    }
    match RpcMessage::parse(&body) {
        Ok(message) if answers(&message, id) => wire.inbox.message(message),
        // It has no id, but it is the reply to our POST.
        Ok(RpcMessage::Response {
            id: Value::Null,
            answer,
        }) => wire.inbox.message(RpcMessage::Response {
            id: Value::from(id),
            answer,
        }),
        Ok(other) => {
            wire.inbox.message(other);
            deliver_interruption(wire, id, "the server answered with an unrelated message");
        }
        Err(error) => wire
            .inbox
            .lost(Some(id), UnreadableAnswer::Broken(error.to_string())),
    }
}

async fn deliver_events(wire: &HttpWire, id: u64, mut response: Response) {
    let mut parser = SseParser::new(wire.endpoint.max_message());
    let mut fruitless = 0;
    loop {
        let reason = match read_until_answer(wire, id, &mut response, &mut parser).await {
            StreamOutcome::Answer => return response::drain(response).await,
            StreamOutcome::Lost(problem) => return wire.inbox.lost(Some(id), problem),
            StreamOutcome::Ended(reason) => reason,
        };
        response = match resume(wire, &mut parser, &mut fruitless).await {
            Some(StreamOpenOutcome::Stream(response)) => response,
            Some(StreamOpenOutcome::Unsupported(why) | StreamOpenOutcome::Retry(why)) => {
                let before = format!("{reason}, and can't be resumed (");
                return deliver_interruption(wire, id, why.within(&before, ")"));
            }
            Some(StreamOpenOutcome::SessionExpired) => {
                deliver_interruption(wire, id, format!("{reason}, and the {EXPIRED}"));
                return wire.session_lost();
            }
            Some(StreamOpenOutcome::Unreachable(why)) => {
                deliver_interruption(wire, id, reason);
                return wire.inbox.closed(why);
            }
            None => return deliver_interruption(wire, id, reason),
        };
    }
}

enum StreamOutcome {
    Answer,
    Lost(UnreadableAnswer),
    Ended(&'static str),
}

async fn read_until_answer(
    wire: &HttpWire,
    id: u64,
    response: &mut Response,
    parser: &mut SseParser,
) -> StreamOutcome {
    let mut unreadable = None;
    let end = loop {
        let data = match stream::next(response, parser).await {
            Ok(Some(SseEvent::Data { kind, data })) if kind == "message" => data,
            Ok(Some(SseEvent::Data { .. })) => continue,
            Ok(Some(SseEvent::TooLarge { bytes, .. })) => {
                let limit = wire.endpoint.max_message() as u64;
                return StreamOutcome::Lost(UnreadableAnswer::TooLarge { bytes, limit });
            }
            Ok(None) => break "the stream ended before the answer",
            Err(_) => break "the stream broke off before the answer",
        };
        match RpcMessage::parse(&data) {
            Ok(message) => {
                let is_answer = answers(&message, id);
                wire.inbox.message(message);
                if is_answer {
                    return StreamOutcome::Answer;
                }
            }
            Err(error) => {
                let problem = UnreadableAnswer::Broken(error.to_string());
                wire.inbox.lost(None, problem.clone());
                unreadable = Some(problem);
            }
        }
    };
    // If nothing else arrived, the unreadable event was the response.
    unreadable.map_or_else(|| StreamOutcome::Ended(end), StreamOutcome::Lost)
}

/// Resumes a stream after its last event, if the server numbers its events. The modern
/// era has no resumption.
async fn resume(
    wire: &HttpWire,
    parser: &mut SseParser,
    fruitless: &mut u32,
) -> Option<StreamOpenOutcome> {
    if wire.is_modern() || parser.last_id().is_none() {
        return None;
    }
    if parser.take_progress() {
        *fruitless = 0;
    }
    // A server may accept every resumption and never send anything; the bound ends that loop.
    while *fruitless < MAX_FRUITLESS_OPENS {
        *fruitless += 1;
        tokio::time::sleep(stream::reconnect_delay(parser, RESUME_DELAY)).await;
        match stream::open(wire, parser).await {
            StreamOpenOutcome::Retry(_) => {}
            other => return Some(other),
        }
    }
    let reason = format!("tried {MAX_FRUITLESS_OPENS} times");
    Some(StreamOpenOutcome::Retry(reason.into()))
}

fn answers(message: &RpcMessage, id: u64) -> bool {
    matches!(message, RpcMessage::Response { id: theirs, .. } if *theirs == id)
}

fn deliver_interruption(wire: &HttpWire, id: u64, reason: impl Into<FailureReason>) {
    wire.inbox
        .failed(id, TransportError::Interrupted(reason.into()));
}
