//! Fakes of the engines, a model and tools. Time is tokio's, so that it can be paused.

mod event_recorder;
mod isolated_test;
mod model;
mod starting_server;

pub(crate) use event_recorder::EventRecorder;
pub(crate) use isolated_test::{resident_bytes, run_isolated};
pub(crate) use model::{ModelStep, ScriptedModel};
pub(crate) use starting_server::StartingServer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::audio::AudioFormat;
use crate::segment::Utterance;
use crate::services::{HandleRequest, HandleResponse};
use crate::speak::{AudioOutput, AudioPlayback, SoundStream, Speaker, SpeechSynthesizer};
use crate::transcribe::SpeechToText;
use crate::turn::{BackgroundTranscriber, EngineHealth, TranscriberParts};
use crate::{EngineError, SpokenApprovals, VoiceSettings, VoiceVolume};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolgate_core::{
    Annotations, FunctionTool, Tool, ToolDefinition, ToolError, ToolExecutor, ToolManager,
};
use toolgate_intents::{Pack, SentenceInterpreter};
use toolgate_journal::{Journal, VoiceTurn};
use toolgate_models::{ModelSettings, SentenceRouter, Toolbox};

/// Starts a transcriber whose engines all work.
pub(crate) fn start(
    equipment: TranscriberParts,
    settings: &VoiceSettings,
    source: &str,
) -> BackgroundTranscriber {
    let engines = Arc::new(EngineHealth::new(Arc::clone(&equipment.observer)));
    BackgroundTranscriber::start(engines, equipment, settings, source)
}

impl BackgroundTranscriber {
    /// Sends a written request and waits for the whole answer.
    pub(crate) async fn ask(&self, question: HandleRequest) -> HandleResponse {
        self.answer_written(question, Arc::default()).await
    }
}

/// A second of a voice.
pub(crate) fn utterance() -> Utterance {
    let samples = (0..16_000).map(|at| if at % 40 < 20 { 4000 } else { -4000 });
    let ended = Instant::now();
    Utterance {
        samples: samples.collect(),
        began: ended.checked_sub(Duration::from_secs(1)).unwrap_or(ended),
        wake_word: Some("hey_jarvis".to_owned()),
        in_one_breath: false,
        ended,
        room: Some("Kitchen".to_owned()),
    }
}

/// What a fake engine returns for an utterance.
#[derive(Clone)]
pub(crate) enum FakeTranscript {
    Is(&'static str),
    After(Duration, &'static str),
    Fails(EngineError),
    Never,
}

/// Returns scripted transcripts and repeats the last one.
#[derive(Default)]
pub(crate) struct FakeTranscriber {
    texts: Mutex<VecDeque<FakeTranscript>>,
    pub(crate) begun: AtomicUsize,
}

impl FakeTranscriber {
    pub(crate) fn new(texts: impl IntoIterator<Item = FakeTranscript>) -> Arc<Self> {
        Arc::new(Self {
            texts: Mutex::new(texts.into_iter().collect()),
            begun: AtomicUsize::new(0),
        })
    }
}

impl SpeechToText for FakeTranscriber {
    fn transcribe<'a>(&'a self, _: &'a Utterance) -> BoxFuture<'a, Result<String, EngineError>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let mut texts = self.texts.lock();
        let text = match texts.len() {
            1 => texts.front().cloned(),
            _ => texts.pop_front(),
        };
        drop(texts);
        async move {
            match text.unwrap() {
                FakeTranscript::Is(text) => Ok(text.to_owned()),
                FakeTranscript::After(time, text) => {
                    sleep(time).await;
                    Ok(text.to_owned())
                }
                FakeTranscript::Fails(error) => Err(error),
                FakeTranscript::Never => std::future::pending().await,
            }
        }
        .boxed()
    }
}

pub(crate) fn away() -> EngineError {
    EngineError::Unreachable {
        at: "tcp://10.0.0.7:10300".to_owned(),
        why: "connection refused (os error 111)".to_owned(),
    }
}

/// Speaks a word in 200 ms and records the texts.
#[derive(Default)]
pub(crate) struct FakeSynthesizer {
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) fails: Mutex<Option<EngineError>>,
}

impl SpeechSynthesizer for FakeSynthesizer {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        self.asked.lock().push(text.to_owned());
        let words = text.split_whitespace().count();
        let chunk: Bytes = [0x10_u8, 0x20].repeat(3200).into();
        let fails = self.fails.lock().clone();
        let sound = SoundStream {
            format: AudioFormat::CAPTURE,
            chunks: stream::iter(vec![Ok(chunk); words]).boxed(),
        };
        async move { fails.map_or(Ok(sound), Err) }.boxed()
    }
}

/// Plays in real time or at once.
#[derive(Default)]
pub(crate) struct FakeOutput {
    pub(crate) at_once: bool,
    /// How long there was sound.
    pub(crate) heard: Arc<Mutex<Duration>>,
}

impl AudioOutput for FakeOutput {
    fn begin(&self, _: AudioFormat) -> BoxFuture<'_, Result<Box<dyn AudioPlayback>, EngineError>> {
        let playing: Box<dyn AudioPlayback> = Box::new(FakePlayback {
            at_once: self.at_once,
            all: Arc::clone(&self.heard),
            heard: Duration::ZERO,
        });
        async { Ok(playing) }.boxed()
    }
}

struct FakePlayback {
    at_once: bool,
    all: Arc<Mutex<Duration>>,
    heard: Duration,
}

impl AudioPlayback for FakePlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            let length = Duration::from_millis(bytes.len() as u64 / 32);
            if !self.at_once {
                sleep(length).await;
            }
            self.heard += length;
            *self.all.lock() += length;
            Ok(())
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        self.heard
    }
}

/// A slow tool that counts how often it started and ended.
#[derive(Clone, Default)]
pub(crate) struct FakeTool {
    pub(crate) begun: Arc<AtomicUsize>,
    pub(crate) done: Arc<AtomicUsize>,
}

impl FakeTool {
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn tool(
        &self,
        name: &str,
        takes: Duration,
        annotations: Annotations,
    ) -> Arc<dyn Tool> {
        let parameters = json!({ "type": "object" });
        let definition =
            ToolDefinition::builder(name, "Works", parameters).annotations(annotations);
        let work = self.clone();
        let run = move |_: Value, _| {
            let work = work.clone();
            async move {
                work.begun.fetch_add(1, Ordering::Relaxed);
                sleep(takes).await;
                work.done.fetch_add(1, Ordering::Relaxed);
                Ok::<_, ToolError>(json!({ "done": true }))
            }
        };
        Arc::new(FunctionTool::with_definition(definition, run).unwrap())
    }
}

/// A gateway without a microphone.
pub(crate) struct TestGateway {
    pub(crate) transcriber: Arc<BackgroundTranscriber>,
    pub(crate) recorder: Arc<EventRecorder>,
    pub(crate) synthesizer: Arc<FakeSynthesizer>,
    pub(crate) speaker: Speaker,
    pub(crate) heard: Arc<Mutex<Duration>>,
    pub(crate) model: Arc<ScriptedModel>,
    /// A tool server that is still starting, if the plan has one.
    pub(crate) starting_server: Option<Arc<StartingServer>>,
}

/// The configuration of a test gateway.
pub(crate) struct TestPlan {
    pub(crate) speech_to_text: Arc<dyn SpeechToText>,
    pub(crate) model: Arc<ScriptedModel>,
    /// Builds the router from the tools and the script.
    pub(crate) client: fn(&Toolbox, Arc<ScriptedModel>) -> SentenceRouter,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) settings: VoiceSettings,
    pub(crate) model_settings: ModelSettings,
    pub(crate) journal: Option<Journal>,
    pub(crate) at_once: bool,
    /// A tool server is still starting.
    pub(crate) is_starting: bool,
}

impl TestPlan {
    pub(crate) fn new(
        texts: impl IntoIterator<Item = FakeTranscript>,
        says: impl IntoIterator<Item = ModelStep>,
    ) -> Self {
        Self {
            speech_to_text: FakeTranscriber::new(texts),
            model: ScriptedModel::new(says),
            client: |_, script| script.into(),
            tools: Vec::new(),
            settings: VoiceSettings::default(),
            model_settings: ModelSettings::default(),
            journal: None,
            at_once: false,
            is_starting: false,
        }
    }

    /// With a tool server that is still starting.
    pub(crate) fn starting(mut self) -> Self {
        self.is_starting = true;
        self
    }

    /// Without a model.
    pub(crate) fn by_sentences(
        mut self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> TestGateway {
        self.client = |toolbox, _| {
            let sentences = SentenceInterpreter::new(toolbox.clone(), Pack::english());
            SentenceRouter::sentences_only(Arc::new(sentences.unwrap()))
        };
        self.with(tools).build()
    }

    pub(crate) fn with(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    pub(crate) fn build(self) -> TestGateway {
        let manager = Arc::new(ToolManager::new());
        manager.add_all(self.tools);
        let approvals = SpokenApprovals::default();
        let executor = ToolExecutor::builder(Arc::clone(&manager)).approver(approvals.clone());
        let toolbox = Toolbox::new(executor.build());
        let starting_server = self
            .is_starting
            .then(|| StartingServer::to(manager, &toolbox));
        let (synthesizer, recorder) = (
            Arc::new(FakeSynthesizer::default()),
            Arc::new(EventRecorder::default()),
        );
        let room = FakeOutput {
            at_once: self.at_once,
            ..FakeOutput::default()
        };
        let heard = Arc::clone(&room.heard);
        let engine: Arc<dyn SpeechSynthesizer> = Arc::<FakeSynthesizer>::clone(&synthesizer);
        let router = (self.client)(&toolbox, Arc::clone(&self.model));
        let speaker = Speaker::new(engine, Arc::new(room), VoiceVolume::default());
        let equipment = TranscriberParts {
            router,
            model_settings: self.model_settings,
            toolbox,
            transcribe: self.speech_to_text,
            speaker: speaker.clone(),
            observer: Arc::<EventRecorder>::clone(&recorder),
            journal: self.journal,
        };
        let transcriber = start(equipment, &self.settings, "microphone");
        approvals.connect(&transcriber);
        TestGateway {
            transcriber: Arc::new(transcriber),
            recorder,
            synthesizer,
            speaker,
            heard,
            model: self.model,
            starting_server,
        }
    }
}

impl TestGateway {
    /// Submits an utterance and waits for the end of its turn.
    pub(crate) async fn turn(&self) -> VoiceTurn {
        let before = self.recorder.turns().len();
        self.transcriber.submit(utterance()).unwrap();
        self.recorder.turn(before).await
    }

    /// All texts sent to the speech engine.
    pub(crate) fn spoken(&self) -> String {
        self.synthesizer.asked.lock().join(" ")
    }
}
