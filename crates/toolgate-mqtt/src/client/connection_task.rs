//! The task that keeps a client connected.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tracing::{info, warn};

use super::{
    ClientCommand,
    backoff::ReconnectDelay,
    connect,
    link_error::{CONFLICT_COUNT, LinkError},
    session::{BrokerSession, BrokerSessionEnd},
    subscriptions::SubscriptionTable,
};
use crate::{MqttClientId, MqttClientSettings, MqttState, PublishError};

pub(super) struct ConnectionTask {
    settings: Arc<MqttClientSettings>,
    commands: mpsc::UnboundedReceiver<ClientCommand>,
    state: watch::Sender<MqttState>,
    subscribers: SubscriptionTable,
    id: String,
    /// When connections ended recently although the broker was reachable, a sign of two clients
    /// with the same id.
    losses: VecDeque<Instant>,
}

// Losses further apart don't count as a conflict.
const CONFLICT_WINDOW: Duration = Duration::from_secs(120);

impl ConnectionTask {
    pub(super) fn new(
        mut settings: MqttClientSettings,
        commands: mpsc::UnboundedReceiver<ClientCommand>,
    ) -> (Self, watch::Receiver<MqttState>) {
        let (least, most) = (Duration::from_secs(1), Duration::from_secs(3600));
        settings.keep_alive = settings.keep_alive.clamp(least, most);
        let reason = LinkError::Connecting.describe(&settings);
        let (state, watcher) = watch::channel(MqttState::Offline { reason });
        let task = Self {
            id: client_name(&settings.client_id),
            settings: Arc::new(settings),
            commands,
            state,
            subscribers: SubscriptionTable::default(),
            losses: VecDeque::new(),
        };
        (task, watcher)
    }

    pub(super) async fn run(mut self) {
        let mut backoff = ReconnectDelay::default();
        let mut v3 = false;
        loop {
            let settings = self.settings.clone();
            let id = self.id.clone();
            let Some(connected) = self
                .wait_for(connect::connect(&settings, &id, &mut v3))
                .await
            else {
                return;
            };
            let link_error = match connected {
                Ok(link) => {
                    backoff.connected();
                    info!(broker = %settings.address(), "connected to the MQTT broker");
                    match self.run_session(link).await {
                        BrokerSessionEnd::Closed => return,
                        BrokerSessionEnd::Broken(link_error) => link_error,
                    }
                }
                Err(link_error) => {
                    self.losses.clear();
                    self.report_offline(&link_error);
                    link_error
                }
            };
            let pause = backoff.next(&link_error);
            if self.wait_for(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn run_session(&mut self, link: connect::BrokerLink) -> BrokerSessionEnd {
        let (mut session, reader) = BrokerSession::new(link, &mut self.subscribers);
        self.state.send_replace(MqttState::Online);
        match session.run(reader, &mut self.commands).await {
            BrokerSessionEnd::Closed => BrokerSessionEnd::Closed,
            BrokerSessionEnd::Broken(link_error) => {
                let link_error = count_losses(&mut self.losses, link_error);
                let reason = link_error.describe(&self.settings);
                set_offline(&self.state, &reason);
                session.resolve_unconfirmed(&reason);
                if matches!(link_error, LinkError::TakenOver(_) | LinkError::Dropped(_))
                    && matches!(self.settings.client_id, MqttClientId::Prefix(_))
                {
                    // The name is random, so choosing another one ends the conflict.
                    self.id = client_name(&self.settings.client_id);
                }
                BrokerSessionEnd::Broken(link_error)
            }
        }
    }

    fn report_offline(&self, link_error: &LinkError) {
        set_offline(&self.state, &link_error.describe(&self.settings));
    }

    /// Awaits `something` and meanwhile rejects publishes. `None` if all clients are dropped.
    async fn wait_for<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return Some(done),
                command = self.commands.recv() => match command? {
                    ClientCommand::Subscribe(filter, feed) => {
                        self.subscribers.add(&filter, feed);
                    }
                    ClientCommand::Publish(mut publish) => {
                        let reason = match &*self.state.borrow() {
                            MqttState::Offline { reason } => reason.clone(),
                            MqttState::Online => LinkError::Lost.describe(&self.settings),
                        };
                        publish.answer(Err(PublishError::Offline { reason }));
                    }
                },
            }
        }
    }
}

// Logged once per reason: a broker that is away for a night must not fill the log.
fn set_offline(state: &watch::Sender<MqttState>, reason: &str) {
    let changed = state.send_if_modified(|state| {
        let new = MqttState::Offline {
            reason: reason.to_owned(),
        };
        let changed = *state != new;
        *state = new;
        changed
    });
    if changed {
        warn!("{reason}");
    }
}

/// Counts recent losses. Not every broker says that another client took over.
fn count_losses(losses: &mut VecDeque<Instant>, link_error: LinkError) -> LinkError {
    if !matches!(link_error, LinkError::TakenOver(_) | LinkError::Lost) {
        return link_error;
    }
    losses.push_back(Instant::now());
    while losses
        .front()
        .is_some_and(|loss| loss.elapsed() > CONFLICT_WINDOW)
    {
        losses.pop_front();
    }
    let times = u32::try_from(losses.len()).unwrap_or(u32::MAX);
    match link_error {
        LinkError::TakenOver(_) => LinkError::TakenOver(times),
        _ if times >= CONFLICT_COUNT => LinkError::Dropped(times),
        other => other,
    }
}

// Short and simple, because brokers need only accept ids of up to 23 letters and digits.
fn client_name(id: &MqttClientId) -> String {
    match id {
        MqttClientId::Exactly(name) => name.clone(),
        MqttClientId::Prefix(prefix) => {
            let random: String = std::iter::repeat_with(fastrand::alphanumeric)
                .take(10)
                .collect();
            format!("{prefix}-{random}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_ids_differ_unless_they_are_set() {
        let prefix = MqttClientId::Prefix("house".to_owned());
        let (one, two) = (client_name(&prefix), client_name(&prefix));
        assert!(one.starts_with("house-") && one != two, "{one} {two}");
        assert_eq!(
            client_name(&MqttClientId::Exactly("lamp".to_owned())),
            "lamp"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn losses_in_quick_succession_are_a_conflict() {
        let mut losses = VecDeque::new();
        for times in 1..=4 {
            let link_error = count_losses(&mut losses, LinkError::TakenOver(1));
            assert_eq!(link_error, LinkError::TakenOver(times));
        }
        assert_eq!(count_losses(&mut losses, LinkError::Busy), LinkError::Busy);
        tokio::time::advance(CONFLICT_WINDOW + Duration::from_secs(1)).await;
        for expected in [LinkError::Lost, LinkError::Lost, LinkError::Dropped(3)] {
            assert_eq!(count_losses(&mut losses, LinkError::Lost), expected);
        }
    }
}
