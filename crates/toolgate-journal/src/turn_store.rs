//! Stores and reads voice turns.

use std::sync::LazyLock;

use rusqlite::{Connection, Row, named_params, params_from_iter};
use serde_json::json;
use toolgate_core::{Redactor, sanitize};

use crate::fields::{list, millis, number, text};
use crate::queue::{RowWaiter, WriterJob};
use crate::reader::select;
use crate::row::JournalRow;
use crate::seq::{self, MAX_PROBES};
use crate::{
    CallSummary, Journal, JournalError, JournalFilter, JournalReader, TurnOutcome, TurnStages,
    VoiceTurn, time,
};

/// `seq` is the time a turn was recorded, adjusted so that it never repeats or goes back: it is the
/// order in which turns ended, over all processes. Times are in microseconds.
pub(crate) const TABLE: &str = "
    CREATE TABLE turns (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, started_at INTEGER NOT NULL, source TEXT NOT NULL, room TEXT,
        wake_word TEXT, outcome TEXT NOT NULL, model TEXT NOT NULL, speech_ended INTEGER, transcribed INTEGER,
        first_token INTEGER, first_audio INTEGER, ended INTEGER, heard TEXT NOT NULL, answer TEXT NOT NULL, error TEXT,
        calls TEXT NOT NULL
    );";
pub(crate) const COLUMNS: &str = "seq, id, started_at, source, room, wake_word, outcome, model, \
    speech_ended, transcribed, first_token, first_audio, ended, heard, answer, error, calls";
// A turn that was recorded before stays unchanged.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let values = COLUMNS.split(", ").skip(1).map(|name| format!(":{name}"));
    let values = values.collect::<Vec<_>>().join(", ");
    let seq = "max(:now, coalesce((SELECT max(seq) FROM turns), 0) + 1)";
    format!("INSERT INTO turns ({COLUMNS}) VALUES ({seq}, {values}) ON CONFLICT DO NOTHING")
});

const MAX_TURNS: usize = 1000;
/// Further calls of one turn are left out.
const MAX_CALLS_PER_TURN: usize = 100;

impl Journal {
    /// Records a finished turn, with secrets redacted and long texts cut. Returns at once, because
    /// the writer's thread writes it. If the queue is full, the turn is lost and counted.
    pub fn record_turn(&self, turn: &VoiceTurn) {
        let turn = redact_turn(turn, &self.shared.redactor);
        let row = JournalRow::Turn(Box::new(turn));
        let job = WriterJob::Write(row, RowWaiter::Unacknowledged);
        if self.shared.queue.put(job).is_err() {
            self.shared.health.add_lost(1);
        }
    }
}

impl JournalReader {
    /// The voice turns that ended last, newest first: all turns, or those before the turn with the
    /// id `before`. Values of `limit` above 1000 count as 1000.
    pub fn turns(
        &self,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Vec<VoiceTurn>, JournalError> {
        let older = match before {
            Some(_) => "seq < (SELECT seq FROM turns WHERE id = ?)",
            None => "TRUE",
        };
        self.query_turns(older, limit, before)
    }

    /// The turns that ended after the one with the id `after`, newest first. If that turn was
    /// deleted, the newest of all.
    pub fn turns_after(&self, limit: usize, after: &str) -> Result<Vec<VoiceTurn>, JournalError> {
        let later = "seq > coalesce((SELECT seq FROM turns WHERE id = ?), 0)";
        self.query_turns(later, limit, Some(after))
    }

    pub fn turn(&self, id: &str) -> Result<Option<VoiceTurn>, JournalError> {
        Ok(self.query_turns("id = ?", 1, Some(id))?.pop())
    }

    /// The calls with these ids, such as those of a turn. Deleted calls are left out.
    pub fn calls_by_id(&self, ids: &[String]) -> Result<Vec<CallSummary>, JournalError> {
        self.query(|connection| {
            let dead = self.dead_runs(connection)?;
            let mut calls = Vec::new();
            for id in ids {
                let mut only = JournalFilter::default().conditions(&dead.list());
                let seq = seq::for_id(id);
                let values = [seq.into(), (seq + MAX_PROBES).into(), id.clone().into()];
                only.add("seq >= ? AND seq < ? AND id = ?", values);
                let found = select(connection, &only, "seq", 1, &dead)?;
                calls.extend(found.into_iter().map(|(_, call)| call));
            }
            Ok(calls)
        })
    }

    fn query_turns(
        &self,
        condition: &str,
        limit: usize,
        id: Option<&str>,
    ) -> Result<Vec<VoiceTurn>, JournalError> {
        let limit = limit.min(MAX_TURNS);
        let sql = format!(
            "SELECT {COLUMNS} FROM turns WHERE {condition} ORDER BY seq DESC LIMIT {limit}"
        );
        self.query(|connection| {
            // No process that knows turns has written to this file.
            if !connection.table_exists(None, "turns")? {
                return Ok(Vec::new());
            }
            let mut statement = connection.prepare(&sql)?;
            let id = id.map(str::to_ascii_lowercase);
            statement.query_map(params_from_iter(id), read)?.collect()
        })
    }
}

fn redact_turn(turn: &VoiceTurn, redactor: &Redactor) -> VoiceTurn {
    let name = |text: &str| sanitize::name(redactor, text);
    let text = |text: &str| sanitize::text(redactor, text);
    let calls = turn.calls.iter().take(MAX_CALLS_PER_TURN);
    VoiceTurn {
        id: name(&turn.id).to_ascii_lowercase(),
        started_at: turn.started_at,
        source: name(&turn.source),
        room: turn.room.as_deref().map(name),
        wake_word: turn.wake_word.as_deref().map(name),
        heard: text(&turn.heard),
        answer: text(&turn.answer),
        outcome: turn.outcome,
        error: turn.error.as_deref().map(text),
        model: name(&turn.model),
        stages: turn.stages,
        calls: calls.map(|id| name(id)).collect(),
    }
}

pub(crate) fn bytes(turn: &VoiceTurn) -> usize {
    let error = turn.error.as_ref().map_or(0, String::len);
    let calls: usize = turn.calls.iter().map(String::len).sum();
    turn.heard.len() + turn.answer.len() + error + calls
}

/// Writes a turn that [`Journal::record_turn`] has redacted.
pub(crate) fn write(connection: &Connection, turn: &VoiceTurn) -> rusqlite::Result<()> {
    let micros = |ms: Option<f64>| ms.map(|ms| (ms * 1000.0).round() as i64);
    connection.prepare_cached(&INSERT)?.execute(named_params! {
        ":now": time::now(),
        ":id": turn.id,
        ":started_at": turn.started_at.as_microsecond(),
        ":source": turn.source,
        ":room": turn.room,
        ":wake_word": turn.wake_word,
        ":outcome": outcome_name(turn.outcome),
        ":model": turn.model,
        ":speech_ended": micros(turn.stages.speech_ended_ms),
        ":transcribed": micros(turn.stages.transcribed_ms),
        ":first_token": micros(turn.stages.first_token_ms),
        ":first_audio": micros(turn.stages.first_audio_ms),
        ":ended": micros(turn.stages.ended_ms),
        ":heard": turn.heard,
        ":answer": turn.answer,
        ":error": turn.error,
        ":calls": json!(turn.calls).to_string(),
    })?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<VoiceTurn> {
    let word = text(row, "outcome")?.unwrap_or_default();
    Ok(VoiceTurn {
        id: text(row, "id")?.unwrap_or_default(),
        started_at: time::timestamp(number(row, "started_at")?.unwrap_or(0)),
        source: text(row, "source")?.unwrap_or_default(),
        room: text(row, "room")?,
        wake_word: text(row, "wake_word")?,
        outcome: parse_outcome(&word),
        model: text(row, "model")?.unwrap_or_default(),
        stages: TurnStages {
            speech_ended_ms: millis(row, "speech_ended")?,
            transcribed_ms: millis(row, "transcribed")?,
            first_token_ms: millis(row, "first_token")?,
            first_audio_ms: millis(row, "first_audio")?,
            ended_ms: millis(row, "ended")?,
        },
        heard: text(row, "heard")?.unwrap_or_default(),
        answer: text(row, "answer")?.unwrap_or_default(),
        error: text(row, "error")?,
        calls: list(row, "calls")?,
    })
}

fn outcome_name(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Answered => "answered",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Failed => "failed",
    }
}

// Anything else in a damaged file counts as failed.
fn parse_outcome(word: &str) -> TurnOutcome {
    match word {
        "answered" => TurnOutcome::Answered,
        "interrupted" => TurnOutcome::Interrupted,
        _ => TurnOutcome::Failed,
    }
}
