//! [`ToolCall`]: the tool's name, the arguments, the caller and the time limit.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::context::ProgressSink;
use crate::policy::CallFlow;
use crate::{
    CallId, ExtensionListener, FlowState, LogHandler, Progress, QuestionHandler, RemoteTask, Scope,
    TaskHandle, Tool, ToolError, parse_object_within,
};

/// A request to run one tool once.
pub struct ToolCall {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) arguments: RawArguments,
    pub(crate) origin: Origin,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cancellation: Option<CancellationToken>,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) questions: Option<Arc<dyn QuestionHandler>>,
    pub(crate) logs: Option<Arc<dyn LogHandler>>,
    pub(crate) meta: Option<Arc<Map<String, Value>>>,
    pub(crate) extensions: Option<Arc<Map<String, Value>>>,
    pub(crate) extension_listener: Option<Arc<dyn ExtensionListener>>,
    pub(crate) resumes: Option<RemoteTask>,
    pub(crate) task_handle: Option<TaskHandle>,
    pub(crate) trace_parent: Option<String>,
    pub(crate) trace_state: Option<String>,
    pub(crate) trace_of: Option<CallId>,
    pub(crate) scope: Scope,
    pub(crate) user_initiated: bool,
    pub(crate) flow: Option<CallFlow>,
}

// Arguments that aren't a JSON object still make a call, so that it ends in an envelope and a
// record like any other.
pub(crate) enum RawArguments {
    Object(Arc<Value>),
    Invalid { raw: Arc<Value>, error: ToolError },
}

impl ToolCall {
    /// Creates a call. If `arguments` is not an object, the call fails when it is executed.
    pub fn new(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let arguments = match arguments.into() {
            object @ Value::Object(_) => RawArguments::Object(Arc::new(object)),
            raw => RawArguments::Invalid {
                error: ToolError::invalid("arguments", "must be object"),
                raw: Arc::new(raw),
            },
        };
        Self::with_arguments(name.into(), arguments)
    }

    /// Creates a call from JSON text. Invalid JSON and duplicate keys make the call fail
    /// when it is executed.
    pub fn from_json(name: impl Into<String>, json: &[u8]) -> Self {
        Self::from_json_within(name, json, usize::MAX)
    }

    /// Like [`from_json`](Self::from_json), for untrusted text: more than `max_values` values are
    /// rejected before they take memory.
    pub fn from_json_within(name: impl Into<String>, json: &[u8], max_values: usize) -> Self {
        // Enough to recognize in the record what was sent.
        const MAX_RAW_BYTES: usize = 4096;
        let name = name.into();
        let arguments = match parse_object_within(json, max_values) {
            Ok(object) => RawArguments::Object(Arc::new(Value::Object(object))),
            Err(error) => {
                let shown = &json[..json.len().min(MAX_RAW_BYTES)];
                let mut raw = String::from_utf8_lossy(shown).into_owned();
                if shown.len() < json.len() {
                    raw.insert_str(0, &format!("({} bytes) ", json.len()));
                }
                RawArguments::Invalid {
                    raw: Arc::new(Value::String(raw)),
                    error: error.into_tool_error(&name),
                }
            }
        };
        Self::with_arguments(name, arguments)
    }

    /// Creates a call whose arguments could not be parsed. It ends in `error` when it is executed;
    /// `raw` is recorded as its arguments.
    pub fn from_invalid(name: impl Into<String>, raw: Value, error: ToolError) -> Self {
        Self::with_arguments(
            name.into(),
            RawArguments::Invalid {
                raw: Arc::new(raw),
                error,
            },
        )
    }

    /// Makes the call end in `error` when it is executed, for errors outside the arguments, such as
    /// an invalid time limit. The arguments are still recorded. If the call already has an error,
    /// it keeps that one.
    #[must_use]
    pub fn reject(mut self, error: ToolError) -> Self {
        if let RawArguments::Object(object) = self.arguments {
            self.arguments = RawArguments::Invalid { raw: object, error };
        }
        self
    }

    fn with_arguments(name: String, arguments: RawArguments) -> Self {
        Self {
            id: CallId::next(),
            name,
            tool: None,
            arguments,
            origin: Origin::Library,
            timeout: None,
            cancellation: None,
            progress: None,
            questions: None,
            logs: None,
            meta: None,
            extensions: None,
            extension_listener: None,
            resumes: None,
            task_handle: None,
            trace_parent: None,
            trace_state: None,
            trace_of: None,
            scope: Scope::default(),
            user_initiated: false,
            flow: None,
        }
    }

    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the caller's own time limit, instead of the configured one. Progress doesn't extend it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Some(token);
        self
    }

    #[must_use]
    pub fn on_progress(mut self, listen: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(listen));
        self
    }

    /// Lets the tool's server ask the caller questions.
    #[must_use]
    pub fn on_question(mut self, handler: Arc<dyn QuestionHandler>) -> Self {
        self.questions = Some(handler);
        self
    }

    /// Passes what the tool logs to the caller.
    #[must_use]
    pub fn on_log(mut self, handler: Arc<dyn LogHandler>) -> Self {
        self.logs = Some(handler);
        self
    }

    /// Waits for a task that the tool's server already has, instead of running the tool again. So
    /// nobody is asked for approval. Fails if the tool belongs to another server.
    #[must_use]
    pub fn resume(mut self, task: RemoteTask) -> Self {
        self.resumes = Some(task);
        self
    }

    /// Lets the caller make the call a task of its own while it runs.
    #[must_use]
    pub fn task_handle(mut self, handle: TaskHandle) -> Self {
        self.task_handle = Some(handle);
        self
    }

    /// Gives the call the id of one that it continues, whose process has ended.
    #[must_use]
    pub fn with_id(mut self, id: CallId) -> Self {
        self.id = id;
        self
    }

    /// Sets the extensions of MCP that the caller declares to its servers, with its settings for
    /// each. Without them, a server is told what this program supports by itself.
    #[must_use]
    pub fn extensions(mut self, extensions: Arc<Map<String, Value>>) -> Self {
        self.extensions = Some(extensions);
        self
    }

    /// Passes notifications of extensions that are for the caller.
    #[must_use]
    pub fn on_extension_notification(mut self, listener: Arc<dyn ExtensionListener>) -> Self {
        self.extension_listener = Some(listener);
        self
    }

    /// Sets the `_meta` that goes to the tool's server as it is.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = (!meta.is_empty()).then(|| Arc::new(meta));
        self
    }

    /// Passes the tool that [`find_in_scope`](crate::ToolExecutor::find_in_scope) has just found
    /// under this name, which saves a second lookup. If the rules no longer show it to the caller,
    /// the name is looked up again.
    #[must_use]
    pub fn resolved_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Sets who calls, and which tools exist for that caller.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Marks a call that a person requested explicitly, rather than one that a model chose.
    /// Neither `policy.destructive` nor `policy.flow` then asks that person again.
    #[must_use]
    pub fn user_initiated(mut self) -> Self {
        self.user_initiated = true;
        self
    }

    /// Sets the conversation this call belongs to, for `policy.flow`. What the conversation
    /// has read so far decides whether this call needs approval, and what this call reads
    /// counts for later calls.
    #[must_use]
    pub fn flow(mut self, conversation: &Arc<FlowState>) -> Self {
        self.flow = Some(CallFlow::new(conversation));
        self
    }

    #[must_use]
    pub fn trace_parent(mut self, trace_parent: impl Into<String>) -> Self {
        self.trace_parent = Some(trace_parent.into());
        self
    }

    /// Sets the W3C `tracestate`. It is ignored without a `traceparent`.
    #[must_use]
    pub fn trace_state(mut self, trace_state: impl Into<String>) -> Self {
        self.trace_state = Some(trace_state.into());
        self
    }

    /// Puts this call into the trace that the call `first` started.
    /// A `traceparent` takes precedence.
    #[must_use]
    pub fn trace_of(mut self, first: CallId) -> Self {
        self.trace_of = Some(first);
        self
    }

    /// The arguments as the caller sent them, or the error if they are not a JSON object.
    pub fn arguments(&self) -> Result<&Arc<Value>, ToolError> {
        match &self.arguments {
            RawArguments::Object(object) => Ok(object),
            RawArguments::Invalid { error, .. } => Err(error.clone()),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> CallId {
        self.id
    }
}

impl fmt::Debug for ToolCall {
    // Leaves out the arguments: they may hold secrets, and nothing here could redact them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Origin {
    /// A program that embeds this crate.
    #[default]
    Library,
    CommandLine,
    Chat,
    Voice,
    Http,
    Mcp,
    /// A worker on another machine.
    Worker,
}

impl Origin {
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

impl FromStr for Origin {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [
            Self::Library,
            Self::CommandLine,
            Self::Chat,
            Self::Voice,
            Self::Http,
            Self::Mcp,
            Self::Worker,
        ];
        all.into_iter()
            .find(|origin| origin.as_str() == text)
            .ok_or(())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_arguments() {
        let call = ToolCall::new("login", serde_json::json!({ "password": "hunter2" }));
        assert!(!format!("{call:?}").contains("hunter2"));
    }
}
