//! Keeps a connection: makes it, and makes it again.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tracing::{info, warn};

use super::{
    Command,
    backoff::Backoff,
    dial,
    session::{Ended, Session},
    subscribers::Subscribers,
    trouble::{FIGHT, Trouble},
};
use crate::{ClientId, PublishError, Settings, State};

/// Keeps a connection: makes it, and makes it again.
pub(super) struct Keeper {
    settings: Arc<Settings>,
    commands: mpsc::UnboundedReceiver<Command>,
    state: watch::Sender<State>,
    subscribers: Subscribers,
    id: String,
    /// When the broker ended a connection and was still there: it did not go away, it did not want us.
    losses: VecDeque<Instant>,
}

/// Losses further apart are no fight.
const FIGHT_TIME: Duration = Duration::from_secs(120);

impl Keeper {
    pub(super) fn new(
        mut settings: Settings,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> (Self, watch::Receiver<State>) {
        let (least, most) = (Duration::from_secs(1), Duration::from_secs(3600));
        settings.keep_alive = settings.keep_alive.clamp(least, most);
        let reason = Trouble::Begun.words(&settings);
        let (state, watcher) = watch::channel(State::Offline { reason });
        let keeper = Self {
            id: name(&settings.client_id),
            settings: Arc::new(settings),
            commands,
            state,
            subscribers: Subscribers::default(),
            losses: VecDeque::new(),
        };
        (keeper, watcher)
    }

    /// Until nobody needs it any more.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::default();
        let mut v3 = false;
        loop {
            let settings = self.settings.clone();
            let id = self.id.clone();
            let Some(dialled) = self.answering(dial::dial(&settings, &id, &mut v3)).await else {
                return;
            };
            let trouble = match dialled {
                Ok(link) => {
                    backoff.connected();
                    info!(broker = %settings.address(), "connected to the MQTT broker");
                    match self.converse(link).await {
                        Ended::Closed => return,
                        Ended::Broken(trouble) => trouble,
                    }
                }
                Err(trouble) => {
                    self.losses.clear();
                    self.offline(&trouble);
                    trouble
                }
            };
            let pause = backoff.next(&trouble);
            if self.answering(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn converse(&mut self, link: dial::Link) -> Ended {
        let (mut session, reader) = Session::new(link, &mut self.subscribers);
        self.state.send_replace(State::Online);
        match session.run(reader, &mut self.commands).await {
            Ended::Closed => Ended::Closed,
            Ended::Broken(trouble) => {
                let trouble = fought(&mut self.losses, trouble);
                let reason = trouble.words(&self.settings);
                tell(&self.state, &reason);
                session.settle(&reason);
                if matches!(trouble, Trouble::TakenOver(_) | Trouble::Dropped(_))
                    && matches!(self.settings.client_id, ClientId::Prefix(_))
                {
                    // The name was free to choose, so nobody has to fight for it.
                    self.id = name(&self.settings.client_id);
                }
                Ended::Broken(trouble)
            }
        }
    }

    fn offline(&self, trouble: &Trouble) {
        tell(&self.state, &trouble.words(&self.settings));
    }

    /// Waits for something, and meanwhile answers that nothing can be sent. `None` if nobody needs the connection any more.
    async fn answering<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return Some(done),
                command = self.commands.recv() => match command? {
                    Command::Subscribe(filter, feed) => {
                        self.subscribers.add(&filter, feed);
                    }
                    Command::Publish(mut publish) => {
                        let reason = match &*self.state.borrow() {
                            State::Offline { reason } => reason.clone(),
                            State::Online => Trouble::Lost.words(&self.settings),
                        };
                        publish.answer(Err(PublishError::Offline { reason }));
                    }
                },
            }
        }
    }
}

/// Told once: a broker that is away for a night fills no log.
fn tell(state: &watch::Sender<State>, reason: &str) {
    let changed = state.send_if_modified(|state| {
        let new = State::Offline {
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

/// Counts how often it ended like this lately. Not every broker says why.
fn fought(losses: &mut VecDeque<Instant>, trouble: Trouble) -> Trouble {
    if !matches!(trouble, Trouble::TakenOver(_) | Trouble::Lost) {
        return trouble;
    }
    losses.push_back(Instant::now());
    while losses
        .front()
        .is_some_and(|loss| loss.elapsed() > FIGHT_TIME)
    {
        losses.pop_front();
    }
    let times = u32::try_from(losses.len()).unwrap_or(u32::MAX);
    match trouble {
        Trouble::TakenOver(_) => Trouble::TakenOver(times),
        _ if times >= FIGHT => Trouble::Dropped(times),
        other => other,
    }
}

/// At most 23 letters and digits of a random name: every broker has to take that.
fn name(id: &ClientId) -> String {
    match id {
        ClientId::Exactly(name) => name.clone(),
        ClientId::Prefix(prefix) => {
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
    fn two_clients_never_have_the_same_name_unless_told_so() {
        let prefix = ClientId::Prefix("house".to_owned());
        let (one, two) = (name(&prefix), name(&prefix));
        assert!(one.starts_with("house-") && one != two, "{one} {two}");
        assert_eq!(name(&ClientId::Exactly("lamp".to_owned())), "lamp");
    }

    #[tokio::test(start_paused = true)]
    async fn losses_in_quick_succession_are_a_fight_and_old_ones_are_forgotten() {
        let mut losses = VecDeque::new();
        for times in 1..=4 {
            let trouble = fought(&mut losses, Trouble::TakenOver(1));
            assert_eq!(trouble, Trouble::TakenOver(times));
        }
        assert_eq!(fought(&mut losses, Trouble::Busy), Trouble::Busy);
        tokio::time::advance(FIGHT_TIME + Duration::from_secs(1)).await;
        for expected in [Trouble::Lost, Trouble::Lost, Trouble::Dropped(3)] {
            assert_eq!(fought(&mut losses, Trouble::Lost), expected);
        }
    }
}
