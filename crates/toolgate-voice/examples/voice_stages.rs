//! Measures what a spoken request costs besides its engines: transcription, model and speech are doubles that answer at once, each
//! over a socket. What the doubles need themselves is in it. The last line of output is one JSON object, in milliseconds.
//!
//! ```text
//! voice_stages COUNT    {"transcribed": {"p50": …, "p99": …}, "first_token": …, "first_audio": …, "end_of_speech_to_first_audio": …}
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fakellm::{Answer, FakeLlm, Script};
use fakewyoming::{FakeAsr, FakeTts};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolgate_core::{ToolExecutor, ToolManager};
use toolgate_journal::{TurnStages, VoiceTurn};
use toolgate_models::{ModelSettings, OllamaClient, Toolbox};
use toolgate_voice::wyoming::Address;
use toolgate_voice::{
    BackgroundTranscriber, Equipment, Event, Loudness, NoOutput, Speaker, Utterance, VoiceSettings,
    Watcher, WyomingAsr, WyomingTts,
};

type Failure = Box<dyn std::error::Error>;

/// Not measured: connections are made, and everything is in memory.
const WARM_UP: usize = 20;

const ANSWER: &str = "Noon.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1).ok_or("usage: voice_stages COUNT")?;
    let count: usize = count.parse()?;
    let (asr, tts) = (FakeAsr::start([]).await, FakeTts::start().await);
    let model = FakeLlm::lenient(Script::always(Answer::text(ANSWER))).await;
    let (tell, mut turns) = mpsc::unbounded_channel();
    let transcriber = transcriber(&asr, &model, &tts, Told(Mutex::new(tell)))?;
    let mut all = Vec::new();
    for index in 0..WARM_UP + count {
        asr.then("What time is it?");
        transcriber.hear(utterance())?;
        let turn = turns.recv().await.ok_or("there are no turns any more")?;
        if turn.answer != ANSWER {
            return Err(format!("{turn:?}").into());
        }
        asr.forget();
        tts.forget();
        model.forget();
        if index >= WARM_UP {
            all.push(turn.stages);
        }
    }
    transcriber.close().await;
    println(&report(&all)?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the measurement is the output")]
fn println(line: &Value) {
    println!("{line}");
}

fn transcriber(
    asr: &FakeAsr,
    model: &FakeLlm,
    tts: &FakeTts,
    told: Told,
) -> Result<BackgroundTranscriber, Failure> {
    let mut model_settings = ModelSettings::default();
    model_settings.name = "fake".to_owned();
    model_settings.url = model.url().to_owned();
    let hears: Address = asr.address().parse()?;
    let speaks: Address = tts.address().parse()?;
    let voice = Arc::new(WyomingTts::new(speaks, ""));
    let equipment = Equipment {
        model: Arc::new(OllamaClient::new(&model_settings)?),
        model_settings,
        toolbox: Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new()))),
        transcribe: Arc::new(WyomingAsr::new(hears, "en", Duration::from_secs(10))),
        speaker: Speaker::new(voice, Arc::new(NoOutput), Loudness::default()),
        watcher: Arc::new(told),
        journal: None,
    };
    let settings = VoiceSettings::default();
    Ok(BackgroundTranscriber::start(equipment, &settings, "wav"))
}

/// Two seconds that are loud enough.
fn utterance() -> Utterance {
    let samples = (0..32_000).map(|at| if at % 40 < 20 { 4000 } else { -4000 });
    let now = Instant::now();
    Utterance {
        samples: samples.collect(),
        began: now,
        wake_word: None,
        ended: now,
        room: None,
    }
}

struct Told(Mutex<mpsc::UnboundedSender<VoiceTurn>>);

impl Watcher for Told {
    fn event(&self, event: Event<'_>) {
        if let Event::Turn(turn) = event {
            let tell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody listens any more at the end.
            drop(tell.send(turn.clone()));
        }
    }
}

fn report(all: &[TurnStages]) -> Result<Value, Failure> {
    let between = |from: fn(&TurnStages) -> Option<f64>, to: fn(&TurnStages) -> Option<f64>| {
        let times = all.iter().map(|stages| Some(to(stages)? - from(stages)?));
        let times: Option<Vec<f64>> = times.collect();
        times.map(percentiles).ok_or("a stage was not reached")
    };
    Ok(json!({
        "transcribed": between(|all| all.speech_ended_ms, |all| all.transcribed_ms)?,
        "first_token": between(|all| all.transcribed_ms, |all| all.first_token_ms)?,
        "first_audio": between(|all| all.first_token_ms, |all| all.first_audio_ms)?,
        "end_of_speech_to_first_audio": between(|all| all.speech_ended_ms, |all| all.first_audio_ms)?,
    }))
}

fn percentiles(mut times: Vec<f64>) -> Value {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len().saturating_sub(1) * share / 100);
    json!({ "p50": at(50), "p99": at(99) })
}
