//! The subscriptions of a client and their readers.

use std::{collections::BTreeMap, time::Duration};

use mqtt5_protocol::{PropertyId, PropertyValue, packet::publish::PublishPacket};
use tokio::time::Instant;
use tracing::warn;

use crate::{
    MqttMessage,
    message::{FeedOutcome, SubscriptionFeed},
};

#[derive(Debug, Default)]
pub(super) struct SubscriptionTable {
    filters: BTreeMap<String, FilterReaders>,
    named: u32,
    drops: DropLog,
}

#[derive(Debug)]
struct FilterReaders {
    /// Sent with each message by brokers that support it, so that overlapping filters don't
    /// deliver a message twice.
    id: u32,
    feeds: Vec<SubscriptionFeed>,
}

impl SubscriptionTable {
    pub(super) fn add(&mut self, filter: &str, feed: SubscriptionFeed) -> u32 {
        if let Some(readers) = self.filters.get_mut(filter) {
            readers.feeds.push(feed);
            return readers.id;
        }
        self.named += 1;
        let id = self.named;
        let feeds = vec![feed];
        self.filters
            .insert(filter.to_owned(), FilterReaders { id, feeds });
        id
    }

    pub(super) fn filters(&self) -> Vec<(String, u32)> {
        let filters = self.filters.iter();
        filters
            .map(|(filter, readers)| (filter.clone(), readers.id))
            .collect()
    }

    pub(super) fn deliver(&mut self, packet: PublishPacket) {
        let ids: Vec<u32> = packet
            .properties
            .get_all(PropertyId::SubscriptionIdentifier)
            .into_iter()
            .flatten()
            .filter_map(|value| match value {
                PropertyValue::VariableByteInteger(id) => Some(*id),
                _ => None,
            })
            .collect();
        let message = MqttMessage {
            topic: packet.topic_name,
            payload: packet.payload,
            retained: packet.retain,
        };
        for (filter, readers) in &mut self.filters {
            let concerned = if ids.is_empty() {
                mqtt5_protocol::topic_matches_filter(&message.topic, filter)
            } else {
                ids.contains(&readers.id)
            };
            if concerned {
                readers
                    .feeds
                    .retain(|feed| match feed.try_send(message.clone()) {
                        FeedOutcome::Queued => true,
                        FeedOutcome::Closed => false,
                        FeedOutcome::Dropped => {
                            self.drops.count(filter);
                            true
                        }
                    });
            }
        }
    }

    /// Removes dropped readers and returns the filters without any.
    pub(super) fn remove_dropped(&mut self) -> Vec<String> {
        self.drops.log_due();
        for readers in self.filters.values_mut() {
            readers.feeds.retain(|feed| !feed.is_closed());
        }
        let gone = self
            .filters
            .extract_if(.., |_, readers| readers.feeds.is_empty());
        gone.map(|(filter, _)| filter).collect()
    }
}

// Logs dropped messages at most once a minute, so that a flood of messages does not flood the log.
#[derive(Debug, Default)]
struct DropLog {
    unlogged: u64,
    filter: String,
    last_logged: Option<Instant>,
}

impl DropLog {
    const PAUSE: Duration = Duration::from_secs(60);

    fn count(&mut self, filter: &str) {
        if self.unlogged == 0 {
            filter.clone_into(&mut self.filter);
        }
        self.unlogged += 1;
        self.log_due();
    }

    fn log_due(&mut self) -> u64 {
        let early = self
            .last_logged
            .is_some_and(|last| last.elapsed() < Self::PAUSE);
        if early || self.unlogged == 0 {
            return 0;
        }
        let dropped = std::mem::take(&mut self.unlogged);
        self.last_logged = Some(Instant::now());
        let filter = toolgate_core::text::escape(&self.filter);
        warn!(%filter, dropped, "MQTT messages arrive faster than they are read; some were dropped");
        dropped
    }
}

#[cfg(test)]
mod tests {
    use mqtt5_protocol::QoS;

    use super::*;

    fn packet(topic: &str) -> PublishPacket {
        PublishPacket::new(topic, &b"x"[..], QoS::AtMostOnce)
    }

    #[tokio::test]
    async fn a_message_reaches_the_readers_of_matching_filters() {
        let mut subscribers = SubscriptionTable::default();
        let mut readers = Vec::new();
        for filter in ["zwave/#", "zwave/+/on", "zwave/a/on", "other", "#"] {
            let (feed, reader) = SubscriptionFeed::new(10);
            subscribers.add(filter, feed);
            readers.push((filter, reader));
        }
        subscribers.deliver(packet("zwave/a/on"));
        subscribers.deliver(packet("$SYS/broker"));
        for (filter, reader) in &mut readers {
            let expected = usize::from(*filter != "other");
            let mut got = 0;
            while let Some(Some(_)) = futures::FutureExt::now_or_never(reader.next()) {
                got += 1;
            }
            assert_eq!(got, expected, "{filter}");
        }
    }

    #[tokio::test]
    async fn subscription_ids_decide_who_receives_a_message() {
        let mut subscribers = SubscriptionTable::default();
        let (feed, mut all) = SubscriptionFeed::new(10);
        subscribers.add("#", feed);
        let (feed, mut one) = SubscriptionFeed::new(10);
        let id = subscribers.add("a/+", feed);
        subscribers.deliver(packet("a/b").with_subscription_identifier(id));
        assert!(futures::FutureExt::now_or_never(all.next()).is_none());
        assert!(one.next().await.is_some());
    }

    #[test]
    fn a_filter_without_readers_is_removed() {
        let mut subscribers = SubscriptionTable::default();
        let (feed, one) = SubscriptionFeed::new(10);
        subscribers.add("a", feed);
        let (feed, two) = SubscriptionFeed::new(10);
        subscribers.add("a", feed);
        drop(one);
        assert!(subscribers.remove_dropped().is_empty());
        drop(two);
        assert_eq!(subscribers.remove_dropped(), ["a"]);
        assert_eq!(subscribers.filters().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn drops_are_logged_once_a_minute_with_their_number() {
        let mut drops = DropLog::default();
        drops.count("a");
        assert_eq!(drops.unlogged, 0);
        for _ in 0..1000 {
            drops.count("a");
        }
        assert_eq!((drops.log_due(), drops.unlogged), (0, 1000));
        tokio::time::advance(DropLog::PAUSE).await;
        assert_eq!(drops.log_due(), 1000);
        assert_eq!(drops.log_due(), 0);
    }
}
