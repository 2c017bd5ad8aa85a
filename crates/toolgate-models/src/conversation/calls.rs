//! Runs the calls of a reply in parallel. Each call gets exactly one result.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolgate_core::text::{escape, nearest_names};
use toolgate_core::{ToolCall, ToolError, ToolOutcome, ToolWait};
use tracing::Instrument;

use super::running_turn::RunningTurn;
use super::tool_offer::remember_tool;
use super::{Conversation, result_text};
use crate::{AnswerSource, CallArguments, Catalog, ModelCall, ModelEvent, Toolbox};

// No useful reply makes more calls than this.
const MAX_CALLS: usize = 128;

/// A tool call in a [`RoundRecord`](crate::RoundRecord), with its outcome.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RoundCall {
    pub id: String,
    /// Serialized as the model wrote them: a string if they were not a JSON object.
    #[serde(serialize_with = "as_written")]
    pub arguments: CallArguments,
    #[serde(flatten, serialize_with = "envelope")]
    pub outcome: Arc<ToolOutcome>,
}

fn as_written<S: Serializer>(arguments: &CallArguments, serializer: S) -> Result<S::Ok, S::Error> {
    as_value(arguments).serialize(serializer)
}

fn envelope<S: Serializer>(outcome: &Arc<ToolOutcome>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome.as_ref().serialize(serializer)
}

// Stops a model from making the same call over and over. Lives for one turn.
#[derive(Default)]
pub(super) struct RepetitionGuard {
    calls: Vec<GuardedCall>,
}

struct GuardedCall {
    ids: Vec<String>,
    name: String,
    arguments: CallArguments,
    times: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallDecision {
    Make,
    // The same call with the same id: the model or a proxy sent it twice.
    Duplicate,
    // The call was made this many times already, which is the limit.
    Repetition(usize),
}

impl RepetitionGuard {
    /// Decides whether a call is made, and records it if so. `id` is the provider's.
    pub(super) fn decide(&mut self, id: &str, call: &ModelCall, max: usize) -> CallDecision {
        let same =
            |made: &&mut GuardedCall| made.name == call.name && made.arguments == call.arguments;
        let Some(made) = self.calls.iter_mut().find(same) else {
            self.calls.push(GuardedCall {
                ids: vec![id.to_owned()],
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                times: 1,
            });
            return CallDecision::Make;
        };
        if !id.is_empty() && made.ids.iter().any(|other| other == id) {
            return CallDecision::Duplicate;
        }
        if made.times >= max {
            return CallDecision::Repetition(made.times);
        }
        made.times += 1;
        made.ids.push(id.to_owned());
        CallDecision::Make
    }
}

pub(super) struct CallPlan {
    decision: CallDecision,
    exceeds_limit: bool,
    // A sentence is the user's own request, while a model makes its own choices. Policies may treat
    // them differently.
    source: AnswerSource,
}

impl CallPlan {
    pub(super) fn new(index: usize, decision: CallDecision, source: AnswerSource) -> Self {
        Self {
            decision,
            exceeds_limit: index >= MAX_CALLS,
            source,
        }
    }

    pub(super) fn is_repetition(&self) -> bool {
        matches!(self.decision, CallDecision::Repetition(_))
    }

    // Calls that are not made go through the executor too, so that the journal has them.
    fn to_call(&self, call: &ModelCall, toolbox: &Toolbox, catalog: &Catalog) -> ToolCall {
        let refused = |error| {
            ToolCall::from_invalid(call.name.as_str(), as_value(&call.arguments), error)
                .scope(toolbox.scope().without_restrictions())
        };
        let denied = |reason: String| refused(ToolError::denied(&call.name, reason));
        match self.decision {
            _ if self.exceeds_limit => refused(ToolError::Overloaded {
                tool: call.name.clone(),
                limit: MAX_CALLS,
            }),
            CallDecision::Duplicate => denied(
                "was already called with this id and was not called again; its result is above"
                    .to_owned(),
            ),
            CallDecision::Repetition(times) => denied(format!(
                "was called {times} times with these arguments in this turn and was not called again: use the results \
                 above, do something else, or answer"
            )),
            CallDecision::Make if !toolbox.allows(&call.name) => {
                refused(not_found(&call.name, catalog))
            }
            CallDecision::Make => call
                .arguments
                .to_call(&call.name)
                .scope(toolbox.scope().clone()),
        }
    }
}

impl Conversation {
    // Maps the number of results to the bytes that the model gets of each. Together they take about
    // a third of the window, because a token is about three bytes.
    fn largest_result(&self) -> impl Fn(usize) -> usize + use<> {
        const MIN_RESULT_BYTES: usize = 1000;
        let (window, max) = (self.router.window(), self.settings.max_result);
        move |results| max.min((window / results.max(1)).max(MIN_RESULT_BYTES))
    }

    // Results in history may have been cut for another model, or not at all.
    pub(super) fn cut_results(&mut self) {
        if std::mem::take(&mut self.has_other_cuts) {
            let max = self.largest_result();
            self.history.cut_results(&max);
        }
    }
}

impl RunningTurn<'_> {
    /// Runs the calls of the last message in parallel. Dropping the future stops them; results that
    /// are complete by then stay in history.
    pub(super) async fn run(&mut self, plan: &[CallPlan]) {
        let catalog = Arc::clone(&self.catalog);
        let left = self.time_for_tools();
        let max = self.conversation.largest_result()(plan.len());
        let flow = self.conversation.flow();
        let mut used: Vec<Option<RoundCall>> = plan.iter().map(|_| None).collect();
        let mut running = CallTasks::for_calls(plan.len());
        for (index, (planned, call)) in plan
            .iter()
            .zip(self.conversation.history.calls())
            .enumerate()
        {
            let toolbox = &self.conversation.toolbox;
            let tool_call = planned.to_call(call, toolbox, &catalog).flow(&flow);
            let source = planned.source;
            let tool_call = match source {
                AnswerSource::Sentences => tool_call.user_initiated(),
                AnswerSource::Model(_) => tool_call,
            };
            let id = tool_call.id();
            let tool_call = match &self.conversation.trace {
                Some((parent, Some(state))) => tool_call.trace_parent(parent).trace_state(state),
                Some((parent, None)) => tool_call.trace_parent(parent),
                None => tool_call.trace_of(*self.first.get_or_insert(id)),
            };
            self.listener
                .event(ModelEvent::Calling { call, source, id });
            let work = execute(toolbox, tool_call, left);
            running.spawn(index, work);
        }
        while let Some(done) = running.next().await {
            // A task that panicked or was aborted leaves its slot empty, and history reports its
            // call as interrupted.
            if let Some((index, outcome)) = done {
                used[index] = self.finish_call((index, plan[index].source), outcome, &catalog, max);
            }
        }
        self.conversation.history.finish_calls();
        if let Some(round) = self.rounds.last_mut() {
            round.calls = used.into_iter().flatten().collect();
        }
    }

    fn finish_call(
        &mut self,
        (index, source): (usize, AnswerSource),
        mut outcome: ToolOutcome,
        catalog: &Catalog,
        max: usize,
    ) -> Option<RoundCall> {
        let conversation = &mut *self.conversation;
        let call = conversation.history.calls().nth(index)?;
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            // The executor would suggest tools by their listed names, and some that this model
            // isn't offered.
            *error = not_found(&call.name, catalog);
        }
        self.listener.event(ModelEvent::Called {
            call,
            source,
            outcome: &outcome,
        });
        let outcome = Arc::new(outcome);
        let wire_name = catalog.wire_name(&call.name);
        let result = result_text::to_tool_result(call, &wire_name, &outcome);
        if result.text.len() > max {
            let full_size = result_text::display_size(result.text.len());
            let sent_size = result_text::display_size(max);
            self.listener.event(ModelEvent::Notice(&format!(
                "the model gets {sent_size} of the result of '{}' ({full_size}): the rest doesn't fit, or exceeds model.maxResult",
                escape(&call.name)
            )));
        }
        let used = RoundCall {
            id: call.id.clone(),
            arguments: call.arguments.clone(),
            outcome,
        };
        if used.outcome.is_success() {
            remember_tool(&mut conversation.used_tools, &call.name);
        }
        let history = &mut conversation.history;
        history
            .uncut
            .outcomes
            .recent
            .push(Arc::clone(&used.outcome));
        history.add_result(index, result, max);
        Some(used)
    }

    // Leaves time for an answer after the tools have run.
    fn time_for_tools(&self) -> Duration {
        let now = Instant::now();
        let until_the_last_round = self.tools_until.saturating_duration_since(now);
        let half = self.deadline.saturating_duration_since(now) / 2;
        // Rounded to tenths of a second, because error messages quote it.
        let tenths = until_the_last_round.max(half).as_millis().div_ceil(100);
        Duration::from_millis(100) * u32::try_from(tenths).unwrap_or(u32::MAX)
    }
}

// Several calls get a task each, so that they can use several cores. A single call doesn't need
// one.
enum CallTasks {
    Alone(Option<BoxFuture<'static, (usize, ToolOutcome)>>),
    Many(JoinSet<(usize, ToolOutcome)>),
}

impl CallTasks {
    fn for_calls(count: usize) -> Self {
        match count {
            0 | 1 => Self::Alone(None),
            _ => Self::Many(JoinSet::new()),
        }
    }

    fn spawn(&mut self, index: usize, work: impl Future<Output = ToolOutcome> + Send + 'static) {
        let work = async move { (index, work.await) };
        match self {
            Self::Alone(alone) => *alone = Some(Box::pin(work)),
            Self::Many(tasks) => drop(tasks.spawn(work.in_current_span())),
        }
    }

    // The inner `None` means that the call panicked or was aborted.
    async fn next(&mut self) -> Option<Option<(usize, ToolOutcome)>> {
        match self {
            Self::Alone(alone) => {
                let work = AssertUnwindSafe(alone.take()?).catch_unwind();
                Some(work.await.ok())
            }
            Self::Many(tasks) => tasks.join_next().await.map(Result::ok),
        }
    }
}

fn execute(
    toolbox: &Toolbox,
    call: ToolCall,
    left: Duration,
) -> impl Future<Output = ToolOutcome> + Send + use<> {
    // The executor's own time limit must fire first, so that the journal has the same outcome.
    const GRACE: Duration = Duration::from_millis(500);
    let toolbox = toolbox.clone();
    async move {
        let executor = toolbox.executor();
        let left = wait_for_tool(&toolbox, call.name(), left).await;
        let tool = executor.find(call.name());
        let own = tool.map(|tool| tool.definition().timeout(&executor.rules().limits));
        let mut call = call.origin(toolbox.origin());
        if own.is_ok_and(|own| left < own) {
            // A limit that comes with the call isn't extended by progress, so it's set only if less
            // time is left than the tool itself allows.
            call = call.timeout(left);
        }
        let error = ToolError::TimedOut {
            tool: call.name().to_owned(),
            after: left,
        };
        let mut overdue = ToolOutcome::rejected(&call, error);
        overdue.elapsed = left;
        let work = executor.execute(call);
        let done = tokio::time::timeout(left + GRACE, work).await;
        done.unwrap_or(overdue)
    }
}

// Waits for a tool whose server is still starting, and returns the time left. Reports no wait,
// because the listener has seen the call already.
async fn wait_for_tool(toolbox: &Toolbox, name: &str, left: Duration) -> Duration {
    if toolbox.executor().find(name).is_ok() || toolbox.is_availability_known(name) {
        return left;
    }
    let began = Instant::now();
    let mut ignore = |_: ToolWait<'_>| {};
    let available = toolbox.wait_for_tool(name, &mut ignore);
    // The other half is for the call itself.
    let _is_there = tokio::time::timeout(left / 2, available).await.is_ok();
    left.saturating_sub(began.elapsed())
}

fn as_value(arguments: &CallArguments) -> Value {
    match arguments {
        CallArguments::Object(object) => Value::Object(object.clone()),
        CallArguments::Unusable(text) => Value::String(text.clone()),
    }
}

// Lists the wire names, which are those that the model knows, similar ones first.
fn not_found(name: &str, catalog: &Catalog) -> ToolError {
    const MAX_NAME_BYTES: usize = 200;
    let shown = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
    let names = || catalog.tools().iter().map(|tool| tool.wire_name.as_str());
    let mut known = nearest_names(shown, names(), usize::MAX);
    let nearest = known.iter().take(3).cloned().collect();
    let alike: HashSet<String> = known.iter().cloned().collect();
    let others = names().filter(|name| !alike.contains(*name));
    known.extend(others.map(str::to_owned));
    ToolError::NotFound {
        name: escape(shown),
        nearest,
        known,
    }
}
