//! Lists and shows voice turns, which a voice gateway records in the shared journal.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_journal::{CallSummary, JournalError, JournalReader, TurnOutcome, VoiceTurn};
use utoipa::{IntoParams, ToSchema};

use super::extract::{PathName, QueryParams, parse_full_id};
use crate::guard::Caller;
use crate::history::CallHistory;
use crate::problem::Problem;
use crate::query_limiter::LOOKUPS;
use crate::{Gateway, Right};

// The default length of a list.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TurnsQuery {
    /// Only turns that ended before the turn with this id, to get the next page.
    before: Option<String>,
    /// Only turns that ended after the turn with this id, to get what is new. If it no longer
    /// exists, the newest of all.
    after: Option<String>,
    /// The maximum number of turns, from 1 to 200; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// A spoken request and its answer.
#[derive(ToSchema)]
#[schema(as = Turn)]
#[expect(
    dead_code,
    reason = "it describes what with_calls makes of a VoiceTurn"
)]
struct VoiceTurnSchema {
    /// 32 hexadecimal digits, sorted by time.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    id: String,
    /// When the wake word was heard, or speech began where there is none; in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    started_at: String,
    /// The source of the audio, such as `microphone`, `wav`, `satellite` or `handle`.
    #[schema(example = "satellite")]
    source: String,
    /// The room, if it is known.
    #[schema(example = "kitchen")]
    room: Option<String>,
    /// The wake word, if there was one.
    #[schema(example = "ok nabu")]
    wake_word: Option<String>,
    /// The transcript of the request.
    #[schema(example = "turn on switch one")]
    heard: String,
    /// The spoken answer, even if it was not played.
    #[schema(example = "Switch one is on.")]
    answer: String,
    /// `answered`; `interrupted`, if somebody spoke or pressed a key before the answer was over; or
    /// `failed`, without a proper answer.
    #[schema(value_type = String, example = "answered")]
    outcome: TurnOutcome,
    /// Why a proper answer is missing.
    #[schema(nullable = false)]
    error: Option<String>,
    /// The model that answered.
    #[schema(example = "intents en")]
    model: String,
    /// When each stage was reached.
    stages: TurnStagesSchema,
    /// Its tool calls, in order.
    calls: Vec<TurnCall>,
}

/// When each stage of a turn was reached, in milliseconds after it began; nothing for stages
/// that were not reached.
#[derive(ToSchema)]
#[schema(as = Stages)]
#[expect(dead_code, reason = "it describes what TurnStages writes")]
struct TurnStagesSchema {
    /// The end of speech was detected.
    #[schema(example = 1200.5)]
    speech_ended_ms: Option<f64>,
    /// The transcript was complete.
    #[schema(example = 1650.0)]
    transcribed_ms: Option<f64>,
    /// The model said or called something.
    #[schema(example = 1651.2)]
    first_token_ms: Option<f64>,
    /// The first sound of the answer was sent.
    #[schema(example = 1900.0)]
    first_audio_ms: Option<f64>,
    /// The last sound was played, or the answer was cut off.
    #[schema(example = 3100.0)]
    ended_ms: Option<f64>,
}

/// A tool call of a turn. Only its id is known once the call is deleted.
#[derive(Debug, Serialize, ToSchema)]
struct TurnCall {
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000008")]
    id: String,
    /// The name that was called.
    #[schema(example = "control_zwave_device")]
    tool: Option<String>,
    /// How it ended, as in the list of calls.
    #[schema(example = "success")]
    outcome: Option<String>,
    /// The duration of the call.
    #[schema(example = 41.7)]
    duration_ms: Option<f64>,
}

/// Lists voice turns, newest first.
#[utoipa::path(get, path = "/api/turns", tag = "turns", params(TurnsQuery),
    responses((status = 200, description = "Voice turns in the order in which they ended, newest first; none without a journal", body = Vec<VoiceTurnSchema>),
              (status = 400, description = "A parameter is not valid", body = Problem),
              (status = 403, description = "The caller does not have the right to see all", body = Problem),
              (status = 503, description = "The journal can't be read", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<TurnsQuery>,
) -> Result<Json<Vec<Value>>, Problem> {
    caller.require(Right::SeeAll)?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request("'limit' must be from 1 to 200"));
    }
    let before = parse_full_id("before", query.before)?;
    let after = parse_full_id("after", query.after)?;
    if before.is_some() && after.is_some() {
        return Err(Problem::bad_request("set 'before' or 'after', not both"));
    }
    let Some(reader) = CallHistory(&gateway).reader() else {
        return Ok(Json(Vec::new()));
    };
    let turns = LOOKUPS.run(reader, move |reader| {
        let turns = match after {
            Some(after) => reader.turns_after(limit, &after),
            None => reader.turns(limit, before.as_deref()),
        };
        with_calls(reader, &turns?)
    });
    turns.await.map(Json)
}

/// Shows one voice turn.
#[utoipa::path(get, path = "/api/turns/{id}", tag = "turns",
    params(("id" = String, Path, description = "The id of the turn", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 200, description = "The turn", body = VoiceTurnSchema),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 403, description = "The caller does not have the right to see all", body = Problem),
              (status = 404, description = "No such turn", body = Problem),
              (status = 503, description = "The journal can't be read", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<Value>, Problem> {
    caller.require(Right::SeeAll)?;
    let found = match CallHistory(&gateway).reader() {
        Some(reader) => {
            let turn =
                move |reader: &JournalReader| with_calls(reader, reader.turn(&id)?.as_slice());
            LOOKUPS.run(reader, turn).await?.pop()
        }
        None => None,
    };
    let missing = || Problem::not_found("there is no such turn; GET /api/turns lists the latest");
    found.map(Json).ok_or_else(missing)
}

/// Returns the turns as JSON, with details of their calls instead of only their ids.
fn with_calls(reader: &JournalReader, turns: &[VoiceTurn]) -> Result<Vec<Value>, JournalError> {
    let ids: Vec<String> = turns.iter().flat_map(|turn| turn.calls.clone()).collect();
    let calls = match ids.is_empty() {
        true => Vec::new(),
        false => reader.calls_by_id(&ids)?,
    };
    let known: HashMap<&str, &CallSummary> =
        calls.iter().map(|call| (call.id.as_str(), call)).collect();
    let call = |id: &String| {
        let call = known.get(id.as_str());
        TurnCall {
            id: id.clone(),
            tool: call.map(|call| call.tool.clone()),
            outcome: call.map(|call| call.outcome.clone()),
            duration_ms: call.and_then(|call| call.duration_ms),
        }
    };
    let turn = |turn: &VoiceTurn| {
        let mut value = json!(turn);
        value["calls"] = turn.calls.iter().map(|id| json!(call(id))).collect();
        value
    };
    Ok(turns.iter().map(turn).collect())
}
