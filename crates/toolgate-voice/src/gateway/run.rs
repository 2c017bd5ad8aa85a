//! From the start to the end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use toolgate_journal::Journal;
use toolgate_models::{
    ChooseError, Chosen, IntentsClient, ModelClient, ModelSettings, Pack, Toolbox,
};
use tracing::info;

use super::hub::Hub;
use super::listening::Ear;
use super::outlet::Outlet;
use super::satellite::Satellite;
use super::stand_in::StandIn;
use super::start::{first_word_of, look, look_after, phase};
use super::{FindModel, GatewayError, Key, Mode, Parts, Summary, offers, words};
use crate::hear::{self, Input, Opened};
use crate::house::House;
use crate::listen::{Wake, WakeNotice};
use crate::transcribe::WyomingAsr;
use crate::turn::{BackgroundTranscriber, Equipment, HANDLE};
use crate::wyoming::Address;
use crate::{
    EngineError, Event, Loudness, Output, Role, Speaker, State, Synthesize, Tone, VoiceSettings,
    Watcher, speak,
};

/// Between two looks for a model that is away.
const MODEL_AGAIN: Duration = Duration::from_secs(15);

pub(super) async fn run(parts: Parts, stop: CancellationToken) -> Result<Summary, GatewayError> {
    let addresses = Addresses::of(&parts.settings)?;
    let stop = stop.child_token();
    let mut background = JoinSet::new();
    let satellite = Arc::<Satellite>::default();
    let mut watchers = vec![
        Arc::clone(&parts.watcher),
        Arc::clone(&satellite) as Arc<dyn Watcher>,
    ];
    let mqtt = parts.mqtt.clone().map(|settings| {
        let (house, client, telling) =
            House::open(settings, parts.settings.forget_after, stop.clone());
        watchers.push(Arc::new(house));
        (client, telling)
    });
    let hub = Arc::new(Hub::new(watchers));
    let mut farewell = None;
    if let Some((client, telling)) = mqtt {
        background.spawn(first_word_of(Arc::clone(&hub), client));
        farewell = Some(telling);
    }
    let tools = tokio::spawn(settle(Arc::clone(&hub), parts.tools_settled));
    let running = Running {
        settings: parts.settings,
        input: parts.input,
        mode: parts.mode,
        model: parts.model,
        model_settings: parts.model_settings,
        toolbox: parts.toolbox,
        journal: parts.journal,
        loudness: parts.loudness,
        keys: parts.keys,
        satellite,
        addresses,
        hub: Arc::clone(&hub),
        stop: stop.clone(),
    };
    let done = running.go(tools, &mut background).await;
    stop.cancel();
    if let Some(telling) = farewell {
        drop(telling.await);
    }
    background.shutdown().await;
    done?;
    let (turns, failed, dropped) = hub.counts();
    Ok(Summary {
        turns,
        failed,
        dropped,
    })
}

/// The addresses among the settings.
struct Addresses {
    asr: Address,
    wake: Option<Address>,
    tts: Option<Address>,
    handle: Option<Address>,
    serve_tts: Option<Address>,
}

impl Addresses {
    fn of(settings: &VoiceSettings) -> Result<Self, GatewayError> {
        let address = |key: &str, text: &str| match text.trim() {
            "" => Ok(None),
            text => match text.parse() {
                Ok(address) => Ok(Some(address)),
                Err(error) => Err(GatewayError::Settings(format!("voice.{key}: {error}"))),
            },
        };
        let is_address = |text: &str| text.contains("://");
        Ok(Self {
            asr: address("asr", &settings.asr)?.ok_or_else(|| {
                let text =
                    "voice.asr: write where the Wyoming service is that makes text of speech";
                GatewayError::Settings(text.to_owned())
            })?,
            wake: address("wake", &settings.wake)?,
            tts: match is_address(&settings.tts) {
                true => address("tts", &settings.tts)?,
                false => None,
            },
            handle: address("handle", &settings.handle)?,
            serve_tts: address("serveTts", &settings.serve_tts)?,
        })
    }
}

/// A gateway on its way.
struct Running {
    settings: VoiceSettings,
    input: Option<Input>,
    mode: Mode,
    model: FindModel,
    model_settings: ModelSettings,
    toolbox: Toolbox,
    journal: Option<Journal>,
    loudness: Loudness,
    keys: Option<mpsc::Receiver<Key>>,
    satellite: Arc<Satellite>,
    addresses: Addresses,
    hub: Arc<Hub>,
    stop: CancellationToken,
}

impl Running {
    async fn go(
        mut self,
        tools: JoinHandle<Option<String>>,
        background: &mut JoinSet<()>,
    ) -> Result<(), GatewayError> {
        let (engine, model, opened, ()) = tokio::join!(
            self.find_voice(),
            self.find_model(),
            self.open_input(),
            self.find_transcription(),
        );
        let model = model?;
        let opened = opened?;
        let outlet = Arc::new(Outlet::new(self.output(&opened)));
        let speaker = Speaker::new(
            Arc::clone(&engine),
            Arc::clone(&outlet) as Arc<dyn Output>,
            self.loudness.clone(),
        );
        let transcriber = Arc::new(self.transcriber(model, &speaker, background)?);
        self.look_after_engines(background);
        let services = offers::open(
            [&self.addresses.handle, &self.addresses.serve_tts].map(Option::as_ref),
            Arc::clone(&transcriber),
            engine,
            &self.settings,
        )
        .await?;
        for service in services {
            background.spawn(service.serve(self.stop.clone()));
        }
        let listened = self
            .listen(tools, opened, &speaker, &outlet, &transcriber)
            .await;
        transcriber.close().await;
        listened
    }

    /// Listens while the tools still start, and tells once that they are there or not. A file has time to wait for them.
    async fn listen(
        &mut self,
        tools: JoinHandle<Option<String>>,
        opened: Option<Opened>,
        speaker: &Speaker,
        outlet: &Outlet,
        transcriber: &BackgroundTranscriber,
    ) -> Result<(), GatewayError> {
        let hub = Arc::clone(&self.hub);
        let toolbox = self.toolbox.clone();
        let settings = self.settings.clone();
        let ready = announce(&hub, &toolbox, &settings, speaker, tools);
        let Some(input) = self.input.clone() else {
            self.hub.rest(&State::Waiting);
            ready.await;
            self.stop.cancelled().await;
            return Ok(());
        };
        let mut ear = Ear {
            settings: &settings,
            input: &input,
            mode: self.mode,
            hub: Arc::clone(&hub),
            speaker: speaker.clone(),
            outlet,
            satellite: &self.satellite,
            transcriber,
            wake: self.wake(),
            keys: self.keys.take(),
        };
        let resting = match self.mode {
            Mode::Always => State::Listening,
            Mode::Wake | Mode::PushToTalk => State::Waiting,
        };
        if ends(&input) {
            tokio::select! {
                () = ready => {}
                () = self.stop.cancelled() => return Ok(()),
            }
            hub.rest(&resting);
            ear.listen(opened, &self.stop).await?;
        } else {
            hub.rest(&resting);
            let (heard, ()) = tokio::join!(ear.listen(opened, &self.stop), ready);
            heard?;
        }
        Ok(())
    }

    async fn find_voice(&self) -> Arc<dyn Synthesize> {
        let found = phase(
            &self.hub,
            "speech",
            async {
                let engine = speak::engine(&self.settings.tts, &self.settings.tts_voice)?;
                if let Some(address) = &self.addresses.tts {
                    look(&self.hub, Role::Speech, address).await;
                }
                Ok::<_, EngineError>(engine)
            },
            |found| found.as_ref().err().map(ToString::to_string),
        )
        .await;
        found.unwrap_or_else(|error| {
            let why = error.to_string();
            self.hub.event(Event::Lost {
                role: Role::Speech,
                why: &why,
            });
            Arc::new(speak::NoSpeech)
        })
    }

    async fn find_transcription(&self) {
        if self.input.is_none() {
            return;
        }
        let address = &self.addresses.asr;
        let looking = look(&self.hub, Role::Transcription, address);
        phase(&self.hub, "transcription", looking, |is_there| {
            (!is_there).then(|| format!("nobody answers at {address}"))
        })
        .await;
    }

    async fn find_model(&self) -> Result<Result<Chosen, ChooseError>, GatewayError> {
        let found = phase(&self.hub, "model", (self.model)(), |found| {
            found.as_ref().err().map(ToString::to_string)
        })
        .await;
        match found {
            Err(ChooseError::Settings(text)) => Err(GatewayError::Settings(text)),
            other => Ok(other),
        }
    }

    /// What does not come again must be there; a microphone may come later.
    async fn open_input(&self) -> Result<Option<Opened>, GatewayError> {
        let Some(input) = &self.input else {
            return Ok(None);
        };
        let opening = hear::open(input);
        let opened = phase(&self.hub, "microphone", opening, |opened| {
            opened.as_ref().err().map(ToString::to_string)
        })
        .await;
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if ends(input) => Err(error.into()),
            Err(error) => {
                let why = error.to_string();
                let role = Role::Microphone;
                self.hub.event(Event::Lost { role, why: &why });
                Ok(None)
            }
        }
    }

    fn wake(&self) -> Option<(Wake, mpsc::Receiver<WakeNotice>)> {
        let address = self.addresses.wake.clone()?;
        let words = self.settings.wake_words.clone();
        Some(Wake::start(address, words))
    }

    fn output(&self, opened: &Option<Opened>) -> Arc<dyn Output> {
        let link = opened.as_ref().and_then(|opened| opened.link.clone());
        speak::output(&self.settings.output, link).unwrap_or_else(|error| {
            let why = error.to_string();
            let role = Role::Loudspeaker;
            self.hub.event(Event::Lost { role, why: &why });
            Arc::new(speak::NoOutput)
        })
    }

    /// Who answers: the model, or plain sentences while it is looked for.
    fn transcriber(
        &self,
        model: Result<Chosen, ChooseError>,
        speaker: &Speaker,
        background: &mut JoinSet<()>,
    ) -> Result<BackgroundTranscriber, GatewayError> {
        let (client, model_settings) = match model {
            Ok(chosen) => (chosen.client, chosen.settings),
            Err(_) => {
                let stand_in = Arc::new(StandIn::new(sentences(&self.toolbox)?));
                let find = Arc::clone(&self.model);
                background.spawn(find_again(find, Arc::clone(&stand_in)));
                let client: Arc<dyn ModelClient> = stand_in;
                (client, self.model_settings.clone())
            }
        };
        let settings = &self.settings;
        let address = self.addresses.asr.clone();
        let asr = WyomingAsr::new(address, &settings.language, settings.asr_timeout);
        let equipment = Equipment {
            model: client,
            model_settings,
            toolbox: self.toolbox.clone(),
            transcribe: Arc::new(asr),
            speaker: speaker.clone(),
            watcher: Arc::clone(&self.hub) as Arc<dyn Watcher>,
            journal: self.journal.clone(),
        };
        let source = self.input.as_ref().map_or(HANDLE, source);
        Ok(BackgroundTranscriber::start(equipment, settings, source))
    }

    fn look_after_engines(&self, background: &mut JoinSet<()>) {
        let asr = self.input.as_ref().map(|_| self.addresses.asr.clone());
        let engines = [
            (Role::Transcription, asr),
            (Role::Speech, self.addresses.tts.clone()),
        ];
        for (role, address) in engines {
            if let Some(address) = address {
                background.spawn(look_after(Arc::clone(&self.hub), role, address));
            }
        }
    }
}

/// Waits for the servers of tools.
async fn settle(hub: Arc<Hub>, settled: BoxFuture<'static, Option<String>>) -> Option<String> {
    phase(&hub, "tools", settled, |missing| {
        missing.as_ref().map(|what| format!("{what} is missing"))
    })
    .await
}

/// Says once that everything is there, or what is not.
async fn announce(
    hub: &Hub,
    toolbox: &Toolbox,
    settings: &VoiceSettings,
    speaker: &Speaker,
    tools: JoinHandle<Option<String>>,
) {
    let missing = tools.await.unwrap_or_default();
    let degraded = words::degraded(missing.as_deref(), &hub.lost(), toolbox);
    hub.event(Event::Ready {
        degraded: degraded.as_deref(),
    });
    let text = match &degraded {
        Some(words) => words,
        None => &settings.welcome,
    };
    if !text.is_empty() {
        let speech = speaker.begin();
        speech.push(text);
        drop(speech.finish().await);
    } else if settings.tones {
        speaker.tone(Tone::Ready);
    }
}

/// Plain sentences need nothing.
fn sentences(toolbox: &Toolbox) -> Result<Arc<dyn ModelClient>, GatewayError> {
    match IntentsClient::new(toolbox.clone(), Pack::english()) {
        Ok(client) => Ok(Arc::new(client)),
        Err(error) => Err(GatewayError::Settings(error.to_string())),
    }
}

/// Looks for the model until it is there.
async fn find_again(find: FindModel, stand_in: Arc<StandIn>) {
    loop {
        sleep(MODEL_AGAIN).await;
        if let Ok(chosen) = find().await {
            info!("the model is there: {}", chosen.why);
            stand_in.find(chosen.client);
            return;
        }
    }
}

/// True if this does not come again once it is over.
pub(super) fn ends(input: &Input) -> bool {
    matches!(input, Input::Stdin { .. } | Input::Wav(_))
}

/// For the record of turns.
fn source(input: &Input) -> &'static str {
    match input {
        Input::Stdin { .. } => "stdin",
        Input::Wav(_) => "wav",
        Input::Wyoming(_) => "satellite",
        _ => "microphone",
    }
}
