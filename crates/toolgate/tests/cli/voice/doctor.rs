//! What `doctor` says of the engines.

use fakewyoming::{FakeWake, Port};
use serde_json::{Value, json};

use super::FakeEngines;
use crate::run::ProgramRun;

/// A search that reaches nobody: `doctor` must not wait for the web.
const SEARCH: &str = r#""search": { "url": "http://127.0.0.1:1" }"#;

/// One line of `doctor`.
fn doctor(config: &str, name: &str) -> (String, Option<i32>) {
    let done = ProgramRun::new(["doctor"])
        .config(config)
        .env("OLLAMA_HOST", "127.0.0.1:1")
        .done();
    let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let at = lines.iter().position(is_it).unwrap_or(lines.len());
    let told: Vec<&str> = lines.into_iter().skip(at).take(2).collect();
    (told.join("\n"), done.code)
}

#[test]
fn doctor_reports_missing_speech_to_text_in_one_line() {
    let (told, code) = doctor(&format!("{{ {SEARCH} }}"), "voice");
    assert!(told.starts_with("warning  voice"), "{told}");
    assert!(
        told.contains("cannot reach tcp://127.0.0.1:10300"),
        "{told}"
    );
    assert!(told.contains("fix: python3 -m venv"), "{told}");
    assert_eq!(code, Some(0), "nobody asked for a voice");
}

#[test]
fn doctor_checks_every_configured_engine() {
    let engines = FakeEngines::new([]);
    let wake = engines.runtime.block_on(FakeWake::start());
    let voice = |more: Value| {
        let mut voice = json!({
            "asr": engines.asr.address(), "tts": engines.tts.address(), "wake": wake.address(),
            "input": "none", "output": "none",
        });
        for (key, value) in more.as_object().unwrap() {
            voice[key] = value.clone();
        }
        let search = json!({ "url": "http://127.0.0.1:1" });
        json!({ "search": search, "voice": voice }).to_string()
    };
    let nobody = "tcp://127.0.0.1:1";
    let port = Port::reserve();
    let free = port.address();
    for (more, name, expected) in [
        (
            json!({}),
            "asr",
            "ok       asr            fake-asr at tcp://",
        ),
        (
            json!({}),
            "tts",
            "ok       tts            fake-tts at tcp://",
        ),
        (json!({}), "wake", "ok       wake           listens for "),
        (json!({}), "output", "ok       output         disabled"),
        (
            json!({ "asr": nobody }),
            "asr",
            "wyoming_faster_whisper --uri tcp://127.0.0.1:1 ",
        ),
        (
            json!({ "asr": wake.address() }),
            "asr",
            "does not transcribe speech",
        ),
        (
            json!({ "language": "tlh" }),
            "asr",
            "does not transcribe 'tlh'",
        ),
        (
            json!({ "wake": nobody }),
            "wake",
            "wyoming_openwakeword --uri tcp://127.0.0.1:1;",
        ),
        (
            json!({ "wakeWords": ["hal"] }),
            "wake",
            "does not know all of hal",
        ),
        (
            json!({ "wake": engines.asr.address(), "wakeWords": ["hal"] }),
            "wake",
            "has no wake words",
        ),
        (
            json!({ "tts": nobody }),
            "tts",
            "fix: sudo apt-get install espeak-ng",
        ),
        (json!({ "ttsVoice": "hal" }), "tts", "has no voice 'hal'"),
        (json!({ "input": nobody }), "input", "FAILED   input"),
        (
            json!({ "handle": free }),
            "handle",
            "ok       handle         tcp://127.0.0.1:",
        ),
        (
            json!({ "handle": engines.asr.address() }),
            "handle",
            "another program is already listening there",
        ),
        (
            json!({ "serveTts": wake.address() }),
            "serveTts",
            "FAILED   serveTts",
        ),
        (
            json!({ "input": "", "wake": "", "handle": "tcp://127.0.0.1:10800" }),
            "input",
            "ok       input          not used",
        ),
    ] {
        let (told, code) = doctor(&voice(more.clone()), name);
        assert!(told.contains(expected), "{more} {name}: {told}");
        let is_good = expected.starts_with("ok");
        assert_eq!(code == Some(0), is_good, "{more}: {told}");
    }
}

#[test]
fn doctor_reports_whether_the_broker_accepts_us() {
    let engines = FakeEngines::new([]);
    let asr = engines.asr.address();
    let start = toolgate_mqtt::Broker::start(toolgate_mqtt::BrokerSettings::default());
    let broker = engines.runtime.block_on(start).unwrap();
    for (url, expected) in [
        (broker.url(), "ok       mqtt           mqtt://127.0.0.1:"),
        ("mqtt://127.0.0.1:1".to_owned(), "FAILED   mqtt"),
    ] {
        let config = json!({
            "search": { "url": "http://127.0.0.1:1" },
            "mqtt": { "url": url },
            "voice": { "asr": asr, "tts": "none", "input": "none", "output": "none" },
        });
        let (told, _) = doctor(&config.to_string(), "mqtt");
        assert!(told.contains(expected), "{told}");
    }
}
