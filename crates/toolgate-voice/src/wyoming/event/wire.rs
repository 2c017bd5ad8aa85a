//! Converts between frames and events.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value, json};

use super::WyomingEvent;
use crate::audio::AudioFormat;
use crate::wyoming::{FrameError, WyomingFrame};

// All other types become [`WyomingEvent::Other`].
const WITH_DATA: &str = "audio-chunk audio-start audio-stop detect detection error handled \
handled-chunk handled-start info not-handled ping pong recognize run-pipeline synthesize \
synthesize-chunk synthesize-start transcribe transcript transcript-chunk transcript-start \
voice-started voice-stopped";
// The reference implementation writes absent fields of these types as null, and omits them
// elsewhere.
const WITH_NULLS: &str = "audio-chunk audio-start audio-stop detect detection ping pong \
voice-started voice-stopped";
const WITHOUT_DATA: &str = "describe handled-stop played run-satellite synthesize-stop \
synthesize-stopped transcript-stop";

#[derive(Deserialize)]
struct TaggedEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Map<String, Value>,
}

impl WyomingEvent {
    pub(crate) fn audio_chunk(format: AudioFormat, bytes: Bytes) -> Self {
        Self::AudioChunk {
            format,
            timestamp: None,
            bytes,
        }
    }

    pub(crate) fn audio_start(format: AudioFormat) -> Self {
        let timestamp = None;
        Self::AudioStart { format, timestamp }
    }

    pub(crate) fn to_frame(&self) -> Result<WyomingFrame, FrameError> {
        let payload = match self {
            Self::Other(frame) => return Ok(frame.clone()),
            Self::AudioChunk { bytes, .. } => bytes.clone(),
            _ => Bytes::new(),
        };
        let TaggedEvent { kind, mut data } = serde_json::to_value(self)
            .and_then(serde_json::from_value)
            .map_err(|error| FrameError::data("event", &error))?;
        if !WITH_NULLS.split(' ').any(|with_nulls| with_nulls == kind) {
            data.retain(|_, value| !value.is_null());
        }
        Ok(WyomingFrame {
            kind,
            data,
            payload,
        })
    }
}

impl TryFrom<WyomingFrame> for WyomingEvent {
    type Error = FrameError;

    fn try_from(frame: WyomingFrame) -> Result<Self, FrameError> {
        let is_in = |list: &str| list.split(' ').any(|kind| kind == frame.kind);
        let has_data = is_in(WITH_DATA);
        if !has_data && !is_in(WITHOUT_DATA) {
            return Ok(Self::Other(frame));
        }
        let WyomingFrame {
            kind,
            data,
            payload,
        } = frame;
        // Unexpected data of an event without data is not worth an error.
        let tagged = match has_data {
            true => json!({ "type": kind, "data": data }),
            false => json!({ "type": kind }),
        };
        let mut event =
            Self::deserialize(tagged).map_err(|error| FrameError::data(&kind, &error))?;
        if let Self::AudioStart { format, .. } | Self::AudioChunk { format, .. } = &event {
            let checked = format.validated();
            checked.map_err(|error| FrameError::data(&kind, &error))?;
        }
        if let Self::AudioChunk { format, bytes, .. } = &mut event {
            if !payload.len().is_multiple_of(format.frame_bytes()) {
                let why = format!("{} bytes are not a whole number of samples", payload.len());
                return Err(FrameError::data(&kind, &why));
            }
            *bytes = payload;
        }
        Ok(event)
    }
}

// Some services write milliseconds with a fraction.
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
