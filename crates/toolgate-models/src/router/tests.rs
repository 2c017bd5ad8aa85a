//! Sentences in front of a model, behind it, and instead of one.

mod fallback;
mod first;
mod sentences_only;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_core::{Annotations, FunctionTool, Tool, ToolError, ToolExecutor, ToolManager};
use toolgate_intents::Pack;
use toolgate_tools::HandlerRegistry;
use toolgate_tools::builtin::BuiltinSettings;

use super::*;
use crate::{
    AssistantMessage, CallArguments, Message, MessagePart, ModelCall, OfferedTools, Provider,
    StopReason, TokenUsage, ToolResult, Toolbox,
};

const LIGHT_ON: &str = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#;

/// A model that only counts how often it was asked.
struct CountingModel;

impl ModelClient for CountingModel {
    fn provider(&self) -> Provider {
        Provider::Ollama
    }

    fn model(&self) -> &str {
        "big"
    }

    fn window(&self) -> usize {
        9999
    }

    fn catalog(&self, _: &Arc<ToolList>) -> Arc<Catalog> {
        CatalogCache::default().get(&Arc::new(ToolList::new(Vec::new())), &PLAIN)
    }

    fn reply<'a>(
        &'a self,
        _: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            listener.event(ModelEvent::Text("the model"));
            Ok(ModelReply {
                message: AssistantMessage::text("the model"),
                stop: StopReason::End,
                usage: TokenUsage::default(),
                first_token: None,
            })
        })
    }
}

/// Switches and locks, and a slow list of devices that counts its calls.
fn house_tools(after: Duration) -> (Vec<Arc<dyn Tool>>, Arc<AtomicUsize>) {
    let definition = |name: &str, read_only: bool, destructive: bool| {
        let mut annotations = Annotations::default();
        annotations.read_only = Some(read_only);
        annotations.destructive = Some(destructive);
        ToolDefinition::builder(name, "…", json!({ "type": "object" })).annotations(annotations)
    };
    let device = |name: &str| json!({ "name": name, "location": "", "state": "on" });
    let names = [
        "Kitchen Light",
        "Kitchen Lamp",
        "Bedroom Light",
        "Switch 1",
        "Front Door",
    ];
    let devices = json!({ "devices": names.map(device) });
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let list = move |_: Value, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let devices = devices.clone();
        async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            Ok::<_, ToolError>(devices)
        }
    };
    let done = async |_: Value, _| Ok::<_, ToolError>(json!({ "message": "It is done." }));
    let list = FunctionTool::with_definition(definition("list_zwave_devices", true, false), list);
    let control =
        FunctionTool::with_definition(definition("control_zwave_device", false, false), done);
    let lock = FunctionTool::with_definition(definition("control_lock", false, true), done);
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(list.unwrap()),
        Arc::new(control.unwrap()),
        Arc::new(lock.unwrap()),
    ];
    (tools, asked)
}

fn toolbox_of(tools: Vec<Arc<dyn Tool>>) -> Toolbox {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(tools);
    Toolbox::new(ToolExecutor::new(manager))
}

fn sentences_of(toolbox: Toolbox) -> Arc<SentenceInterpreter> {
    Arc::new(SentenceInterpreter::new(toolbox, Pack::english()).unwrap())
}

/// The built-in sentences, and the tools of a home.
fn all_tools() -> Toolbox {
    let mut tools = HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools();
    tools.extend(house_tools(Duration::ZERO).0);
    toolbox_of(tools)
}

fn first() -> SentenceRouter {
    SentenceRouter::new(Arc::new(CountingModel)).sentences_first(sentences_of(all_tools()))
}

fn request<'a>(messages: &'a [Message], offer: &'a OfferedTools) -> ModelRequest<'a> {
    let deadline = Instant::now() + Duration::from_secs(60);
    ModelRequest::new("", messages, offer, deadline)
}

fn offer(router: &SentenceRouter) -> OfferedTools {
    OfferedTools::all(router.catalog(&Arc::new(ToolList::new(Vec::new()))))
}

async fn ask(router: &SentenceRouter, messages: &[Message]) -> ModelReply {
    let offer = offer(router);
    let mut told = String::new();
    let mut listener = |event: ModelEvent<'_>| {
        if let ModelEvent::Text(text) = event {
            told.push_str(text);
        }
    };
    let reply = router.reply(request(messages, &offer), &mut listener).await;
    let reply = reply.unwrap();
    assert_eq!(told, reply.message.to_text(), "what is said is told");
    assert_eq!(reply.usage, TokenUsage::default());
    reply
}

fn user(text: &str) -> Message {
    Message::User {
        text: text.to_owned(),
    }
}

/// The history after a reply.
fn with(mut history: Vec<Message>, reply: &ModelReply) -> Vec<Message> {
    history.push(Message::Assistant(reply.message.clone()));
    // It must survive being saved.
    let saved = serde_json::to_string(&history).unwrap();
    serde_json::from_str(&saved).unwrap()
}

fn with_result(mut history: Vec<Message>, text: &str, is_error: bool) -> Vec<Message> {
    let Some(Message::Assistant(message)) = history.last() else {
        panic!("no call")
    };
    let call = message.calls().next().unwrap();
    let result = ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: text.to_owned(),
        images: Vec::new(),
        is_error,
        call_id: None,
    };
    history.push(Message::Tool {
        results: vec![result],
    });
    history
}

fn model_call(name: &str, arguments: &str) -> Message {
    let call = ModelCall {
        id: "call_1".to_owned(),
        name: name.to_owned(),
        arguments: CallArguments::parse(arguments),
    };
    let parts = vec![MessagePart::Call(call)];
    Message::Assistant(AssistantMessage { parts })
}

/// `tool {arguments}` for a call, otherwise the text.
fn shown(reply: &ModelReply) -> String {
    let calls: Vec<String> = reply
        .message
        .calls()
        .map(|call| {
            let arguments = Value::Object(call.arguments.as_object().into_owned());
            format!("{} {arguments}", call.name)
        })
        .collect();
    if calls.is_empty() {
        assert_ne!(reply.stop, StopReason::Calls);
        return reply.message.to_text();
    }
    assert_eq!(reply.stop, StopReason::Calls);
    calls.join(" + ")
}

async fn say(router: &SentenceRouter, text: &str) -> String {
    shown(&ask(router, &[user(text)]).await)
}
