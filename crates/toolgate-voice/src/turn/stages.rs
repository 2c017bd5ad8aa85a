//! When each stage of a turn was reached, and the record that is made of it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolgate_journal::{TurnOutcome, TurnStages, VoiceTurn};

use super::Question;

#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) source: String,
    pub(super) room: Option<String>,
    pub(super) wake_word: Option<String>,
    pub(super) heard: String,
    pub(super) began: Instant,
    pub(super) speech_ended: Option<Instant>,
    pub(super) transcribed: Option<Instant>,
}

impl Asked {
    pub(super) fn now(question: &Question, heard: String) -> Self {
        Self {
            source: question.source.clone(),
            room: question.room.clone(),
            wake_word: None,
            heard,
            began: Instant::now(),
            speech_ended: None,
            transcribed: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Came {
    pub(super) answer: String,
    pub(super) outcome: TurnOutcome,
    pub(super) error: Option<String>,
    pub(super) model: String,
    pub(super) calls: Vec<String>,
    pub(super) first_token: Option<Instant>,
    pub(super) first_audio: Option<Instant>,
}

pub(super) fn record(asked: Asked, came: Came) -> VoiceTurn {
    let ended = Instant::now();
    let began = asked.began.min(ended);
    let started_at = Timestamp::now() - (ended - began);
    let after = |at: Option<Instant>| at.map(|at| millis(at.saturating_duration_since(began)));
    VoiceTurn {
        id: id(started_at),
        started_at,
        source: asked.source,
        room: asked.room,
        wake_word: asked.wake_word,
        heard: asked.heard,
        answer: came.answer,
        outcome: came.outcome,
        error: came.error,
        model: came.model,
        stages: TurnStages {
            speech_ended_ms: after(asked.speech_ended),
            transcribed_ms: after(asked.transcribed),
            first_token_ms: after(came.first_token),
            first_audio_ms: after(came.first_audio),
            ended_ms: after(Some(ended)),
        },
        calls: came.calls,
    }
}

/// 48 bits of milliseconds, then chance.
fn id(at: Timestamp) -> String {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or(0);
    format!("{:032x}", millis << 80 | fastrand::u128(..) >> 48)
}

fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
