//! Engines, a model, tools and a watcher for tests. Time is that of tokio, so that it can be paused.

mod alone;
mod coming;
mod model;
mod watch;

pub(crate) use alone::{alone, resident};
pub(crate) use coming::Coming;
pub(crate) use model::{Say, Script};
pub(crate) use watch::Watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::audio::Format;
use crate::listen::Utterance;
use crate::services::Answered;
use crate::speak::{Output, Playing, SoundStream, Speaker, Synthesize};
use crate::transcribe::Transcribe;
use crate::turn::{BackgroundTranscriber, Engines, Equipment, Question};
use crate::{EngineError, Loudness, Reason, SpokenApprovals, VoiceSettings};
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

/// Begins, with engines of which all are there.
pub(crate) fn start(
    equipment: Equipment,
    settings: &VoiceSettings,
    source: &str,
) -> BackgroundTranscriber {
    let engines = Arc::new(Engines::new(Arc::clone(&equipment.watcher)));
    BackgroundTranscriber::start(engines, equipment, settings, source)
}

impl BackgroundTranscriber {
    /// Asks for somebody who reads the whole answer.
    pub(crate) async fn ask(&self, question: Question) -> Answered {
        self.ask_into(question, Arc::default()).await
    }

    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.shared.counts.get(reason)
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

/// What an engine makes of an utterance.
#[derive(Clone)]
pub(crate) enum Text {
    Is(&'static str),
    After(Duration, &'static str),
    Fails(EngineError),
    Never,
}

/// Makes text as it is told; at the end of its script the last again.
#[derive(Default)]
pub(crate) struct Ear {
    texts: Mutex<VecDeque<Text>>,
    pub(crate) begun: AtomicUsize,
}

impl Ear {
    pub(crate) fn new(texts: impl IntoIterator<Item = Text>) -> Arc<Self> {
        Arc::new(Self {
            texts: Mutex::new(texts.into_iter().collect()),
            begun: AtomicUsize::new(0),
        })
    }
}

impl Transcribe for Ear {
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
                Text::Is(text) => Ok(text.to_owned()),
                Text::After(time, text) => {
                    sleep(time).await;
                    Ok(text.to_owned())
                }
                Text::Fails(error) => Err(error),
                Text::Never => std::future::pending().await,
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

/// Speaks a word in 200 ms, and keeps what it was asked for.
#[derive(Default)]
pub(crate) struct Mouth {
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) fails: Mutex<Option<EngineError>>,
}

impl Synthesize for Mouth {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        self.asked.lock().push(text.to_owned());
        let words = text.split_whitespace().count();
        let chunk: Bytes = [0x10_u8, 0x20].repeat(3200).into();
        let fails = self.fails.lock().clone();
        let sound = SoundStream {
            format: Format::HEARD,
            chunks: stream::iter(vec![Ok(chunk); words]).boxed(),
        };
        async move { fails.map_or(Ok(sound), Err) }.boxed()
    }
}

/// Plays as fast as sound is heard, or at once.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) at_once: bool,
    /// How long there was sound.
    pub(crate) heard: Arc<Mutex<Duration>>,
}

impl Output for Room {
    fn begin(&self, _: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        let playing: Box<dyn Playing> = Box::new(Sounding {
            at_once: self.at_once,
            all: Arc::clone(&self.heard),
            heard: Duration::ZERO,
        });
        async { Ok(playing) }.boxed()
    }
}

struct Sounding {
    at_once: bool,
    all: Arc<Mutex<Duration>>,
    heard: Duration,
}

impl Playing for Sounding {
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

/// A tool that takes a while; it counts how often it began and ended.
#[derive(Clone, Default)]
pub(crate) struct Work {
    pub(crate) begun: Arc<AtomicUsize>,
    pub(crate) done: Arc<AtomicUsize>,
}

impl Work {
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
        Arc::new(FunctionTool::defined(definition, run).unwrap())
    }
}

/// A gateway without a microphone.
pub(crate) struct House {
    pub(crate) ears: Arc<BackgroundTranscriber>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) mouth: Arc<Mouth>,
    pub(crate) speaker: Speaker,
    pub(crate) heard: Arc<Mutex<Duration>>,
    pub(crate) model: Arc<Script>,
    /// A server of tools that is still starting, if the plan has one.
    pub(crate) coming: Option<Arc<Coming>>,
}

/// What a house is made of.
pub(crate) struct Plan {
    pub(crate) ear: Arc<dyn Transcribe>,
    pub(crate) model: Arc<Script>,
    /// What is asked, made of the tools and the script.
    pub(crate) client: fn(&Toolbox, Arc<Script>) -> SentenceRouter,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) settings: VoiceSettings,
    pub(crate) model_settings: ModelSettings,
    pub(crate) journal: Option<Journal>,
    pub(crate) at_once: bool,
    /// A server of tools is still starting.
    pub(crate) is_starting: bool,
}

impl Plan {
    pub(crate) fn new(
        texts: impl IntoIterator<Item = Text>,
        says: impl IntoIterator<Item = Say>,
    ) -> Self {
        Self {
            ear: Ear::new(texts),
            model: Script::new(says),
            client: |_, script| script.into(),
            tools: Vec::new(),
            settings: VoiceSettings::default(),
            model_settings: ModelSettings::default(),
            journal: None,
            at_once: false,
            is_starting: false,
        }
    }

    /// While a server of tools is still starting.
    pub(crate) fn starting(mut self) -> Self {
        self.is_starting = true;
        self
    }

    /// Without a model.
    pub(crate) fn by_sentences(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> House {
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

    pub(crate) fn build(self) -> House {
        let manager = Arc::new(ToolManager::new());
        manager.add_all(self.tools);
        let approvals = SpokenApprovals::default();
        let executor = ToolExecutor::builder(Arc::clone(&manager)).approver(approvals.clone());
        let toolbox = Toolbox::new(executor.build());
        let coming = self.is_starting.then(|| Coming::to(manager, &toolbox));
        let (mouth, watch) = (Arc::new(Mouth::default()), Arc::new(Watch::default()));
        let room = Room {
            at_once: self.at_once,
            ..Room::default()
        };
        let heard = Arc::clone(&room.heard);
        let engine: Arc<dyn Synthesize> = Arc::<Mouth>::clone(&mouth);
        let router = (self.client)(&toolbox, Arc::clone(&self.model));
        let speaker = Speaker::new(engine, Arc::new(room), Loudness::default());
        let equipment = Equipment {
            router,
            model_settings: self.model_settings,
            toolbox,
            transcribe: self.ear,
            speaker: speaker.clone(),
            watcher: Arc::<Watch>::clone(&watch),
            journal: self.journal,
        };
        let ears = start(equipment, &self.settings, "microphone");
        approvals.use_voice(&ears);
        House {
            ears: Arc::new(ears),
            watch,
            mouth,
            speaker,
            heard,
            model: self.model,
            coming,
        }
    }
}

impl House {
    /// Hears something, and waits for the end of its turn.
    pub(crate) async fn turn(&self) -> VoiceTurn {
        let before = self.watch.turns().len();
        self.ears.hear(utterance()).unwrap();
        self.watch.turn(before).await
    }

    /// Everything that was given to the speech engine.
    pub(crate) fn spoken(&self) -> String {
        self.mouth.asked.lock().join(" ")
    }
}
