//! What is asked: a tool's name, its arguments, and who wants it by when.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::context::ProgressSink;
use crate::policy::CallFlow;
use crate::text::Hex;
use crate::{FlowState, Progress, Scope, Tool, ToolError, parse_object_within};

/// A request to run one tool once.
///
/// ```
/// use std::time::Duration;
/// use toolgate_core::{Origin, ToolCall};
///
/// let call = ToolCall::from_json("echo", br#"{"a": 1}"#)
///     .origin(Origin::CommandLine)
///     .timeout(Duration::from_secs(5));
/// assert_eq!(call.name(), "echo");
/// ```
pub struct ToolCall {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) arguments: Given,
    pub(crate) origin: Origin,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cancellation: Option<CancellationToken>,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) trace_parent: Option<String>,
    pub(crate) trace_state: Option<String>,
    pub(crate) trace_of: Option<CallId>,
    pub(crate) scope: Scope,
    pub(crate) user_initiated: bool,
    pub(crate) flow: Option<CallFlow>,
}

/// Arguments as they came. What is no JSON object still becomes a call, so that it too ends in an envelope and a record.
pub(crate) enum Given {
    Object(Arc<Value>),
    Unusable { raw: Arc<Value>, error: ToolError },
}

impl ToolCall {
    /// A call with arguments that are JSON already. Anything but an object is refused when the call is executed.
    pub fn new(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let arguments = match arguments.into() {
            object @ Value::Object(_) => Given::Object(Arc::new(object)),
            raw => Given::Unusable {
                error: ToolError::invalid("arguments", "must be object"),
                raw: Arc::new(raw),
            },
        };
        Self::given(name.into(), arguments)
    }

    /// A call with arguments as text. Broken JSON and duplicate keys are refused when the call is executed.
    pub fn from_json(name: impl Into<String>, json: &[u8]) -> Self {
        Self::from_json_within(name, json, usize::MAX)
    }

    /// Like [`from_json`](Self::from_json), for text from others: one of more than so many values is refused
    /// before it takes memory.
    pub fn from_json_within(name: impl Into<String>, json: &[u8], max_values: usize) -> Self {
        const RAW_FOR_THE_RECORD: usize = 4096;
        let name = name.into();
        let arguments = match parse_object_within(json, max_values) {
            Ok(object) => Given::Object(Arc::new(Value::Object(object))),
            Err(error) => {
                let shown = &json[..json.len().min(RAW_FOR_THE_RECORD)];
                let mut raw = String::from_utf8_lossy(shown).into_owned();
                if shown.len() < json.len() {
                    raw.insert_str(0, &format!("({} bytes) ", json.len()));
                }
                Given::Unusable {
                    raw: Arc::new(Value::String(raw)),
                    error: error.into_tool_error(&name),
                }
            }
        };
        Self::given(name, arguments)
    }

    /// A call whose arguments were found unusable before they became JSON; executing it ends in this error.
    pub fn refused(name: impl Into<String>, raw: Value, error: ToolError) -> Self {
        Self::given(
            name.into(),
            Given::Unusable {
                raw: Arc::new(raw),
                error,
            },
        )
    }

    /// The same call, which ends in this error when it is executed: something beside its arguments makes no sense. They are on
    /// record as they were asked. One that ends in an error already ends in that one.
    #[must_use]
    pub fn refuse(mut self, error: ToolError) -> Self {
        if let Given::Object(object) = self.arguments {
            self.arguments = Given::Unusable { raw: object, error };
        }
        self
    }

    fn given(name: String, arguments: Given) -> Self {
        Self {
            id: CallId::next(),
            name,
            tool: None,
            arguments,
            origin: Origin::Library,
            timeout: None,
            cancellation: None,
            progress: None,
            trace_parent: None,
            trace_state: None,
            trace_of: None,
            scope: Scope::default(),
            user_initiated: false,
            flow: None,
        }
    }

    /// Who asks.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// The caller's own limit. It is absolute: progress does not extend it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Cancels the call when the token is cancelled.
    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Some(token);
        self
    }

    /// Hears the tool's progress.
    #[must_use]
    pub fn on_progress(mut self, listen: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(listen));
        self
    }

    /// The tool that [`find_in`](crate::ToolExecutor::find_in) found under the call's name a moment
    /// ago, so that it isn't looked up again. It runs only if the rules still show it to the caller.
    #[must_use]
    pub fn found(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Who calls, and the only tools that are there for it.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// A person said exactly this in a conversation, and no model chose it: that is their
    /// agreement, so neither `policy.destructive` nor `policy.flow` asks them again.
    #[must_use]
    pub fn user_initiated(mut self) -> Self {
        self.user_initiated = true;
        self
    }

    /// The conversation this call belongs to, as far as `policy.flow` goes: what it has met until
    /// now decides whether this call is asked about, and what this call brings counts for later ones.
    #[must_use]
    pub fn flow(mut self, conversation: &Arc<FlowState>) -> Self {
        self.flow = Some(CallFlow::of(conversation));
        self
    }

    /// The W3C `traceparent` this call belongs to.
    #[must_use]
    pub fn trace_parent(mut self, trace_parent: impl Into<String>) -> Self {
        self.trace_parent = Some(trace_parent.into());
        self
    }

    /// The W3C `tracestate` beside it; without a `traceparent` it means nothing.
    #[must_use]
    pub fn trace_state(mut self, trace_state: impl Into<String>) -> Self {
        self.trace_state = Some(trace_state.into());
        self
    }

    /// The call belongs with another one, which was the first, and to the trace that this one began. A caller's trace goes before.
    #[must_use]
    pub fn trace_of(mut self, first: CallId) -> Self {
        self.trace_of = Some(first);
        self
    }

    /// The arguments as they were asked; an error if they aren't a JSON object.
    pub fn arguments(&self) -> Result<&Arc<Value>, ToolError> {
        match &self.arguments {
            Given::Object(object) => Ok(object),
            Given::Unusable { error, .. } => Err(error.clone()),
        }
    }

    /// The name that is asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The call's own id.
    pub fn id(&self) -> CallId {
        self.id
    }
}

impl fmt::Debug for ToolCall {
    /// Without the arguments: they may hold secrets, and a redactor is not at hand here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Who asks for a call.
///
/// ```
/// assert_eq!(toolgate_core::Origin::CommandLine.to_string(), "cli");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Origin {
    /// A program that uses these crates.
    #[default]
    Library,
    /// A person at a shell.
    CommandLine,
    /// A model in a conversation.
    Chat,
    /// A voice.
    Voice,
    /// The HTTP API.
    Http,
    /// An MCP client.
    Mcp,
    /// Another machine.
    Worker,
}

impl Origin {
    /// Its name, as in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::CommandLine => "cli",
            Self::Chat => "chat",
            Self::Voice => "voice",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names one call for ever: unique over processes and machines, and sorted by time.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::ToolCall;
///
/// let (first, second) = (ToolCall::new("echo", json!({})), ToolCall::new("echo", json!({})));
/// assert!(first.id() < second.id());
/// assert_eq!(first.id().to_string().len(), 32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u128);

impl CallId {
    /// 48 bits of milliseconds, 8 of this process, 12 of a number within the millisecond, 20 more of the process, 40 of a counter.
    /// The first 17 digits tell all calls of a process apart, so that people need not type the rest.
    pub(crate) fn next() -> Self {
        static PROCESS: LazyLock<u64> =
            LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let tick = u128::from(next_tick());
        let (millis, within) = (tick >> TICK_BITS, tick & ((1 << TICK_BITS) - 1));
        let (process, more) = (
            u128::from(*PROCESS >> 56),
            u128::from(*PROCESS >> 36 & 0xf_ffff),
        );
        let counter = u128::from(COUNTER.fetch_add(1, Ordering::Relaxed)) & 0xff_ffff_ffff;
        Self(millis << 80 | process << 72 | within << 60 | more << 40 | counter)
    }

    pub(crate) fn as_u128(self) -> u128 {
        self.0
    }
}

/// Bits that count calls within a millisecond.
const TICK_BITS: u32 = 12;

/// The time in milliseconds and a number within them, later than every one before it. Who asks for more than a millisecond
/// holds gets the beginning of the next one.
fn next_tick() -> u64 {
    /// A clock that was set back further than this many milliseconds is believed.
    const AHEAD: u64 = 1000;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.unwrap_or_default().as_millis() as u64;
    let now = millis << TICK_BITS;
    let after = |last: u64| match last >= now && last < now + (AHEAD << TICK_BITS) {
        true => last + 1,
        false => now,
    };
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(after(last))
    });
    last.map_or(now, after)
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Hex::<32>::of(self.0).as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_sorted() {
        let ids: Vec<CallId> = (0..10_000).map(|_| CallId::next()).collect();
        assert!(ids.is_sorted());
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ids[0].to_string().len(), 32);
        let short: std::collections::HashSet<String> = ids
            .iter()
            .map(|id| id.to_string()[..17].to_owned())
            .collect();
        assert_eq!(short.len(), ids.len(), "17 digits tell them apart");
    }

    #[test]
    fn debug_shows_no_arguments() {
        let call = ToolCall::new("login", serde_json::json!({ "password": "hunter2" }));
        assert!(!format!("{call:?}").contains("hunter2"));
    }
}
