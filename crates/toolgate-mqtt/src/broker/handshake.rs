//! Checks the first packet of a connection and answers it.

use bytes::Bytes;
use mqtt5_protocol::{
    Packet, PropertyId, ReasonCode, is_valid_topic_name,
    packet::{connack::ConnAckPacket, connect::ConnectPacket},
};

use super::BrokerSettings;
use crate::frames::decode;

/// The largest accepted packet, which MQTT 5 clients are told.
pub(super) const MAX_PACKET_BYTES: usize = 16 * 1024 * 1024;

/// The answer to a rejected first packet, if there is one that the sender understands.
pub(super) type ConnectRefusal = Option<ConnAckPacket>;

pub(super) fn read_connect(
    body: Bytes,
    settings: &BrokerSettings,
) -> Result<ConnectPacket, ConnectRefusal> {
    let unknown_version = ReasonCode::UnsupportedProtocolVersion;
    let version = match protocol(&body) {
        Some((b"MQTT", version @ (4 | 5))) => version,
        Some((b"MQTT", 6..)) => return Err(Some(connack(5, unknown_version))),
        Some((b"MQTT" | b"MQIsdp", _)) => return Err(Some(connack(4, unknown_version))),
        _ => return Err(None),
    };
    let Ok(Packet::Connect(connect)) = decode(0x10, body, version) else {
        return Err((version == 5).then(|| connack(5, ReasonCode::MalformedPacket)));
    };
    match refusal_reason(&connect, settings) {
        Some(reason) => Err(Some(connack(version, reason))),
        None => Ok(*connect),
    }
}

fn protocol(body: &[u8]) -> Option<(&[u8], u8)> {
    let (length, rest) = body.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((name, *rest.first()?))
}

fn refusal_reason(connect: &ConnectPacket, settings: &BrokerSettings) -> Option<ReasonCode> {
    let properties = &connect.properties;
    if properties.contains(PropertyId::AuthenticationMethod) {
        return Some(ReasonCode::BadAuthenticationMethod);
    }
    if !has_credentials(connect, settings) {
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

fn has_credentials(connect: &ConnectPacket, settings: &BrokerSettings) -> bool {
    if settings.username.is_none() && settings.password.is_none() {
        return true;
    }
    let username = settings.username.as_deref().unwrap_or_default();
    let password = settings.password.as_deref().unwrap_or_default();
    let given_username = connect.username.as_deref().unwrap_or_default();
    let given_password = connect.password.as_deref().unwrap_or_default();
    constant_time_eq(username.as_bytes(), given_username.as_bytes())
        & constant_time_eq(password.as_bytes(), given_password)
}

// Compares in constant time, so that timing does not reveal a password.
fn constant_time_eq(one: &[u8], two: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(two)
        .fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == two.len() && differs == 0
}

pub(super) fn connack(version: u8, reason: ReasonCode) -> ConnAckPacket {
    if version == 4 {
        ConnAckPacket::new_v311(false, reason)
    } else {
        ConnAckPacket::new(false, reason)
    }
}

pub(super) fn accept_connack(connect: &ConnectPacket, name: &str) -> ConnAckPacket {
    let mut welcome = connack(connect.protocol_version, ReasonCode::Success)
        .with_maximum_packet_size(u32::try_from(MAX_PACKET_BYTES).unwrap_or(u32::MAX))
        .with_topic_alias_maximum(0)
        .with_shared_subscription_available(false);
    // Sessions end with their connection, whatever the client asked for.
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
    fn only_equal_bytes_are_equal() {
        for (one, two) in [("", "a"), ("a", ""), ("ab", "a"), ("ab", "ac")] {
            assert!(
                !constant_time_eq(one.as_bytes(), two.as_bytes()),
                "{one} {two}"
            );
        }
        assert!(constant_time_eq(b"ab", b"ab") && constant_time_eq(b"", b""));
    }
}
