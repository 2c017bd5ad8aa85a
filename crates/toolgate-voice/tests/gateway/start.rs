//! The startup: side by side, and reported.

use std::sync::Arc;
use std::time::Duration;

use fakewyoming::{FakeAsr, Port};
use futures::FutureExt;
use tokio::net::TcpListener;
use toolgate_core::{FunctionTool, Tool, ToolError};
use toolgate_models::{ModelError, ModelSelectionError, Provider};
use toolgate_mqtt::{Broker, BrokerSettings, MqttClientSettings};
use toolgate_voice::{AudioInput, ToolServerStatus, VoiceGatewayError, VoiceGatewayParts};

use crate::model::ModelStep;
use crate::requests::written;
use crate::stage::{TestStage, all_there, missing};
use crate::starting_server::StartingServer;

/// A tool server that starts for as long as the test wants.
fn start_server(parts: &VoiceGatewayParts) -> Arc<StartingServer> {
    let manager = Arc::clone(parts.toolbox.executor().manager());
    StartingServer::to(manager, &parts.toolbox)
}

/// A tool that arrives later.
fn lamp() -> Arc<dyn Tool> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let lamp = FunctionTool::new("lamp", "Switches the lamp on", async |_: Nothing, _| {
        Ok::<_, ToolError>("on")
    });
    Arc::new(lamp.unwrap())
}

#[tokio::test]
async fn vo1_local_tools_answer_while_servers_start_and_ready_is_reported_once() {
    let asr = FakeAsr::start(["what time is it"]).await;
    let says = [
        ModelStep::Call("", "datetime"),
        ModelStep::Words("It is noon."),
    ];
    let stage = TestStage::new(says).await.with(|parts, stage| {
        stage.tool_status.send_replace(ToolServerStatus::Starting);
        start_server(parts);
        parts.settings.asr = asr.address();
        parts.settings.wake = stage.wake.address();
    });
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.count("called datetime true"), 1);
    assert_eq!(
        stage.tts.texts(),
        ["It is noon."],
        "nobody was told to wait"
    );
    let is_ready = |event: &String| event.starts_with("Ready");
    assert!(!stage.recorder.events().iter().any(is_ready));
    stage.tool_status.send_replace(all_there());
    stage.sees("Ready { degraded: None }", 1).await;
    let events = stage.recorder.events();
    assert_eq!(events.iter().filter(|event| is_ready(event)).count(), 1);
    for name in [
        "loudspeaker",
        "speech",
        "model",
        "microphone",
        "transcription",
        "wake word",
        "tools",
    ] {
        let phase = format!("Phase {{ name: \"{name}\"");
        let told = events.iter().filter(|event| event.starts_with(&phase));
        assert_eq!(told.count(), 1, "{name}: {events:#?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn vo1_spoken_request_waits_for_the_server_of_its_tool() {
    let mut server = None;
    let asr = FakeAsr::start(["turn on the lamp"]).await;
    let says = [ModelStep::Call("", "lamp"), ModelStep::Words("It is on.")];
    let stage = TestStage::new(says).await.with(|parts, stage| {
        stage.tool_status.send_replace(ToolServerStatus::Starting);
        server = Some(start_server(parts));
        parts.settings.asr = asr.address();
    });
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    stage.ask().await;
    // It says that it takes a moment, and has called nothing.
    stage.tts.wait_for_events("synthesize", 1).await;
    assert_eq!(stage.tts.texts(), ["One moment, I'm still starting up."]);
    assert_eq!(stage.recorder.count("turn answered"), 0);
    server.unwrap().arrive([lamp()]);
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.count("called lamp true"), 1);
    assert_eq!(stage.recorder.turns()[0].answer, "It is on.");
    stage.end().await;
}

#[tokio::test]
async fn vo1_written_request_waits_for_the_server_of_its_tool() {
    let mut server = None;
    let port = Port::reserve();
    let handle = port.address();
    let says = [ModelStep::Call("", "lamp"), ModelStep::Words("It is on.")];
    let stage = TestStage::new(says).await.with(|parts, stage| {
        stage.tool_status.send_replace(ToolServerStatus::Starting);
        server = Some(start_server(parts));
        parts.input = None;
        parts.settings.handle = handle.clone();
    });
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    let mut asking = std::pin::pin!(written(&handle, "turn on the lamp"));
    let early = tokio::time::timeout(Duration::from_millis(500), &mut asking).await;
    assert!(early.is_err(), "{early:?}");
    server.unwrap().arrive([lamp()]);
    assert_eq!(asking.await, (true, "It is on.".to_owned()));
    assert_eq!(stage.recorder.count("called lamp true"), 1);
    stage.end().await;
}

#[tokio::test]
async fn mc5_mqtt_model_and_voice_are_ready_while_servers_start() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, stage| {
            stage.tool_status.send_replace(ToolServerStatus::Starting);
            parts.settings.wake = stage.wake.address();
            parts.mqtt = Some(MqttClientSettings::new(&broker.url()).unwrap());
        });
    let stage = stage.start();
    for name in ["MQTT", "model", "speech"] {
        let phase = format!("Phase {{ name: \"{name}\"");
        let is_told = |events: &[String]| events.iter().any(|event| event.starts_with(&phase));
        stage.sees_that(name, is_told).await;
    }
    stage.sees("state waiting", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    let tools = "Phase { name: \"tools\"";
    let is_tools = |event: &String| event.starts_with(tools);
    assert!(!stage.recorder.events().iter().any(is_tools));
    stage.end().await;
    broker.stop().await;
}

#[tokio::test]
async fn vo1_missing_servers_are_announced_and_the_rest_works() {
    let stage = TestStage::new([ModelStep::Words("It is noon.")])
        .await
        .with(|_, stage| drop(stage.tool_status.send_replace(missing("the smart home"))));
    let stage = stage.start();
    let words = "I can't reach the smart home, but I can tell the time.";
    stage
        .sees(&format!("Ready {{ degraded: Some({words:?}) }}"), 1)
        .await;
    stage.tts.wait_for_events("synthesize", 2).await;
    assert_eq!(stage.tts.texts().join(" "), words);
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    stage.end().await;
}

#[tokio::test]
async fn vo1_later_server_changes_are_announced() {
    let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    stage.tool_status.send_replace(missing("the smart home"));
    let stage = stage.start();
    stage.tts.wait_for_events("synthesize", 2).await;
    stage.tool_status.send_replace(all_there());
    stage.sees("Tools { missing: None }", 1).await;
    stage.tts.wait_for_events("synthesize", 3).await;
    // A short outage is published over MQTT but not announced.
    stage.tool_status.send_replace(missing("the server files"));
    let files = r#"Tools { missing: Some("the server files") }"#;
    stage.sees(files, 1).await;
    stage.tool_status.send_replace(all_there());
    stage.sees("Tools { missing: None }", 2).await;
    stage.tool_status.send_replace(missing("the smart home"));
    stage.tts.wait_for_events("synthesize", 4).await;
    assert_eq!(
        stage.tts.texts()[2..],
        [
            "I can reach the smart home again.",
            "I can't reach the smart home any more."
        ]
    );
    stage.end().await;
}

#[tokio::test]
async fn sentences_answer_while_the_model_is_unreachable() {
    let stage = TestStage::new([ModelStep::Words("never asked")]).await;
    let asr = FakeAsr::start(["what is six times seven"]).await;
    let stage = stage.with(|parts, _| {
        parts.settings.asr = asr.address();
        let away = || {
            let error = ModelError::Unreachable {
                provider: Provider::Ollama,
                url: "http://127.0.0.1:1".to_owned(),
                reason: "connection refused".to_owned(),
            };
            async move { Err(ModelSelectionError::Model(error)) }.boxed()
        };
        parts.model = Arc::new(away);
    });
    let stage = stage.start();
    let words = "I can't reach my language model, but I can tell the time.";
    stage
        .sees(&format!("Ready {{ degraded: Some({words:?}) }}"), 1)
        .await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.turns()[0].model, "intents en");
    stage.end().await;
}

#[tokio::test]
async fn invalid_addresses_are_rejected_with_their_key() {
    for (key, expected) in [
        ("asr", "voice.asr: "),
        ("wake", "voice.wake: "),
        ("handle", "voice.handle: "),
    ] {
        let mut stage = TestStage::new([ModelStep::Words("Yes.")])
            .await
            .with(|parts, _| {
                let settings = &mut parts.settings;
                let setting = match key {
                    "asr" => &mut settings.asr,
                    "wake" => &mut settings.wake,
                    _ => &mut settings.handle,
                };
                *setting = "whisper".to_owned();
            });
        stage = stage.start();
        match stage.over().await {
            Err(VoiceGatewayError::Settings(text)) => assert!(text.starts_with(expected), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn missing_file_is_an_error() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.input = Some(AudioInput::Wav(vec!["no such file.wav".into()]));
        });
    stage = stage.start();
    let error = stage.over().await.unwrap_err().to_string();
    assert!(error.contains("no such file.wav"), "{error}");
}

#[tokio::test]
async fn startup_announcement_does_not_interrupt_an_answer() {
    const ANSWER: &str =
        "This answer is long enough to be spoken while the tools are still on their way.";
    let stage = TestStage::new([ModelStep::Words(ANSWER)])
        .await
        .with(|parts, stage| {
            stage.tool_status.send_replace(ToolServerStatus::Starting);
            parts.settings.welcome = "Everything is ready now.".to_owned();
        });
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    stage.ask().await;
    stage.sees("state speaking", 1).await;
    stage.tool_status.send_replace(all_there());
    stage.sees("Ready { degraded: None }", 1).await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.count("turn interrupted"), 0);
    stage.tts.wait_for_events("synthesize", 2).await;
    let said = stage.tts.texts().join(" ");
    assert!(said.starts_with("This answer"), "{said}");
    stage.end().await;
}

#[tokio::test]
async fn broken_engine_is_found_at_startup() {
    // The setting, and what is reported about its phase.
    let no_card = "sh -c 'sleep 0.1; echo no card >&2; exit 1'";
    let no_voice = "sh -c 'cat >/dev/null; echo no such voice >&2; exit 1'";
    for (input, tts, phase, problem) in [
        (no_card, "", "microphone", "no card"),
        ("", "no-such-engine --wav", "speech", "no-such-engine"),
        ("", no_voice, "speech", "no such voice"),
    ] {
        let stage = TestStage::new([ModelStep::Words("Yes.")])
            .await
            .with(|parts, _| {
                if !input.is_empty() {
                    parts.input = Some(AudioInput::parse(input).unwrap());
                }
                if !tts.is_empty() {
                    parts.settings.tts = tts.to_owned();
                }
            });
        let stage = stage.start();
        let begins = format!("Phase {{ name: \"{phase}\"");
        let is_told = |event: &&String| event.starts_with(&begins);
        stage
            .sees_that(phase, |events| events.iter().any(|event| is_told(&event)))
            .await;
        let events = stage.recorder.events();
        let told = events.iter().find(is_told).unwrap();
        assert!(told.contains(problem), "{told}");
        assert_eq!(
            stage.recorder.count(&format!("lost {phase}")),
            1,
            "{events:#?}"
        );
        stage.end().await;
    }
}

#[tokio::test]
async fn no_file_of_tones_is_written_without_a_voice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.wav");
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.settings.tts = "none".to_owned();
            parts.settings.output = file.display().to_string();
            parts.settings.tones = true;
        });
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    stage.end().await;
    assert!(!file.exists());
}

#[tokio::test]
async fn written_requests_do_not_wait_for_the_microphone() {
    // It accepts connections but stays silent.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = Port::reserve();
    let (mic, handle) = (mute.local_addr().unwrap(), port.address());
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.input = Some(AudioInput::parse(&format!("tcp://{mic}")).unwrap());
            parts.settings.handle = handle.clone();
        });
    let stage = stage.start();
    let model = "Phase { name: \"model\"";
    let told = |events: &[String], phase: &str| events.iter().any(|event| event.starts_with(phase));
    stage
        .sees_that("the model", |events| told(events, model))
        .await;
    assert_eq!(written(&handle, "hello").await, (true, "Yes.".to_owned()));
    let microphone = "Phase { name: \"microphone\"";
    assert!(!told(&stage.recorder.events(), microphone));
    stage.end().await;
}

#[tokio::test]
async fn nothing_is_reported_after_the_end() {
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.input = None;
        });
    let (tool_status, recorder) = (stage.tool_status.clone(), Arc::clone(&stage.recorder));
    tool_status.send_replace(ToolServerStatus::Starting);
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    stage.end().await;
    // Looking for tool servers would report one as missing.
    let missing = Some("the smart home".to_owned());
    tool_status.send_replace(ToolServerStatus::Settled { missing });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let events = recorder.events();
    let tools = events.iter().any(|event| event.contains("smart home"));
    assert!(!tools, "{events:#?}");
}

#[tokio::test]
async fn endless_startup_can_be_stopped() {
    let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    stage.tool_status.send_replace(ToolServerStatus::Starting);
    let stage = stage.start();
    stage.sees("state waiting", 1).await;
    stage.end().await;

    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.model = Arc::new(|| std::future::pending().boxed());
        });
    let stage = stage.start();
    stage
        .sees_that("a phase", |events| !events.is_empty())
        .await;
    stage.end().await;
}
