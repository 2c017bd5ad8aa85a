//! The HTTP transport of 2024-11-05: one stream carries all responses, and its first event holds
//! the address for messages.

use bytes::Bytes;
use reqwest::{Method, Response, Url};
use toolgate_net::{SseEvent, SseParser};

use super::endpoint::ServerEndpoint;
use super::headers;
use super::response::{self, HttpRefusal, ResponseContent};
use super::stream;
use super::wire::HttpWire;
use crate::client::transport::TransportError;

pub(super) struct LegacySseStream {
    response: Response,
    parser: SseParser,
}

pub(super) async fn connect(
    endpoint: &ServerEndpoint,
) -> Result<(LegacySseStream, Url), TransportError> {
    let url = endpoint.url();
    let opening = endpoint.request(
        Method::GET,
        url,
        headers::stream_headers(None),
        Bytes::new(),
    );
    let mut response = opening.await?;
    if !response.status().is_success() {
        return Err(
            match response::classify_refusal(endpoint, response, false, None).await {
                HttpRefusal::Error(error) => error,
                HttpRefusal::Answer(_) | HttpRefusal::SessionLost => {
                    interrupted("the server refused")
                }
            },
        );
    }
    match response::classify_content(endpoint, &response) {
        ResponseContent::Events => {}
        ResponseContent::Json => {
            return Err(interrupted(
                "the server did not respond with an event stream",
            ));
        }
        ResponseContent::Unusable(reason) => {
            return Err(TransportError::Interrupted(reason.into()));
        }
    }
    let mut parser = SseParser::new(endpoint.max_message());
    let message_url = loop {
        let event = stream::next_event(&mut response, &mut parser).await;
        match event.map_err(|error| endpoint.classify_error(error))? {
            Some(SseEvent::Data { kind, data }) if kind == "endpoint" => {
                break endpoint.resolve_same_origin(url, String::from_utf8_lossy(&data).trim())?;
            }
            // Earlier events can't be responses, because nothing was sent yet.
            Some(_) => {}
            None => {
                return Err(interrupted(
                    "the stream ended before it sent the address for messages",
                ));
            }
        }
    };
    Ok((LegacySseStream { response, parser }, message_url))
}

impl LegacySseStream {
    pub(super) async fn deliver(mut self, wire: &HttpWire) {
        stream::deliver(wire, &mut self.response, &mut self.parser).await;
        wire.inbox.on_closed("connection closed");
    }
}

fn interrupted(reason: &str) -> TransportError {
    TransportError::Interrupted(reason.into())
}
