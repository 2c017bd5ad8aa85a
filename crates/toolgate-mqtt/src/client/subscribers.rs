//! Who reads what.

use std::{collections::BTreeMap, time::Duration};

use mqtt5_protocol::{PropertyId, PropertyValue, packet::publish::PublishPacket};
use tokio::time::Instant;
use tracing::warn;

use crate::{
    Message,
    message::{Fed, Feed},
};

#[derive(Debug, Default)]
pub(super) struct Subscribers {
    filters: BTreeMap<String, Readers>,
    named: u32,
    drops: Drops,
}

#[derive(Debug)]
struct Readers {
    /// The broker says with each message for which filters it is, so that it does not reach a reader twice when filters overlap.
    id: u32,
    feeds: Vec<Feed>,
}

impl Subscribers {
    /// One more; the number of its filter.
    pub(super) fn add(&mut self, filter: &str, feed: Feed) -> u32 {
        if let Some(readers) = self.filters.get_mut(filter) {
            readers.feeds.push(feed);
            return readers.id;
        }
        self.named += 1;
        let id = self.named;
        let feeds = vec![feed];
        self.filters
            .insert(filter.to_owned(), Readers { id, feeds });
        id
    }

    pub(super) fn filters(&self) -> impl Iterator<Item = (&str, u32)> {
        self.filters
            .iter()
            .map(|(filter, readers)| (filter.as_str(), readers.id))
    }

    /// Hands a message to all whom it concerns.
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
        let message = Message {
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
                    .retain(|feed| match feed.put(message.clone()) {
                        Fed::Taken => true,
                        Fed::Gone => false,
                        Fed::Dropped => {
                            self.drops.count(filter);
                            true
                        }
                    });
            }
        }
    }

    /// Forgets the readers that are gone; the filters that nobody reads any more.
    pub(super) fn sweep(&mut self) -> Vec<String> {
        self.drops.tell();
        for readers in self.filters.values_mut() {
            readers.feeds.retain(|feed| !feed.is_gone());
        }
        let unread = |(_, readers): &(&String, &Readers)| readers.feeds.is_empty();
        let gone: Vec<String> = self
            .filters
            .iter()
            .filter(unread)
            .map(|(filter, _)| filter.clone())
            .collect();
        self.filters.retain(|_, readers| !readers.feeds.is_empty());
        gone
    }
}

/// Messages that were dropped, told at most once a minute: a flood must not become a flood of the log.
#[derive(Debug, Default)]
struct Drops {
    untold: u64,
    /// Where the last one was dropped.
    filter: String,
    told: Option<Instant>,
}

impl Drops {
    const PAUSE: Duration = Duration::from_secs(60);

    fn count(&mut self, filter: &str) {
        if self.untold == 0 {
            filter.clone_into(&mut self.filter);
        }
        self.untold += 1;
        self.tell();
    }

    /// Tells what was not told yet if it is time; how many.
    fn tell(&mut self) -> u64 {
        let early = self.told.is_some_and(|told| told.elapsed() < Self::PAUSE);
        if early || self.untold == 0 {
            return 0;
        }
        let dropped = std::mem::take(&mut self.untold);
        self.told = Some(Instant::now());
        let filter = toolgate_core::escape(&self.filter);
        warn!(%filter, dropped, "MQTT messages come faster than they are read; some were dropped");
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
    async fn a_message_reaches_those_whose_filter_it_matches() {
        let mut subscribers = Subscribers::default();
        let mut readers = Vec::new();
        for filter in ["zwave/#", "zwave/+/on", "zwave/a/on", "other", "#"] {
            let (feed, reader) = Feed::new(10);
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
    async fn a_broker_that_names_the_filter_is_believed() {
        let mut subscribers = Subscribers::default();
        let (feed, mut all) = Feed::new(10);
        subscribers.add("#", feed);
        let (feed, mut one) = Feed::new(10);
        let id = subscribers.add("a/+", feed);
        subscribers.deliver(packet("a/b").with_subscription_identifier(id));
        assert!(futures::FutureExt::now_or_never(all.next()).is_none());
        assert!(one.next().await.is_some());
    }

    #[test]
    fn a_filter_that_nobody_reads_any_more_is_given_back() {
        let mut subscribers = Subscribers::default();
        let (feed, one) = Feed::new(10);
        subscribers.add("a", feed);
        let (feed, two) = Feed::new(10);
        subscribers.add("a", feed);
        drop(one);
        assert!(subscribers.sweep().is_empty());
        drop(two);
        assert_eq!(subscribers.sweep(), ["a"]);
        assert_eq!(subscribers.filters().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn drops_are_told_once_a_minute_and_none_is_forgotten() {
        let mut drops = Drops::default();
        drops.count("a");
        assert_eq!(drops.untold, 0);
        for _ in 0..1000 {
            drops.count("a");
        }
        assert_eq!((drops.tell(), drops.untold), (0, 1000));
        tokio::time::advance(Drops::PAUSE).await;
        assert_eq!(drops.tell(), 1000);
        assert_eq!(drops.tell(), 0);
    }
}
