//! Formats of sound as events carry them: checked before anybody computes with them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::audio::{Format, FormatError};

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
    type Error = FormatError;

    fn try_from(wire: Wire) -> Result<Self, FormatError> {
        let Wire {
            rate,
            width,
            channels,
        } = wire;
        let format = Self {
            rate,
            width,
            channels,
        };
        format.check()
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
