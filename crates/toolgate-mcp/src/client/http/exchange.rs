//! Sends one request and delivers its response: a JSON body, or an event stream, which may
//! have to be resumed.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use toolgate_net::{SseEvent, SseParser};

use super::response::{self, HttpRefusal, ResponseBodyError, ResponseContent};
use super::stream::{self, MAX_FRUITLESS_OPENS, StreamOpenOutcome};
use super::wire::{HttpWire, SESSION_EXPIRED};
use crate::client::message::{OutgoingMessage, RpcMessage};
use crate::client::transport::{FailureReason, TransportError, UnreadableAnswer};

// Delay before resuming a stream if the server sets none. Short, so that a call fails soon if its
// server is gone.
const RESUME_DELAY: Duration = Duration::from_millis(300);

pub(super) async fn run_request(wire: &HttpWire, id: u64, message: OutgoingMessage) {
    let (response, in_session) = match wire.post(message).await {
        Ok(sent) => sent,
        Err(error) => {
            wire.inbox.on_request_failed(id, error.clone().into());
            return wire.inbox.close_if_unreachable(&error);
        }
    };
    if !response.status().is_success() {
        return deliver_refusal(wire, id, response, in_session).await;
    }
    if wire.message_url.is_some() {
        // In HTTP of 2024-11-05 the response arrives on the stream.
        return response::drain(response).await;
    }
    match response::classify_content(&wire.endpoint, &response) {
        ResponseContent::Json => deliver_body(wire, id, response).await,
        ResponseContent::Events => deliver_events(wire, id, response).await,
        ResponseContent::Unusable(reason) => deliver_interruption(wire, id, reason),
    }
}

async fn deliver_refusal(wire: &HttpWire, id: u64, response: Response, in_session: bool) {
    match response::classify_refusal(&wire.endpoint, response, in_session, Some(id)).await {
        HttpRefusal::Answer(answer) => wire.inbox.on_message(answer, Some(id)),
        HttpRefusal::Error(error) => wire.inbox.on_request_failed(id, error),
        HttpRefusal::SessionLost => {
            let error = TransportError::NotSent(SESSION_EXPIRED.into());
            wire.inbox.on_request_failed(id, error);
            wire.handle_lost_session();
        }
    }
}

async fn deliver_body(wire: &HttpWire, id: u64, mut response: Response) {
    let body = match response::read_body(&mut response, wire.endpoint.max_message()).await {
        Ok(body) => body,
        Err(ResponseBodyError::TooLarge(problem)) => {
            return wire.inbox.on_unreadable(Some(id), problem);
        }
        Err(ResponseBodyError::Broken(error)) => {
            return wire
                .inbox
                .on_request_failed(id, wire.endpoint.classify_error(error).into());
        }
    };
    if body.trim_ascii().is_empty() {
        return deliver_interruption(wire, id, "the server sent an empty response");
    }
    match RpcMessage::parse(&body) {
        Ok(message) if is_response_to(&message, id) => wire.inbox.on_message(message, Some(id)),
        // It has no id, but it is the response to our POST.
        Ok(RpcMessage::Response {
            id: Value::Null,
            answer,
        }) => {
            let id = Value::from(id);
            wire.inbox
                .on_message(RpcMessage::Response { id, answer }, None);
        }
        Ok(other) => {
            wire.inbox.on_message(other, Some(id));
            deliver_interruption(
                wire,
                id,
                "the server sent an unrelated message instead of a response",
            );
        }
        Err(error) => wire
            .inbox
            .on_unreadable(Some(id), UnreadableAnswer::Broken(error.to_string())),
    }
}

async fn deliver_events(wire: &HttpWire, id: u64, mut response: Response) {
    let mut parser = SseParser::new(wire.endpoint.max_message());
    let mut fruitless = 0;
    loop {
        let reason = match read_until_answer(wire, id, &mut response, &mut parser).await {
            StreamOutcome::Answer => return response::drain(response).await,
            StreamOutcome::Unreadable(problem) => {
                return wire.inbox.on_unreadable(Some(id), problem);
            }
            StreamOutcome::Ended(reason) => reason,
        };
        response = match resume(wire, &mut parser, &mut fruitless).await {
            Some(StreamOpenOutcome::Stream(response)) => response,
            Some(StreamOpenOutcome::Unsupported(why) | StreamOpenOutcome::Retry(why)) => {
                let before = format!("{reason}, and can't be resumed (");
                return deliver_interruption(wire, id, why.wrap(&before, ")"));
            }
            Some(StreamOpenOutcome::SessionExpired) => {
                deliver_interruption(wire, id, format!("{reason}, and the {SESSION_EXPIRED}"));
                return wire.handle_lost_session();
            }
            Some(StreamOpenOutcome::Unreachable(why)) => {
                deliver_interruption(wire, id, reason);
                return wire.inbox.on_closed(why);
            }
            None => return deliver_interruption(wire, id, reason),
        };
    }
}

enum StreamOutcome {
    Answer,
    Unreadable(UnreadableAnswer),
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
        let data = match stream::next_event(response, parser).await {
            Ok(Some(SseEvent::Data { kind, data })) if kind == "message" => data,
            Ok(Some(SseEvent::Data { .. })) => continue,
            Ok(Some(SseEvent::TooLarge { bytes, .. })) => {
                let limit = wire.endpoint.max_message() as u64;
                return StreamOutcome::Unreadable(UnreadableAnswer::TooLarge { bytes, limit });
            }
            Ok(None) => break "the stream ended before the response",
            Err(_) => break "the stream was interrupted before the response",
        };
        match RpcMessage::parse(&data) {
            Ok(message) => {
                let is_answer = is_response_to(&message, id);
                wire.inbox.on_message(message, Some(id));
                if is_answer {
                    return StreamOutcome::Answer;
                }
            }
            Err(error) => {
                let problem = UnreadableAnswer::Broken(error.to_string());
                wire.inbox.on_unreadable(None, problem.clone());
                unreadable = Some(problem);
            }
        }
    };
    // If nothing else arrived, the unreadable event was the response.
    unreadable.map_or_else(|| StreamOutcome::Ended(end), StreamOutcome::Unreadable)
}

/// Resumes a stream after its last event. `None` if that isn't possible: in the modern era, or if
/// the server doesn't number its events.
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
    // Ends the loop with a server that accepts every resumption and never sends anything.
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

fn is_response_to(message: &RpcMessage, id: u64) -> bool {
    matches!(message, RpcMessage::Response { id: theirs, .. } if *theirs == id)
}

fn deliver_interruption(wire: &HttpWire, id: u64, reason: impl Into<FailureReason>) {
    wire.inbox
        .on_request_failed(id, TransportError::Interrupted(reason.into()));
}
