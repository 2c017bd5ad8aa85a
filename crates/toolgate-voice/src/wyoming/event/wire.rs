//! From a frame to an event and back.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value, json};

use super::Event;
use crate::audio::Format;
use crate::wyoming::{Frame, FrameError};

/// Every type that is used here, and whether it has data; all others are [`Event::Other`]. Sorted; a test checks it.
const KINDS: [(&str, bool); 31] = [
    ("audio-chunk", true),
    ("audio-start", true),
    ("audio-stop", true),
    ("describe", false),
    ("detect", true),
    ("detection", true),
    ("error", true),
    ("handled", true),
    ("handled-chunk", true),
    ("handled-start", true),
    ("handled-stop", false),
    ("info", true),
    ("not-handled", true),
    ("ping", true),
    ("played", false),
    ("pong", true),
    ("recognize", true),
    ("run-pipeline", true),
    ("run-satellite", false),
    ("synthesize", true),
    ("synthesize-chunk", true),
    ("synthesize-start", true),
    ("synthesize-stop", false),
    ("synthesize-stopped", false),
    ("transcribe", true),
    ("transcript", true),
    ("transcript-chunk", true),
    ("transcript-start", true),
    ("transcript-stop", false),
    ("voice-started", true),
    ("voice-stopped", true),
];

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Map<String, Value>,
}

impl Event {
    pub(crate) fn chunk(format: Format, bytes: Bytes) -> Self {
        let timestamp = None;
        Self::AudioChunk {
            format,
            timestamp,
            bytes,
        }
    }

    pub(crate) fn to_frame(&self) -> Result<Frame, FrameError> {
        let payload = match self {
            Self::Other(frame) => return Ok(frame.clone()),
            Self::AudioChunk { bytes, .. } => bytes.clone(),
            _ => Bytes::new(),
        };
        let Tagged { kind, data } = serde_json::to_value(self)
            .and_then(serde_json::from_value)
            .map_err(|error| FrameError::data("event", &error))?;
        Ok(Frame {
            kind,
            data,
            payload,
        })
    }
}

impl TryFrom<Frame> for Event {
    type Error = FrameError;

    /// A type nobody knows is [`Event::Other`]; data that does not fit a known one is an error.
    fn try_from(frame: Frame) -> Result<Self, FrameError> {
        let Ok(known) = KINDS.binary_search_by_key(&frame.kind.as_str(), |(kind, _)| kind) else {
            return Ok(Self::Other(frame));
        };
        let Frame {
            kind,
            data,
            payload,
        } = frame;
        // What somebody sends along with an event that has no data is nothing to fail over.
        let tagged = match KINDS[known].1 {
            true => json!({ "type": kind, "data": data }),
            false => json!({ "type": kind }),
        };
        let mut event =
            Self::deserialize(tagged).map_err(|error| FrameError::data(&kind, &error))?;
        if let Self::AudioChunk { format, bytes, .. } = &mut event {
            if !payload.len().is_multiple_of(format.frame_bytes()) {
                let why = format!("{} bytes are no whole number of samples", payload.len());
                return Err(FrameError::data(&kind, &why));
            }
            *bytes = payload;
        }
        Ok(event)
    }
}

/// Milliseconds. Some write them with a fraction.
pub(super) fn timestamp<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.and_then(|number| {
        let rounded = || number.as_f64().map(|number| number as i64);
        number.as_i64().or_else(rounded)
    }))
}

#[cfg(test)]
mod tests;
