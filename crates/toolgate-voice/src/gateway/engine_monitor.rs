//! Finds the engines at startup, side by side, and checks on them later. Each part
//! is timed and reported.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use toolgate_models::{ConnectedModel, ModelSelectionError};
use toolgate_mqtt::{Mqtt, MqttClient};
use tracing::warn;

use super::capture_loop::can_reopen;
use super::event_hub::EventHub;
use super::lazy_engines::{LazyOutput, LazySynthesizer};
use super::{ModelFinder, ToolServerStatus, VoiceGatewayError, announcements};
use crate::capture::{self, AudioInput, OpenInput};
use crate::speak::Speaker;
use crate::turn::{BackgroundTranscriber, EngineHealth};
use crate::wyoming::{ServiceInfo, WyomingAddress, WyomingConnection, describe};
use crate::{EngineError, EngineRole, VoiceEvent, VoiceObserver};

const PROBE_TEXT: &str = "Hello.";
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks of a working engine, and of a lost one.
const CHECK_INTERVALS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(2)];
const FILE_START_TIMEOUT: Duration = Duration::from_secs(30);
// A server that only restarts is not worth an announcement.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(3);
const MODEL_RETRY_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub(super) struct EngineMonitor {
    pub(super) hub: Arc<EventHub>,
    pub(super) engines: Arc<EngineHealth>,
}

impl EngineMonitor {
    /// Times one part of the startup and reports it. `problem` extracts what
    /// failed from the result.
    async fn timed_phase<T>(
        &self,
        name: &str,
        work: impl Future<Output = T>,
        problem: impl Fn(&T) -> Option<String>,
    ) -> T {
        let begun = Instant::now();
        let done = work.await;
        let problem = problem(&done);
        self.hub.event(VoiceEvent::Phase {
            name,
            took: begun.elapsed(),
            problem: problem.as_deref(),
        });
        done
    }

    pub(super) async fn await_tools(
        self,
        mut status: watch::Receiver<ToolServerStatus>,
    ) -> Option<String> {
        let settled = async {
            let is_settled = |status: &ToolServerStatus| *status != ToolServerStatus::Starting;
            // If the sender is gone, nothing is known to be missing.
            status.wait_for(is_settled).await.ok()?.missing()
        };
        let problem = |missing: &Option<String>| Some(format!("missing: {}", missing.as_ref()?));
        let missing = self.timed_phase("tools", settled, problem).await;
        self.report_tools(missing.as_deref());
        missing
    }

    fn report_tools(&self, missing: Option<&str>) {
        self.hub.event(VoiceEvent::Tools { missing });
    }

    /// Reports tool servers that go and come back after the startup. Also announces it once it has
    /// lasted a moment. `announced` is what was last announced as missing.
    pub(super) async fn follow_tools(
        self,
        mut status: watch::Receiver<ToolServerStatus>,
        mut announced: Option<String>,
        speaker: Option<Speaker>,
    ) {
        let mut reported = announced.clone();
        loop {
            let missing = status.borrow_and_update().missing();
            if missing != reported {
                self.report_tools(missing.as_deref());
                reported.clone_from(&missing);
            }
            let changed = match missing == announced {
                true => Ok(status.changed().await),
                false => timeout(ANNOUNCE_AFTER, status.changed()).await,
            };
            match changed {
                Ok(Ok(())) => continue,
                // The sender is gone and everything has been announced.
                Ok(Err(_)) if missing == announced => return,
                _ => {}
            }
            let words = announcements::change_sentence(announced.as_deref(), missing.as_deref());
            if let (Some(speaker), Some(words)) = (&speaker, words) {
                self.engines.record_speech(&speaker.announce(&words).await);
            }
            announced = missing;
        }
    }

    // Reported once, because nothing waits for the broker.
    pub(super) async fn check_broker(self, client: MqttClient) {
        let mut state = client.state();
        let settled = async {
            // The first state is offline, before any attempt.
            let _is_open = state.changed().await.is_ok();
            state.borrow().clone()
        };
        let problem = |state: &toolgate_mqtt::MqttState| match state {
            toolgate_mqtt::MqttState::Offline { reason } => Some(reason.clone()),
            _ => None,
        };
        self.timed_phase("MQTT", settled, problem).await;
    }

    pub(super) async fn check_voice(
        self,
        voice: Arc<LazySynthesizer>,
        output: Option<Arc<LazyOutput>>,
        at: Option<WyomingAddress>,
    ) {
        // A satellite is its own loudspeaker.
        if let Some(output) = output {
            let found = async { output.find().err() };
            self.check_part(EngineRole::Loudspeaker, found).await;
        }
        let found = async {
            match (voice.find(), at) {
                (Err(error), _) => Some(error),
                (Ok(_), Some(address)) => self.probe(EngineRole::Speech, &address).await.err(),
                // Only trying it shows whether the program is missing or lacks the voice.
                (Ok(engine), None) => engine.synthesize(PROBE_TEXT).await.err(),
            }
        };
        self.check_part(EngineRole::Speech, found).await;
    }

    async fn check_part(&self, role: EngineRole, check: impl Future<Output = Option<EngineError>>) {
        let check = async {
            let problem = check.await?.to_string();
            self.engines.mark_lost(role, &problem);
            Some(problem)
        };
        self.timed_phase(&role.to_string(), check, Option::clone)
            .await;
    }

    pub(super) async fn check_engine(self, role: EngineRole, address: WyomingAddress) {
        let found = async { self.probe(role, &address).await.err() };
        self.check_part(role, found).await;
    }

    /// Opens the input. One that can't be reopened must work now; a microphone may come later.
    pub(super) async fn open_input(
        &self,
        input: &AudioInput,
    ) -> Result<Option<OpenInput>, VoiceGatewayError> {
        let opening = async { wait_for_first_sound(input, capture::open(input).await?).await };
        let name = EngineRole::Microphone.to_string();
        let opened = self.timed_phase(&name, opening, |opened| {
            opened.as_ref().err().map(ToString::to_string)
        });
        match opened.await {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if !can_reopen(input) => Err(error.into()),
            Err(error) => {
                self.engines.mark_lost(EngineRole::Microphone, &error);
                Ok(None)
            }
        }
    }

    pub(super) async fn find_model(
        &self,
        find: &ModelFinder,
    ) -> Result<Option<ConnectedModel>, VoiceGatewayError> {
        let found = self.timed_phase("model", find(), |found| {
            found.as_ref().err().map(ToString::to_string)
        });
        match found.await {
            Ok(chosen) => Ok(Some(chosen)),
            Err(ModelSelectionError::Settings(text)) => Err(VoiceGatewayError::Settings(text)),
            Err(error) => {
                self.engines.mark_lost(EngineRole::Model, &error);
                Ok(None)
            }
        }
    }

    pub(super) async fn monitor_model(
        self,
        find: ModelFinder,
        transcriber: Weak<BackgroundTranscriber>,
    ) {
        loop {
            sleep(MODEL_RETRY_INTERVAL).await;
            if !self.is_lost(EngineRole::Model) {
                continue;
            }
            if let Ok(chosen) = find().await
                && let Some(transcriber) = transcriber.upgrade()
                && transcriber.use_model(chosen)
            {
                self.engines.mark_working(EngineRole::Model);
            }
        }
    }

    /// Checks whether an engine accepts connections, and reports changes. While it works,
    /// connecting is enough: a busy engine may take long to answer.
    pub(super) async fn monitor_engine(self, role: EngineRole, address: WyomingAddress) {
        loop {
            let is_lost = self.is_lost(role);
            sleep(CHECK_INTERVALS[usize::from(is_lost)]).await;
            if is_lost {
                drop(self.probe(role, &address).await);
            } else if let Err(error) = WyomingConnection::connect(&address, PROBE_TIMEOUT).await {
                self.engines.mark_lost(role, &error);
            }
        }
    }

    // The engine may have been started a moment ago, and a file can wait.
    pub(super) async fn wait_for_transcription(&self) {
        let waiting = async {
            while self.is_lost(EngineRole::Transcription) {
                sleep(CHECK_INTERVALS[1] / 4).await;
            }
        };
        if timeout(FILE_START_TIMEOUT, waiting).await.is_err() {
            warn!("speech-to-text is still unreachable");
        }
    }

    fn is_lost(&self, role: EngineRole) -> bool {
        self.engines.lost_roles().contains(&role)
    }

    async fn probe(&self, role: EngineRole, address: &WyomingAddress) -> Result<(), EngineError> {
        let error = match describe(address, PROBE_TIMEOUT).await {
            Ok(info) if offers(&info, role) => {
                self.engines.mark_working(role);
                return Ok(());
            }
            Ok(_) => EngineError::program(address, format!("offers no {role} service")),
            Err(error) => error,
        };
        self.engines.mark_lost(role, &error);
        Err(error)
    }
}

// A recorder without a sound card starts and then ends: only sound proves that it works. One that
// is slow to start is not an error.
async fn wait_for_first_sound(
    input: &AudioInput,
    mut opened: OpenInput,
) -> Result<OpenInput, EngineError> {
    if let AudioInput::Program(_) | AudioInput::Command(_) = input
        && let Ok(first) = timeout(PROBE_TIMEOUT, opened.source.next()).await
    {
        opened.first = Some(first?);
    }
    Ok(opened)
}

fn offers(info: &ServiceInfo, role: EngineRole) -> bool {
    match role {
        EngineRole::Transcription => !info.asr.is_empty(),
        EngineRole::Speech => !info.tts.is_empty(),
        EngineRole::Wake => !info.wake.is_empty(),
        _ => true,
    }
}
