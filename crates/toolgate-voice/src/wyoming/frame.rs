//! Bytes and frames, without a socket.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr;
use serde::Serialize;
use serde_json::{Map, Value, ser};
use toolgate_core::{Redactor, parse_object};

/// The longest header line that is read or written, without its newline.
pub(crate) const LONGEST_HEADER: usize = 64 << 10;
pub(crate) const LONGEST_DATA: usize = 1 << 20;
pub(crate) const LONGEST_PAYLOAD: usize = 1 << 20;

/// What a header says of the writer: the version of the protocol these events are from.
const VERSION: &str = "1.9.0";
/// How much of a peer's own words an error repeats.
const EXCERPT: usize = 200;

/// An event as it is on the wire: a type, a JSON object, and bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Frame {
    pub(crate) kind: String,
    pub(crate) data: Map<String, Value>,
    pub(crate) payload: Bytes,
}

/// Why bytes are no frame, or a frame is not the event it claims to be. The text is for an operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FrameError {
    #[error("a header line is longer than {LONGEST_HEADER} bytes")]
    HeaderTooLong,
    #[error("a header line cannot be used: {why}")]
    Header { why: String },
    #[error("'{kind}' comes with {length} bytes of {part}, and at most {limit} are allowed")]
    TooLong {
        /// The type of the event, escaped and cut.
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

/// Somebody else's words, escaped and cut.
pub(super) fn excerpt(text: &str) -> String {
    Redactor::default().line(text, EXCERPT)
}

/// Makes frames of bytes, in whatever pieces they come. It never holds more than one frame and one read.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    state: State,
}

#[derive(Debug)]
enum State {
    /// There is no newline in the first `searched` bytes.
    Header {
        searched: usize,
    },
    Body(Head),
    /// Nobody knows where the next frame begins.
    Broken(FrameError),
}

impl Default for State {
    fn default() -> Self {
        Self::Header { searched: 0 }
    }
}

impl Decoder {
    /// Takes bytes in. Call [`next_frame`](Self::next_frame) until it has no more before the next bytes.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if !matches!(self.state, State::Broken(_)) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Where a reader may put bytes without a copy, instead of [`feed`](Self::feed).
    pub(super) fn space(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// True while a frame has begun that is not complete.
    pub(crate) fn is_within(&self) -> bool {
        !(matches!(self.state, State::Header { .. }) && self.buffer.is_empty())
    }

    /// The next complete frame. After an error there is no next one: every call gives the same error.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let next = self.advance();
        if let Err(error) = &next {
            self.buffer = BytesMut::new();
            self.state = State::Broken(error.clone());
        }
        next
    }

    fn advance(&mut self) -> Result<Option<Frame>, FrameError> {
        if let State::Header { searched } = self.state {
            let Some(head) = self.head(searched)? else {
                return Ok(None);
            };
            self.state = State::Body(head);
        }
        match std::mem::take(&mut self.state) {
            State::Body(head) if self.buffer.len() < head.data_length + head.payload_length => {
                self.state = State::Body(head);
                Ok(None)
            }
            State::Body(head) => {
                let data = self.buffer.split_to(head.data_length);
                let payload = self.buffer.split_to(head.payload_length).freeze();
                head.finish(&data, payload).map(Some)
            }
            State::Broken(error) => Err(error),
            State::Header { .. } => Ok(None),
        }
    }

    /// The header, once its line is complete.
    fn head(&mut self, searched: usize) -> Result<Option<Head>, FrameError> {
        let newline = memchr(b'\n', &self.buffer[searched..]).map(|found| searched + found);
        let length = newline.unwrap_or(self.buffer.len());
        if length > LONGEST_HEADER {
            return Err(FrameError::HeaderTooLong);
        }
        let Some(newline) = newline else {
            self.state = State::Header { searched: length };
            return Ok(None);
        };
        let line = self.buffer.split_to(newline + 1);
        Head::parse(&line).map(Some)
    }
}

#[derive(Debug)]
struct Head {
    kind: String,
    data: Map<String, Value>,
    data_length: usize,
    payload_length: usize,
}

impl Head {
    fn parse(line: &[u8]) -> Result<Self, FrameError> {
        let wrong = |why: String| FrameError::Header { why };
        let mut header = parse_object(line).map_err(|error| wrong(error.to_string()))?;
        let Some(Value::String(kind)) = header.remove("type") else {
            return Err(wrong("it has no text in 'type'".to_owned()));
        };
        let data = match header.remove("data") {
            Some(Value::Object(data)) => data,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(FrameError::data(&kind, &"it is no JSON object")),
        };
        let length = |key: &str, part, limit| match header.get(key) {
            None | Some(Value::Null) => Ok(0),
            Some(length) => match length.as_u64() {
                Some(length) if length <= limit as u64 => Ok(length as usize),
                Some(length) => Err(FrameError::TooLong {
                    kind: excerpt(&kind),
                    part,
                    length,
                    limit,
                }),
                None => Err(wrong(format!("'{key}' is no number of bytes"))),
            },
        };
        let data_length = length("data_length", "data", LONGEST_DATA)?;
        let payload_length = length("payload_length", "payload", LONGEST_PAYLOAD)?;
        Ok(Self {
            kind,
            data,
            data_length,
            payload_length,
        })
    }

    /// The block of data wins over what the header itself has.
    fn finish(mut self, data: &[u8], payload: Bytes) -> Result<Frame, FrameError> {
        if !data.is_empty() {
            let data = parse_object(data).map_err(|error| FrameError::data(&self.kind, &error))?;
            self.data.extend(data);
        }
        Ok(Frame {
            kind: self.kind,
            data: self.data,
            payload,
        })
    }
}

/// Appends a frame, byte for byte as the protocol's reference implementation writes it. One that no [`Decoder`] would take is an
/// error, and nothing is appended.
pub(crate) fn encode(frame: &Frame, out: &mut BytesMut) -> Result<(), FrameError> {
    let mut data = Vec::new();
    if !frame.data.is_empty() {
        write_json(&frame.data, &mut data)
            .map_err(|error| FrameError::data(&frame.kind, &error))?;
    }
    let header = Header {
        kind: &frame.kind,
        version: VERSION,
        data_length: data.len(),
        payload_length: frame.payload.len(),
    };
    let too_long = |part, length: usize, limit| FrameError::TooLong {
        kind: excerpt(&frame.kind),
        part,
        length: length as u64,
        limit,
    };
    if data.len() > LONGEST_DATA {
        return Err(too_long("data", data.len(), LONGEST_DATA));
    }
    if frame.payload.len() > LONGEST_PAYLOAD {
        return Err(too_long("payload", frame.payload.len(), LONGEST_PAYLOAD));
    }
    let mut line = Vec::new();
    write_json(&header, &mut line).map_err(|error| FrameError::data(&frame.kind, &error))?;
    if line.len() > LONGEST_HEADER {
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
struct Header<'a> {
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
    value.serialize(&mut ser::Serializer::with_formatter(out, Spaced))
}

/// A blank after every comma and colon: captures of this program and of others can be compared as they are.
struct Spaced;

impl ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests;
