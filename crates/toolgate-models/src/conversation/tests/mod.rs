//! A conversation with a model that follows a test's script.

mod calls;
mod consent;
mod history;
mod limits;
mod names;
mod offering;
mod orders;
mod property;
mod results;
mod rounds;
mod spoken;
mod window;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;
use toolgate_core::{
    CallContext, Tool, ToolDefinition, ToolError, ToolExecutor, ToolFuture, ToolManager,
    ToolOutput, ValidArguments,
};

use super::*;
use crate::catalog::{CatalogCache, ToolDialect};
use crate::{
    AssistantMessage, CallArguments, MessagePart, ModelCall, ModelClient, ModelEvent, ModelReply,
    ModelRequest, Provider, ToolList, ToolResult,
};

pub(super) fn is_from(message: &Message, mark: &str) -> bool {
    matches!(message, Message::User { text } if text.starts_with(mark))
}

/// A model that reads its replies from a script; at its end it says "done". It checks that every
/// request is in order.
#[derive(Default)]
pub(super) struct ModelScript {
    answers: Mutex<VecDeque<ModelScriptStep>>,
    asked: Mutex<Vec<ModelScriptRequest>>,
    catalogs: CatalogCache,
    window: Option<usize>,
    tool_limit: Option<usize>,
}

pub(super) enum ModelScriptStep {
    Reply(ModelReply),
    Fail(ModelError),
    /// Fails in the middle of these words.
    Break(&'static str, ModelError),
    /// Answers after a pause.
    Late(Duration, ModelReply),
    /// Hangs after these words.
    Stuck(&'static str),
    Never,
}

#[derive(Clone)]
pub(super) struct ModelScriptRequest {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<String>,
    pub(super) forbid_tools: bool,
}

impl ModelScript {
    pub(super) fn new(answers: impl IntoIterator<Item = impl Into<ModelScriptStep>>) -> Arc<Self> {
        Self::with_window(100_000, answers)
    }

    pub(super) fn with_window(
        window: usize,
        answers: impl IntoIterator<Item = impl Into<ModelScriptStep>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().map(Into::into).collect()),
            window: Some(window),
            ..Self::default()
        })
    }

    pub(super) fn asked(&self) -> Vec<ModelScriptRequest> {
        self.asked.lock().clone()
    }

    pub(super) fn last_asked(&self) -> ModelScriptRequest {
        self.asked().pop().unwrap()
    }
}

impl ModelClient for ModelScript {
    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn model(&self) -> &str {
        "script"
    }

    fn window(&self) -> usize {
        self.window.unwrap_or(100_000)
    }

    fn tool_limit(&self) -> Option<usize> {
        self.tool_limit
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = ToolDialect {
            longest_name: 64,
            original_names: false,
            convert: |definition, name| {
                if definition.description() == "Unsayable" {
                    return Err("its schema can't be expressed".to_owned());
                }
                let json = json!({ "name": name, "description": definition.description() });
                RawValue::from_string(json.to_string()).map_err(|error| error.to_string())
            },
        };
        self.catalogs.get(tools, &dialect)
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        expect_in_order(request.messages, true);
        self.asked.lock().push(ModelScriptRequest {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request
                .tools
                .iter()
                .map(|tool| tool.wire_name.clone())
                .collect(),
            forbid_tools: request.forbid_tools,
        });
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            let reply = match answer.unwrap_or_else(|| words("done").into()) {
                ModelScriptStep::Reply(reply) => reply,
                ModelScriptStep::Fail(error) => return Err(error),
                ModelScriptStep::Break(words, error) => {
                    listener.event(ModelEvent::Text(words));
                    return Err(error);
                }
                ModelScriptStep::Late(after, reply) => {
                    tokio::time::sleep(after).await;
                    reply
                }
                ModelScriptStep::Stuck(words) => {
                    listener.event(ModelEvent::Text(words));
                    std::future::pending().await
                }
                ModelScriptStep::Never => std::future::pending().await,
            };
            for part in &reply.message.parts {
                match part {
                    MessagePart::Text { text } => listener.event(ModelEvent::Text(text)),
                    MessagePart::Thinking { text, .. } => {
                        listener.event(ModelEvent::Thinking(text));
                    }
                    _ => {}
                }
            }
            Ok(ModelReply {
                first_token: Some(Instant::now()),
                ..reply
            })
        })
    }
}

impl From<ModelReply> for ModelScriptStep {
    fn from(reply: ModelReply) -> Self {
        Self::Reply(reply)
    }
}

impl From<ModelError> for ModelScriptStep {
    fn from(error: ModelError) -> Self {
        Self::Fail(error)
    }
}

pub(super) fn reply(stop: StopReason, parts: Vec<MessagePart>) -> ModelReply {
    ModelReply {
        message: AssistantMessage { parts },
        stop,
        usage: TokenUsage {
            input: 10,
            output: 2,
            cached: 1,
        },
        first_token: None,
    }
}

pub(super) fn words(text: &str) -> ModelReply {
    reply(StopReason::End, vec![text_part(text)])
}

pub(super) fn text_part(text: &str) -> MessagePart {
    MessagePart::Text {
        text: text.to_owned(),
    }
}

pub(super) fn thought(text: &str) -> MessagePart {
    MessagePart::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is written as json!({}) everywhere"
)]
pub(super) fn call(id: &str, name: &str, arguments: Value) -> MessagePart {
    MessagePart::Call(ModelCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: CallArguments::Object(arguments.as_object().unwrap().clone()),
    })
}

pub(super) fn calls(parts: impl Into<Vec<MessagePart>>) -> ModelReply {
    reply(StopReason::Calls, parts.into())
}

pub(super) fn failure() -> ModelError {
    ModelError::Failed {
        provider: Provider::OpenAi,
        reason: "on fire".to_owned(),
        retry_after: None,
    }
}

/// A tool that accepts any arguments.
pub(super) struct TestTool {
    definition: ToolDefinition,
    run: Box<dyn Fn(Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>,
}

impl Tool for TestTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        (self.run)(arguments.as_value().clone())
    }
}

pub(super) fn tool<W>(name: &str, run: impl Fn(Value) -> W + Send + Sync + 'static) -> Arc<dyn Tool>
where
    W: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let parameters = json!({ "type": "object" });
    defined(
        ToolDefinition::builder(name, "Does something", parameters),
        run,
    )
}

pub(super) fn defined<W>(
    definition: toolgate_core::DefinitionBuilder,
    run: impl Fn(Value) -> W + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    W: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(TestTool {
        definition: definition.build().unwrap(),
        run: Box::new(move |arguments| Box::pin(run(arguments))),
    })
}

pub(super) fn echo() -> Arc<dyn Tool> {
    tool("echo", async |arguments| Ok(ToolOutput::json(arguments)))
}

pub(super) fn hang() -> Arc<dyn Tool> {
    tool("hang", async |_| std::future::pending().await)
}

pub(super) fn manager(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Arc<ToolManager> {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(tools);
    manager
}

pub(super) fn toolbox(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Toolbox {
    Toolbox::new(ToolExecutor::new(manager(tools)))
}

pub(super) fn conversation(
    script: &Arc<ModelScript>,
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
) -> Conversation {
    conversation_with(script, tools, |_| {})
}

pub(super) fn conversation_with(
    script: &Arc<ModelScript>,
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    change: impl FnOnce(&mut ModelSettings),
) -> Conversation {
    let mut settings = ModelSettings::default();
    change(&mut settings);
    Conversation::new(
        Arc::clone(script) as Arc<dyn ModelClient>,
        toolbox(tools),
        settings,
    )
}

/// Events in a short text form.
#[derive(Default)]
pub(super) struct ModelEventLog(pub(super) Vec<String>);

impl ModelListener for ModelEventLog {
    fn event(&mut self, event: ModelEvent<'_>) {
        self.0.push(match event {
            ModelEvent::Asking { round, tools } => format!("asking {round} with {tools}"),
            ModelEvent::Text(text) => format!("text {text}"),
            ModelEvent::Thinking(text) => format!("thinking {text}"),
            ModelEvent::Replied { round, stop, .. } => format!("replied {round} {stop:?}"),
            ModelEvent::Calling { call, .. } => format!("calling {}", call.id),
            ModelEvent::Called { call, outcome, .. } => {
                format!("called {} {}", call.id, outcome.is_success())
            }
            ModelEvent::Notice(text) => format!("notice {text}"),
            ModelEvent::Void => "void".to_owned(),
            ModelEvent::WasThinking => "was thinking".to_owned(),
            ModelEvent::Retrying { .. } => "retrying".to_owned(),
            ModelEvent::Waiting { .. } => "waiting".to_owned(),
            ModelEvent::Waited => "waited".to_owned(),
            ModelEvent::ModelUnavailable { error } => format!("away: {error}"),
        });
    }
}

impl ModelEventLog {
    pub(super) fn notices(&self) -> Vec<&str> {
        let notices = self
            .0
            .iter()
            .filter_map(|event| event.strip_prefix("notice "));
        notices.collect()
    }
}

/// Takes a turn that must not fail.
pub(super) async fn say(conversation: &mut Conversation, text: &str) -> TurnRecord {
    conversation
        .turn(text, &mut ModelEventLog::default())
        .await
        .unwrap()
}

pub(super) fn last_results(conversation: &Conversation) -> Vec<ToolResult> {
    let results = conversation
        .history()
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::Tool { results } => Some(results.clone()),
            _ => None,
        });
    results.unwrap()
}

/// The order that every provider accepts.
pub(super) fn expect_in_order(messages: &[Message], is_asked: bool) {
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| &messages[index]);
        let is_last = index + 1 == messages.len();
        match (before, message) {
            (None | Some(Message::Assistant(_)), Message::User { .. }) => {
                if let Some(Message::Assistant(before)) = before {
                    assert_eq!(
                        before.calls().count(),
                        0,
                        "calls without results: {messages:?}"
                    );
                }
            }
            // A note to the model alone.
            (Some(Message::Tool { .. }), Message::User { .. }) => {
                assert!(is_asked && is_last, "words behind results: {messages:?}");
            }
            (Some(Message::User { .. } | Message::Tool { .. }), Message::Assistant(message)) => {
                assert!(!message.parts.is_empty(), "an empty message: {messages:?}");
                for call in message.calls() {
                    assert!(ids.insert(&call.id), "an id twice: {messages:?}");
                }
            }
            (Some(Message::Assistant(before)), Message::Tool { results }) => {
                let asked: Vec<_> = before.calls().map(|call| (&call.id, &call.name)).collect();
                let told: Vec<_> = results
                    .iter()
                    .map(|result| (&result.id, &result.name))
                    .collect();
                assert_eq!(asked, told);
                assert!(!told.is_empty(), "results of nothing: {messages:?}");
            }
            _ => panic!("not in order at {index}: {messages:?}"),
        }
    }
    if !is_asked && let Some(last) = messages.last() {
        let is_answer = matches!(last, Message::Assistant(last) if last.calls().next().is_none());
        assert!(is_answer, "ends without an answer: {messages:?}");
    }
}
