//! What a voice gateway heard and said, from the journal it shares with this one.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use toolgate_journal::{CallSummary, JournalError, Reader, TurnOutcome, TurnStages, VoiceTurn};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Asked, Named, whole_id};
use crate::desk::LOOKS;
use crate::guard::Caller;
use crate::history::History;
use crate::problem::Problem;
use crate::{Gateway, Right};

/// A list is this long unless told otherwise.
const USUAL: usize = 50;
/// A list is never longer.
const MOST: usize = 200;

/// Which turns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TurnsQuery {
    /// Only those that ended before the turn with this id: the next page.
    before: Option<String>,
    /// Only those that ended after the turn with this id: what is new. If it is not there any more, the newest of all.
    after: Option<String>,
    /// At most so many, 50 unless told; never more than 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// One spoken request and its answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Turn {
    /// 32 hexadecimal digits, sorted by time.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    id: String,
    /// When its name was heard, or speech began where it needs no name; in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    started_at: String,
    /// Where it was heard, such as `microphone`, `wav`, `satellite` or `handle`.
    #[schema(example = "satellite")]
    source: String,
    /// The room, if that is known.
    #[schema(example = "kitchen")]
    room: Option<String>,
    /// The wake word, if there was one.
    #[schema(example = "ok nabu")]
    wake_word: Option<String>,
    /// What was understood.
    #[schema(example = "turn on switch one")]
    heard: String,
    /// What was said, or would have been.
    #[schema(example = "Switch one is on.")]
    answer: String,
    /// `answered`; `interrupted`, where somebody spoke or pressed a key before the answer was over; or `failed`, where there
    /// is no proper answer.
    #[schema(value_type = String, example = "answered")]
    outcome: TurnOutcome,
    /// Why there is no proper answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Who answered.
    #[schema(example = "intents en")]
    model: String,
    /// When each stage was reached.
    stages: Stages,
    /// Its tool calls, in order.
    calls: Vec<TurnCall>,
}

/// When each stage of a turn was reached, in milliseconds after it began; nothing for those that were not.
#[derive(Debug, Serialize, ToSchema)]
struct Stages {
    /// Speech was found to be over.
    #[schema(example = 1200.5)]
    speech_ended_ms: Option<f64>,
    /// Its words were known.
    #[schema(example = 1650.0)]
    transcribed_ms: Option<f64>,
    /// The model said or called something.
    #[schema(example = 1651.2)]
    first_token_ms: Option<f64>,
    /// The first sound of the answer left.
    #[schema(example = 1900.0)]
    first_audio_ms: Option<f64>,
    /// The last sound was played, or the answer broke off.
    #[schema(example = 3100.0)]
    ended_ms: Option<f64>,
}

/// A tool call of a turn. Only its id is known once it is deleted.
#[derive(Debug, Serialize, ToSchema)]
struct TurnCall {
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000008")]
    id: String,
    /// The name that was asked for.
    #[schema(example = "control_zwave_device")]
    tool: Option<String>,
    /// How it ended, as in the list of calls.
    #[schema(example = "success")]
    outcome: Option<String>,
    /// How long it took.
    #[schema(example = 41.7)]
    duration_ms: Option<f64>,
}

/// Voice turns, newest first.
#[utoipa::path(get, path = "/api/turns", tag = "turns", params(TurnsQuery),
    responses((status = 200, description = "Voice turns in the order in which they ended, newest first; none where there is no journal", body = Vec<Turn>),
              (status = 400, description = "A parameter makes no sense", body = Problem),
              (status = 403, description = "The caller does not have the right to see all", body = Problem),
              (status = 503, description = "The journal can not be read", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Asked(query): Asked<TurnsQuery>,
) -> Result<Json<Vec<Turn>>, Problem> {
    caller.expect(Right::SeeAll)?;
    let bad = |detail: &str| Problem::new(StatusCode::BAD_REQUEST, detail);
    let limit = query.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(bad("'limit' must be from 1 to 200"));
    }
    let before = whole_id("before", query.before)?;
    let after = whole_id("after", query.after)?;
    if before.is_some() && after.is_some() {
        return Err(bad("give 'before' or 'after', not both"));
    }
    let Some(reader) = History::of(&gateway).reader() else {
        return Ok(Json(Vec::new()));
    };
    let turns = LOOKS.ask(reader, move |reader| {
        let turns = match after {
            Some(after) => reader.turns_after(limit, &after),
            None => reader.turns(limit, before.as_deref()),
        };
        with_calls(reader, turns?)
    });
    turns.await.map(Json)
}

/// One voice turn.
#[utoipa::path(get, path = "/api/turns/{id}", tag = "turns",
    params(("id" = String, Path, description = "The id of the turn", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 200, description = "The turn", body = Turn),
              (status = 400, description = "The path can not be read", body = Problem),
              (status = 403, description = "The caller does not have the right to see all", body = Problem),
              (status = 404, description = "No such turn", body = Problem),
              (status = 503, description = "The journal can not be read", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<Turn>, Problem> {
    caller.expect(Right::SeeAll)?;
    let found = match History::of(&gateway).reader() {
        Some(reader) => {
            let turn =
                move |reader: &Reader| with_calls(reader, reader.turn(&id)?.into_iter().collect());
            LOOKS.ask(reader, turn).await?.pop()
        }
        None => None,
    };
    let missing = || Problem::not_found("there is no such turn; GET /api/turns lists the latest");
    found.map(Json).ok_or_else(missing)
}

/// Turns with what is known of their calls.
fn with_calls(reader: &Reader, turns: Vec<VoiceTurn>) -> Result<Vec<Turn>, JournalError> {
    let ids: Vec<String> = turns.iter().flat_map(|turn| turn.calls.clone()).collect();
    let calls = match ids.is_empty() {
        true => Vec::new(),
        false => reader.calls_by_id(&ids)?,
    };
    let calls: HashMap<&str, &CallSummary> =
        calls.iter().map(|call| (call.id.as_str(), call)).collect();
    Ok(turns
        .into_iter()
        .map(|turn| Turn::new(turn, &calls))
        .collect())
}

impl Turn {
    fn new(turn: VoiceTurn, known: &HashMap<&str, &CallSummary>) -> Self {
        let call = |id: String| {
            let call = known.get(id.as_str());
            TurnCall {
                tool: call.map(|call| call.tool.clone()),
                outcome: call.map(|call| call.outcome.clone()),
                duration_ms: call.and_then(|call| call.duration_ms),
                id,
            }
        };
        Self {
            id: turn.id,
            started_at: format!("{:.3}", turn.started_at),
            source: turn.source,
            room: turn.room,
            wake_word: turn.wake_word,
            heard: turn.heard,
            answer: turn.answer,
            outcome: turn.outcome,
            error: turn.error,
            model: turn.model,
            stages: turn.stages.into(),
            calls: turn.calls.into_iter().map(call).collect(),
        }
    }
}

impl From<TurnStages> for Stages {
    fn from(stages: TurnStages) -> Self {
        Self {
            speech_ended_ms: stages.speech_ended_ms,
            transcribed_ms: stages.transcribed_ms,
            first_token_ms: stages.first_token_ms,
            first_audio_ms: stages.first_audio_ms,
            ended_ms: stages.ended_ms,
        }
    }
}
