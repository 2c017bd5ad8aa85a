//! What happens while `chat` waits for a line.

use std::io::{BufRead, BufReader, Write};

use fakellm::{Answer, Script};
use serde_json::{Value, json};

use crate::llm::Llm;
use crate::run::Run;
use crate::terminal::Terminal;

/// Something for everything that an edit can be about.
fn edited() -> Value {
    json!({
        "tools": [{
            "name": "fresh", "description": "d", "parameters": {},
            "implementation": { "type": "mock", "mock_response": 1 },
        }],
        "mcpServers": { "house": { "command": fakemcp::program() } },
        "limits": { "concurrency": 7 },
        "model": { "maxTokens": 99 },
    })
}

#[test]
fn an_edited_configuration_is_followed_and_what_is_for_the_next_start_is_said_in_one_line() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let run = Run::new(["-v", "--config", "c.json", "chat", "-p", "ollama"])
        .file("c.json", "{}")
        .env(fakemcp::MARK, "edited");
    let run = llm.known_to(run, "ollama");
    let file = run.path("c.json");
    let (mut child, _folder) = run.start_open();
    let mut stdin = child.stdin.take().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut logged = |text: &str| {
        let mut lines = log.by_ref().map_while(Result::ok);
        lines.find(|line| line.contains(text)).unwrap()
    };
    let mut offered = |turn: usize| {
        writeln!(stdin, "hello").unwrap();
        llm.asked(turn);
        llm.requests()[turn - 1].json()["tools"].to_string()
    };
    assert!(!offered(1).contains("\"fresh\""));

    std::fs::write(&file, edited().to_string()).unwrap();
    let later = logged("takes effect at the next start");
    assert!(later.contains("'limits', 'model' changed"), "{later}");
    assert!(offered(2).contains("\"fresh\""));
    // The tools of its server come when it has started.
    let mut has_server = |turn: usize| offered(turn).contains("\"arguments\"");
    let turn = (3..).find(|turn| has_server(*turn)).unwrap();

    std::fs::write(&file, "{ nope").unwrap();
    logged("the configuration before it stays in force");
    assert!(offered(turn + 1).contains("\"fresh\""));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(fakemcp::processes("edited").is_empty());
}

#[test]
fn what_is_logged_while_a_line_is_typed_stands_above_it() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    let Some(terminal) = Terminal::open("{}", &ollama, "chat -p ollama") else {
        return;
    };
    terminal.shows("\n›");
    terminal.keys(&["-l", "half a li"]);
    terminal.shows("\n› half a li");
    let file = terminal.home().join("toolgate.json");
    for (text, expected) in [
        ("{ nope", "the configuration before it stays in force"),
        (
            r#"{ "retry": {} }"#,
            "'retry' changed: that takes effect at the next start",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let screen = terminal.shows_folded(expected);
        assert!(screen.ends_with("\n› half a li"), "{screen}");
        assert_eq!(screen.matches("half a li").count(), 1, "{screen}");
    }
    let screen = terminal.screen();
    let remark = "toolgate.json changed: its tools and servers are in use\n";
    assert!(screen.contains(remark), "{screen}");
    terminal.line("ne");
    terminal.shows("\nok\n");
    let asked = llm.requests()[0].json()["messages"].to_string();
    assert!(asked.contains("\"half a line\""), "{asked}");
}
