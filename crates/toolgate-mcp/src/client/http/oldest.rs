//! HTTP as of 2024-11-05: one stream carries every answer, and its first event says where messages go.

use bytes::Bytes;
use reqwest::{Method, Response, Url};
use toolgate_net::{SseEvent, SseParser};

use super::endpoint::Endpoint;
use super::headers;
use super::response::{self, Content, Refusal};
use super::stream;
use super::wire::Wire;
use crate::client::transport::TransportError;

pub(super) struct Stream {
    response: Response,
    parser: SseParser,
}

/// Opens the stream and waits for the address that messages go to.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<(Stream, Url), TransportError> {
    let url = endpoint.url();
    let opening = endpoint.request(Method::GET, url, headers::of_stream(None), Bytes::new());
    let mut response = opening.await?;
    if !response.status().is_success() {
        return Err(
            match response::refusal(endpoint, response, false, None).await {
                Refusal::Error(error) => error,
                Refusal::Answer(_) | Refusal::SessionLost => interrupted("the server refused"),
            },
        );
    }
    match response::content(endpoint, &response) {
        Content::Events => {}
        Content::Json => return Err(interrupted("the server answered with no stream of events")),
        Content::Unfit(reason) => return Err(TransportError::Interrupted(reason.into())),
    }
    let mut parser = SseParser::new(endpoint.max_message());
    let post_to = loop {
        let event = stream::next(&mut response, &mut parser).await;
        match event.map_err(|error| endpoint.trouble(error))? {
            Some(SseEvent::Data { kind, data }) if kind == "endpoint" => {
                break endpoint.steered(url, String::from_utf8_lossy(&data).trim())?;
            }
            // Anything before it answers nothing: nothing was asked.
            Some(_) => {}
            None => {
                return Err(interrupted(
                    "the stream ended before it said where messages go",
                ));
            }
        }
    };
    Ok((Stream { response, parser }, post_to))
}

impl Stream {
    /// Delivers everything to its end, which is the end of the connection.
    pub(super) async fn deliver(mut self, wire: &Wire) {
        stream::deliver(wire, &mut self.response, &mut self.parser).await;
        wire.outlet.closed("connection closed");
    }
}

fn interrupted(reason: &str) -> TransportError {
    TransportError::Interrupted(reason.into())
}
