//! Measures spoken requests with engines that others wrote: a Wyoming service transcribes, espeak-ng speaks, and sentences that need
//! no model are answered with the program's own tools. The whole gateway runs; only nothing is played. The last line of output is
//! one JSON object, in milliseconds.
//!
//! ```text
//! voice_real ASR_ADDRESS WAV COUNT    WAV asks what can be answered without a house, such as "what time is it"
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
use toolgate_models::{Chosen, ModelSettings, SentenceRouter, Toolbox};
use toolgate_tools::Handlers;
use toolgate_tools::builtin::BuiltinSettings;
use toolgate_voice::{Input, Loudness, Mode, Parts, Reach, SpokenApprovals, VoiceSettings};

use crate::measure::{Failure, Told, println, report};

/// Not measured: the first sentence that an engine hears takes it longer.
const WARM_UP: usize = 2;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let usage = "usage: voice_real ASR_ADDRESS WAV COUNT";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [asr, wav, count] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let count: usize = count.parse()?;
    let (told, mut turns) = Told::new();
    let parts = parts(asr, vec![PathBuf::from(wav); WARM_UP + count], told)?;
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

fn parts(asr: &str, files: Vec<PathBuf>, told: Told) -> Result<Parts, Failure> {
    let mut settings = VoiceSettings::default();
    settings.asr = asr.to_owned();
    settings.tts = "espeak-ng".to_owned();
    settings.output = "none".to_owned();
    settings.tones = false;
    let manager = Arc::new(ToolManager::new());
    manager.add_all(Handlers::new(&BuiltinSettings::default()).builtin_tools());
    let toolbox = Toolbox::new(ToolExecutor::new(manager));
    let sentences = toolgate_models::sentences(&ModelSettings::default(), &toolbox)?;
    let router = SentenceRouter::sentences_only(sentences);
    let model = move || {
        let chosen = Chosen {
            router: router.clone(),
            settings: ModelSettings::default(),
            why: "it needs no engine".to_owned(),
            passed_over: Vec::new(),
        };
        async move { Ok(chosen) }.boxed()
    };
    Ok(Parts {
        settings,
        input: Some(Input::Wav(files)),
        mode: Mode::Always,
        model: Arc::new(model),
        model_settings: ModelSettings::default(),
        toolbox,
        tools: watch::Sender::new(Reach::Settled { missing: None }).subscribe(),
        approvals: SpokenApprovals::default(),
        journal: None,
        mqtt: None,
        loudness: Loudness::default(),
        watcher: Arc::new(told),
        keys: None,
    })
}
