//! A message as the broker routes and retains it.

use std::time::Duration;

use bytes::Bytes;
use mqtt5_protocol::{
    Properties, PropertyId, QoS, ReasonCode, WillMessage, is_valid_topic_name,
    packet::publish::PublishPacket,
};
use tokio::time::Instant;

pub(super) struct RoutedMessage {
    pub(super) topic: String,
    pub(super) payload: Bytes,
    // QoS 1 at most.
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// Without the expiry interval, which is recomputed for each delivery.
    pub(super) properties: Properties,
    expires: Option<Instant>,
    pub(super) size: usize,
}

impl RoutedMessage {
    pub(super) fn new(packet: PublishPacket) -> Self {
        let expires = packet
            .message_expiry_interval()
            .map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        let mut properties = Properties::new();
        for (id, value) in packet.properties.iter() {
            if id != PropertyId::MessageExpiryInterval {
                // Can't fail: the property comes from a valid list.
                drop(properties.add(id, value.clone()));
            }
        }
        Self {
            size: packet.body_encoded_size(),
            topic: packet.topic_name,
            payload: packet.payload,
            qos: limit_qos(packet.qos),
            retain: packet.retain,
            properties,
            expires,
        }
    }

    pub(super) fn from_will(will: WillMessage) -> Self {
        let mut packet = PublishPacket::new(will.topic, will.payload, will.qos);
        packet.retain = will.retain;
        will.properties
            .apply_to_publish_properties(&mut packet.properties);
        Self::new(packet)
    }

    pub(super) fn seconds_left(&self) -> Option<u32> {
        let left = self.expires?.saturating_duration_since(Instant::now());
        Some(u32::try_from(left.as_secs()).unwrap_or(u32::MAX))
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires
            .is_some_and(|expires| expires <= Instant::now())
    }
}

fn limit_qos(qos: QoS) -> QoS {
    match qos {
        QoS::AtMostOnce => QoS::AtMostOnce,
        _ => QoS::AtLeastOnce,
    }
}

pub(super) fn check_publish(packet: &PublishPacket) -> Result<(), ReasonCode> {
    // We offer no topic aliases.
    if packet.topic_alias().is_some() {
        return Err(ReasonCode::TopicAliasInvalid);
    }
    if !is_valid_topic_name(&packet.topic_name) {
        return Err(ReasonCode::TopicNameInvalid);
    }
    let mut properties = packet.properties.iter();
    let proper = properties.all(|(id, _)| {
        matches!(
            id,
            PropertyId::PayloadFormatIndicator
                | PropertyId::MessageExpiryInterval
                | PropertyId::ContentType
                | PropertyId::ResponseTopic
                | PropertyId::CorrelationData
                | PropertyId::UserProperty
        )
    });
    if packet.packet_id == Some(0) || !proper {
        return Err(ReasonCode::ProtocolError);
    }
    Ok(())
}
