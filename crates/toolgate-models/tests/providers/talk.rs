//! A conversation with a double.

use std::sync::Arc;
use std::time::Duration;

use fakellm::{Answer, Api, FakeLlm, Model, Recorded, Script};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolgate_models::{
    AnthropicClient, Conversation, Event, GeminiClient, ModelClient, ModelError, ModelSettings,
    OllamaClient, OpenAiClient, Turn,
};

use crate::house::House;

/// Far more than any test needs: it would hang.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// All of them.
pub(crate) const APIS: [Api; 4] = [Api::Anthropic, Api::Ollama, Api::OpenAi, Api::Gemini];

/// The name of the double's model.
pub(crate) const MODEL: &str = "qwen3:4b";

/// A person, a double and a house.
pub(crate) struct Talk {
    pub(crate) api: Api,
    pub(crate) fake: FakeLlm,
    pub(crate) house: House,
    pub(crate) conversation: Conversation,
    /// What the listener heard, in short.
    pub(crate) heard: Vec<String>,
}

impl Talk {
    /// With the usual house and settings.
    pub(crate) async fn new(api: Api, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(api, Script::new(answers), House::new(), |_| {}).await
    }

    pub(crate) async fn with(
        api: Api,
        script: Script,
        house: House,
        edit: impl FnOnce(&mut ModelSettings),
    ) -> Self {
        let fake = FakeLlm::with_model(script, Model::new(MODEL)).await;
        Self::at(api, fake, house, edit)
    }

    pub(crate) fn at(
        api: Api,
        fake: FakeLlm,
        house: House,
        edit: impl FnOnce(&mut ModelSettings),
    ) -> Self {
        let mut settings = settings(api, fake.url());
        edit(&mut settings);
        let conversation = Conversation::new(client(api, &settings), house.toolbox(), settings);
        Self {
            api,
            fake,
            house,
            conversation,
            heard: Vec::new(),
        }
    }

    /// The person says something, and the turn ends well.
    pub(crate) async fn says(&mut self, text: &str) -> Turn {
        let turn = self.tries(text).await;
        let refusals = self.fake.refusals();
        assert!(refusals.is_empty(), "{:?}: {refusals:?}", self.api);
        turn.unwrap_or_else(|error| panic!("{:?}: {error}", self.api))
    }

    /// The same, however the turn ends.
    pub(crate) async fn tries(&mut self, text: &str) -> Result<Turn, ModelError> {
        let heard = &mut self.heard;
        let mut listener = |event: Event<'_>| {
            heard.push(match event {
                Event::Text(text) => text.to_owned(),
                Event::Void => "<void>".to_owned(),
                Event::Retrying { error, .. } => format!("<retrying: {error}>"),
                Event::Notice(text) => format!("<notice: {text}>"),
                Event::Asking { tools, .. } => format!("<asking: {tools} tools>"),
                _ => return,
            });
        };
        let turn = self.conversation.turn(text, &mut listener);
        timeout(HANG, turn)
            .await
            .unwrap_or_else(|_| panic!("{:?} hangs", self.api))
    }

    /// The last request for chat.
    pub(crate) fn last(&self) -> Value {
        self.fake
            .requests()
            .last()
            .map_or(Value::Null, Recorded::json)
    }

    /// What the model was told in the last request of the calls it made last: id, text, and whether it failed.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        results(self.api, &self.last())
    }

    /// The texts alone.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.results().into_iter().map(|(_, text)| text).collect()
    }

    /// The tools of the last request: name and schema.
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

/// What was said so far, under the name that the provider has for it.
pub(crate) fn history(body: &Value) -> &Value {
    body.get("contents").unwrap_or(&body["messages"])
}

/// Results in the order they are sent.
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

/// Asks twice. The double refuses a parameter once: it is asked again without, both answers come, and the person is told once
/// which setting is not sent any more.
pub(crate) async fn does_without(mut talk: Talk, parameter: &str, setting: &str) {
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
    let notices = talk.heard.iter().filter(|it| it.contains("asked without"));
    let notices: Vec<_> = notices.collect();
    assert!(
        notices.len() == 1 && notices[0].contains(setting),
        "{notices:?}"
    );
}

/// The weather in Oslo, asked for.
pub(crate) fn asks_for_oslo() -> Answer {
    Answer::call("call_1", "get_weather", &json!({ "city": "Oslo" }))
}

/// Compares bytes with those kept beside the tests; `UPDATE_GOLDENS=1` keeps new ones.
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
