//! A conversation with a broker, from its welcome to its end.

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
    Command, Publish,
    dial::{Link, Reader, Terms, Writer},
    subscribers::Subscribers,
    trouble::Trouble,
};
use crate::{
    PublishError,
    frames::{Frame, decode},
    out::Out,
};

pub(super) enum Ended {
    /// Nobody needs it any more.
    Closed,
    Broken(Trouble),
}

pub(super) struct Session<'a> {
    terms: Terms,
    subscribers: &'a mut Subscribers,
    out: Out<Writer>,
    /// Not sent yet.
    waiting: VecDeque<Publish>,
    /// Sent, not confirmed yet.
    unconfirmed: HashMap<u16, (Publish, u64)>,
    last_id: u16,
    heard: Instant,
    spoke: Instant,
    asked: Instant,
}

const PING: [u8; 2] = [0xc0, 0];
const GOODBYE: [u8; 2] = [0xe0, 0];
const DISCONNECT: u8 = 14;
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);

impl<'a> Session<'a> {
    /// Begins with asking for everything that is read: whoever publishes next gets the answer.
    pub(super) fn new(link: Link, subscribers: &'a mut Subscribers) -> (Self, Reader) {
        let now = Instant::now();
        let mut session = Self {
            terms: link.terms,
            subscribers,
            out: Out::new(link.writer),
            waiting: VecDeque::new(),
            unconfirmed: HashMap::new(),
            last_id: 0,
            heard: now,
            spoke: now,
            asked: now,
        };
        let filters: Vec<(String, u32)> = session
            .subscribers
            .filters()
            .map(|(filter, id)| (filter.to_owned(), id))
            .collect();
        for (filter, id) in filters {
            session.ask_for(&filter, id);
        }
        (session, link.reader)
    }

    /// Talks until one side has enough.
    pub(super) async fn run(
        &mut self,
        mut reader: Reader,
        commands: &mut mpsc::UnboundedReceiver<Command>,
    ) -> Ended {
        let mut clock = tokio::time::interval(self.terms.keep_alive / 4);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.send_waiting();
            let step = tokio::select! {
                frame = reader.next(), if !self.out.is_full() => match frame {
                    Ok(frame) => self.take(frame),
                    Err(torn) => Err(Trouble::torn(&torn)),
                },
                moved = self.out.push(), if self.out.is_busy() => {
                    self.spoke = Instant::now();
                    moved.map_err(|_| Trouble::Lost)
                },
                command = commands.recv() => match command {
                    Some(command) => {
                        self.obey(command);
                        Ok(())
                    }
                    None => {
                        self.goodbye().await;
                        return Ended::Closed;
                    }
                },
                _ = clock.tick() => self.look_at_the_clock(&mut reader),
            };
            if let Err(trouble) = step {
                return Ended::Broken(trouble);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Publish(publish) => self.waiting.push_back(publish),
            Command::Subscribe(filter, feed) => {
                let id = self.subscribers.add(&filter, feed);
                self.ask_for(&filter, id);
            }
        }
    }

    /// Sends what the broker has room for.
    fn send_waiting(&mut self) {
        while self.unconfirmed.len() < self.terms.window && !self.out.is_full() {
            let Some(publish) = self.waiting.pop_front() else {
                return;
            };
            if let Err(error) = self.send(publish) {
                debug!("a message was not sent: {error}");
            }
        }
    }

    fn send(&mut self, mut publish: Publish) -> Result<(), PublishError> {
        let id = self.free_id();
        let mut packet = if self.terms.version == 5 {
            PublishPacket::new(
                publish.topic.as_str(),
                publish.payload.clone(),
                QoS::AtLeastOnce,
            )
        } else {
            PublishPacket::new_v311(
                publish.topic.as_str(),
                publish.payload.clone(),
                QoS::AtLeastOnce,
            )
        };
        packet = packet.with_packet_id(id).with_retain(publish.retain);
        // The header takes five bytes at most.
        let refused = if packet.body_encoded_size() + 5 > self.terms.largest {
            Some("The broker does not take messages of this size.")
        } else if publish.retain && !self.terms.retain {
            Some("The broker keeps no messages.")
        } else {
            None
        };
        if let Some(reason) = refused {
            let error = PublishError::Refused {
                reason: reason.to_owned(),
            };
            publish.answer(Err(error.clone()));
            return Err(error);
        }
        if !publish.stage.send() {
            // Whoever wanted it has given up: it must not be sent late.
            return Ok(());
        }
        let end = self.out.packet(&packet);
        self.unconfirmed.insert(id, (publish, end));
        Ok(())
    }

    fn free_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.unconfirmed.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    fn ask_for(&mut self, filter: &str, filter_id: u32) {
        let id = self.free_id();
        let packet = if self.terms.version == 5 {
            SubscribePacket::new(id)
        } else {
            SubscribePacket::new_v311(id)
        };
        let mut packet = packet.add_filter(filter, QoS::AtLeastOnce);
        if self.terms.names_filters {
            packet = packet.with_subscription_identifier(filter_id);
        }
        self.out.packet(&packet);
    }

    fn take(&mut self, frame: Frame) -> Result<(), Trouble> {
        self.heard = Instant::now();
        let (first, body) = match frame {
            Frame::Packet { first, body } => (first, body),
            Frame::TooLarge { size, id } => {
                warn!(size, "an MQTT message was too large and was left out");
                self.acknowledge(id);
                return Ok(());
            }
        };
        // Not decoded: a goodbye counts, whatever its reason.
        if first >> 4 == DISCONNECT {
            return Err(farewell(self.terms.version, &body));
        }
        let packet = decode(first, body, self.terms.version);
        match packet.map_err(|_| Trouble::NotMqtt)? {
            Packet::Publish(message) => self.hand_over(message),
            Packet::PubAck(confirmation) => {
                self.confirmed(&confirmation);
                Ok(())
            }
            Packet::SubAck(answer) => {
                if answer.reason_codes.iter().any(|code| *code as u8 >= 0x80) {
                    warn!(
                        "the MQTT broker refuses a subscription: its access rules do not allow this user to read there"
                    );
                }
                Ok(())
            }
            Packet::UnsubAck(_) | Packet::PingResp => Ok(()),
            _ => Err(Trouble::NotMqtt),
        }
    }

    fn hand_over(&mut self, message: PublishPacket) -> Result<(), Trouble> {
        // We ask for QoS 1 at most, and for no aliases of topics.
        if message.qos == QoS::ExactlyOnce || message.topic_name.is_empty() {
            return Err(Trouble::NotMqtt);
        }
        let id = message.packet_id;
        self.subscribers.deliver(message);
        self.acknowledge(id);
        Ok(())
    }

    fn acknowledge(&mut self, id: Option<u16>) {
        if let Some(id) = id {
            let [high, low] = id.to_be_bytes();
            self.out.bytes(&[0x40, 2, high, low]);
        }
    }

    fn confirmed(&mut self, confirmation: &PubAckPacket) {
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

    /// Asks whether the broker still lives, and gives up on one that does not.
    fn look_at_the_clock(&mut self, reader: &mut Reader) -> Result<(), Trouble> {
        let silence = self.heard.elapsed();
        if silence >= self.terms.keep_alive {
            // This program itself may have been stopped: what has come meanwhile counts.
            return match reader.next().now_or_never() {
                Some(Ok(frame)) => self.take(frame),
                Some(Err(torn)) => Err(Trouble::torn(&torn)),
                None => Err(Trouble::Mute(silence)),
            };
        }
        let half = self.terms.keep_alive / 2;
        if (silence >= half || self.spoke.elapsed() >= half) && self.asked.elapsed() >= half {
            self.asked = Instant::now();
            self.out.bytes(&PING);
        }
        self.waiting.retain(|publish| publish.stage.is_waiting());
        for filter in self.subscribers.sweep() {
            let id = self.free_id();
            let mut packet = UnsubscribePacket::new(id).add_filter(filter);
            packet.protocol_version = self.terms.version;
            self.out.packet(&packet);
        }
        Ok(())
    }

    /// So that the broker does not publish our last will.
    async fn goodbye(&mut self) {
        self.out.bytes(&GOODBYE);
        let sent = tokio::time::timeout(GOODBYE_LIMIT, self.out.finish()).await;
        if !matches!(sent, Ok(Ok(()))) {
            debug!("the MQTT broker did not hear our goodbye");
        }
    }

    /// The connection is gone: everybody is told what is known about their message.
    pub(super) fn settle(mut self, reason: &str) {
        for mut publish in self.waiting.drain(..) {
            publish.answer(Err(PublishError::Offline {
                reason: reason.to_owned(),
            }));
        }
        for (_, (mut publish, end)) in self.unconfirmed.drain() {
            publish.answer(Err(if !self.out.has_taken(end) {
                // The broker can not have it: its end never left.
                PublishError::Offline { reason: reason.to_owned() }
            } else {
                let reason = format!("The message was sent, but the connection broke before the broker confirmed it: it may have arrived. {reason}");
                PublishError::Unknown { reason }
            }));
        }
    }
}

fn farewell(version: u8, body: &Bytes) -> Trouble {
    match body.first() {
        Some(code) if version == 5 && *code != 0 => Trouble::told(*code, true),
        _ => Trouble::Lost,
    }
}
