//! Shared by the measurements: collects turns as they end, and measures the
//! time between their stages.

use std::io::Write as _;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_journal::{TurnStages, VoiceTurn};
use toolgate_voice::{VoiceEvent, VoiceObserver};

pub(crate) type ExampleError = Box<dyn std::error::Error>;

/// Forwards every turn.
pub(crate) struct TurnSender(Mutex<mpsc::UnboundedSender<VoiceTurn>>);

impl TurnSender {
    /// Also returns the receiver of the turns.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<VoiceTurn>) {
        let (sender, turns) = mpsc::unbounded_channel();
        (Self(Mutex::new(sender)), turns)
    }
}

impl VoiceObserver for TurnSender {
    fn event(&self, event: VoiceEvent<'_>) {
        if let VoiceEvent::Turn(turn) = event {
            let sender = self.0.lock();
            // The receiver is gone at the end.
            drop(sender.send(turn.clone()));
        }
    }
}

/// The time between two stages of each turn, in milliseconds, sorted.
pub(crate) struct StageTimes(Vec<f64>);

type StageTime = fn(&TurnStages) -> Option<f64>;

impl StageTimes {
    pub(crate) fn between(
        all: &[TurnStages],
        from: StageTime,
        to: StageTime,
    ) -> Result<Self, ExampleError> {
        let times = all.iter().map(|stages| Some(to(stages)? - from(stages)?));
        let times: Option<Vec<f64>> = times.collect();
        Ok(Self::new(times.ok_or("a stage was not reached")?))
    }

    pub(crate) fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// The median and one more percentile.
    pub(crate) fn to_json(&self, high: usize) -> Value {
        let rounded = |share| {
            let times = self.percentile(share);
            times.map(|ms| (ms * 100.0).round() / 100.0)
        };
        json!({ "p50": rounded(50), format!("p{high}"): rounded(high) })
    }

    /// The time within which this percentage of the turns stay.
    pub(crate) fn percentile(&self, share: usize) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        self.0.get(last * share / 100).copied()
    }
}

/// From the end of speech to the first sound of the answer.
pub(crate) fn whole(all: &[TurnStages]) -> Result<StageTimes, ExampleError> {
    StageTimes::between(all, |one| one.speech_ended_ms, |one| one.first_audio_ms)
}

/// Each stage and the whole, with the median and one more percentile.
pub(crate) fn report(all: &[TurnStages], high: usize) -> Result<Value, ExampleError> {
    let percentiles = |times: StageTimes| times.to_json(high);
    let transcribed =
        StageTimes::between(all, |one| one.speech_ended_ms, |one| one.transcribed_ms)?;
    let first_token = StageTimes::between(all, |one| one.transcribed_ms, |one| one.first_token_ms)?;
    let first_audio = StageTimes::between(all, |one| one.first_token_ms, |one| one.first_audio_ms)?;
    Ok(json!({
        "transcribed": percentiles(transcribed),
        "first_token": percentiles(first_token),
        "first_audio": percentiles(first_audio),
        "end_of_speech_to_first_audio": percentiles(whole(all)?),
    }))
}

pub(crate) fn println(line: &Value) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
