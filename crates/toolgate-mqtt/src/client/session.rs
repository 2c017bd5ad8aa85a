//! One session with a broker, from the CONNACK to its end.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use mqtt5_protocol::{
    Packet, QoS,
    packet::{
        puback::PubAckPacket, publish::PublishPacket, subscribe::SubscribePacket,
        unsubscribe::UnsubscribePacket,
    },
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior},
};
use tracing::{debug, warn};

use super::{
    ClientCommand, PendingPublish,
    connect::{BrokerLink, BrokerReader, BrokerWriter, SessionTerms},
    link_error::LinkError,
    subscriptions::SubscriptionTable,
};
use crate::{
    PublishError,
    frames::{PacketFrame, decode},
    packet_id::next_packet_id,
    packet_writer::PacketWriter,
};

pub(super) enum BrokerSessionEnd {
    Closed,
    Broken(LinkError),
}

pub(super) struct BrokerSession<'a> {
    terms: SessionTerms,
    subscribers: &'a mut SubscriptionTable,
    out: PacketWriter<BrokerWriter>,
    waiting: VecDeque<PendingPublish>,
    /// Sent but not confirmed, by packet id, with the position of its end in the output.
    unconfirmed: HashMap<u16, (PendingPublish, u64)>,
    last_id: u16,
    last_received: Instant,
    last_sent: Instant,
    last_ping: Instant,
}

const PINGREQ_PACKET: [u8; 2] = [0xc0, 0];
const DISCONNECT_PACKET: [u8; 2] = [0xe0, 0];
const DISCONNECT: u8 = 14;
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

impl<'a> BrokerSession<'a> {
    // Subscribes to all filters first, so that the reply to the first published message is
    // received.
    pub(super) fn new(
        link: BrokerLink,
        subscribers: &'a mut SubscriptionTable,
    ) -> (Self, BrokerReader) {
        let now = Instant::now();
        let mut session = Self {
            terms: link.terms,
            subscribers,
            out: PacketWriter::new(link.writer),
            waiting: VecDeque::new(),
            unconfirmed: HashMap::new(),
            last_id: 0,
            last_received: now,
            last_sent: now,
            last_ping: now,
        };
        for (filter, id) in session.subscribers.filters() {
            session.subscribe(&filter, id);
        }
        (session, link.reader)
    }

    pub(super) async fn run(
        &mut self,
        mut reader: BrokerReader,
        commands: &mut mpsc::UnboundedReceiver<ClientCommand>,
    ) -> BrokerSessionEnd {
        let mut clock = tokio::time::interval(self.terms.keep_alive / 4);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.send_waiting();
            let step = tokio::select! {
                frame = reader.next(), if !self.out.is_full() => match frame {
                    Ok(frame) => self.handle_frame(frame),
                    Err(torn) => Err(LinkError::from_stream_end(&torn)),
                },
                moved = self.out.flush_step(), if self.out.has_unflushed_data() => {
                    self.last_sent = Instant::now();
                    moved.map_err(|_| LinkError::Lost)
                },
                command = commands.recv() => match command {
                    Some(command) => {
                        self.handle_command(command);
                        Ok(())
                    }
                    None => {
                        self.disconnect().await;
                        return BrokerSessionEnd::Closed;
                    }
                },
                _ = clock.tick() => self.check_liveness(&mut reader),
            };
            if let Err(link_error) = step {
                return BrokerSessionEnd::Broken(link_error);
            }
        }
    }

    fn handle_command(&mut self, command: ClientCommand) {
        match command {
            ClientCommand::Publish(publish) => self.waiting.push_back(publish),
            ClientCommand::Subscribe(filter, feed) => {
                let id = self.subscribers.add(&filter, feed);
                self.subscribe(&filter, id);
            }
        }
    }

    fn send_waiting(&mut self) {
        while self.unconfirmed.len() < self.terms.window && !self.out.is_full() {
            let Some(publish) = self.waiting.pop_front() else {
                return;
            };
            self.send(publish);
        }
    }

    fn send(&mut self, mut publish: PendingPublish) {
        let id = self.free_id();
        let (topic, payload) = (publish.topic.as_str(), publish.payload.clone());
        let mut packet = PublishPacket::new(topic, payload, QoS::AtLeastOnce)
            .with_packet_id(id)
            .with_retain(publish.retain);
        packet.protocol_version = self.terms.version;
        // A fixed header has at most five bytes.
        let refused = if packet.body_encoded_size() + 5 > self.terms.max_packet {
            Some("The broker does not take messages of this size.")
        } else if publish.retain && !self.terms.retain_available {
            Some("The broker keeps no messages.")
        } else {
            None
        };
        if let Some(reason) = refused {
            debug!("a message was not sent: {reason}");
            let reason = reason.to_owned();
            return publish.answer(Err(PublishError::Refused { reason }));
        }
        // A caller that has given up must not have it sent late.
        if publish.stage.send() {
            let end = self.out.queue_packet(&packet);
            self.unconfirmed.insert(id, (publish, end));
        }
    }

    fn free_id(&mut self) -> u16 {
        next_packet_id(&mut self.last_id, |id| self.unconfirmed.contains_key(&id))
    }

    fn subscribe(&mut self, filter: &str, filter_id: u32) {
        let id = self.free_id();
        let mut packet = SubscribePacket::new(id).add_filter(filter, QoS::AtLeastOnce);
        packet.protocol_version = self.terms.version;
        if self.terms.subscription_ids_available {
            packet = packet.with_subscription_identifier(filter_id);
        }
        self.out.queue_packet(&packet);
    }

    fn handle_frame(&mut self, frame: PacketFrame) -> Result<(), LinkError> {
        self.last_received = Instant::now();
        let (first, body) = match frame {
            PacketFrame::Packet { first, body } => (first, body),
            PacketFrame::TooLarge { size, id } => {
                warn!(size, "an MQTT message was too large and was skipped");
                self.acknowledge(id);
                return Ok(());
            }
        };
        // Not decoded, because a DISCONNECT counts even with an unknown reason.
        if first >> 4 == DISCONNECT {
            return Err(disconnect_error(self.terms.version, &body));
        }
        let packet = decode(first, body, self.terms.version);
        match packet.map_err(|_| LinkError::NotMqtt)? {
            Packet::Publish(message) => self.deliver(message)?,
            Packet::PubAck(confirmation) => self.confirm(&confirmation),
            Packet::SubAck(answer) => {
                if answer.reason_codes.iter().any(|code| *code as u8 >= 0x80) {
                    warn!(
                        "the MQTT broker refuses a subscription: its access rules do not allow this user to read there"
                    );
                }
            }
            Packet::UnsubAck(_) | Packet::PingResp => {}
            _ => return Err(LinkError::NotMqtt),
        }
        Ok(())
    }

    fn deliver(&mut self, message: PublishPacket) -> Result<(), LinkError> {
        // We subscribe with QoS 1 at most and accept no topic aliases.
        if message.qos == QoS::ExactlyOnce || message.topic_name.is_empty() {
            return Err(LinkError::NotMqtt);
        }
        let id = message.packet_id;
        self.subscribers.deliver(message);
        self.acknowledge(id);
        Ok(())
    }

    fn acknowledge(&mut self, id: Option<u16>) {
        if let Some(id) = id {
            let [high, low] = id.to_be_bytes();
            self.out.queue_bytes(&[0x40, 2, high, low]);
        }
    }

    fn confirm(&mut self, confirmation: &PubAckPacket) {
        let Some((mut publish, _)) = self.unconfirmed.remove(&confirmation.packet_id) else {
            return;
        };
        let code = u8::from(confirmation.reason_code);
        publish.answer(if code < 0x80 {
            Ok(())
        } else {
            let reason = match code {
                0x87 => {
                    "The broker's access rules do not allow this user to publish there.".to_owned()
                }
                0x97 => "The broker is at its limit of messages.".to_owned(),
                code => format!("The broker refused the message with reason 0x{code:02x}."),
            };
            Err(PublishError::Refused { reason })
        });
    }

    fn check_liveness(&mut self, reader: &mut BrokerReader) -> Result<(), LinkError> {
        let silence = self.last_received.elapsed();
        if silence >= self.terms.keep_alive {
            // This process itself may have been suspended, so bytes that have already arrived still
            // count.
            return match reader.next().now_or_never() {
                Some(Ok(frame)) => self.handle_frame(frame),
                Some(Err(error)) => Err(LinkError::from_stream_end(&error)),
                None => Err(LinkError::TimedOut(silence)),
            };
        }
        let half = self.terms.keep_alive / 2;
        if (silence >= half || self.last_sent.elapsed() >= half) && self.last_ping.elapsed() >= half
        {
            self.last_ping = Instant::now();
            self.out.queue_bytes(&PINGREQ_PACKET);
        }
        self.waiting.retain(|publish| publish.stage.is_waiting());
        for filter in self.subscribers.remove_dropped() {
            let id = self.free_id();
            let mut packet = UnsubscribePacket::new(id).add_filter(filter);
            packet.protocol_version = self.terms.version;
            self.out.queue_packet(&packet);
        }
        Ok(())
    }

    // Tells the broker, so that it does not publish our last will.
    async fn disconnect(&mut self) {
        self.out.queue_bytes(&DISCONNECT_PACKET);
        let sent = tokio::time::timeout(DISCONNECT_TIMEOUT, self.out.flush_and_shutdown()).await;
        if !matches!(sent, Ok(Ok(()))) {
            debug!("the DISCONNECT could not be sent to the MQTT broker");
        }
    }

    /// After the connection is lost, reports to each publisher what is known about its message.
    pub(super) fn resolve_unconfirmed(mut self, reason: &str) {
        for mut publish in self.waiting.drain(..) {
            publish.answer(Err(PublishError::Offline {
                reason: reason.to_owned(),
            }));
        }
        for (_, (mut publish, end)) in self.unconfirmed.drain() {
            publish.answer(Err(if !self.out.has_sent(end) {
                // The broker can't have it, because its last byte was never sent.
                PublishError::Offline { reason: reason.to_owned() }
            } else {
                let reason = format!("The message was sent, but the connection broke before the broker confirmed it: it may have arrived. {reason}");
                PublishError::Unknown { reason }
            }));
        }
    }
}

fn disconnect_error(version: u8, body: &Bytes) -> LinkError {
    match body.first() {
        Some(code) if version == 5 && *code != 0 => LinkError::from_reason_code(*code, true),
        _ => LinkError::Lost,
    }
}
