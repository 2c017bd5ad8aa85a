//! Who may come in: the first packet of a connection and the answer to it.

use bytes::Bytes;
use mqtt5_protocol::{
    Packet, PropertyId, ReasonCode, is_valid_topic_name,
    packet::{connack::ConnAckPacket, connect::ConnectPacket},
};

use super::BrokerSettings;
use crate::frames::decode;

/// The largest packet that is taken. Clients of MQTT 5 are told.
pub(super) const LARGEST_PACKET: usize = 16 * 1024 * 1024;

/// Why a first packet is not taken, with the answer if there is one that its sender understands.
pub(super) type Refusal = Option<ConnAckPacket>;

pub(super) fn read_connect(
    body: Bytes,
    settings: &BrokerSettings,
) -> Result<ConnectPacket, Refusal> {
    let unknown_version = ReasonCode::UnsupportedProtocolVersion;
    let version = match protocol(&body) {
        Some((b"MQTT", version @ (4 | 5))) => version,
        Some((b"MQTT", 6..)) => return Err(Some(answer(5, unknown_version))),
        Some((b"MQTT" | b"MQIsdp", _)) => return Err(Some(answer(4, unknown_version))),
        _ => return Err(None),
    };
    let Ok(Packet::Connect(connect)) = decode(0x10, body, version) else {
        return Err((version == 5).then(|| answer(5, ReasonCode::MalformedPacket)));
    };
    match refusal(&connect, settings) {
        Some(reason) => Err(Some(answer(version, reason))),
        None => Ok(*connect),
    }
}

/// The name and the version of the protocol. They come first in every version.
fn protocol(body: &[u8]) -> Option<(&[u8], u8)> {
    let (length, rest) = body.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((name, *rest.first()?))
}

fn refusal(connect: &ConnectPacket, settings: &BrokerSettings) -> Option<ReasonCode> {
    let properties = &connect.properties;
    if properties.contains(PropertyId::AuthenticationMethod) {
        return Some(ReasonCode::BadAuthenticationMethod);
    }
    if !is_known(connect, settings) {
        return Some(ReasonCode::BadUsernameOrPassword);
    }
    if connect.client_id.is_empty() && connect.protocol_version == 4 && !connect.clean_start {
        return Some(ReasonCode::ClientIdentifierNotValid);
    }
    if properties.get_receive_maximum() == Some(0)
        || properties.get_maximum_packet_size() == Some(0)
    {
        return Some(ReasonCode::ProtocolError);
    }
    let will = connect.will.as_ref();
    will.is_some_and(|will| !is_valid_topic_name(&will.topic))
        .then_some(ReasonCode::TopicNameInvalid)
}

fn is_known(connect: &ConnectPacket, settings: &BrokerSettings) -> bool {
    if settings.username.is_none() && settings.password.is_none() {
        return true;
    }
    let username = settings.username.as_deref().unwrap_or_default();
    let password = settings.password.as_deref().unwrap_or_default();
    let given_username = connect.username.as_deref().unwrap_or_default();
    let given_password = connect.password.as_deref().unwrap_or_default();
    same(username.as_bytes(), given_username.as_bytes()) & same(password.as_bytes(), given_password)
}

/// Takes the same time wherever two differ.
fn same(one: &[u8], two: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(two)
        .fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == two.len() && differs == 0
}

pub(super) fn answer(version: u8, reason: ReasonCode) -> ConnAckPacket {
    if version == 4 {
        ConnAckPacket::new_v311(false, reason)
    } else {
        ConnAckPacket::new(false, reason)
    }
}

/// What the broker offers, and the name it chose for a client that has none.
pub(super) fn welcome(connect: &ConnectPacket, name: &str) -> ConnAckPacket {
    let mut welcome = answer(connect.protocol_version, ReasonCode::Success)
        .with_maximum_packet_size(u32::try_from(LARGEST_PACKET).unwrap_or(u32::MAX))
        .with_topic_alias_maximum(0)
        .with_shared_subscription_available(false);
    // Sessions end with their connection, whatever was asked for.
    if connect.properties.get_session_expiry_interval().is_some() {
        welcome = welcome.with_session_expiry_interval(0);
    }
    if connect.client_id.is_empty() {
        welcome = welcome.with_assigned_client_id(name.to_owned());
    }
    welcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_is_the_same() {
        for (one, two) in [("", "a"), ("a", ""), ("ab", "a"), ("ab", "ac")] {
            assert!(!same(one.as_bytes(), two.as_bytes()), "{one} {two}");
        }
        assert!(same(b"ab", b"ab") && same(b"", b""));
    }
}
