//! Running the calls of a reply: all at once, each of them once, each with one result.

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
use toolgate_core::{ToolCall, ToolError, ToolOutcome, ToolWait, escape, nearest};
use tracing::Instrument;

use super::offering::remember;
use super::running::Running;
use super::window::Keep;
use super::{Conversation, cut};
use crate::{AnswerSource, CallArguments, Catalog, Event, ModelCall, Toolbox};

/// More calls in one reply are no plan but an accident.
const MOST_CALLS: usize = 128;

/// A tool that a model used, as it is told to programs: the envelope, with the model's id of the call and its arguments.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct UsedTool {
    /// The model's id of the call.
    pub id: String,
    /// As the model wrote them; a text if they were no JSON object.
    #[serde(serialize_with = "as_written")]
    pub arguments: CallArguments,
    /// What came of it.
    #[serde(flatten, serialize_with = "envelope")]
    pub outcome: Arc<ToolOutcome>,
}

fn as_written<S: Serializer>(arguments: &CallArguments, serializer: S) -> Result<S::Ok, S::Error> {
    match arguments {
        CallArguments::Object(object) => object.serialize(serializer),
        CallArguments::Unusable(text) => text.serialize(serializer),
    }
}

fn envelope<S: Serializer>(outcome: &Arc<ToolOutcome>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome.as_ref().serialize(serializer)
}

#[derive(Default)]
pub(super) struct Made {
    calls: Vec<MadeCall>,
}

struct MadeCall {
    ids: Vec<String>,
    name: String,
    arguments: CallArguments,
    times: usize,
}

/// Whether a call is made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Make,
    /// The same call, by its id, was made before: a model or a proxy stutters.
    Stutter,
    Repetition(usize),
}

impl Made {
    /// Whether a call with this name, these arguments and this id of the provider is to be made, and if so, that it was.
    pub(super) fn judge(&mut self, id: &str, call: &ModelCall, most: usize) -> Verdict {
        let same =
            |made: &&mut MadeCall| made.name == call.name && made.arguments == call.arguments;
        let Some(made) = self.calls.iter_mut().find(same) else {
            self.calls.push(MadeCall {
                ids: vec![id.to_owned()],
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                times: 1,
            });
            return Verdict::Make;
        };
        if !id.is_empty() && made.ids.iter().any(|other| other == id) {
            return Verdict::Stutter;
        }
        if made.times >= most {
            return Verdict::Repetition(made.times);
        }
        made.times += 1;
        made.ids.push(id.to_owned());
        Verdict::Make
    }
}

pub(super) struct Planned {
    verdict: Verdict,
    is_beyond_the_limit: bool,
    /// A sentence is what the person said; a model chooses.
    source: AnswerSource,
}

impl Planned {
    pub(super) fn new(place: usize, verdict: Verdict, source: AnswerSource) -> Self {
        Self {
            verdict,
            is_beyond_the_limit: place >= MOST_CALLS,
            source,
        }
    }

    pub(super) fn is_repetition(&self) -> bool {
        matches!(self.verdict, Verdict::Repetition(_))
    }

    /// What the executor gets. Also a call that is not made goes through it, so that it is on record.
    fn to_call(&self, call: &ModelCall, toolbox: &Toolbox, catalog: &Catalog) -> ToolCall {
        let refused = |error| {
            ToolCall::refused(call.name.as_str(), as_value(&call.arguments), error)
                .scope(toolbox.scope().without_limit())
        };
        let denied = |reason: String| refused(ToolError::denied(&call.name, reason));
        match self.verdict {
            _ if self.is_beyond_the_limit => refused(ToolError::Overloaded {
                tool: call.name.clone(),
                limit: MOST_CALLS,
            }),
            Verdict::Stutter => denied(
                "was called with this very id before and was not called again; the result stands above".to_owned(),
            ),
            Verdict::Repetition(times) => denied(format!(
                "was called {times} times with these arguments in this turn and was not called again: use the results \
                 above, do something else, or answer"
            )),
            Verdict::Make if !toolbox.lets_use(&call.name) => refused(not_found(&call.name, catalog)),
            Verdict::Make => call
                .arguments
                .to_call(&call.name)
                .scope(toolbox.scope().clone()),
        }
    }
}

impl Conversation {
    /// How many bytes the model is given of each of so many results. All of them together take about a third of its window: a
    /// token is about three bytes.
    fn largest_result(&self) -> impl Fn(usize) -> usize + use<> {
        const LEAST: usize = 1000;
        let (window, most) = (self.router.window(), self.settings.max_result);
        move |results| most.min((window / results.max(1)).max(LEAST))
    }

    /// Cuts earlier results for the model of now, if that is not the one they were cut for.
    pub(super) fn cut_results(&mut self) {
        if std::mem::take(&mut self.has_other_cuts) {
            let most = self.largest_result();
            let full_results = &self.full_results;
            let keep: Keep<'_> = &mut |id| full_results.get(id).is_some();
            self.history.cut_for(&most, keep);
        }
    }
}

impl Running<'_> {
    /// Runs the calls of the last message at the same time. Dropping the future stops those that run; what is done by then
    /// stays in history.
    pub(super) async fn run(&mut self, plan: &[Planned]) {
        let catalog = Arc::clone(&self.catalog);
        let left = self.left_for_tools();
        let most = self.conversation.largest_result()(plan.len());
        let flow = self.conversation.flow();
        let mut used: Vec<Option<UsedTool>> = plan.iter().map(|_| None).collect();
        let mut running = Work::for_calls(plan.len());
        for (place, (planned, call)) in plan
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
                Some((parent, state)) => {
                    let tool_call = tool_call.trace_parent(parent);
                    match state {
                        Some(state) => tool_call.trace_state(state),
                        None => tool_call,
                    }
                }
                None => tool_call.trace_of(*self.first.get_or_insert(id)),
            };
            self.listener.event(Event::Calling { call, source, id });
            let work = execute(toolbox, tool_call, left);
            running.begin(place, work);
        }
        while let Some(done) = running.next().await {
            // What panicked or was aborted leaves its place open: it counts as interrupted.
            if let Some((place, outcome)) = done {
                used[place] = self.called((place, plan[place].source), outcome, &catalog, most);
            }
        }
        self.conversation.history.settle();
        if let Some(round) = self.rounds.last_mut() {
            round.calls = used.into_iter().flatten().collect();
        }
    }

    fn called(
        &mut self,
        (place, source): (usize, AnswerSource),
        mut outcome: ToolOutcome,
        catalog: &Catalog,
        most: usize,
    ) -> Option<UsedTool> {
        let conversation = &mut *self.conversation;
        let call = conversation.history.calls().nth(place)?;
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            // The executor knows more tools than this model, and by other names.
            *error = not_found(&call.name, catalog);
        }
        self.listener.event(Event::Called {
            call,
            source,
            outcome: &outcome,
        });
        let outcome = Arc::new(outcome);
        let wire_name = catalog.wire_name(&call.name);
        let result = cut::result(call, &wire_name, &outcome);
        if result.text.len() > most {
            let (all, told) = (cut::size(result.text.len()), cut::size(most));
            self.listener.event(Event::Notice(&format!(
                "of the result of '{}' ({all}) the model is told {told}: no more has room beside the rest, or model.maxResult says so",
                escape(&call.name)
            )));
        }
        let used = UsedTool {
            id: call.id.clone(),
            arguments: call.arguments.clone(),
            outcome,
        };
        if used.outcome.is_success() {
            remember(&mut conversation.used_tools, &call.name);
        }
        let full_results = &mut conversation.full_results;
        let keep: Keep<'_> = &mut |_| full_results.keep(&used.outcome);
        conversation.history.result(place, result, most, keep);
        Some(used)
    }

    /// How long a tool may take so that there is time for an answer behind it.
    fn left_for_tools(&self) -> Duration {
        let now = Instant::now();
        let until_the_last_round = self.tools_until.saturating_duration_since(now);
        let half = self.deadline.saturating_duration_since(now) / 2;
        // In tenths of a second: it is told to people.
        let tenths = until_the_last_round.max(half).as_millis().div_ceil(100);
        Duration::from_millis(100) * u32::try_from(tenths).unwrap_or(u32::MAX)
    }
}

/// Calls that run. Several have a task each, so that they need not share a core; for one alone that would only be a detour.
enum Work {
    Alone(Option<BoxFuture<'static, (usize, ToolOutcome)>>),
    Many(JoinSet<(usize, ToolOutcome)>),
}

impl Work {
    fn for_calls(count: usize) -> Self {
        match count {
            0 | 1 => Self::Alone(None),
            _ => Self::Many(JoinSet::new()),
        }
    }

    fn begin(&mut self, place: usize, work: impl Future<Output = ToolOutcome> + Send + 'static) {
        let work = async move { (place, work.await) };
        match self {
            Self::Alone(alone) => *alone = Some(Box::pin(work)),
            Self::Many(tasks) => drop(tasks.spawn(work.in_current_span())),
        }
    }

    /// The next that is done; of one that came to nothing only that it did.
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
    /// The executor's own limit comes first, so that its record says the same.
    const GRACE: Duration = Duration::from_millis(500);
    let toolbox = toolbox.clone();
    async move {
        let executor = toolbox.executor();
        let left = came(&toolbox, call.name(), left).await;
        let tool = executor.find(call.name());
        let own = tool.map(|tool| tool.definition().timeout(&executor.rules().limits));
        let mut call = call.origin(toolbox.origin());
        if own.is_ok_and(|own| left < own) {
            // A limit that comes with a call is not moved by progress: it is set only where the turn is shorter than the tool.
            call = call.timeout(left);
        }
        let error = ToolError::TimedOut {
            tool: call.name().to_owned(),
            after: left,
        };
        let mut overdue = ToolOutcome::refused(&call, error);
        overdue.elapsed = left;
        let work = executor.execute(call);
        let done = tokio::time::timeout(left + GRACE, work).await;
        done.unwrap_or(overdue)
    }
}

/// Waits for a tool that nobody has yet, and says what is left of the time after that. Whoever listens knows of the call.
async fn came(toolbox: &Toolbox, name: &str, left: Duration) -> Duration {
    if toolbox.executor().find(name).is_ok() || toolbox.is_decided(name) {
        return left;
    }
    let began = Instant::now();
    let mut nobody = |_: ToolWait<'_>| {};
    let coming = toolbox.wait_for_tool(name, &mut nobody);
    // What remains is for the call itself: nothing would be left of a turn that is waited away.
    let _is_there = tokio::time::timeout(left / 2, coming).await.is_ok();
    left.saturating_sub(began.elapsed())
}

fn as_value(arguments: &CallArguments) -> Value {
    match arguments {
        CallArguments::Object(object) => Value::Object(object.clone()),
        CallArguments::Unusable(text) => Value::String(text.clone()),
    }
}

/// For a tool that does not exist for this model: the names that it knows, those that look alike first.
fn not_found(name: &str, catalog: &Catalog) -> ToolError {
    const LONGEST: usize = 200;
    let shown = &name[..name.floor_char_boundary(LONGEST)];
    let names = || catalog.tools().iter().map(|tool| tool.wire_name.as_str());
    let mut known = nearest(shown, names(), usize::MAX);
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
