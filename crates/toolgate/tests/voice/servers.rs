//! An MCP server that dies during a call.

use fakellm::{Answer, FakeLlm, FakeModel, Script};
use fakewyoming::{FakeAsr, FakeTts};
use serde_json::json;

use crate::program::VoiceFolder;

pub(crate) const SPEECH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../toolgate-voice/tests/sounds/turn-on-switch-one.wav"
);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_during_a_call_fails_only_that_call() {
    let asr = FakeAsr::start(["break it", "use it"]).await;
    let tts = FakeTts::start().await;
    let answers = [
        Answer::call("call_1", "die", &json!({ "signal": 9 })),
        Answer::text("It broke."),
        Answer::call("call_2", "echo", &json!({ "text": "back again" })),
        Answer::text("It works."),
    ];
    let llm = FakeLlm::with_model(Script::new(answers), FakeModel::new("qwen3:0.6b")).await;
    let config = json!({
        "mcpServers": { "fake": { "command": fakemcp::program() } },
        "retry": { "baseDelay": "100ms" },
        "model": { "provider": "ollama", "name": "qwen3:0.6b", "url": llm.url() },
        "voice": { "asr": asr.address(), "tts": tts.address(), "tones": false },
    });
    let arguments = ["--wav", SPEECH, "--wav", SPEECH, "--out", "none"];
    let done = VoiceFolder::new().start(&config, &arguments).ended();
    assert_eq!(done.code, Some(0), "{}", done.log);
    let outcomes = done.turns.iter().map(|turn| &turn["outcome"]);
    assert!(outcomes.eq(["answered"; 2]), "{:?}", done.turns);
    assert_eq!(tts.texts(), ["It broke.", "It works."]);
    // The results of both calls that the model received.
    let told = |index: usize| {
        let messages = llm.requests()[index].json()["messages"].take();
        messages.as_array().unwrap().last().unwrap()["content"].clone()
    };
    let stopped = "MCP server 'fake' stopped during the call (signal 9 (killed))";
    assert_eq!(told(1), stopped);
    assert_eq!(told(3), r#"{"echo":{"text":"back again"}}"#);
}
