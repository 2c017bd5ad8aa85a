//! The record of a turn, with the time of each stage.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolgate_journal::{TurnOutcome, TurnStages, VoiceTurn};

use super::HANDLE;
use crate::services::HandleRequest;

#[derive(Debug, Clone)]
pub(super) struct TurnRequest {
    pub(super) source: String,
    pub(super) room: Option<String>,
    pub(super) wake_word: Option<String>,
    pub(super) heard: String,
    pub(super) began: Instant,
    pub(super) speech_ended: Option<Instant>,
    pub(super) transcribed: Option<Instant>,
}

impl TurnRequest {
    pub(super) fn from_written(request: &HandleRequest, heard: String) -> Self {
        Self {
            source: HANDLE.to_owned(),
            room: request.room().cloned(),
            wake_word: None,
            heard,
            began: Instant::now(),
            speech_ended: None,
            transcribed: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) answer: String,
    pub(super) outcome: TurnOutcome,
    pub(super) error: Option<String>,
    pub(super) model: String,
    pub(super) calls: Vec<String>,
    pub(super) first_token: Option<Instant>,
    pub(super) first_audio: Option<Instant>,
}

pub(super) fn to_voice_turn(request: TurnRequest, result: TurnResult) -> VoiceTurn {
    let ended = Instant::now();
    let began = request.began.min(ended);
    let started_at = Timestamp::now() - (ended - began);
    let after = |at: Option<Instant>| at.map(|at| to_millis(at.saturating_duration_since(began)));
    VoiceTurn {
        id: turn_id(started_at),
        started_at,
        source: request.source,
        room: request.room,
        wake_word: request.wake_word,
        heard: request.heard,
        answer: result.answer,
        outcome: result.outcome,
        error: result.error,
        model: result.model,
        stages: TurnStages {
            speech_ended_ms: after(request.speech_ended),
            transcribed_ms: after(request.transcribed),
            first_token_ms: after(result.first_token),
            first_audio_ms: after(result.first_audio),
            ended_ms: after(Some(ended)),
        },
        calls: result.calls,
    }
}

// Time first, so that ids sort by time: 48 bits of milliseconds, then random bits.
fn turn_id(at: Timestamp) -> String {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or(0);
    format!("{:032x}", millis << 80 | fastrand::u128(..) >> 48)
}

fn to_millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
