//! A gateway with fakes for everything around it.

use std::sync::Arc;
use std::time::Duration;

use fakewyoming::{FakeAsr, FakeMic, FakeTts, FakeWake, Port};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_core::{FunctionTool, ToolError, ToolExecutor, ToolManager};
use toolgate_models::{ConnectedModel, ModelClient, ModelSelectionError, ModelSettings, Toolbox};
use toolgate_voice::{
    AudioInput, ListenMode, SpokenApprovals, ToolServerStatus, VoiceGatewayError,
    VoiceGatewayParts, VoiceKey, VoiceObserver, VoiceSettings, VoiceSummary, VoiceVolume,
};

use crate::event_recorder::EventRecorder;
use crate::model::{ModelStep, ScriptedModel};

pub(crate) const SPOKEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/sounds/turn-on-switch-one.wav"
);
// Only a hang takes longer than this.
pub(crate) const HANG: Duration = Duration::from_secs(30);

/// What a test sees of a gateway.
pub(crate) struct TestStage {
    pub(crate) asr: FakeAsr,
    pub(crate) tts: FakeTts,
    pub(crate) mic: FakeMic,
    pub(crate) wake: FakeWake,
    pub(crate) recorder: Arc<EventRecorder>,
    pub(crate) keys: mpsc::Sender<VoiceKey>,
    pub(crate) parts: Option<VoiceGatewayParts>,
    /// Reports which tool servers are unreachable.
    pub(crate) tool_status: watch::Sender<ToolServerStatus>,
    ports: Vec<Port>,
    stop: CancellationToken,
    running: Option<JoinHandle<Result<VoiceSummary, VoiceGatewayError>>>,
    /// The result of the gateway, once it has ended.
    ended: watch::Sender<Option<String>>,
}

impl TestStage {
    /// A push-to-talk microphone, and a model that says these things.
    pub(crate) async fn new(says: impl IntoIterator<Item = ModelStep>) -> Self {
        let (asr, tts) = (
            FakeAsr::start(["hello there"; 20]).await,
            FakeTts::start().await,
        );
        let (mic, wake) = (FakeMic::start().await, FakeWake::start().await);
        let model = ScriptedModel::new(says);
        let recorder = Arc::new(EventRecorder::default());
        let mut settings = VoiceSettings::default();
        settings.asr = asr.address();
        settings.tts = tts.address();
        settings.output = "none".to_owned();
        settings.tones = false;
        let (keys, pressed) = mpsc::channel(4);
        let tool_status = watch::Sender::new(all_there());
        let client: Arc<dyn ModelClient> = model;
        let parts = VoiceGatewayParts {
            settings,
            input: Some(AudioInput::parse(&mic.address()).unwrap()),
            mode: ListenMode::PushToTalk,
            model: Arc::new(move || found(Arc::clone(&client))),
            model_settings: ModelSettings::default(),
            toolbox: toolbox(),
            tools: tool_status.subscribe(),
            approvals: SpokenApprovals::default(),
            journal: None,
            mqtt: None,
            volume: VoiceVolume::default(),
            observer: Arc::clone(&recorder) as Arc<dyn VoiceObserver>,
            keys: Some(pressed),
        };
        Self {
            asr,
            tts,
            mic,
            wake,
            recorder,
            keys,
            parts: Some(parts),
            tool_status,
            ports: Vec::new(),
            stop: CancellationToken::new(),
            running: None,
            ended: watch::Sender::new(None),
        }
    }

    /// A gateway that only serves others, at two addresses: for requests and for speech.
    pub(crate) async fn serving(
        says: impl IntoIterator<Item = ModelStep>,
    ) -> (Self, String, String) {
        let ports = [Port::reserve(), Port::reserve()];
        let [handle, tts] = ports.each_ref().map(Port::address);
        let mut stage = Self::new(says).await.with(|parts, _| {
            parts.input = None;
            parts.settings.handle = handle.clone();
            parts.settings.serve_tts = tts.clone();
        });
        stage.ports.extend(ports);
        (stage.ready().await, handle, tts)
    }

    /// Changes the gateway's parts.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut VoiceGatewayParts, &Self)) -> Self {
        let mut parts = self.parts.take().unwrap();
        change(&mut parts, &self);
        self.parts = Some(parts);
        self
    }

    pub(crate) fn start(mut self) -> Self {
        let gateway = toolgate_voice::run(self.parts.take().unwrap(), self.stop.clone());
        let ended = self.ended.clone();
        self.running = Some(tokio::spawn(async move {
            let done = gateway.await;
            ended.send_replace(Some(format!("{done:?}")));
            done
        }));
        self
    }

    /// Starts and waits for the ready event.
    pub(crate) async fn ready(self) -> Self {
        let wake = self.parts.as_ref().map(|parts| parts.settings.wake.clone());
        let has_wake = wake == Some(self.wake.address());
        let stage = self.start();
        stage.sees("Ready { degraded: None }", 1).await;
        if has_wake {
            // Sound is dropped while a service is still connecting.
            stage
                .pump(|stage| !stage.wake.received_of_kind("audio-chunk").is_empty())
                .await;
        }
        stage
    }

    /// Sends silence until the condition holds.
    pub(crate) async fn pump(&self, holds: impl Fn(&Self) -> bool) {
        let sounding = async {
            while !holds(self) {
                self.mic.send_sound(&[0; 1024]);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(HANG, sounding).await.unwrap();
    }

    /// Waits until this event occurred this often.
    pub(crate) async fn sees(&self, event: &str, times: usize) {
        self.until(event, |recorder| recorder.count(event) >= times)
            .await;
    }

    /// Waits until the events match.
    pub(crate) async fn sees_that(&self, what: &str, holds: impl Fn(&[String]) -> bool) {
        self.until(what, |recorder| holds(&recorder.events())).await;
    }

    /// Waits until the events match or the gateway has ended.
    async fn until(&self, what: &str, holds: impl Fn(&EventRecorder) -> bool) {
        let mut ended = self.ended.subscribe();
        let seen = timeout(HANG, self.recorder.until(what, &holds));
        let why = tokio::select! {
            seen = seen => match seen {
                Ok(()) => return,
                Err(_) => "it hangs".to_owned(),
            },
            how = ended.wait_for(Option::is_some) => how.unwrap().clone().unwrap(),
        };
        if !holds(&self.recorder) {
            let events = self.recorder.events();
            panic!("not seen: {what}; {why}\n{events:#?}");
        }
    }

    /// Waits until the first announcement was spoken and its echo is gone.
    pub(crate) async fn sees_quiet(&self) {
        tokio::time::sleep(Duration::from_secs(4)).await;
    }

    /// Presses the key and says something.
    pub(crate) async fn ask(&self) {
        let before = self.recorder.count("state listening");
        self.keys.send(VoiceKey::Talk).await.unwrap();
        self.sees("state listening", before + 1).await;
        self.mic.send_sound(&speech());
    }

    pub(crate) async fn over(&mut self) -> Result<VoiceSummary, VoiceGatewayError> {
        let running = self.running.take().unwrap();
        timeout(HANG, running).await.unwrap().unwrap()
    }

    pub(crate) async fn end(mut self) -> VoiceSummary {
        self.stop.cancel();
        self.over().await.unwrap()
    }
}

fn found(
    client: Arc<dyn ModelClient>,
) -> BoxFuture<'static, Result<ConnectedModel, ModelSelectionError>> {
    let chosen = ConnectedModel {
        router: client.into(),
        settings: ModelSettings::default(),
        why: "the test says so".to_owned(),
        skipped: Vec::new(),
    };
    async move { Ok(chosen) }.boxed()
}

/// No tool server is missing.
pub(crate) fn all_there() -> ToolServerStatus {
    ToolServerStatus::Settled { missing: None }
}

pub(crate) fn missing(what: &str) -> ToolServerStatus {
    let missing = Some(what.to_owned());
    ToolServerStatus::Settled { missing }
}

/// A tool with a name that the gateway mentions.
pub(crate) fn toolbox() -> Toolbox {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let clock = FunctionTool::new("datetime", "Tells the time", async |_: Nothing, _| {
        Ok::<_, ToolError>("noon")
    });
    let manager = Arc::new(ToolManager::new());
    manager.add(clock.unwrap());
    Toolbox::new(ToolExecutor::new(manager))
}

/// Real speech, and the silence after it.
pub(crate) fn speech() -> Vec<i16> {
    let mut reader = hound::WavReader::open(SPOKEN).unwrap();
    assert_eq!(reader.spec().sample_rate, 16_000);
    let mut samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    samples.extend(std::iter::repeat_n(0, 20_000));
    samples
}
