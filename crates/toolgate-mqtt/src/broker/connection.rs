//! Serves one client's connection, from its first packet to its end.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::FutureExt;
use mqtt5_protocol::{
    Packet, QoS, ReasonCode, is_valid_topic_filter,
    packet::{
        connect::ConnectPacket,
        disconnect::DisconnectPacket,
        puback::PubAckPacket,
        pubcomp::PubCompPacket,
        publish::PublishPacket,
        pubrec::PubRecPacket,
        suback::{SubAckPacket, SubAckReasonCode},
        subscribe::SubscribePacket,
        subscribe_options::RetainHandling,
        unsuback::{UnsubAckPacket, UnsubAckReasonCode},
        unsubscribe::UnsubscribePacket,
    },
};
use tokio::{
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tracing::debug;

use super::{
    EmbeddedBrokerState,
    handshake::{MAX_PACKET_BYTES, accept_connack, connack, read_connect},
    routed_message::{RoutedMessage, check_publish},
    router::{QueuedDelivery, RouterAdmission},
};
use crate::{
    frames::{FrameReader, PacketFrame, StreamEndError, decode},
    packet_id::next_packet_id,
    packet_writer::PacketWriter,
};

// Timeout for the first packet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONNECT_BYTES: usize = 512 * 1024;
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// A client with more unsent bytes is disconnected: it sends requests without reading responses.
const MAX_UNSENT: usize = 2 * MAX_PACKET_BYTES;
const MAX_WINDOW: u16 = 10_000;
const PINGRESP_PACKET: [u8; 2] = [0xd0, 0];

enum ConnectionEnd {
    ClosedByClient,
    /// The connection was lost, or the client asked for its will to be published.
    Lost,
    ClosedByBroker(ReasonCode),
}

type ConnectionStep = Result<(), ConnectionEnd>;

struct ClientConnection {
    shared: Arc<EmbeddedBrokerState>,
    name: String,
    /// The protocol level; 4 is MQTT 3.1.1.
    version: u8,
    admission: RouterAdmission,
    writer: PacketWriter<OwnedWriteHalf>,
    unacknowledged: HashSet<u16>,
    window: usize,
    last_id: u16,
    max_packet: usize,
    /// QoS 2 messages that were received and may be sent again.
    unreleased: HashSet<u16>,
    last_received: Instant,
    max_silence: Option<Duration>,
}

pub(super) async fn serve(
    stream: TcpStream,
    shared: Arc<EmbeddedBrokerState>,
    mut stopped: watch::Receiver<()>,
) {
    // Small packets must not wait for more bytes.
    drop(stream.set_nodelay(true));
    let (reader, writer) = stream.into_split();
    let mut reader = FrameReader::new(reader, MAX_CONNECT_BYTES);
    let first = tokio::select! {
        first = timeout(CONNECT_TIMEOUT, reader.next()) => first,
        _ = stopped.changed() => return,
    };
    let Ok(Ok(PacketFrame::Packet { first: 0x10, body })) = first else {
        debug!("an MQTT connection did not begin with a CONNECT");
        return;
    };
    let mut out = PacketWriter::new(writer);
    let admitted = read_connect(body, &shared.settings).and_then(|connect| {
        let name = match connect.client_id.as_str() {
            "" => format!("auto-{:032x}", fastrand::u128(..)),
            name => name.to_owned(),
        };
        let will = connect.will.clone().map(RoutedMessage::from_will);
        match shared.router.lock().admit(&name, will) {
            Ok(admission) => Ok((connect, name, admission)),
            Err(reason) => Err(Some(connack(connect.protocol_version, reason))),
        }
    });
    match admitted {
        Ok((connect, name, admission)) => {
            out.queue_packet(&accept_connack(&connect, &name));
            reader.max_packet = MAX_PACKET_BYTES;
            let connection = ClientConnection::new(shared, &connect, name, admission, out);
            connection.run(reader, stopped).await;
        }
        Err(refusal) => {
            if let Some(refusal) = refusal {
                out.queue_packet(&refusal);
            }
            drop(timeout(DISCONNECT_TIMEOUT, out.flush_and_shutdown()).await);
        }
    }
}

impl ClientConnection {
    fn new(
        shared: Arc<EmbeddedBrokerState>,
        connect: &ConnectPacket,
        name: String,
        admission: RouterAdmission,
        writer: PacketWriter<OwnedWriteHalf>,
    ) -> Self {
        let properties = &connect.properties;
        let window = properties.get_receive_maximum().unwrap_or(u16::MAX);
        let largest = properties.get_maximum_packet_size().unwrap_or(u32::MAX);
        let keep_alive = Duration::from_secs(connect.keep_alive.into());
        Self {
            shared,
            name,
            version: connect.protocol_version,
            admission,
            writer,
            unacknowledged: HashSet::new(),
            window: window.min(MAX_WINDOW).into(),
            last_id: 0,
            max_packet: usize::try_from(largest).unwrap_or(usize::MAX),
            unreleased: HashSet::new(),
            last_received: Instant::now(),
            max_silence: (connect.keep_alive > 0).then(|| keep_alive + keep_alive / 2),
        }
    }

    async fn run(mut self, reader: FrameReader<OwnedReadHalf>, stopped: watch::Receiver<()>) {
        let end = match self.serve_packets(reader, stopped).await {
            Err(end) => end,
            Ok(never) => match never {},
        };
        use ConnectionEnd::{ClosedByBroker, ClosedByClient};
        let is_clean = matches!(
            end,
            ClosedByClient | ClosedByBroker(ReasonCode::ServerShuttingDown)
        );
        let serial = self.admission.serial;
        self.shared
            .router
            .lock()
            .remove(&self.name, serial, is_clean);
        if let ConnectionEnd::ClosedByBroker(reason) = end {
            debug!("closing the MQTT connection of a client: {reason:?}");
            if self.version == 5 {
                self.writer.queue_packet(&DisconnectPacket::new(reason));
            }
        }
        drop(timeout(DISCONNECT_TIMEOUT, self.writer.flush_and_shutdown()).await);
    }

    async fn serve_packets(
        &mut self,
        mut reader: FrameReader<OwnedReadHalf>,
        mut stopped: watch::Receiver<()>,
    ) -> Result<std::convert::Infallible, ConnectionEnd> {
        let silence = self.max_silence.unwrap_or_default();
        let idle = sleep_until(self.last_received + silence);
        tokio::pin!(idle);
        loop {
            if self.writer.unsent_bytes() > MAX_UNSENT {
                return Err(ConnectionEnd::ClosedByBroker(ReasonCode::QuotaExceeded));
            }
            let has_room = self.has_room();
            tokio::select! {
                frame = reader.next() => self.handle_frame(frame)?,
                moved = self.writer.flush_step(), if self.writer.has_unflushed_data() => {
                    moved.map_err(|_| ConnectionEnd::Lost)?;
                }
                Some(delivery) = self.admission.deliveries.next(), if has_room => {
                    self.deliver_all(delivery);
                }
                reason = &mut self.admission.disconnect => {
                    let reason = reason.unwrap_or(ReasonCode::UnspecifiedError);
                    return Err(ConnectionEnd::ClosedByBroker(reason));
                }
                _ = stopped.changed() => {
                    return Err(ConnectionEnd::ClosedByBroker(ReasonCode::ServerShuttingDown));
                }
                () = &mut idle, if self.max_silence.is_some() => {
                    if self.last_received.elapsed() >= silence {
                        // This process itself may have been suspended, so bytes that have already
                        // arrived still count.
                        let frame = reader.next().now_or_never();
                        self.handle_frame(frame.ok_or(ConnectionEnd::ClosedByBroker(ReasonCode::KeepAliveTimeout))?)?;
                    }
                    idle.as_mut().reset(self.last_received + silence);
                }
            }
        }
    }

    fn handle_frame(&mut self, frame: Result<PacketFrame, StreamEndError>) -> ConnectionStep {
        let close = |reason| Err(ConnectionEnd::ClosedByBroker(reason));
        let (first, body): (u8, Bytes) = match frame {
            Ok(PacketFrame::Packet { first, body }) => (first, body),
            Ok(PacketFrame::TooLarge { .. }) => return close(ReasonCode::PacketTooLarge),
            Err(StreamEndError::Closed) => return Err(ConnectionEnd::Lost),
            Err(StreamEndError::NotMqtt(_)) => return close(ReasonCode::MalformedPacket),
        };
        self.last_received = Instant::now();
        let Ok(packet) = decode(first, body, self.version) else {
            return close(ReasonCode::MalformedPacket);
        };
        match packet {
            Packet::Publish(packet) => self.publish(packet)?,
            Packet::PubAck(packet) => drop(self.unacknowledged.remove(&packet.packet_id)),
            Packet::PubRel(packet) => {
                let known = self.unreleased.remove(&packet.packet_id) || self.version == 4;
                let reason = match known {
                    true => ReasonCode::Success,
                    false => ReasonCode::PacketIdentifierNotFound,
                };
                let released = PubCompPacket::new_with_reason(packet.packet_id, reason);
                self.writer.queue_packet(&released);
            }
            Packet::Subscribe(packet) => self.subscribe(packet)?,
            Packet::Unsubscribe(packet) => self.unsubscribe(&packet)?,
            Packet::PingReq => self.writer.queue_bytes(&PINGRESP_PACKET),
            Packet::Disconnect(packet) if packet.reason_code == ReasonCode::Success => {
                return Err(ConnectionEnd::ClosedByClient);
            }
            Packet::Disconnect(_) => return Err(ConnectionEnd::Lost),
            // A second CONNECT, or a packet that only brokers send. We never send QoS 2, so there
            // is nothing to acknowledge for it.
            _ => return close(ReasonCode::ProtocolError),
        }
        Ok(())
    }

    fn publish(&mut self, packet: PublishPacket) -> ConnectionStep {
        check_publish(&packet).map_err(ConnectionEnd::ClosedByBroker)?;
        let (qos, id) = (packet.qos, packet.packet_id.unwrap_or_default());
        let again = qos == QoS::ExactlyOnce && self.unreleased.contains(&id);
        let mut reason = ReasonCode::Success;
        if !again {
            let can_be_refused = self.version == 5 && qos != QoS::AtMostOnce;
            let message = RoutedMessage::new(packet);
            let mut router = self.shared.router.lock();
            if let Err(refused) = router.publish(message, &self.name, can_be_refused) {
                reason = refused;
            }
        }
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => {
                let answer = PubAckPacket::new_with_reason(id, reason);
                self.writer.queue_packet(&answer);
            }
            QoS::ExactlyOnce => {
                if reason == ReasonCode::Success {
                    self.unreleased.insert(id);
                }
                let answer = PubRecPacket::new_with_reason(id, reason);
                self.writer.queue_packet(&answer);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, packet: SubscribePacket) -> ConnectionStep {
        let id = packet.properties.get_subscription_identifier();
        if packet.packet_id == 0 || id == Some(0) {
            return Err(ConnectionEnd::ClosedByBroker(ReasonCode::ProtocolError));
        }
        let mut answer = SubAckPacket::new(packet.packet_id);
        answer.protocol_version = self.version;
        let mut router = self.shared.router.lock();
        for wanted in packet.filters {
            let (filter, mut options) = (wanted.filter, wanted.options);
            if options.qos == QoS::ExactlyOnce {
                options.qos = QoS::AtLeastOnce;
            }
            let code = if filter.starts_with("$share/") {
                SubAckReasonCode::SharedSubscriptionsNotSupported
            } else if !is_valid_topic_filter(&filter) {
                SubAckReasonCode::TopicFilterInvalid
            } else if let Ok(is_new) = router.subscribe(&self.name, &filter, options, id) {
                match options.retain_handling {
                    RetainHandling::DoNotSend => {}
                    RetainHandling::SendAtSubscribeIfNew if !is_new => {}
                    _ => router.replay(&self.name, &filter, options, id),
                }
                SubAckReasonCode::from_qos(options.qos)
            } else {
                SubAckReasonCode::QuotaExceeded
            };
            answer.reason_codes.push(code);
        }
        drop(router);
        self.writer.queue_packet(&answer);
        Ok(())
    }

    fn unsubscribe(&mut self, packet: &UnsubscribePacket) -> ConnectionStep {
        if packet.packet_id == 0 {
            return Err(ConnectionEnd::ClosedByBroker(ReasonCode::ProtocolError));
        }
        let mut answer = UnsubAckPacket::new(packet.packet_id);
        answer.protocol_version = self.version;
        let mut router = self.shared.router.lock();
        for filter in &packet.filters {
            answer
                .reason_codes
                .push(match router.unsubscribe(&self.name, filter) {
                    true => UnsubAckReasonCode::Success,
                    false => UnsubAckReasonCode::NoSubscriptionExisted,
                });
        }
        drop(router);
        self.writer.queue_packet(&answer);
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.writer.is_full() && self.unacknowledged.len() < self.window
    }

    // Delivers this message and the ones queued behind it, as far as there is room, so that one
    // write serves many.
    fn deliver_all(&mut self, first: QueuedDelivery) {
        let mut next = Some(first);
        while let Some(delivery) = next {
            self.deliver(&delivery);
            let has_room = self.has_room();
            next = has_room
                .then(|| self.admission.deliveries.try_next())
                .flatten();
        }
    }

    fn deliver(&mut self, delivery: &QueuedDelivery) {
        let message = &delivery.message;
        if message.is_expired() {
            return;
        }
        let (topic, payload) = (message.topic.as_str(), message.payload.clone());
        let mut packet =
            PublishPacket::new(topic, payload, delivery.qos).with_retain(delivery.retain);
        packet.protocol_version = self.version;
        if self.version == 5 {
            packet.properties = message.properties.clone();
            if let Some(seconds) = message.seconds_left() {
                packet.properties.set_message_expiry_interval(seconds);
            }
            for id in &delivery.subscription_ids {
                packet.properties.set_subscription_identifier(*id);
            }
        }
        // A fixed header has at most five bytes.
        if packet.body_encoded_size() + 5 > self.max_packet {
            return;
        }
        if delivery.qos != QoS::AtMostOnce {
            let used = &self.unacknowledged;
            let id = next_packet_id(&mut self.last_id, |id| used.contains(&id));
            self.unacknowledged.insert(id);
            packet.packet_id = Some(id);
        }
        self.writer.queue_packet(&packet);
    }
}
