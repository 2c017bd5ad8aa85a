//! Runs a gateway from start to shutdown.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_core::Origin;
use toolgate_models::{ConnectedModel, ModelSettings, SentenceRouter};
use tracing::info;

use super::addresses::EngineAddresses;
use super::capture_loop::{CaptureLoop, CaptureMemory, can_wait};
use super::engine_monitor::EngineMonitor;
use super::event_hub::{CaptureState, EventHub};
use super::lazy_engines::{LazyOutput, LazySynthesizer};
use super::offered_services::OfferedPorts;
use super::satellite_feedback::SatelliteFeedback;
use super::{
    ListenMode, ToolServerStatus, VoiceGatewayError, VoiceGatewayParts, VoiceSummary, announcements,
};
use crate::capture::{AudioInput, OpenInput};
use crate::mqtt_reporter::MqttReporter;
use crate::segment::WakeWordClient;
use crate::speak::{SignalTone, Speaker};
use crate::transcribe::WyomingAsr;
use crate::turn::{BackgroundTranscriber, EngineHealth, HANDLE, TranscriberParts};
use crate::{EngineRole, VoiceEvent, VoiceObserver, VoiceSettings};

/// Captures, answers and speaks until the input ends or `stop` is cancelled.
///
/// # Errors
/// If a setting is invalid, a service can't be offered, or an input can't be read and
/// can't be opened again.
pub async fn run(
    mut parts: VoiceGatewayParts,
    stop: CancellationToken,
) -> Result<VoiceSummary, VoiceGatewayError> {
    parts.settings.tones &= !is_silent_file(&parts.settings);
    parts.toolbox = parts.toolbox.with_origin(Origin::Voice);
    let addresses = EngineAddresses::from_settings(&parts.settings)?;
    // A child token, so that the end of the input stops the tasks but not the caller.
    let stop = stop.child_token();
    let satellite = Arc::<SatelliteFeedback>::default();
    let mut observers: Vec<Arc<dyn VoiceObserver>> =
        vec![Arc::clone(&parts.observer), satellite.clone()];
    let mqtt = parts.mqtt.take().map(|settings| {
        let forget_after = parts.settings.forget_after;
        let (reporter, client, publisher) =
            MqttReporter::open(settings, forget_after, stop.clone());
        observers.push(Arc::new(reporter));
        (client, publisher)
    });
    let hub = Arc::new(EventHub::new(observers));
    let engines = Arc::new(EngineHealth::new(hub.clone()));
    let monitor = EngineMonitor {
        hub: Arc::clone(&hub),
        engines,
    };
    let mut background = JoinSet::new();
    let publisher_task = mqtt.map(|(client, publisher)| {
        background.spawn(monitor.clone().check_broker(client));
        publisher
    });
    let voice = Arc::new(LazySynthesizer::new(&parts.settings));
    let output = Arc::new(LazyOutput::new(&parts.settings));
    let speaker = Speaker::new(voice.clone(), output.clone(), parts.volume.clone());
    let running = VoiceGatewayRun {
        parts,
        voice,
        output,
        speaker,
        satellite,
        addresses,
        monitor,
        stop: stop.clone(),
    };
    let done = running.run_until_stopped(&mut background).await;
    stop.cancel();
    // Wait for the goodbye, so that subscribers learn that the gateway is offline.
    if let Some(publisher) = publisher_task {
        drop(publisher.await);
    }
    background.shutdown().await;
    done?;
    Ok(summarize(&hub))
}

fn summarize(hub: &EventHub) -> VoiceSummary {
    let (turns, failed, dropped) = hub.counts();
    if dropped > 0 {
        let reasons = hub.drop_reasons().join(", ");
        info!(turns, failed, dropped, %reasons, "some utterances were not answered");
    }
    VoiceSummary {
        turns,
        failed,
        dropped,
    }
}

struct VoiceGatewayRun {
    parts: VoiceGatewayParts,
    voice: Arc<LazySynthesizer>,
    output: Arc<LazyOutput>,
    speaker: Speaker,
    satellite: Arc<SatelliteFeedback>,
    addresses: EngineAddresses,
    monitor: EngineMonitor,
    stop: CancellationToken,
}

impl VoiceGatewayRun {
    // Written requests only wait for the model, and spoken ones for the microphone too. Everything
    // else is looked for meanwhile.
    async fn run_until_stopped(
        mut self,
        background: &mut JoinSet<()>,
    ) -> Result<(), VoiceGatewayError> {
        let tool_status = self.parts.tools.clone();
        let ports = OfferedPorts::open(&self.addresses).await?;
        let (checks, tools) = (
            self.startup_checks(),
            self.monitor.clone().await_tools(tool_status.clone()),
        );
        let settled = async { tokio::join!(tools, join_all(checks)).0 };
        let settled = settled.boxed().shared();
        background.spawn(settled.clone().map(drop));
        let input = self.parts.input.take();
        let opening = async {
            match &input {
                Some(input) => self.monitor.open_input(input).await,
                None => Ok(None),
            }
        };
        let offering = async {
            let model = self.monitor.find_model(&self.parts.model).await?;
            let transcriber = self.start_transcriber(model, input.as_ref(), background)?;
            let engine = self.voice.clone();
            for (listener, service) in
                ports.into_services(Arc::clone(&transcriber), engine, &self.parts.settings)
            {
                background.spawn(listener.serve(service, self.stop.clone()));
            }
            Ok::<_, VoiceGatewayError>(transcriber)
        };
        let starting = async { tokio::try_join!(offering, opening) };
        let (transcriber, opened) = tokio::select! {
            started = starting => started?,
            () = self.stop.cancelled() => return Ok(()),
        };
        self.monitor_engines(input.is_some(), background);
        let input_waits = input.as_ref().is_some_and(can_wait);
        background.spawn(self.follow_tools(settled.clone(), tool_status, input_waits));
        let ready = self.announce_readiness(settled, input_waits);
        let listened = match &input {
            Some(input) => {
                self.listen(input, opened, &transcriber, ready, background)
                    .await
            }
            None => {
                self.monitor.hub.set_idle_state(CaptureState::Idle);
                background.spawn(ready);
                self.stop.cancelled().await;
                Ok(())
            }
        };
        transcriber.close().await;
        listened
    }

    // Starts listening while tools are still starting. Only a file waits for them.
    async fn listen(
        &mut self,
        input: &AudioInput,
        opened: Option<OpenInput>,
        transcriber: &BackgroundTranscriber,
        ready: BoxFuture<'static, ()>,
        background: &mut JoinSet<()>,
    ) -> Result<(), VoiceGatewayError> {
        if can_wait(input) {
            tokio::select! {
                () = ready => {}
                () = self.stop.cancelled() => return Ok(()),
            }
        } else {
            background.spawn(ready);
        }
        self.monitor.hub.set_idle_state(match self.parts.mode {
            ListenMode::Always => CaptureState::Listening,
            ListenMode::Wake | ListenMode::PushToTalk => CaptureState::Idle,
        });
        let wake = self.addresses.wake.clone();
        let mut capture_loop = CaptureLoop {
            settings: &self.parts.settings,
            input,
            mode: self.parts.mode,
            hub: Arc::clone(&self.monitor.hub),
            engines: Arc::clone(&self.monitor.engines),
            speaker: self.speaker.clone(),
            output: &self.output,
            satellite: &self.satellite,
            transcriber,
            wake: wake.map(|address| {
                WakeWordClient::start(address, self.parts.settings.wake_words.clone())
            }),
            keys: self.parts.keys.take(),
            memory: CaptureMemory::default(),
        };
        tokio::select! {
            ended = capture_loop.run(opened) => Ok(ended?),
            () = self.stop.cancelled() => Ok(()),
        }
    }

    fn startup_checks(&self) -> Vec<BoxFuture<'static, ()>> {
        let monitor = || self.monitor.clone();
        // Answers go back to a satellite unless the settings name an output.
        let is_satellite = matches!(self.parts.input, Some(AudioInput::Wyoming(_)));
        let goes_back = is_satellite && self.parts.settings.output.is_empty();
        let output = (!goes_back).then(|| Arc::clone(&self.output));
        let (voice, tts) = (Arc::clone(&self.voice), self.addresses.tts.clone());
        let mut checks = vec![monitor().check_voice(voice, output, tts).boxed()];
        if self.parts.input.is_some() {
            let asr = Some((EngineRole::Transcription, self.addresses.asr.clone()));
            let wake = self
                .addresses
                .wake
                .clone()
                .map(|wake| (EngineRole::Wake, wake));
            for (role, address) in asr.into_iter().chain(wake) {
                checks.push(monitor().check_engine(role, address).boxed());
            }
        }
        checks
    }

    fn start_transcriber(
        &self,
        model: Option<ConnectedModel>,
        input: Option<&AudioInput>,
        background: &mut JoinSet<()>,
    ) -> Result<Arc<BackgroundTranscriber>, VoiceGatewayError> {
        let engines = Arc::clone(&self.monitor.engines);
        let (router, model_settings) = match model {
            Some(chosen) => (Some(chosen.router), chosen.settings),
            None => (None, self.parts.model_settings.clone()),
        };
        let settings = &self.parts.settings;
        let address = self.addresses.asr.clone();
        let asr = WyomingAsr::new(address, &settings.language, settings.asr_timeout);
        let parts = TranscriberParts {
            router: self.with_fallback(router, &model_settings)?,
            model_settings,
            toolbox: self.parts.toolbox.clone(),
            transcribe: Arc::new(asr),
            speaker: self.speaker.clone(),
            observer: self.monitor.hub.clone(),
            journal: self.parts.journal.clone(),
        };
        let source = input.map_or(HANDLE, source_name);
        let transcriber = BackgroundTranscriber::start(engines, parts, settings, source);
        let transcriber = Arc::new(transcriber);
        if input.is_some_and(|input| !can_wait(input)) {
            self.parts.approvals.connect(&transcriber);
        }
        let (find, monitor) = (Arc::clone(&self.parts.model), self.monitor.clone());
        let weak = Arc::downgrade(&transcriber);
        background.spawn(monitor.monitor_model(find, weak));
        Ok(transcriber)
    }

    // A spoken command must work even while the model is away, whether or not
    // somebody chose the model.
    fn with_fallback(
        &self,
        router: Option<SentenceRouter>,
        settings: &ModelSettings,
    ) -> Result<SentenceRouter, VoiceGatewayError> {
        let sentences = match router.as_ref().and_then(SentenceRouter::sentences) {
            Some(sentences) => Arc::clone(sentences),
            None => toolgate_models::load_sentences(settings, &self.parts.toolbox)
                .map_err(|error| VoiceGatewayError::Settings(error.to_string()))?,
        };
        Ok(match router {
            Some(router) => router.sentences_last(sentences),
            None => SentenceRouter::sentences_only(sentences),
        })
    }

    fn monitor_engines(&self, has_input: bool, background: &mut JoinSet<()>) {
        let asr = has_input.then(|| self.addresses.asr.clone());
        let engines = [
            (EngineRole::Transcription, asr),
            (EngineRole::Speech, self.addresses.tts.clone()),
        ];
        for (role, address) in engines {
            if let Some(address) = address {
                background.spawn(self.monitor.clone().monitor_engine(role, address));
            }
        }
    }

    fn follow_tools(
        &self,
        settled: impl Future<Output = Option<String>> + Send + 'static,
        tool_status: watch::Receiver<ToolServerStatus>,
        input_waits: bool,
    ) -> BoxFuture<'static, ()> {
        let monitor = self.monitor.clone();
        let speaker = (!input_waits).then(|| self.speaker.clone());
        async move {
            monitor
                .follow_tools(tool_status, settled.await, speaker)
                .await;
        }
        .boxed()
    }

    fn announce_readiness(
        &self,
        settled: impl Future<Output = Option<String>> + Send + 'static,
        input_waits: bool,
    ) -> BoxFuture<'static, ()> {
        let monitor = self.monitor.clone();
        let (toolbox, speaker) = (self.parts.toolbox.clone(), self.speaker.clone());
        let settings = &self.parts.settings;
        let (welcome, has_tones) = (settings.welcome.clone(), settings.tones);
        let announcement = async move {
            let missing = settled.await;
            if input_waits {
                monitor.wait_for_transcription().await;
            }
            let lost = monitor.engines.lost_roles();
            let degraded = announcements::degraded_sentence(missing.as_deref(), &lost, &toolbox);
            monitor.hub.event(VoiceEvent::Ready {
                degraded: degraded.as_deref(),
            });
            let text = degraded.unwrap_or(welcome);
            if !text.is_empty() {
                monitor
                    .engines
                    .record_speech(&speaker.announce(&text).await);
            } else if has_tones {
                speaker.play_tone(SignalTone::Ready);
            }
        };
        announcement.boxed()
    }
}

// Tones are for somebody in the room. They would be the only sound in a file without speech.
fn is_silent_file(settings: &VoiceSettings) -> bool {
    settings.tts.trim() == "none" && settings.output.trim().ends_with(".wav")
}

pub(super) fn source_name(input: &AudioInput) -> &'static str {
    match input {
        AudioInput::Stdin { .. } => "stdin",
        AudioInput::Wav(_) => "wav",
        AudioInput::Wyoming(_) => "satellite",
        _ => "microphone",
    }
}
