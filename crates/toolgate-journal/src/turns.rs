//! Voice turns in the file: how they are kept, and how they are found again.

use std::sync::LazyLock;

use rusqlite::{Connection, Row, named_params, params_from_iter};
use serde_json::json;
use toolgate_core::{Redactor, kept};

use crate::fields::{list, millis, number, text};
use crate::place::{self, NEARBY};
use crate::queue::{Job, Waits};
use crate::reader::select;
use crate::row;
use crate::{
    CallSummary, Filter, Journal, JournalError, Reader, TurnOutcome, TurnStages, VoiceTurn, time,
};

/// `seq` is the time a turn was kept, moved so that it never repeats nor goes back: the order in which turns ended, over all
/// processes. Times are microseconds, as with calls.
pub(crate) const TABLE: &str = "
    CREATE TABLE turns (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, started_at INTEGER NOT NULL, source TEXT NOT NULL, room TEXT,
        wake_word TEXT, outcome TEXT NOT NULL, model TEXT NOT NULL, speech_ended INTEGER, transcribed INTEGER,
        first_token INTEGER, first_audio INTEGER, ended INTEGER, heard TEXT NOT NULL, answer TEXT NOT NULL, error TEXT,
        calls TEXT NOT NULL
    );";
pub(crate) const COLUMNS: &str = "seq, id, started_at, source, room, wake_word, outcome, model, \
    speech_ended, transcribed, first_token, first_audio, ended, heard, answer, error, calls";
/// A turn that is there already stays as it is.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let values = COLUMNS.split(", ").skip(1).map(|name| format!(":{name}"));
    let values = values.collect::<Vec<_>>().join(", ");
    let seq = "max(:now, coalesce((SELECT max(seq) FROM turns), 0) + 1)";
    format!("INSERT INTO turns ({COLUMNS}) VALUES ({seq}, {values}) ON CONFLICT DO NOTHING")
});

/// A list is at most so long.
const MOST_TURNS: usize = 1000;
/// Calls of one turn beyond this are left out.
const MOST_CALLS: usize = 100;

impl Journal {
    /// Keeps a turn that is over, without its secrets and with long texts cut. Waits for nothing: the journal's thread writes
    /// it, and where there is no room for it, it is lost and counted.
    pub fn keep_turn(&self, turn: &VoiceTurn) {
        let turn = cleaned(turn, &self.shared.redactor);
        let row = row::Row::Turn(Box::new(turn));
        if self
            .shared
            .queue
            .put(Job::Write(row, Waits::Nobody))
            .is_err()
        {
            self.shared.health.loses(1);
        }
    }
}

impl Reader {
    /// Voice turns in the order in which they ended, newest first: the newest of all, or those before the turn with this id. At
    /// most `limit`, and never more than 1000.
    pub fn turns(
        &self,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Vec<VoiceTurn>, JournalError> {
        match before {
            Some(_) => self.some_turns("seq < (SELECT seq FROM turns WHERE id = ?)", limit, before),
            None => self.some_turns("TRUE", limit, None),
        }
    }

    /// The turns that ended after the one with this id, newest first; the newest of all if it is not there any more.
    pub fn turns_after(&self, limit: usize, after: &str) -> Result<Vec<VoiceTurn>, JournalError> {
        let later = "seq > coalesce((SELECT seq FROM turns WHERE id = ?), 0)";
        self.some_turns(later, limit, Some(after))
    }

    /// One turn by its id.
    pub fn turn(&self, id: &str) -> Result<Option<VoiceTurn>, JournalError> {
        Ok(self.some_turns("id = ?", 1, Some(id))?.pop())
    }

    /// The calls with these ids, as a turn names them; those that are not there any more are left out.
    pub fn calls_by_id(&self, ids: &[String]) -> Result<Vec<CallSummary>, JournalError> {
        self.ask(|connection| {
            let dead = self.dead(connection)?;
            let mut calls = Vec::new();
            for id in ids {
                let mut only = Filter::default().conditions(&dead.list());
                let place = place::of(id);
                only.add(
                    "seq >= ? AND seq < ? AND id = ?",
                    [place.into(), (place + NEARBY).into(), id.clone().into()],
                );
                let found = select(connection, &only, "seq", 1, &dead)?;
                calls.extend(found.into_iter().map(|(_, call)| call));
            }
            Ok(calls)
        })
    }

    fn some_turns(
        &self,
        condition: &str,
        limit: usize,
        id: Option<&str>,
    ) -> Result<Vec<VoiceTurn>, JournalError> {
        let limit = limit.min(MOST_TURNS);
        let sql = format!(
            "SELECT {COLUMNS} FROM turns WHERE {condition} ORDER BY seq DESC LIMIT {limit}"
        );
        self.ask(|connection| {
            // Nobody has written to the file since there are turns.
            if !connection.table_exists(None, "turns")? {
                return Ok(Vec::new());
            }
            let mut statement = connection.prepare(&sql)?;
            let id = id.map(str::to_ascii_lowercase);
            statement.query_map(params_from_iter(id), read)?.collect()
        })
    }
}

/// A turn as it is kept: secrets out, everything bounded.
fn cleaned(turn: &VoiceTurn, redactor: &Redactor) -> VoiceTurn {
    let name = |text: &str| kept::name(redactor, text);
    let text = |text: &str| kept::text(redactor, text);
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
        calls: turn
            .calls
            .iter()
            .take(MOST_CALLS)
            .map(|id| name(id))
            .collect(),
    }
}

/// Roughly what a turn takes in memory.
pub(crate) fn bytes(turn: &VoiceTurn) -> usize {
    let error = turn.error.as_ref().map_or(0, String::len);
    let calls: usize = turn.calls.iter().map(String::len).sum();
    turn.heard.len() + turn.answer.len() + error + calls
}

/// Writes a turn that [`Journal::keep_turn`] has cleaned.
pub(crate) fn write(connection: &Connection, turn: &VoiceTurn) -> rusqlite::Result<()> {
    let micros = |ms: Option<f64>| ms.map(|ms| (ms * 1000.0).round() as i64);
    connection.prepare_cached(&INSERT)?.execute(named_params! {
        ":now": time::now(),
        ":id": turn.id,
        ":started_at": turn.started_at.as_microsecond(),
        ":source": turn.source,
        ":room": turn.room,
        ":wake_word": turn.wake_word,
        ":outcome": word(turn.outcome),
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
        outcome: outcome(&word),
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

fn word(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Answered => "answered",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::Failed => "failed",
    }
}

/// What a damaged file has there counts as no proper answer.
fn outcome(word: &str) -> TurnOutcome {
    match word {
        "answered" => TurnOutcome::Answered,
        "interrupted" => TurnOutcome::Interrupted,
        _ => TurnOutcome::Failed,
    }
}
