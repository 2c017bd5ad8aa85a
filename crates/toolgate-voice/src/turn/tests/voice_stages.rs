//! Measures what a spoken request costs besides its engines. Transcription, model and speech are
//! fakes that answer at once, each over a socket; their own time is included. Then answers are
//! interrupted while a program plays them. The last line of output is a JSON object, in
//! milliseconds. Fails if the median of the requests or interruptions reaches the promised limit.
//!
//! ```text
//! VOICE_STAGES=COUNT    {"transcribed": {"p50": …, "p99": …}, "first_token": …, "first_audio": …, "end_of_speech_to_first_audio": …, "interrupted": …}
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::segment::Utterance;
use crate::speak::{NoOutput, PlayerProgram, Speaker, create_synthesizer};
use crate::transcribe::WyomingAsr;
use crate::turn::{BackgroundTranscriber, TranscriberParts};
use crate::wyoming::WyomingAddress;
use crate::{VoiceSettings, VoiceVolume};
use fakellm::{Answer, FakeLlm, Script};
use fakewyoming::{FakeAsr, FakeTts};
use tokio::time::Instant;
use toolgate_core::{ToolExecutor, ToolManager};
use toolgate_models::{ModelSettings, OllamaClient, Toolbox};

use super::measure::{ExampleError, StageTimes, TurnSender, println, report, whole};
use super::support::start;

// Warm-up: connections are made and everything is loaded.
const WARM_UP: usize = 20;

/// From the end of speech to the first sound, besides the engines.
const PROMISED_MS: f64 = 20.0;

/// From an interruption to silence.
const SILENT_MS: f64 = 150.0;

const ANSWER: &str = "Noon.";

/// The bytes of a WAV file in front of its sound.
const HEADER: u64 = 44;

#[tokio::test]
#[ignore = "measured by ./test.sh bench"]
async fn voice_stages() -> Result<(), ExampleError> {
    let count: usize = std::env::var("VOICE_STAGES").map_or(Ok(20), |count| count.parse())?;
    let (asr, tts) = (FakeAsr::start([]).await, FakeTts::start().await);
    let model = FakeLlm::lenient(Script::always(Answer::text(ANSWER))).await;
    let (sender, mut turns) = TurnSender::new();
    let transcriber = transcriber(&asr, &model, &tts, sender)?;
    let mut all = Vec::new();
    for index in 0..WARM_UP + count {
        asr.push_text("What time is it?");
        transcriber.submit(utterance())?;
        let turn = turns.recv().await.ok_or("there are no turns any more")?;
        if turn.answer != ANSWER {
            return Err(format!("{turn:?}").into());
        }
        asr.forget();
        tts.forget();
        model.clear_requests();
        if index >= WARM_UP {
            all.push(turn.stages);
        }
    }
    transcriber.close().await;
    let silence = interruption_times(&tts, count).await?;
    let mut json = report(&all, 99)?;
    json["interrupted"] = silence.to_json(99);
    println(&json)?;
    check_median("requests", &whole(&all)?, PROMISED_MS)?;
    check_median("interruptions", &silence, SILENT_MS)
}

/// Fails unless the median is within the promised limit.
fn check_median(what: &str, times: &StageTimes, promised: f64) -> Result<(), ExampleError> {
    let median = times.percentile(50);
    match median.ok_or("measure at least one request")? {
        median if median < promised => Ok(()),
        median => Err(format!(
            "half of the {what} took {median:.1} ms or longer; {promised} ms are promised"
        )
        .into()),
    }
}

/// From a stop to the exit of the player.
async fn interruption_times(tts: &FakeTts, count: usize) -> Result<StageTimes, ExampleError> {
    let voice = create_synthesizer(&tts.address().to_string(), "")?;
    let folder = tempfile::tempdir()?;
    let played = folder.path().join("played.wav");
    let play = format!("exec cat >'{}'", played.display());
    let words = ["sh", "-c", &play].map(str::to_owned);
    let output = Arc::new(PlayerProgram::new(words.to_vec()));
    let speaker = Speaker::new(voice, output, VoiceVolume::default());
    let mut times = Vec::new();
    for _ in 0..count {
        let speech = speaker.begin();
        speech.push("This is a sentence that nobody hears to its end.");
        speech.flush();
        let sounds = || std::fs::metadata(&played).is_ok_and(|file| file.len() > HEADER);
        while !sounds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let stopped = Instant::now();
        speaker.stop();
        speech.finish().await;
        times.push(stopped.elapsed().as_secs_f64() * 1000.0);
        tts.forget();
        std::fs::remove_file(&played)?;
    }
    Ok(StageTimes::new(times))
}

fn transcriber(
    asr: &FakeAsr,
    model: &FakeLlm,
    tts: &FakeTts,
    sender: TurnSender,
) -> Result<BackgroundTranscriber, ExampleError> {
    let mut model_settings = ModelSettings::default();
    model_settings.name = "fake".to_owned();
    model_settings.url = model.url().to_owned();
    let hears: WyomingAddress = asr.address().parse()?;
    let speaks: WyomingAddress = tts.address().parse()?;
    let voice = create_synthesizer(&speaks.to_string(), "")?;
    let equipment = TranscriberParts {
        router: Arc::new(OllamaClient::new(&model_settings)?).into(),
        model_settings,
        toolbox: Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new()))),
        transcribe: Arc::new(WyomingAsr::new(hears, "en", Duration::from_secs(10))),
        speaker: Speaker::new(voice, Arc::new(NoOutput), VoiceVolume::default()),
        observer: Arc::new(sender),
        journal: None,
    };
    let settings = VoiceSettings::default();
    Ok(start(equipment, &settings, "wav"))
}

/// Two seconds that are loud enough.
fn utterance() -> Utterance {
    let samples = (0..32_000).map(|at| if at % 40 < 20 { 4000 } else { -4000 });
    let now = Instant::now();
    Utterance {
        samples: samples.collect(),
        began: now,
        wake_word: None,
        in_one_breath: false,
        ended: now,
        room: None,
    }
}
