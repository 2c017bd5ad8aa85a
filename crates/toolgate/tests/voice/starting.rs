//! The first seconds: what starts in parallel, what waits for a server, and the announcement of
//! one that can't do its work.

use std::time::Duration;

use fakellm::{Answer, FakeLlm, FakeModel, RecordedRequest, Script};
use fakewyoming::{FakeAsr, FakeSatellite, FakeTts, Port, WyomingTestClient};
use serde_json::{Value, json};

use crate::brokers::{Kind, RunningBroker};
use crate::engines::pause;
use crate::house::{SimulatedHome, server};
use crate::program::VoiceFolder;
use crate::servers::SPEECH;

/// Only a hang takes longer.
const HANG: Duration = Duration::from_secs(60);

async fn qwen(answers: impl IntoIterator<Item = Answer>) -> (FakeLlm, Value) {
    let llm = FakeLlm::with_model(Script::new(answers), FakeModel::new("qwen3:0.6b")).await;
    let model = json!({ "provider": "ollama", "name": "qwen3:0.6b", "url": llm.url() });
    (llm, model)
}

/// Sends a written request as soon as the gateway listens.
async fn written(address: &str, text: &str) -> String {
    let mut client = loop {
        match WyomingTestClient::connect(address).await {
            Ok(client) => break client,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let question = json!({ "text": text });
    client.send("transcript", &question, &[]).await.unwrap();
    let answer = client.wait_for(&["handled", "not-handled"]).await.unwrap();
    answer.data["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn vo1_a_request_in_the_first_second_waits_for_a_slow_server() {
    // A tool that only the server has.
    let words = json!({ "text": "good morning" });
    let answers = [
        Answer::call("call_1", "arguments", &words),
        Answer::text("It said good morning."),
    ];
    let (llm, model) = qwen(answers).await;
    let port = Port::reserve();
    let slow = format!("sleep 2; exec {}", fakemcp::program().display());
    let config = json!({
        "mcpServers": { "fake": { "command": "sh", "args": ["-c", slow], "startTimeout": "60s" } },
        "model": model,
        "voice": { "handle": port.address(), "tts": "none", "tones": false },
    });
    let folder = VoiceFolder::new();
    let _gateway = folder.start(&config, &[]);
    let handle = port.address();
    let answer = tokio::time::timeout(HANG, written(&handle, "greet it for me"));
    assert_eq!(answer.await.unwrap(), "It said good morning.");
    let requests = llm.requests();
    let chats: Vec<Value> = requests.iter().map(RecordedRequest::json).collect();
    let asked = chats.iter().find(|chat| chat["tools"].is_array()).unwrap();
    assert!(asked["tools"].to_string().contains(r#""name":"arguments""#));
    let told = chats.last().unwrap()["messages"].to_string();
    assert!(
        told.contains("good morning") && !told.contains("Unknown tool"),
        "{told}"
    );
}

/// Real speech, and the silence after it.
fn speech() -> Vec<i16> {
    let mut reader = hound::WavReader::open(SPEECH).unwrap();
    let mut samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    samples.extend(std::iter::repeat_n(0, 20_000));
    samples
}

#[tokio::test(flavor = "multi_thread")]
async fn vo1_a_request_by_a_satellite_waits_for_a_server_in_its_first_round() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let asr = FakeAsr::start(["turn on switch one"]).await;
    let tts = FakeTts::start().await;
    let home = SimulatedHome::behind(RunningBroker::start(Kind::Embedded).await);
    let folder = VoiceFolder::new();
    // Its server starts when the test says so.
    let go = folder.path("go");
    let mut entry = home.server();
    let program = entry["command"].take();
    let waiting = format!(
        "while [ ! -e '{}' ]; do sleep 0.05; done; exec '{}' zwave-mcp-server",
        go.display(),
        program.as_str().unwrap()
    );
    entry["command"] = json!("sh");
    entry["args"] = json!(["-c", waiting]);
    let config = json!({
        "mcpServers": { "zwave": entry },
        "model": { "provider": "intents" },
        "voice": { "asr": asr.address(), "tts": tts.address(), "tones": false },
    });
    let gateway = folder.start(&config, &["--mic", &satellite.address()]);
    satellite.wait_for_events("run-satellite", 1).await;
    satellite.wake("hey_jarvis");
    satellite.send_sound(&speech());
    let said = |text: &str| tts.texts().join(" ").contains(text);
    until("it says that it waits", || {
        said("One moment, I'm still starting up.")
    });
    assert_eq!(home.state("Switch One"), "off", "{}", gateway.log());
    std::fs::write(go, "").unwrap();
    until("it is done", || home.state("Switch One") == "on");
    // The satellite hears both sentences as one stream.
    until("its answer is given to the satellite", || {
        said("Switch One in Kitchen is now on.") && satellite.heard().len() == 1
    });
    assert!(!gateway.log().contains("Unknown tool"), "{}", gateway.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn mc5_mqtt_model_and_speech_are_ready_while_a_server_is_retried() {
    let (_llm, model) = qwen([Answer::text("never asked")]).await;
    let (tts, port) = (FakeTts::start().await, Port::reserve());
    let broker = RunningBroker::start(Kind::Embedded).await;
    let config = json!({
        "mcpServers": { "dead": { "command": "false" } },
        "retry": { "attempts": 3, "baseDelay": "10m" },
        "mqtt": { "url": broker.url() },
        "model": model,
        "voice": { "handle": port.address(), "tts": tts.address(), "tones": false },
    });
    let folder = VoiceFolder::new();
    let gateway = folder.start(&config, &[]);
    gateway.until("MCP connection attempt 2 of 3");
    for phase in ["MQTT", "model", "speech"] {
        gateway.until(&format!("ready phase=\"{phase}\""));
    }
    let log = gateway.log();
    assert!(
        !log.contains("phase=\"tools\""),
        "the server is still retried:\n{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn vo1_a_lost_broker_and_its_recovery_are_announced() {
    let (tts, port) = (FakeTts::start().await, Port::reserve());
    let mut broker = RunningBroker::start(Kind::Embedded).await;
    broker.stop().await;
    let config = json!({
        "mcpServers": { "zwave": server(&broker.url()) },
        "model": { "provider": "intents" },
        "voice": { "handle": port.address(), "tts": tts.address(), "tones": false },
    });
    let folder = VoiceFolder::new();
    let gateway = folder.start(&config, &["--out", "none"]);
    // The server is connected, and reports what is missing.
    gateway.until("ready, but degraded");
    let log = gateway.log();
    assert!(
        log.contains("MCP server is connected, but can't do its work"),
        "{log}"
    );
    assert!(log.contains("broker"), "{log}");
    // Sentences are spoken piece by piece.
    let said = |text: &str| tts.texts().join(" ").contains(text);
    until("it is said", || {
        said("I can't reach the smart home, but I can")
    });
    broker.restart().await;
    let _home = SimulatedHome::behind(broker);
    gateway.until("MCP server can do its work again");
    until("its return is said", || {
        said("I can reach the smart home again.")
    });
    let calls = gateway.log().matches("check_zwave_health").count();
    assert_eq!(
        calls,
        2,
        "what is asked is not logged, what changes is:\n{}",
        gateway.log()
    );
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..HANG.as_millis() / 50 {
        if holds() {
            return;
        }
        pause(50);
    }
    panic!("in vain: {what}");
}
