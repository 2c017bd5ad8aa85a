//! What happens while `chat` waits for a line.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStderr, ChildStdin};

use fakellm::{Answer, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::llm::ScriptedLlm;
use crate::run::ProgramRun;
use crate::terminal::TmuxTerminal;

/// A configuration with everything that an edit can change.
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

/// A chat whose log can be read.
struct TestChat {
    llm: ScriptedLlm,
    child: Child,
    stdin: ChildStdin,
    log: Lines<BufReader<ChildStderr>>,
    folder: TempDir,
    turns: usize,
}

impl TestChat {
    fn start(run: ProgramRun) -> Self {
        let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
        let (mut child, folder) = llm.known_to(run, "ollama").start_open();
        Self {
            llm,
            stdin: child.stdin.take().unwrap(),
            log: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
            folder,
            turns: 0,
        }
    }

    fn logged(&mut self, text: &str) -> String {
        let mut lines = self.log.by_ref().map_while(Result::ok);
        lines.find(|line| line.contains(text)).unwrap()
    }

    /// Whether the model is offered a tool with the next question.
    fn offers(&mut self, tool: &str) -> bool {
        writeln!(self.stdin, "hello").unwrap();
        self.turns += 1;
        self.llm.asked(self.turns);
        let tools = &self.llm.requests()[self.turns - 1].json()["tools"];
        tools.to_string().contains(&format!("\"{tool}\""))
    }

    fn end(mut self) {
        drop(self.stdin);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn edits_apply_and_restarts_are_one_line() {
    let run = ProgramRun::new(["-v", "--config", "c.json", "chat", "-p", "ollama"])
        .file("c.json", "{}")
        .env(fakemcp::MARK, "edited");
    let file = run.path("c.json");
    let mut chat = TestChat::start(run);
    assert!(!chat.offers("fresh"));

    std::fs::write(&file, edited().to_string()).unwrap();
    let later = chat.logged("takes effect after a restart");
    assert!(later.contains("WARN 'model' changed"), "{later}");
    assert!(chat.offers("fresh"));
    // Its server's tools appear once it has started.
    while !chat.offers("arguments") {}

    std::fs::write(&file, "{ nope").unwrap();
    chat.logged("the previous configuration stays in force");
    assert!(chat.offers("fresh"));
    chat.end();
    assert!(fakemcp::processes("edited").is_empty());
}

#[test]
fn a_server_that_is_agreed_to_in_another_window_starts() {
    let run = ProgramRun::new(["-v", "chat", "-p", "ollama"])
        .file("toolgate.json", edited().to_string())
        .env(fakemcp::MARK, "agreed");
    let mut chat = TestChat::start(run);
    assert!(!chat.offers("arguments"), "nobody has agreed to it");
    let agreed = ProgramRun::new(["trust", "--yes"])
        .within(chat.folder.path())
        .done();
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    chat.logged("toolgate.json is now agreed to");
    while !chat.offers("arguments") {}
    chat.end();
    assert!(fakemcp::processes("agreed").is_empty());
}

#[test]
fn log_lines_appear_above_the_line_being_typed() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    let Some(terminal) = TmuxTerminal::open("{}", &ollama, "chat -p ollama") else {
        return;
    };
    terminal.shows("\n›");
    terminal.keys(&["-l", "half a li"]);
    terminal.shows("\n› half a li");
    let file = terminal.home().join("toolgate.json");
    for (text, expected) in [
        ("{ nope", "the previous configuration stays in force"),
        (
            r#"{ "model": {} }"#,
            "'model' changed, which takes effect after a restart",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let screen = terminal.shows_folded(expected);
        assert!(screen.ends_with("\n› half a li"), "{screen}");
        assert_eq!(screen.matches("half a li").count(), 1, "{screen}");
    }
    let screen = terminal.screen();
    let remark = "toolgate.json changed and is now in use\n";
    assert!(screen.contains(remark), "{screen}");
    terminal.line("ne");
    terminal.shows("\nok\n");
    let asked = llm.requests()[0].json()["messages"].to_string();
    assert!(asked.contains("\"half a line\""), "{asked}");
}
