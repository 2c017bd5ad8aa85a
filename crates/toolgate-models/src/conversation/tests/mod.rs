//! A conversation with a model that says what a test tells it to.

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
use crate::catalog::{CatalogCache, Dialect};
use crate::{
    AssistantMessage, CallArguments, Event, ModelCall, ModelClient, Part, Provider, Reply, Request,
    ToolList, ToolResult,
};

pub(super) fn is_from(message: &Message, mark: &str) -> bool {
    matches!(message, Message::User { text } if text.starts_with(mark))
}

/// A model that reads its replies from a script; at its end it says "done". Whatever it is sent must be in order.
#[derive(Default)]
pub(super) struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
    catalogs: CatalogCache,
    window: Option<usize>,
    most_tools: Option<usize>,
}

pub(super) enum Answer {
    Reply(Reply),
    Fail(ModelError),
    /// In the middle of these words.
    Break(&'static str, ModelError),
    /// After a while.
    Late(Duration, Reply),
    /// Nothing after these words.
    Stuck(&'static str),
    Never,
}

/// What the model was sent.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<String>,
    pub(super) words_only: bool,
}

impl Script {
    pub(super) fn new(answers: impl IntoIterator<Item = impl Into<Answer>>) -> Arc<Self> {
        Self::with_window(100_000, answers)
    }

    pub(super) fn with_window(
        window: usize,
        answers: impl IntoIterator<Item = impl Into<Answer>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().map(Into::into).collect()),
            window: Some(window),
            ..Self::default()
        })
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    pub(super) fn last_asked(&self) -> Asked {
        self.asked().pop().unwrap()
    }
}

impl ModelClient for Script {
    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn model(&self) -> &str {
        "script"
    }

    fn window(&self) -> usize {
        self.window.unwrap_or(100_000)
    }

    fn most_tools(&self) -> Option<usize> {
        self.most_tools
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = Dialect {
            longest_name: 64,
            original_names: false,
            convert: |definition, name| {
                if definition.description() == "Unsayable" {
                    return Err("there are no words for it".to_owned());
                }
                let json = json!({ "name": name, "description": definition.description() });
                RawValue::from_string(json.to_string()).map_err(|error| error.to_string())
            },
        };
        self.catalogs.get(tools, &dialect)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        expect_in_order(request.messages, true);
        self.asked.lock().push(Asked {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request
                .tools
                .iter()
                .map(|tool| tool.wire_name.clone())
                .collect(),
            words_only: request.words_only,
        });
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            let reply = match answer.unwrap_or_else(|| words("done").into()) {
                Answer::Reply(reply) => reply,
                Answer::Fail(error) => return Err(error),
                Answer::Break(words, error) => {
                    listener.event(Event::Text(words));
                    return Err(error);
                }
                Answer::Late(after, reply) => {
                    tokio::time::sleep(after).await;
                    reply
                }
                Answer::Stuck(words) => {
                    listener.event(Event::Text(words));
                    std::future::pending().await
                }
                Answer::Never => std::future::pending().await,
            };
            for part in &reply.message.parts {
                match part {
                    Part::Text { text } => listener.event(Event::Text(text)),
                    Part::Thinking { text, .. } => listener.event(Event::Thinking(text)),
                    _ => {}
                }
            }
            Ok(Reply {
                first_token: Some(Instant::now()),
                ..reply
            })
        })
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<ModelError> for Answer {
    fn from(error: ModelError) -> Self {
        Self::Fail(error)
    }
}

pub(super) fn reply(stop: Stop, parts: Vec<Part>) -> Reply {
    Reply {
        message: AssistantMessage { parts },
        stop,
        usage: Usage {
            input: 10,
            output: 2,
            cached: 1,
        },
        first_token: None,
    }
}

pub(super) fn words(text: &str) -> Reply {
    reply(Stop::End, vec![text_part(text)])
}

pub(super) fn text_part(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

pub(super) fn thought(text: &str) -> Part {
    Part::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is written as json!({}) everywhere"
)]
pub(super) fn call(id: &str, name: &str, arguments: Value) -> Part {
    Part::Call(ModelCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: CallArguments::Object(arguments.as_object().unwrap().clone()),
    })
}

pub(super) fn calls(parts: impl Into<Vec<Part>>) -> Reply {
    reply(Stop::Calls, parts.into())
}

pub(super) fn failure() -> ModelError {
    ModelError::Failed {
        provider: Provider::OpenAi,
        reason: "on fire".to_owned(),
        retry_after: None,
    }
}

/// A tool with any arguments.
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

/// Says what it was asked.
pub(super) fn echo() -> Arc<dyn Tool> {
    tool("echo", async |arguments| Ok(ToolOutput::json(arguments)))
}

/// Never ends.
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
    script: &Arc<Script>,
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
) -> Conversation {
    conversation_with(script, tools, |_| {})
}

pub(super) fn conversation_with(
    script: &Arc<Script>,
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

/// Events as words.
#[derive(Default)]
pub(super) struct Heard(pub(super) Vec<String>);

impl Listener for Heard {
    fn event(&mut self, event: Event<'_>) {
        self.0.push(match event {
            Event::Asking { round, tools } => format!("asking {round} with {tools}"),
            Event::Text(text) => format!("text {text}"),
            Event::Thinking(text) => format!("thinking {text}"),
            Event::Replied { round, stop, .. } => format!("replied {round} {stop:?}"),
            Event::Calling { call, .. } => format!("calling {}", call.id),
            Event::Called { call, outcome, .. } => {
                format!("called {} {}", call.id, outcome.is_success())
            }
            Event::Notice(text) => format!("notice {text}"),
            Event::Void => "void".to_owned(),
            Event::WasThinking => "was thinking".to_owned(),
            Event::Retrying { .. } => "retrying".to_owned(),
            Event::Waiting { .. } => "waiting".to_owned(),
            Event::Waited => "waited".to_owned(),
            Event::ModelAway { error } => format!("away: {error}"),
        });
    }
}

impl Heard {
    pub(super) fn notices(&self) -> Vec<&str> {
        let notices = self
            .0
            .iter()
            .filter_map(|event| event.strip_prefix("notice "));
        notices.collect()
    }
}

/// Says something and expects a record.
pub(super) async fn say(conversation: &mut Conversation, text: &str) -> Turn {
    conversation
        .turn(text, &mut Heard::default())
        .await
        .unwrap()
}

/// The results of the last calls.
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

/// The order that every provider takes.
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
            // Words to the model alone.
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
