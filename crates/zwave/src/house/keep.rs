//! What goes on in the background.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;
use toolgate_mqtt::{Message, State as Link, Subscription};
use toolgate_net::{backoff, jittered};

use super::Inner;
use crate::api::Function;
use crate::node::{Bounded, DescribedNode, MAX_NODES};
use crate::state::Now;
use crate::topic::About;

/// Events come in flocks when a gateway starts: one question is enough for all of them.
const GATHER: Duration = Duration::from_secs(2);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(8);

/// Takes every message, until there is no connection any more.
pub(crate) async fn listen(
    inner: Arc<Inner>,
    mut subscription: Subscription,
    mut link: watch::Receiver<Link>,
) {
    inner.take_link(link.borrow_and_update().clone());
    loop {
        tokio::select! {
            message = subscription.next() => match message {
                Some(message) => inner.take(&message),
                None => break,
            },
            changed = link.changed() => match changed {
                Ok(()) => inner.take_link(link.borrow_and_update().clone()),
                Err(_) => break,
            },
        }
    }
    let reason = "The connection to the MQTT broker was closed.".to_owned();
    inner.take_link(Link::Offline { reason });
}

/// Asks for the nodes as often as it is needed.
pub(crate) async fn ask_for_nodes(inner: Arc<Inner>) {
    let mut failures = 0;
    loop {
        let (due, first) = {
            let state = inner.state();
            (
                state.ask_again && state.is_current(),
                state.answered.is_none(),
            )
        };
        if !due {
            inner.wake.notified().await;
            continue;
        }
        if !first {
            sleep(GATHER).await;
        }
        inner.state().ask_again = false;
        let answer = inner
            .ask::<Bounded<DescribedNode, { MAX_NODES + 100 }>>(Function::GetNodes, &json!([]))
            .await;
        match answer {
            Ok(nodes) => {
                inner.state().take_nodes(nodes.unwrap_or_default().0);
                failures = 0;
                inner.changed();
            }
            Err(error) => {
                tracing::warn!(%error, "the nodes of the Z-Wave gateway are not known");
                inner.state().ask_again = true;
                let delay = backoff(FIRST_RETRY, failures, LAST_RETRY);
                sleep(jittered(delay, 0.75..1.25)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

impl Inner {
    fn take(&self, message: &Message) {
        let reply = {
            let mut state = self.state();
            let topics = state.topics.clone();
            match topics.about(&message.topic) {
                About::Set | About::Other => return,
                // Answers are never kept by a broker.
                About::Reply { .. } if message.retained => return,
                About::Reply { gateway, function } => {
                    state.ask_again |= state.gateways.heard(gateway);
                    Some(function)
                }
                _ => {
                    state.take(message, Now::read());
                    None
                }
            }
        };
        if let Some(function) = reply {
            self.questions().take(function, &message.payload);
        }
        self.changed();
    }

    fn take_link(&self, link: Link) {
        self.state().take_link(link);
        self.changed();
    }

    pub(super) fn changed(&self) {
        if self.state().ask_again {
            self.wake.notify_one();
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}
