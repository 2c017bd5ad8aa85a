//! Encodes and decodes frames, without a socket.

use std::io::{self, Write};

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr;
use serde::Serialize;
use serde_json::{Map, Value, ser};
use toolgate_core::{Redactor, parse_object};

pub(crate) const MAX_HEADER_LEN: usize = 64 << 10;
pub(crate) const MAX_DATA_LEN: usize = 1 << 20;
pub(crate) const MAX_PAYLOAD_LEN: usize = 1 << 20;

const VERSION: &str = "1.9.0";
/// How much of a peer's text an error repeats at most, in bytes.
const MAX_EXCERPT_LEN: usize = 200;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WyomingFrame {
    pub(crate) kind: String,
    pub(crate) data: Map<String, Value>,
    pub(crate) payload: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FrameError {
    #[error("a header line is longer than {MAX_HEADER_LEN} bytes")]
    HeaderTooLong,
    #[error("a header line cannot be used: {why}")]
    Header { why: String },
    #[error("'{kind}' has {length} bytes of {part}, but at most {limit} are allowed")]
    TooLong {
        kind: String,
        part: &'static str,
        length: u64,
        limit: usize,
    },
    #[error("'{kind}' has data that cannot be used: {why}")]
    Data { kind: String, why: String },
}

impl FrameError {
    pub(super) fn data(kind: &str, why: &impl ToString) -> Self {
        let kind = excerpt(kind);
        let why = excerpt(&why.to_string());
        Self::Data { kind, why }
    }
}

pub(super) fn excerpt(text: &str) -> String {
    Redactor::default().line(text, MAX_EXCERPT_LEN)
}

/// Decodes bytes in pieces of any size. Never holds more than one frame and one read.
#[derive(Debug, Default)]
pub(crate) struct FrameDecoder {
    buffer: BytesMut,
    state: DecoderState,
}

#[derive(Debug)]
enum DecoderState {
    /// The first `searched` bytes have no newline.
    Header {
        searched: usize,
    },
    Body(FrameHead),
    // After an error, the start of the next frame is unknown.
    Broken(FrameError),
}

impl Default for DecoderState {
    fn default() -> Self {
        Self::Header { searched: 0 }
    }
}

impl FrameDecoder {
    /// Adds bytes. Call [`next_frame`](Self::next_frame) until it returns
    /// `None` before adding more.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if !matches!(self.state, DecoderState::Broken(_)) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The buffer to read into.
    pub(super) fn read_buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub(crate) fn is_mid_frame(&self) -> bool {
        !(matches!(self.state, DecoderState::Header { .. }) && self.buffer.is_empty())
    }

    /// The next complete frame. Once it fails, it returns the same error forever.
    pub(crate) fn next_frame(&mut self) -> Result<Option<WyomingFrame>, FrameError> {
        let next = self.advance();
        if let Err(error) = &next {
            self.buffer = BytesMut::new();
            self.state = DecoderState::Broken(error.clone());
        }
        next
    }

    fn advance(&mut self) -> Result<Option<WyomingFrame>, FrameError> {
        if let DecoderState::Header { searched } = self.state {
            let Some(head) = self.read_head(searched)? else {
                return Ok(None);
            };
            self.state = DecoderState::Body(head);
        }
        match std::mem::take(&mut self.state) {
            DecoderState::Body(head) if self.buffer.len() < head.body_length() => {
                self.state = DecoderState::Body(head);
                Ok(None)
            }
            DecoderState::Body(head) => {
                let data = self.buffer.split_to(head.data_length);
                let payload = self.buffer.split_to(head.payload_length).freeze();
                head.finish(&data, payload).map(Some)
            }
            DecoderState::Broken(error) => Err(error),
            DecoderState::Header { .. } => Ok(None),
        }
    }

    fn read_head(&mut self, searched: usize) -> Result<Option<FrameHead>, FrameError> {
        let newline = memchr(b'\n', &self.buffer[searched..]).map(|found| searched + found);
        let length = newline.unwrap_or(self.buffer.len());
        if length > MAX_HEADER_LEN {
            return Err(FrameError::HeaderTooLong);
        }
        let Some(newline) = newline else {
            self.state = DecoderState::Header { searched: length };
            return Ok(None);
        };
        let line = self.buffer.split_to(newline + 1);
        FrameHead::parse(&line).map(Some)
    }
}

#[derive(Debug)]
struct FrameHead {
    kind: String,
    data: Map<String, Value>,
    data_length: usize,
    payload_length: usize,
}

impl FrameHead {
    fn parse(line: &[u8]) -> Result<Self, FrameError> {
        let header_error = |why: String| FrameError::Header { why };
        let mut header = parse_object(line).map_err(|error| header_error(error.to_string()))?;
        let Some(Value::String(kind)) = header.remove("type") else {
            return Err(header_error("it has no text in 'type'".to_owned()));
        };
        let data = match header.remove("data") {
            Some(Value::Object(data)) => data,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(FrameError::data(&kind, &"it is not a JSON object")),
        };
        let length = |key: &str, part, limit| match header.get(key) {
            None | Some(Value::Null) => Ok(0),
            Some(length) => match length.as_u64() {
                Some(length) => check_length(&kind, part, length, limit),
                None => Err(header_error(format!("'{key}' is not a number of bytes"))),
            },
        };
        let data_length = length("data_length", "data", MAX_DATA_LEN)?;
        let payload_length = length("payload_length", "payload", MAX_PAYLOAD_LEN)?;
        Ok(Self {
            kind,
            data,
            data_length,
            payload_length,
        })
    }

    fn body_length(&self) -> usize {
        self.data_length + self.payload_length
    }

    // Data may be in the header and in a block of its own. The block wins.
    fn finish(mut self, data: &[u8], payload: Bytes) -> Result<WyomingFrame, FrameError> {
        if !data.is_empty() {
            let data = parse_object(data).map_err(|error| FrameError::data(&self.kind, &error))?;
            self.data.extend(data);
        }
        Ok(WyomingFrame {
            kind: self.kind,
            data: self.data,
            payload,
        })
    }
}

fn check_length(
    kind: &str,
    part: &'static str,
    length: u64,
    limit: usize,
) -> Result<usize, FrameError> {
    if length <= limit as u64 {
        return Ok(length as usize);
    }
    let kind = excerpt(kind);
    Err(FrameError::TooLong {
        kind,
        part,
        length,
        limit,
    })
}

/// Appends a frame, byte for byte like the reference implementation. Fails without appending
/// anything if no [`FrameDecoder`] would accept it.
pub(crate) fn encode(frame: &WyomingFrame, out: &mut BytesMut) -> Result<(), FrameError> {
    let mut data = Vec::new();
    if !frame.data.is_empty() {
        write_json(&frame.data, &mut data)
            .map_err(|error| FrameError::data(&frame.kind, &error))?;
    }
    let header = HeaderLine {
        kind: &frame.kind,
        version: VERSION,
        data_length: data.len(),
        payload_length: frame.payload.len(),
    };
    for (part, length, limit) in [
        ("data", data.len(), MAX_DATA_LEN),
        ("payload", frame.payload.len(), MAX_PAYLOAD_LEN),
    ] {
        check_length(&frame.kind, part, length as u64, limit)?;
    }
    let mut line = Vec::new();
    write_json(&header, &mut line).map_err(|error| FrameError::data(&frame.kind, &error))?;
    if line.len() > MAX_HEADER_LEN {
        return Err(FrameError::HeaderTooLong);
    }
    out.reserve(line.len() + 1 + data.len() + frame.payload.len());
    out.put_slice(&line);
    out.put_u8(b'\n');
    out.put_slice(&data);
    out.put_slice(&frame.payload);
    Ok(())
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    data_length: usize,
    #[serde(skip_serializing_if = "is_zero")]
    payload_length: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(length: &usize) -> bool {
    *length == 0
}

fn write_json(value: &impl Serialize, out: &mut Vec<u8>) -> serde_json::Result<()> {
    value.serialize(&mut ser::Serializer::with_formatter(out, SpacedFormatter))
}

// Blanks after commas and colons, so that captures of this program and of others
// can be compared directly.
struct SpacedFormatter;

impl ser::Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests;
