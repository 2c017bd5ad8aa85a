mod doctor;
mod screen;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fakellm::Answer;
use fakewyoming::{FakeAsr, FakeTts, Port};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::children::{signal, wait_until};
use crate::llm::{ScriptedLlm, weekday, weekday_call};
use crate::run::{ProgramRun, RunOutput};

/// A recording of "turn on switch one". The test double decides what is understood.
const SPOKEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../toolgate-voice/tests/sounds/turn-on-switch-one.wav"
);
const SUM: &str = "What is 17 percent of 340?";
/// The tone must not drown speech that comes all at once: while it plays, nothing is heard.
const TONELESS: &str = r#"{ "voice": { "tones": false } }"#;

/// Test doubles of the engines, and the runtime they run on.
struct FakeEngines {
    runtime: Runtime,
    asr: FakeAsr,
    tts: FakeTts,
}

impl FakeEngines {
    /// Each utterance is understood as the next of these.
    fn new<const N: usize>(texts: [&str; N]) -> Self {
        let runtime = Runtime::new().unwrap();
        let asr = runtime.block_on(FakeAsr::start(texts));
        let tts = runtime.block_on(FakeTts::start());
        Self { runtime, asr, tts }
    }

    /// A run that uses the fake engines and plays nothing.
    fn voice(&self, arguments: &[&str]) -> ProgramRun {
        self.heard_from("none", arguments)
    }

    /// Like `voice`, with another output.
    fn heard_from(&self, out: &str, arguments: &[&str]) -> ProgramRun {
        ProgramRun::new(["voice", "--out", out])
            .args(&["--asr", &self.asr.address(), "--tts", &self.tts.address()])
            .args(arguments)
    }

    /// Like `voice`, without a model.
    fn intents(&self, arguments: &[&str]) -> ProgramRun {
        self.voice(&["-p", "intents"]).args(arguments)
    }
}

/// A file without any sound in it.
const NO_SOUND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

#[test]
fn wrong_usage_is_reported_before_anything_starts() {
    let unset = r#"{ "mqtt": { "url": "localhost", "password": "${NOPE}" } }"#;
    let address = r#"{ "voice": { "handle": "localhost" } }"#;
    let broker = r#"{ "mqtt": { "url": "http://localhost" } }"#;
    // Without a configured input, a missing recorder would be the error.
    let recorder = r#"{ "voice": { "input": "true" } }"#;
    for (arguments, config, expected) in [
        (&["--wav", "none.wav"][..], "{}", "cannot read none.wav"),
        (&["--wav", NO_SOUND], "{}", "this is not WAV"),
        (&["--push-to-talk"], recorder, "needs a terminal"),
        (&["--asr", "localhost"], "{}", "is not a Wyoming address"),
        (&["--mic", "none"], "{}", "nothing to answer"),
        (&["--mic", "-"], unset, "mqtt.password: the variable NOPE"),
        (
            &["--mic", "-"],
            address,
            "toolgate.json:1:14: voice.handle: ",
        ),
        (&["--mic", "-"], broker, "toolgate.json:1:13: mqtt.url: "),
        (
            &["-p", "anthropic", "-m", "ollama:x"],
            "{}",
            "two providers",
        ),
    ] {
        let done = ProgramRun::new(["voice"])
            .args(arguments)
            .config(config)
            .done();
        assert!(done.stderr.contains(expected), "{arguments:?} {done:?}");
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)));
    }
}

#[test]
fn files_are_answered_on_stdout_and_what_happened_is_in_the_log() {
    let engines = FakeEngines::new([SUM, "What is 2 plus 2?"]);
    let done = engines.intents(&["--wav", SPOKEN, SPOKEN]).done();
    let answers: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(answers.len(), 2, "{done:?}");
    assert!(
        answers[0].contains("57.8") && answers[1].contains('4'),
        "{done:?}"
    );
    assert!(done.stderr.contains("heard: "), "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
    let spoken = engines.tts.texts().join(" ");
    assert!(spoken.contains("57.8"), "{spoken}");
}

#[test]
fn a_turn_is_one_line_of_json_for_programs() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::text("It was a **Saturday**.")]);
    let engines = FakeEngines::new(["which day was it"]);
    let run = engines.voice(&["-p", "ollama", "--json", "--wav", SPOKEN]);
    let done = llm.known_to(run, "ollama").done();
    let turn = done.json();
    assert_eq!(turn["source"], "wav", "{done:?}");
    assert_eq!(turn["answer"], "It was a **Saturday**.");
    let calls = turn["calls"].as_array().unwrap();
    assert_eq!((&turn["outcome"], calls.len()), (&json!("answered"), 1));
    assert_eq!(
        (&calls[0]["tool"], &calls[0]["success"]),
        (&json!("datetime"), &json!(true))
    );
    assert!(calls[0]["duration_ms"].as_f64().is_some(), "{turn}");
    assert_eq!(done.code, Some(0));
    assert!(!engines.tts.texts().join(" ").contains('*'));
}

#[test]
fn failed_and_missing_requests_are_failures() {
    let llm = ScriptedLlm::new([Answer::fails(400, "invalid_request_error", "no")]);
    let engines = FakeEngines::new(["hello there"]);
    let run = engines.voice(&["-q", "-p", "ollama", "--wav", SPOKEN]);
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(!done.stdout.is_empty(), "something is said: {done:?}");
    let failed = "error: 1 of 1 requests failed: ";
    assert!(done.stderr.starts_with(failed), "also with -q: {done:?}");
    let engines = FakeEngines::new([]);
    let done = engines.intents(&["-q", "--wav", SPOKEN]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
    assert!(
        done.stderr.contains("error: no request was understood"),
        "{done:?}"
    );
}

#[test]
fn json_reports_the_outcome_of_each_file() {
    let engines = FakeEngines::new([SUM, "Never mind.", "[BLANK_AUDIO]"]);
    let folder = tempfile::tempdir().unwrap();
    let quiet = folder.path().join("quiet.wav");
    let mut file = std::fs::read(SPOKEN).unwrap();
    file[44..].fill(0);
    std::fs::write(&quiet, file).unwrap();
    let quiet = quiet.to_str().unwrap();
    let files = ["--json", "--wav", SPOKEN, quiet, SPOKEN, SPOKEN];
    let done = engines.intents(&files).done();
    let lines: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = lines
        .iter()
        .map(|line| ["file", "outcome", "reason"].map(|key| line[key].as_str()));
    let dropped = Some("dropped");
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            [Some(SPOKEN), Some("answered"), None],
            [Some(quiet), dropped, Some("no request in this file")],
            [Some(SPOKEN), dropped, Some("a request to stop")],
            [
                Some(SPOKEN),
                dropped,
                Some("likely a transcription of silence")
            ],
        ],
        "{done:?}"
    );
    assert_eq!(lines[2]["heard"], "Never mind", "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_lost_default_model_falls_back() {
    let engines = FakeEngines::new([SUM]);
    let nowhere = "http://127.0.0.1:1";
    let run = engines
        .voice(&["--wav", SPOKEN])
        .env("OLLAMA_HOST", nowhere);
    let run = run.env("ANTHROPIC_API_KEY", "k");
    let done = run.env("ANTHROPIC_BASE_URL", nowhere).done();
    assert!(done.stdout.contains("57.8"), "{done:?}");
    let lost = done
        .stderr
        .lines()
        .filter(|line| line.contains("lost; retrying until it is back"));
    let lost: Vec<&str> = lost.collect();
    assert!(
        lost.len() == 1 && lost[0].contains("role=model"),
        "{done:?}"
    );
}

#[test]
fn a_corrected_request_is_understood() {
    let engines = FakeEngines::new(["Never mind."]);
    let done = engines.intents(&["--wav", SPOKEN]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(0)), "{done:?}");
    assert!(!done.stderr.contains("error"), "{done:?}");
}

#[test]
fn raw_sound_is_heard_from_stdin_until_it_ends() {
    let engines = FakeEngines::new([SUM]);
    let file = std::fs::read(SPOKEN).unwrap();
    let start = file.windows(4).position(|four| four == b"data").unwrap() + 8;
    let run = engines.intents(&["--mic", "-"]).config(TONELESS);
    let done = run.stdin(&file[start..]).done();
    assert!(done.stdout.contains("57.8"), "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn once_ends_after_one_request() {
    let engines = FakeEngines::new([SUM, SUM, SUM]);
    let files = ["--once", "--wav", SPOKEN, SPOKEN, SPOKEN];
    let done = engines.intents(&files).done();
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn calls_that_need_approval_are_denied_without_a_person() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::text("I may not do that.")]);
    let engines = FakeEngines::new(["which day was it"]);
    let run = engines
        .voice(&["-p", "ollama", "--wav", SPOKEN])
        .config(r#"{ "policy": { "ask": ["datetime"] } }"#);
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(done.stdout, "I may not do that.\n", "{done:?}");
    let told = llm.requests()[1].json().to_string();
    assert!(told.contains("needs approval"), "{told}");
    let llm = ScriptedLlm::new([weekday_call(), Answer::text("A Saturday.")]);
    let engines = FakeEngines::new(["which day was it"]);
    let run = engines
        .voice(&["-p", "ollama", "--yes", "--wav", SPOKEN])
        .config(r#"{ "policy": { "ask": ["datetime"] } }"#);
    drop(llm.known_to(run, "ollama").done());
    let told = llm.requests()[1].json().to_string();
    assert!(!told.contains("needs approval"), "{} {told}", weekday());
}

#[test]
fn the_volume_tool_mutes_the_voice_and_skips_synthesis() {
    for (out, result, spoken) in [
        ("answer.wav", "muted", &[][..]),
        ("none", "the volume cannot be set", &["I am quiet."]),
    ] {
        let mute = Answer::call("call_1", "volume", &json!({ "action": "mute" }));
        let llm = ScriptedLlm::new([mute, Answer::text("I am quiet.")]);
        let engines = FakeEngines::new(["be quiet now please"]);
        let run = engines.heard_from(out, &["-p", "ollama", "--wav", SPOKEN]);
        let done = llm.known_to(run, "ollama").done();
        assert_eq!(done.stdout, "I am quiet.\n", "{done:?}");
        let told = llm.requests()[1].json().to_string();
        assert!(told.contains(result), "{told}");
        assert_eq!(engines.tts.texts(), spoken, "{out}");
    }
}

#[test]
fn text_is_answered_for_home_assistant_without_a_microphone() {
    let engines = FakeEngines::new([]);
    let port = Port::reserve();
    let run = engines.intents(&["--handle", &port.address()]);
    let (child, _folder) = run.start_open();
    let mut connection = connected(port.number());
    let asked = json!({ "type": "transcript", "data": { "text": SUM } });
    writeln!(connection, "{asked}").unwrap();
    let mut told = Vec::new();
    // The answer ends without a line break.
    while !String::from_utf8_lossy(&told).contains("57.8") {
        let mut some = [0; 1024];
        let read = connection.read(&mut some).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&some[..read]);
    }
    signal("-INT", &child);
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:?}");
    let told = done.stderr.matches("the microphone is off").count();
    assert_eq!(told, 1, "{done:?}");
}

#[test]
fn a_taken_port_is_not_a_usage_error() {
    let engines = FakeEngines::new([SUM]);
    let taken = engines.asr.address();
    for option in ["--handle", "--serve-tts"] {
        let done = engines.intents(&["--wav", SPOKEN, option, &taken]).done();
        let expected =
            format!("error: cannot listen on {taken}: another program is already listening there");
        assert!(done.stderr.contains(&expected), "{done:?}");
        assert_eq!(done.code, Some(1), "{done:?}");
    }
}

#[test]
fn exposure_to_the_network_is_warned_of_once() {
    let engines = FakeEngines::new([SUM]);
    let port = Port::reserve();
    let address = format!("tcp://0.0.0.0:{}", port.number());
    let done = engines
        .intents(&["--wav", SPOKEN, "--handle", &address])
        .done();
    let told = done.stderr.matches("Wyoming has no passwords").count();
    assert_eq!(told, 1, "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn ctrl_c_ends_it_and_its_servers() {
    for input in [["--mic", "-"], ["--wav", SPOKEN]] {
        let engines = FakeEngines::new([]);
        let mark = format!("voice of {}", std::process::id());
        let config = json!({ "mcpServers": { "deaf": server(&mark) } });
        let run = engines.intents(&[input[0], input[1], "--config", "servers.json"]);
        let run = run.file("servers.json", config.to_string());
        let (mut child, _folder) = run.start_open();
        // Waiting for the child would close stdin, and the end of the sound ends the program.
        let _sound = child.stdin.take();
        wait_until("its server runs", || !fakemcp::processes(&mark).is_empty());
        signal("-INT", &child);
        let done = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(130), "{input:?}: {done:?}");
        assert!(!done.stderr.contains("error: "), "{input:?}: {done:?}");
        wait_until("nothing is left", || fakemcp::processes(&mark).is_empty());
    }
}

#[test]
fn its_configuration_is_followed_while_it_runs() {
    let engines = FakeEngines::new([]);
    let marks = ["before", "after"].map(|when| format!("voice {when} {}", std::process::id()));
    let configs = [
        json!({ "mcpServers": { "one": server(&marks[0]) } }),
        json!({ "mcpServers": { "two": server(&marks[1]) }, "voice": { "silence": "1s" } }),
    ];
    let run = engines.intents(&["--mic", "-", "--config", "mine.json"]);
    let run = run.file("mine.json", configs[0].to_string());
    let file = run.path("mine.json");
    let (mut child, _folder) = run.start_open();
    let _sound = child.stdin.take();
    let runs = |mark: &str| !fakemcp::processes(mark).is_empty();
    wait_until("its server runs", || runs(&marks[0]));
    std::fs::write(&file, configs[1].to_string()).unwrap();
    wait_until("the other runs instead", || {
        runs(&marks[1]) && !runs(&marks[0])
    });
    signal("-INT", &child);
    let done = RunOutput::from(child.wait_with_output().unwrap());
    let told = "'voice' changed, which takes effect after a restart";
    assert_eq!(done.stderr.matches(told).count(), 1, "{done:?}");
}

/// A server that never answers, with a mark that identifies its processes.
fn server(mark: &str) -> Value {
    json!({ "command": fakemcp::program(), "args": ["deaf", "child"], "env": { fakemcp::MARK: mark } })
}

fn connected(port: u16) -> TcpStream {
    let mut found = None;
    wait_until("it listens", || {
        found = TcpStream::connect(("127.0.0.1", port)).ok();
        found.is_some()
    });
    let connection = found.unwrap();
    let patience = Some(Duration::from_secs(60));
    connection.set_read_timeout(patience).unwrap();
    connection
}
