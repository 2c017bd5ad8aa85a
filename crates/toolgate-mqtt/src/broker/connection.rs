//! One client's connection, from its first packet to its end.

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
    Shared,
    handshake::{LARGEST_PACKET, answer, read_connect, welcome},
    routed_message::{RoutedMessage, check},
    router::{Admission, Delivery},
};
use crate::{
    frames::{Frame, Frames, Torn, decode},
    out::Out,
};

/// From the connection to its first packet.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Room for a will, a name and a password, each as long as can be.
const LARGEST_CONNECT: usize = 512 * 1024;
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// Answers that wait for one who asks and does not read.
const UNSENT_MAX: usize = 2 * LARGEST_PACKET;
/// Messages that may wait for a client's acknowledgement.
const WINDOW_MAX: u16 = 10_000;
const PONG: [u8; 2] = [0xd0, 0];

enum ConnectionEnd {
    /// The client said goodbye.
    Goodbye,
    /// The client went, or asked for its will to be published.
    Lost,
    /// We end it.
    Cut(ReasonCode),
}

type Step = Result<(), ConnectionEnd>;

struct Connection {
    shared: Arc<Shared>,
    name: String,
    /// 4 is MQTT 3.1.1.
    version: u8,
    admission: Admission,
    out: Out<OwnedWriteHalf>,
    unacknowledged: HashSet<u16>,
    window: usize,
    last_id: u16,
    largest: usize,
    /// Messages of QoS 2 that came and may come again.
    unreleased: HashSet<u16>,
    heard: Instant,
    /// The longest silence, if there is a limit.
    silence: Option<Duration>,
}

pub(super) async fn serve(
    stream: TcpStream,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<()>,
) {
    // A switch shall not wait for more bytes to come.
    drop(stream.set_nodelay(true));
    let (reader, writer) = stream.into_split();
    let mut reader = Frames::new(reader, LARGEST_CONNECT);
    let first = tokio::select! {
        first = timeout(CONNECT_LIMIT, reader.next()) => first,
        _ = stopped.changed() => return,
    };
    let Ok(Ok(Frame::Packet { first: 0x10, body })) = first else {
        debug!("an MQTT connection did not begin with a CONNECT");
        return;
    };
    let mut out = Out::new(writer);
    let admitted = read_connect(body, &shared.settings).and_then(|connect| {
        let name = match connect.client_id.as_str() {
            "" => format!("auto-{:032x}", fastrand::u128(..)),
            name => name.to_owned(),
        };
        let will = connect.will.clone().map(RoutedMessage::from_will);
        match shared.router.lock().admit(&name, will) {
            Ok(admission) => Ok((connect, name, admission)),
            Err(reason) => Err(Some(answer(connect.protocol_version, reason))),
        }
    });
    match admitted {
        Ok((connect, name, admission)) => {
            out.packet(&welcome(&connect, &name));
            reader.most = LARGEST_PACKET;
            let connection = Connection::new(shared, &connect, name, admission, out);
            connection.run(reader, stopped).await;
        }
        Err(refusal) => {
            if let Some(refusal) = refusal {
                out.packet(&refusal);
            }
            drop(timeout(GOODBYE_LIMIT, out.finish()).await);
        }
    }
}

impl Connection {
    fn new(
        shared: Arc<Shared>,
        connect: &ConnectPacket,
        name: String,
        admission: Admission,
        out: Out<OwnedWriteHalf>,
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
            out,
            unacknowledged: HashSet::new(),
            window: window.min(WINDOW_MAX).into(),
            last_id: 0,
            largest: usize::try_from(largest).unwrap_or(usize::MAX),
            unreleased: HashSet::new(),
            heard: Instant::now(),
            silence: (connect.keep_alive > 0).then(|| keep_alive + keep_alive / 2),
        }
    }

    async fn run(mut self, reader: Frames<OwnedReadHalf>, stopped: watch::Receiver<()>) {
        let end = match self.talk(reader, stopped).await {
            Err(end) => end,
            Ok(never) => match never {},
        };
        let said_goodbye = matches!(
            end,
            ConnectionEnd::Goodbye | ConnectionEnd::Cut(ReasonCode::ServerShuttingDown)
        );
        self.shared
            .router
            .lock()
            .leave(&self.name, self.admission.serial, said_goodbye);
        if let ConnectionEnd::Cut(reason) = end {
            debug!("the MQTT connection of a client is cut: {reason:?}");
            if self.version == 5 {
                self.out.packet(&DisconnectPacket::new(reason));
            }
        }
        drop(timeout(GOODBYE_LIMIT, self.out.finish()).await);
    }

    async fn talk(
        &mut self,
        mut reader: Frames<OwnedReadHalf>,
        mut stopped: watch::Receiver<()>,
    ) -> Result<std::convert::Infallible, ConnectionEnd> {
        let silence = self.silence.unwrap_or_default();
        let idle = sleep_until(self.heard + silence);
        tokio::pin!(idle);
        loop {
            if self.out.waiting() > UNSENT_MAX {
                return Err(ConnectionEnd::Cut(ReasonCode::QuotaExceeded));
            }
            tokio::select! {
                frame = reader.next() => self.take(frame)?,
                moved = self.out.push(), if self.out.is_busy() => {
                    moved.map_err(|_| ConnectionEnd::Lost)?;
                }
                Some(delivery) = self.admission.deliveries.next(),
                    if !self.out.is_full() && self.unacknowledged.len() < self.window =>
                {
                    self.deliver_all(delivery);
                }
                reason = &mut self.admission.cut => {
                    let reason = reason.unwrap_or(ReasonCode::UnspecifiedError);
                    return Err(ConnectionEnd::Cut(reason));
                }
                _ = stopped.changed() => {
                    return Err(ConnectionEnd::Cut(ReasonCode::ServerShuttingDown));
                }
                () = &mut idle, if self.silence.is_some() => {
                    if self.heard.elapsed() >= silence {
                        // This program itself may have been stopped: what has come meanwhile counts.
                        let frame = reader.next().now_or_never();
                        self.take(frame.ok_or(ConnectionEnd::Cut(ReasonCode::KeepAliveTimeout))?)?;
                    }
                    idle.as_mut().reset(self.heard + silence);
                }
            }
        }
    }

    fn take(&mut self, frame: Result<Frame, Torn>) -> Step {
        let cut = |reason| Err(ConnectionEnd::Cut(reason));
        let (first, body): (u8, Bytes) = match frame {
            Ok(Frame::Packet { first, body }) => (first, body),
            Ok(Frame::TooLarge { .. }) => return cut(ReasonCode::PacketTooLarge),
            Err(Torn::Closed) => return Err(ConnectionEnd::Lost),
            Err(Torn::NotMqtt(_)) => return cut(ReasonCode::MalformedPacket),
        };
        self.heard = Instant::now();
        let Ok(packet) = decode(first, body, self.version) else {
            return cut(ReasonCode::MalformedPacket);
        };
        match packet {
            Packet::Publish(packet) => self.publish(packet),
            Packet::PubAck(packet) => {
                self.unacknowledged.remove(&packet.packet_id);
                Ok(())
            }
            Packet::PubRel(packet) => {
                let known = self.unreleased.remove(&packet.packet_id) || self.version == 4;
                let reason = if known {
                    ReasonCode::Success
                } else {
                    ReasonCode::PacketIdentifierNotFound
                };
                self.out
                    .packet(&PubCompPacket::new_with_reason(packet.packet_id, reason));
                Ok(())
            }
            Packet::Subscribe(packet) => self.subscribe(packet),
            Packet::Unsubscribe(packet) => self.unsubscribe(&packet),
            Packet::PingReq => {
                self.out.bytes(&PONG);
                Ok(())
            }
            Packet::Disconnect(packet) if packet.reason_code == ReasonCode::Success => {
                Err(ConnectionEnd::Goodbye)
            }
            Packet::Disconnect(_) => Err(ConnectionEnd::Lost),
            // A second CONNECT, or what only brokers say; we never send QoS 2.
            _ => cut(ReasonCode::ProtocolError),
        }
    }

    fn publish(&mut self, packet: PublishPacket) -> Step {
        check(&packet).map_err(ConnectionEnd::Cut)?;
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
                self.out.packet(&PubAckPacket::new_with_reason(id, reason));
            }
            QoS::ExactlyOnce => {
                if reason == ReasonCode::Success {
                    self.unreleased.insert(id);
                }
                self.out.packet(&PubRecPacket::new_with_reason(id, reason));
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, packet: SubscribePacket) -> Step {
        let id = packet.properties.get_subscription_identifier();
        if packet.packet_id == 0 || id == Some(0) {
            return Err(ConnectionEnd::Cut(ReasonCode::ProtocolError));
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
        self.out.packet(&answer);
        Ok(())
    }

    fn unsubscribe(&mut self, packet: &UnsubscribePacket) -> Step {
        if packet.packet_id == 0 {
            return Err(ConnectionEnd::Cut(ReasonCode::ProtocolError));
        }
        let mut answer = UnsubAckPacket::new(packet.packet_id);
        answer.protocol_version = self.version;
        let mut router = self.shared.router.lock();
        for filter in &packet.filters {
            answer
                .reason_codes
                .push(if router.unsubscribe(&self.name, filter) {
                    UnsubAckReasonCode::Success
                } else {
                    UnsubAckReasonCode::NoSubscriptionExisted
                });
        }
        drop(router);
        self.out.packet(&answer);
        Ok(())
    }

    /// This one and those behind it, as far as there is room: one write serves many.
    fn deliver_all(&mut self, first: Delivery) {
        let mut next = Some(first);
        while let Some(delivery) = next {
            self.deliver(&delivery);
            let has_room = !self.out.is_full() && self.unacknowledged.len() < self.window;
            next = has_room
                .then(|| self.admission.deliveries.try_next())
                .flatten();
        }
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let message = &delivery.message;
        if message.is_expired() {
            return;
        }
        let mut packet = PublishPacket::new(
            message.topic.as_str(),
            message.payload.clone(),
            delivery.qos,
        )
        .with_retain(delivery.retain);
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
        // The header takes five bytes at most.
        if packet.body_encoded_size() + 5 > self.largest {
            return;
        }
        if delivery.qos != QoS::AtMostOnce {
            let id = self.free_id();
            self.unacknowledged.insert(id);
            packet.packet_id = Some(id);
        }
        self.out.packet(&packet);
    }

    fn free_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.unacknowledged.contains(&self.last_id) {
                return self.last_id;
            }
        }
    }
}
