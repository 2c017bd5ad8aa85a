//! What the gateway looks for at the start, side by side: each part is timed and told of.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use toolgate_models::{ChooseError, Chosen};
use toolgate_mqtt::{Client, Mqtt};
use tracing::warn;

use super::hub::Hub;
use super::listening::comes_again;
use super::outlet::{Outlet, Voice};
use super::{FindModel, GatewayError, Reach, words};
use crate::hear::{self, Input, Opened};
use crate::speak::Speaker;
use crate::turn::{BackgroundTranscriber, Engines};
use crate::wyoming::{Address, Connection, Info, describe};
use crate::{EngineError, Event, Role, Watcher};

/// What a program that speaks is tried with. Nobody hears it.
const TRIED: &str = "Hello.";
/// How long an engine has to say that it is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at an engine that is there, and at one that is not.
const LOOKS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(2)];
/// How long a file waits for the engine that is to hear it.
const FILE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a server of tools must be away, or back, for that to be worth a word.
const LASTS: Duration = Duration::from_secs(3);
/// Between two looks for a model that is away.
const MODEL_AGAIN: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub(super) struct Finder {
    pub(super) hub: Arc<Hub>,
    pub(super) engines: Arc<Engines>,
}

impl Finder {
    /// One part of the start; `problem` is what its result has to say against itself.
    async fn phase<T>(
        &self,
        name: &str,
        work: impl Future<Output = T>,
        problem: impl Fn(&T) -> Option<String>,
    ) -> T {
        let begun = Instant::now();
        let done = work.await;
        let problem = problem(&done);
        self.hub.event(Event::Phase {
            name,
            took: begun.elapsed(),
            problem: problem.as_deref(),
        });
        done
    }

    pub(super) async fn tools(self, mut reach: watch::Receiver<Reach>) -> Option<String> {
        let settled = async {
            // If nobody tells any more, nothing is known to be missing.
            let settled = reach.wait_for(|reach| *reach != Reach::Starting).await;
            settled.ok().and_then(|reach| reach.missing())
        };
        let problem = |missing: &Option<String>| Some(format!("missing: {}", missing.as_ref()?));
        let missing = self.phase("tools", settled, problem).await;
        self.tell_of_tools(missing.as_deref());
        missing
    }

    fn tell_of_tools(&self, missing: Option<&str>) {
        self.hub.event(Event::Tools { missing });
    }

    /// Tells of servers of tools that go and come back after the start; in words too, to whoever is in the room, once it has
    /// lasted a moment. `said` is what was said to be missing.
    pub(super) async fn follow_tools(
        self,
        mut reach: watch::Receiver<Reach>,
        mut said: Option<String>,
        speaker: Option<Speaker>,
    ) {
        let mut told = said.clone();
        loop {
            let missing = reach.borrow_and_update().missing();
            if missing != told {
                self.tell_of_tools(missing.as_deref());
                told.clone_from(&missing);
            }
            let changed = match missing == said {
                true => Ok(reach.changed().await),
                false => timeout(LASTS, reach.changed()).await,
            };
            match changed {
                Ok(Ok(())) => continue,
                // Nobody tells any more; what is there to be said still is.
                Ok(Err(_)) if missing == said => return,
                _ => {}
            }
            if let (Some(speaker), Some(words)) =
                (&speaker, words::change(said.as_deref(), missing.as_deref()))
            {
                self.engines.spoke(&speaker.announce(&words).await);
            }
            said = missing;
        }
    }

    /// Tells once whether the broker is there. Nobody waits for that.
    pub(super) async fn broker(self, client: Client) {
        let mut state = client.state();
        let settled = async {
            // It begins offline, without having tried.
            let _is_open = state.changed().await.is_ok();
            state.borrow().clone()
        };
        let problem = |state: &toolgate_mqtt::State| match state {
            toolgate_mqtt::State::Offline { reason } => Some(reason.clone()),
            _ => None,
        };
        self.phase("MQTT", settled, problem).await;
    }

    pub(super) async fn voice(
        self,
        voice: Arc<Voice>,
        outlet: Option<Arc<Outlet>>,
        at: Option<Address>,
    ) {
        // A satellite is a loudspeaker itself.
        if let Some(outlet) = outlet {
            let found = async { outlet.find().err() };
            self.part(Role::Loudspeaker, found).await;
        }
        let found = async {
            match (voice.find(), at) {
                (Err(error), _) => Some(error),
                (Ok(_), Some(address)) => self.look(Role::Speech, &address).await.err(),
                // That a program is not there, or has no such voice, is not found out otherwise.
                (Ok(engine), None) => engine.synthesize(TRIED).await.err(),
            }
        };
        self.part(Role::Speech, found).await;
    }

    async fn part(&self, role: Role, looking: impl Future<Output = Option<EngineError>>) {
        let looking = async {
            let problem = looking.await?.to_string();
            self.engines.lost(role, &problem);
            Some(problem)
        };
        self.phase(&role.to_string(), looking, Option::clone).await;
    }

    pub(super) async fn engine(self, role: Role, address: Address) {
        let found = async { self.look(role, &address).await.err() };
        self.part(role, found).await;
    }

    /// What does not come again must be there; a microphone may come later.
    pub(super) async fn input(&self, input: &Input) -> Result<Option<Opened>, GatewayError> {
        let opening = async { proven(input, hear::open(input).await?).await };
        let name = Role::Microphone.to_string();
        let opened = self.phase(&name, opening, |opened| {
            opened.as_ref().err().map(ToString::to_string)
        });
        match opened.await {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if !comes_again(input) => Err(error.into()),
            Err(error) => {
                self.engines.lost(Role::Microphone, &error.to_string());
                Ok(None)
            }
        }
    }

    /// The model; nothing if it is away.
    pub(super) async fn model(&self, find: &FindModel) -> Result<Option<Chosen>, GatewayError> {
        let found = self.phase("model", find(), |found| {
            found.as_ref().err().map(ToString::to_string)
        });
        match found.await {
            Ok(chosen) => Ok(Some(chosen)),
            Err(ChooseError::Settings(text)) => Err(GatewayError::Settings(text)),
            Err(error) => {
                self.engines.lost(Role::Model, &error.to_string());
                Ok(None)
            }
        }
    }

    pub(super) async fn look_after_model(
        self,
        find: FindModel,
        transcriber: Weak<BackgroundTranscriber>,
    ) {
        loop {
            sleep(MODEL_AGAIN).await;
            if !self.engines.all_lost().contains(&Role::Model) {
                continue;
            }
            if let Ok(chosen) = find().await
                && let Some(transcriber) = transcriber.upgrade()
                && transcriber.use_model(chosen)
            {
                self.engines.worked(Role::Model);
            }
        }
    }

    /// Looks whether an engine takes connections, and tells when that changes. While it is there, a connection is all that is
    /// asked for: one that is at work may take long to say more.
    pub(super) async fn look_after(self, role: Role, address: Address) {
        loop {
            let is_lost = self.engines.all_lost().contains(&role);
            sleep(LOOKS[usize::from(is_lost)]).await;
            if is_lost {
                drop(self.look(role, &address).await);
            } else if let Err(error) = Connection::connect(&address, PATIENCE).await {
                self.engines.lost(role, &error.to_string());
            }
        }
    }

    /// Waits a while for an engine that may have been started just now.
    pub(super) async fn transcription_is_there(&self) {
        let waiting = async {
            while self.engines.all_lost().contains(&Role::Transcription) {
                sleep(LOOKS[1] / 4).await;
            }
        };
        if timeout(FILE_PATIENCE, waiting).await.is_err() {
            warn!("transcription is still not there");
        }
    }

    async fn look(&self, role: Role, address: &Address) -> Result<(), EngineError> {
        match describe(address, PATIENCE).await {
            Ok(info) if offers(&info, role) => {
                self.engines.worked(role);
                Ok(())
            }
            Ok(_) => {
                let error = EngineError::protocol(
                    address.to_string(),
                    format!("it is there, but offers no {role}"),
                );
                self.engines.lost(role, &error.to_string());
                Err(error)
            }
            Err(error) => {
                self.engines.lost(role, &error.to_string());
                Err(error)
            }
        }
    }
}

/// A recorder without a sound card starts well, and ends: only sound is proof. One that takes its time has it.
async fn proven(input: &Input, mut opened: Opened) -> Result<Opened, EngineError> {
    if let Input::Program(_) | Input::Command(_) = input
        && let Ok(first) = timeout(PATIENCE, opened.source.next()).await
    {
        opened.source = hear::begun(first?, opened.source);
    }
    Ok(opened)
}

fn offers(info: &Info, role: Role) -> bool {
    match role {
        Role::Transcription => !info.asr.is_empty(),
        Role::Speech => !info.tts.is_empty(),
        Role::Wake => !info.wake.is_empty(),
        _ => true,
    }
}
