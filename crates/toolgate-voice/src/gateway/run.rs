//! From the start to the end.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_core::Origin;
use toolgate_models::{ChooseError, Chosen, ModelSettings, SentenceRouter};
use tracing::info;

use super::addresses::Addresses;
use super::find::Finder;
use super::hub::{self, Hub};
use super::listening::{Ear, Memory, can_wait};
use super::offers::Ports;
use super::outlet::{Outlet, Voice};
use super::satellite::Satellite;
use super::{GatewayError, Mode, Parts, Reach, Summary, words};
use crate::hear::{Input, Opened};
use crate::house::House;
use crate::listen::Wake;
use crate::speak::{Output, Speaker, Synthesize, Tone};
use crate::transcribe::WyomingAsr;
use crate::turn::{BackgroundTranscriber, Engines, Equipment, HANDLE};
use crate::{Event, Role, VoiceSettings, Watcher};

/// Hears, acts and answers until the input ends or it is told to stop.
///
/// # Errors
/// If a setting makes no sense, an input that does not come again can not be read, or a service can not be offered.
pub async fn run(mut parts: Parts, stop: CancellationToken) -> Result<Summary, GatewayError> {
    parts.settings.tones &= !is_silent_file(&parts.settings);
    parts.toolbox = parts.toolbox.asked_by(Origin::Voice);
    let addresses = Addresses::of(&parts.settings)?;
    let stop = stop.child_token();
    let satellite = Arc::<Satellite>::default();
    let mut watchers: Vec<Arc<dyn Watcher>> = vec![Arc::clone(&parts.watcher), satellite.clone()];
    let mqtt = parts.mqtt.take().map(|settings| {
        let forget_after = parts.settings.forget_after;
        let (house, client, telling) = House::open(settings, forget_after, stop.clone());
        watchers.push(Arc::new(house));
        (client, telling)
    });
    let hub = Arc::new(Hub::new(watchers));
    let engines = Arc::new(Engines::new(Arc::clone(&hub) as Arc<dyn Watcher>));
    let finder = Finder {
        hub: Arc::clone(&hub),
        engines,
    };
    let mut background = JoinSet::new();
    let farewell = mqtt.map(|(client, telling)| {
        background.spawn(finder.clone().broker(client));
        telling
    });
    let voice = Arc::new(Voice::new(&parts.settings));
    let outlet = Arc::new(Outlet::new(&parts.settings));
    let speaker = Speaker::new(
        Arc::clone(&voice) as Arc<dyn Synthesize>,
        Arc::clone(&outlet) as Arc<dyn Output>,
        parts.loudness.clone(),
    );
    let running = Running {
        parts,
        voice,
        outlet,
        speaker,
        satellite,
        addresses,
        finder,
        stop: stop.clone(),
    };
    let done = running.go(&mut background).await;
    stop.cancel();
    if let Some(telling) = farewell {
        drop(telling.await);
    }
    background.shutdown().await;
    done?;
    Ok(summary(&hub))
}

fn summary(hub: &Hub) -> Summary {
    let (turns, failed, dropped) = hub.counts();
    if dropped > 0 {
        let reasons = hub.dropped().join(", ");
        info!(turns, failed, dropped, %reasons, "not everything that was heard was answered");
    }
    Summary {
        turns,
        failed,
        dropped,
    }
}

struct Running {
    parts: Parts,
    voice: Arc<Voice>,
    outlet: Arc<Outlet>,
    speaker: Speaker,
    satellite: Arc<Satellite>,
    addresses: Addresses,
    finder: Finder,
    stop: CancellationToken,
}

impl Running {
    /// Only the model is waited for before somebody may ask in writing, and the microphone too before somebody is heard; the rest
    /// is looked for meanwhile.
    async fn go(mut self, background: &mut JoinSet<()>) -> Result<(), GatewayError> {
        let reach = self.parts.tools.clone();
        let ports = Ports::open(&self.addresses).await?;
        let (looks, tools) = (self.looks(), self.finder.clone().tools(reach.clone()));
        let settled = async { tokio::join!(tools, join_all(looks)).0 };
        let settled = settled.boxed().shared();
        background.spawn(settled.clone().map(drop));
        let input = self.parts.input.take();
        let opening = async {
            match &input {
                Some(input) => self.finder.input(input).await,
                None => Ok(None),
            }
        };
        let offering = async {
            let model = self.finder.model(&self.parts.model).await?;
            let transcriber = self.transcriber(model, input.as_ref(), background)?;
            let engine = Arc::clone(&self.voice) as Arc<dyn Synthesize>;
            for (listener, service) in
                ports.offers(Arc::clone(&transcriber), engine, &self.parts.settings)
            {
                background.spawn(listener.serve(service, self.stop.clone()));
            }
            Ok::<_, GatewayError>(transcriber)
        };
        let starting = async { tokio::try_join!(offering, opening) };
        let (transcriber, opened) = tokio::select! {
            started = starting => started?,
            () = self.stop.cancelled() => return Ok(()),
        };
        self.look_after_engines(input.is_some(), background);
        let is_patient = input.as_ref().is_some_and(can_wait);
        background.spawn(self.following(settled.clone(), reach, is_patient));
        let ready = self.announcement(settled, is_patient);
        let listened = match &input {
            Some(input) => {
                self.listen(input, opened, &transcriber, ready, background)
                    .await
            }
            None => {
                self.finder.hub.rests_in(hub::Ear::Resting);
                background.spawn(ready);
                self.stop.cancelled().await;
                Ok(())
            }
        };
        transcriber.close().await;
        listened
    }

    /// Listens while the tools still start. A file has time to wait for them.
    async fn listen(
        &mut self,
        input: &Input,
        opened: Option<Opened>,
        transcriber: &BackgroundTranscriber,
        ready: BoxFuture<'static, ()>,
        background: &mut JoinSet<()>,
    ) -> Result<(), GatewayError> {
        if can_wait(input) {
            tokio::select! {
                () = ready => {}
                () = self.stop.cancelled() => return Ok(()),
            }
        } else {
            background.spawn(ready);
        }
        self.finder.hub.rests_in(match self.parts.mode {
            Mode::Always => hub::Ear::Listening,
            Mode::Wake | Mode::PushToTalk => hub::Ear::Resting,
        });
        let wake = self.addresses.wake.clone();
        let mut ear = Ear {
            settings: &self.parts.settings,
            input,
            mode: self.parts.mode,
            hub: Arc::clone(&self.finder.hub),
            engines: Arc::clone(&self.finder.engines),
            speaker: self.speaker.clone(),
            outlet: &self.outlet,
            satellite: &self.satellite,
            transcriber,
            wake: wake.map(|address| Wake::start(address, self.parts.settings.wake_words.clone())),
            keys: self.parts.keys.take(),
            memory: Memory::default(),
        };
        tokio::select! {
            heard = ear.listen(opened) => Ok(heard?),
            () = self.stop.cancelled() => Ok(()),
        }
    }

    fn looks(&self) -> Vec<BoxFuture<'static, ()>> {
        let finder = || self.finder.clone();
        let (voice, outlet) = (Arc::clone(&self.voice), Arc::clone(&self.outlet));
        // Answers go back to a satellite unless the settings say otherwise.
        let is_satellite = matches!(self.parts.input, Some(Input::Wyoming(_)));
        let goes_back = is_satellite && self.parts.settings.output.is_empty();
        let outlet = (!goes_back).then_some(outlet);
        let tts = self.addresses.tts.clone();
        let mut looks = vec![finder().voice(voice, outlet, tts).boxed()];
        if self.parts.input.is_some() {
            let asr = self.addresses.asr.clone();
            looks.push(finder().engine(Role::Transcription, asr).boxed());
            if let Some(wake) = self.addresses.wake.clone() {
                looks.push(finder().engine(Role::Wake, wake).boxed());
            }
        }
        looks
    }

    /// Who answers: the model, or plain sentences while it is away.
    fn transcriber(
        &self,
        model: Option<Chosen>,
        input: Option<&Input>,
        background: &mut JoinSet<()>,
    ) -> Result<Arc<BackgroundTranscriber>, GatewayError> {
        let engines = Arc::clone(&self.finder.engines);
        let (router, model_settings) = match model {
            Some(chosen) => (Some(chosen.router), chosen.settings),
            None => (None, self.parts.model_settings.clone()),
        };
        let settings = &self.parts.settings;
        let address = self.addresses.asr.clone();
        let asr = WyomingAsr::new(address, &settings.language, settings.asr_timeout);
        let equipment = Equipment {
            router: self.with_fallback(router, &model_settings)?,
            model_settings,
            toolbox: self.parts.toolbox.clone(),
            transcribe: Arc::new(asr),
            speaker: self.speaker.clone(),
            watcher: Arc::clone(&self.finder.hub) as Arc<dyn Watcher>,
            journal: self.parts.journal.clone(),
        };
        let source = input.map_or(HANDLE, source);
        let transcriber = BackgroundTranscriber::start(engines, equipment, settings, source);
        let transcriber = Arc::new(transcriber);
        if input.is_some_and(|input| !can_wait(input)) {
            self.parts.approvals.use_voice(&transcriber);
        }
        let (find, finder) = (Arc::clone(&self.parts.model), self.finder.clone());
        let asked = Arc::downgrade(&transcriber);
        background.spawn(finder.look_after_model(find, asked));
        Ok(transcriber)
    }

    /// Whoever speaks wants the light on now, whether somebody named the model or not.
    fn with_fallback(
        &self,
        router: Option<SentenceRouter>,
        settings: &ModelSettings,
    ) -> Result<SentenceRouter, GatewayError> {
        let sentences = match router.as_ref().and_then(SentenceRouter::sentences) {
            Some(sentences) => Ok(Arc::clone(sentences)),
            None => toolgate_models::sentences(settings, &self.parts.toolbox),
        };
        let unusable = |error: ChooseError| GatewayError::Settings(error.to_string());
        let sentences = sentences.map_err(unusable)?;
        Ok(match router {
            Some(router) => router.sentences_last(sentences),
            None => SentenceRouter::sentences_only(sentences),
        })
    }

    fn look_after_engines(&self, hears: bool, background: &mut JoinSet<()>) {
        let asr = hears.then(|| self.addresses.asr.clone());
        let engines = [
            (Role::Transcription, asr),
            (Role::Speech, self.addresses.tts.clone()),
        ];
        for (role, address) in engines {
            if let Some(address) = address {
                background.spawn(self.finder.clone().look_after(role, address));
            }
        }
    }

    /// Tells of servers of tools that go and come back later; aloud where somebody is in the room.
    fn following(
        &self,
        settled: impl Future<Output = Option<String>> + Send + 'static,
        reach: watch::Receiver<Reach>,
        is_patient: bool,
    ) -> BoxFuture<'static, ()> {
        let finder = self.finder.clone();
        let speaker = (!is_patient).then(|| self.speaker.clone());
        async move { finder.follow_tools(reach, settled.await, speaker).await }.boxed()
    }

    /// Says once that everything is there, or what is not, behind whatever is being said.
    fn announcement(
        &self,
        settled: impl Future<Output = Option<String>> + Send + 'static,
        is_patient: bool,
    ) -> BoxFuture<'static, ()> {
        let finder = self.finder.clone();
        let (toolbox, speaker) = (self.parts.toolbox.clone(), self.speaker.clone());
        let (welcome, has_tones) = (
            self.parts.settings.welcome.clone(),
            self.parts.settings.tones,
        );
        let saying = async move {
            let missing = settled.await;
            if is_patient {
                finder.transcription_is_there().await;
            }
            let lost = finder.engines.all_lost();
            let degraded = words::degraded(missing.as_deref(), &lost, &toolbox);
            finder.hub.event(Event::Ready {
                degraded: degraded.as_deref(),
            });
            let text = degraded.unwrap_or(welcome);
            if !text.is_empty() {
                finder.engines.spoke(&speaker.announce(&text).await);
            } else if has_tones {
                speaker.tone(Tone::Ready);
            }
        };
        saying.boxed()
    }
}

/// True if nothing is to be heard but in a file, and nothing is said: tones are for somebody in the room.
fn is_silent_file(settings: &VoiceSettings) -> bool {
    settings.tts.trim() == "none" && settings.output.trim().ends_with(".wav")
}

pub(super) fn source(input: &Input) -> &'static str {
    match input {
        Input::Stdin { .. } => "stdin",
        Input::Wav(_) => "wav",
        Input::Wyoming(_) => "satellite",
        _ => "microphone",
    }
}
