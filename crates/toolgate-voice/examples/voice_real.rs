//! Measures spoken requests with real engines: a Wyoming service transcribes, espeak-ng speaks, and
//! the sentence matcher answers with the built-in tools. The whole gateway runs, but nothing is
//! played. The last line of output is a JSON object, in milliseconds.
//!
//! ```text
//! voice_real ASR_ADDRESS WAV COUNT    WAV asks what needs no home, such as "what time is it"
//!   {"transcribed": {"p50": …, "p90": …}, "first_token": …, "first_audio": …, "end_of_speech_to_first_audio": …}
//! ```

mod measure;

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_core::{ToolExecutor, ToolManager};
use toolgate_journal::TurnOutcome;
use toolgate_models::{ConnectedModel, ModelSettings, SentenceRouter, Toolbox};
use toolgate_tools::HandlerRegistry;
use toolgate_tools::builtin::BuiltinSettings;
use toolgate_voice::{
    AudioInput, ListenMode, SpokenApprovals, ToolServerStatus, VoiceGatewayParts, VoiceSettings,
    VoiceVolume,
};

use crate::measure::{ExampleError, TurnSender, println, report};

// Warm-up: an engine's first sentence takes longer.
const WARM_UP: usize = 2;

#[tokio::main]
async fn main() -> Result<(), ExampleError> {
    let usage = "usage: voice_real ASR_ADDRESS WAV COUNT";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [asr, wav, count] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let count: usize = count.parse()?;
    let (sender, mut turns) = TurnSender::new();
    let parts = parts(asr, vec![PathBuf::from(wav); WARM_UP + count], sender)?;
    toolgate_voice::run(parts, CancellationToken::new()).await?;
    let mut all = Vec::new();
    while let Ok(turn) = turns.try_recv() {
        if turn.outcome != TurnOutcome::Answered || turn.calls.is_empty() {
            return Err(format!("not answered with a tool: {turn:?}").into());
        }
        all.push(turn.stages);
    }
    if all.len() != WARM_UP + count {
        return Err(format!("{} of {} were heard", all.len(), WARM_UP + count).into());
    }
    println(&report(&all[WARM_UP..], 90)?)?;
    Ok(())
}

fn parts(
    asr: &str,
    files: Vec<PathBuf>,
    sender: TurnSender,
) -> Result<VoiceGatewayParts, ExampleError> {
    let mut settings = VoiceSettings::default();
    settings.asr = asr.to_owned();
    settings.tts = "espeak-ng".to_owned();
    settings.output = "none".to_owned();
    settings.tones = false;
    let manager = Arc::new(ToolManager::new());
    manager.add_all(HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools());
    let toolbox = Toolbox::new(ToolExecutor::new(manager));
    let sentences = toolgate_models::load_sentences(&ModelSettings::default(), &toolbox)?;
    let router = SentenceRouter::sentences_only(sentences);
    let model = move || {
        let chosen = ConnectedModel {
            router: router.clone(),
            settings: ModelSettings::default(),
            why: "it needs no engine".to_owned(),
            skipped: Vec::new(),
        };
        async move { Ok(chosen) }.boxed()
    };
    Ok(VoiceGatewayParts {
        settings,
        input: Some(AudioInput::Wav(files)),
        mode: ListenMode::Always,
        model: Arc::new(model),
        model_settings: ModelSettings::default(),
        toolbox,
        tools: watch::Sender::new(ToolServerStatus::Settled { missing: None }).subscribe(),
        approvals: SpokenApprovals::default(),
        journal: None,
        mqtt: None,
        volume: VoiceVolume::default(),
        observer: Arc::new(sender),
        keys: None,
    })
}
