//! A conversation with a test double of a provider.

use std::sync::Arc;
use std::time::Duration;

use fakellm::{Answer, Api, FakeLlm, FakeModel, RecordedRequest, Script};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolgate_models::{
    AnthropicClient, Conversation, GeminiClient, ModelClient, ModelError, ModelEvent,
    ModelSettings, OllamaClient, OpenAiClient, TurnRecord,
};

use crate::recorded_tools::RecordedTools;

/// Far more than any test needs; only a hang takes longer.
pub(crate) const HANG: Duration = Duration::from_secs(120);

pub(crate) const APIS: [Api; 4] = [Api::Anthropic, Api::Ollama, Api::OpenAi, Api::Gemini];

pub(crate) const MODEL: &str = "qwen3:4b";

/// A person, a double, and recorded tools.
pub(crate) struct TestConversation {
    pub(crate) api: Api,
    pub(crate) fake: FakeLlm,
    pub(crate) recorded: RecordedTools,
    pub(crate) conversation: Conversation,
    /// Short forms of the events that the listener saw.
    pub(crate) reported: Vec<String>,
}

impl TestConversation {
    /// Uses the default tools and settings.
    pub(crate) async fn new(api: Api, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(api, Script::new(answers), RecordedTools::new(), |_| {}).await
    }

    pub(crate) async fn with(
        api: Api,
        script: Script,
        recorded: RecordedTools,
        edit: impl FnOnce(&mut ModelSettings),
    ) -> Self {
        let fake = FakeLlm::with_model(script, FakeModel::new(MODEL)).await;
        Self::at(api, fake, recorded, edit)
    }

    pub(crate) fn at(
        api: Api,
        fake: FakeLlm,
        recorded: RecordedTools,
        edit: impl FnOnce(&mut ModelSettings),
    ) -> Self {
        let mut settings = settings(api, fake.url());
        edit(&mut settings);
        let conversation = Conversation::new(client(api, &settings), recorded.toolbox(), settings);
        Self {
            api,
            fake,
            recorded,
            conversation,
            reported: Vec::new(),
        }
    }

    /// Takes a turn that must succeed.
    pub(crate) async fn says(&mut self, text: &str) -> TurnRecord {
        let turn = self.tries(text).await;
        let refusals = self.fake.refusals();
        assert!(refusals.is_empty(), "{:?}: {refusals:?}", self.api);
        turn.unwrap_or_else(|error| panic!("{:?}: {error}", self.api))
    }

    /// Takes a turn, however it ends.
    pub(crate) async fn tries(&mut self, text: &str) -> Result<TurnRecord, ModelError> {
        let reported = &mut self.reported;
        let mut listener = |event: ModelEvent<'_>| {
            reported.push(match event {
                ModelEvent::Text(text) => text.to_owned(),
                ModelEvent::Void => "<void>".to_owned(),
                ModelEvent::Retrying { error, .. } => format!("<retrying: {error}>"),
                ModelEvent::Notice(text) => format!("<notice: {text}>"),
                ModelEvent::Asking { tools, .. } => format!("<asking: {tools} tools>"),
                _ => return,
            });
        };
        let turn = self.conversation.turn(text, &mut listener);
        timeout(HANG, turn)
            .await
            .unwrap_or_else(|_| panic!("{:?} hangs", self.api))
    }

    pub(crate) fn last(&self) -> Value {
        self.fake
            .requests()
            .last()
            .map_or(Value::Null, RecordedRequest::json)
    }

    /// Results of the last calls in the last request: id, text, and whether the call failed.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        results(self.api, &self.last())
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.results().into_iter().map(|(_, text)| text).collect()
    }

    /// Names and schemas of the tools in the last request.
    pub(crate) fn offered(&self) -> Vec<(String, Value)> {
        let last = self.last();
        let tools = match self.api {
            Api::Gemini => &last["tools"][0]["functionDeclarations"],
            _ => &last["tools"],
        };
        let tools = tools.as_array().cloned().unwrap_or_default();
        let tools = tools.iter().map(|tool| match self.api {
            Api::Anthropic => (&tool["name"], &tool["input_schema"]),
            Api::Gemini => (&tool["name"], &tool["parametersJsonSchema"]),
            _ => (&tool["function"]["name"], &tool["function"]["parameters"]),
        });
        tools
            .map(|(name, schema)| (name.as_str().unwrap().to_owned(), schema.clone()))
            .collect()
    }
}

pub(crate) fn settings(api: Api, url: &str) -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.name = match api {
        // A colon in it would be taken for the end.
        Api::Gemini => "gemini-x".to_owned(),
        _ => MODEL.to_owned(),
    };
    settings.key = "test-key-1234567890".to_owned();
    settings.url = match api {
        Api::OpenAi => format!("{url}/v1"),
        _ => url.to_owned(),
    };
    settings
}

pub(crate) fn client(api: Api, settings: &ModelSettings) -> Arc<dyn ModelClient> {
    match api {
        Api::Anthropic => Arc::new(AnthropicClient::new(settings).unwrap()),
        Api::Ollama => Arc::new(OllamaClient::new(settings).unwrap()),
        Api::OpenAi => Arc::new(OpenAiClient::new(settings).unwrap()),
        Api::Gemini => Arc::new(GeminiClient::new(settings).unwrap()),
    }
}

/// The messages so far, under the provider's name for them.
pub(crate) fn history(body: &Value) -> &Value {
    body.get("contents").unwrap_or(&body["messages"])
}

/// Results in the order in which they are sent.
pub(crate) fn results(api: Api, body: &Value) -> Vec<(String, String)> {
    let messages = history(body).as_array().unwrap();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().map_or_else(String::new, |blocks| {
            blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect()
        }),
    };
    let own = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match api {
        Api::Anthropic => {
            let holds = |message: &&Value| message["content"][0]["type"] == "tool_result";
            let Some(message) = messages.iter().rev().find(holds) else {
                return Vec::new();
            };
            let blocks = message["content"].as_array().unwrap().iter();
            let blocks = blocks.filter(|block| block["type"] == "tool_result");
            blocks
                .map(|block| (own(&block["tool_use_id"]), text(&block["content"])))
                .collect()
        }
        Api::Gemini => {
            let holds = |content: &&Value| content["parts"][0].get("functionResponse").is_some();
            let Some(content) = messages.iter().rev().find(holds) else {
                return Vec::new();
            };
            let parts = content["parts"].as_array().unwrap().iter();
            let responses = parts.filter_map(|part| part.get("functionResponse"));
            let said = |response: &Value| match &response["output"] {
                Value::Null => text(&response["error"]),
                output => text(output),
            };
            responses
                .map(|one| (own(&one["id"]), said(&one["response"])))
                .collect()
        }
        Api::Ollama | Api::OpenAi => {
            let mut tail: Vec<_> = messages
                .iter()
                .rev()
                .skip_while(|message| message["role"] != "tool")
                .take_while(|message| message["role"] == "tool")
                .map(|message| (own(&message["tool_call_id"]), text(&message["content"])))
                .collect();
            tail.reverse();
            tail
        }
    }
}

/// Asks twice while the double refuses one parameter. Both answers must arrive, and the person is
/// told once which setting isn't sent any more.
pub(crate) async fn does_without(mut talk: TestConversation, parameter: &str, setting: &str) {
    for _ in 0..2 {
        assert_eq!(talk.tries("hello").await.unwrap().answer, "Hi.");
        let last = talk.last();
        assert!(last.get(parameter).is_none(), "{last}");
    }
    let refusals = talk.fake.refusals();
    let named = refusals.iter().filter(|text| text.contains(parameter));
    assert_eq!(named.count(), 1, "{refusals:?}");
    let requests = talk.fake.requests();
    assert_eq!(requests.len(), 2 + refusals.len(), "{refusals:?}");
    assert!(requests[0].json().get(parameter).is_some());
    let notices = talk
        .reported
        .iter()
        .filter(|it| it.contains("asked without"));
    let notices: Vec<_> = notices.collect();
    assert!(
        notices.len() == 1 && notices[0].contains(setting),
        "{notices:?}"
    );
}

pub(crate) fn asks_for_oslo() -> Answer {
    Answer::call("call_1", "get_weather", &json!({ "city": "Oslo" }))
}

/// Compares bytes with those stored beside the tests. `UPDATE_GOLDENS=1` stores new ones.
pub(crate) fn golden(name: &str, bytes: &[u8]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/providers/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (kept, sent) = (
        String::from_utf8_lossy(&kept),
        String::from_utf8_lossy(bytes),
    );
    assert!(kept == sent, "{name} is not what is sent:\n{sent}");
}
