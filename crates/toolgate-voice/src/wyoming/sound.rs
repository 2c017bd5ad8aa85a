//! Formats of sound as events carry them: checked before anybody computes with them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::audio::Format;

#[derive(Serialize, Deserialize)]
struct Wire {
    rate: u32,
    width: u16,
    channels: u16,
}

impl From<&Format> for Wire {
    fn from(format: &Format) -> Self {
        Self {
            rate: format.rate,
            width: format.width,
            channels: format.channels,
        }
    }
}

impl TryFrom<Wire> for Format {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Self, String> {
        let Wire {
            rate,
            width,
            channels,
        } = wire;
        let known = (8_000..=192_000).contains(&rate)
            && (1..=4).contains(&width)
            && (1..=8).contains(&channels);
        if !known {
            return Err(format!(
                "{channels} channels of {width} bytes at {rate} Hz are not supported; 1 to 8 channels of 1 to 4 bytes at 8000 to 192000 Hz are"
            ));
        }
        Ok(Self {
            rate,
            width,
            channels,
        })
    }
}

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(format: &Format, serializer: S) -> Result<S::Ok, S::Error> {
    Wire::from(format).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
    Wire::deserialize(deserializer)?
        .try_into()
        .map_err(de::Error::custom)
}

/// For a format that may be absent.
pub(super) mod optional {
    use super::{Deserialize, Deserializer, Format, Serialize, Serializer, Wire, de};

    pub(in super::super) fn serialize<S: Serializer>(
        format: &Option<Format>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        format.as_ref().map(Wire::from).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Format>, D::Error> {
        let wire = Option::<Wire>::deserialize(deserializer)?;
        wire.map(TryInto::try_into)
            .transpose()
            .map_err(de::Error::custom)
    }
}
