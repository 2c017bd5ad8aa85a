use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fakellm::{Answer, Script};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::llm::{HANG, Llm, alone, weekday, weekday_call};
use crate::run::Run;

#[test]
fn piped_in_one_line_is_one_turn() {
    let llm = Llm::new([Answer::text("one"), weekday_call(), Answer::text("two")]);
    let run = Run::new(["chat", "-p", "ollama"]).stdin("first\n\nsecond\n");
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str(), done.code),
        ("one\ntwo\n", "", Some(0))
    );
    let requests = llm.requests();
    let last = requests[1].json()["messages"].to_string();
    assert!(
        last.contains("first") && last.contains("one") && last.contains("second"),
        "{last}"
    );
}

#[test]
fn orders_work_in_a_pipe_too() {
    let done = alone(Run::new(["chat"]))
        .stdin("/tools date*\n/model\n/nope\n/quit\nnever\n")
        .done();
    assert!(done.stdout.starts_with("datetime\tbuiltin\t"), "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    assert!(
        done.stderr
            .contains("intents en: no model is configured or reachable"),
        "{done:?}"
    );
    assert!(done.stderr.contains("error: there is no /nope"), "{done:?}");
}

#[test]
fn a_result_that_was_cut_for_the_model_can_be_seen_whole() {
    let llm = Llm::new([weekday_call(), Answer::text("It was a Saturday.")]);
    let run = Run::new(["chat", "-p", "ollama"])
        .config(r#"{ "model": { "maxResult": "1B" } }"#)
        .stdin("/result\nwhich day\n/result\n/result nope\n");
    let done = llm.known_to(run, "ollama").done();
    let kept: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(kept[0], "It was a Saturday.", "{done:?}");
    let (id, tool) = kept[1].split_once('\t').unwrap();
    assert_eq!(tool, "datetime");
    let told = llm.requests()[1].json().to_string();
    assert!(told.contains(&format!("kept under call id {id}")), "{told}");
    assert!(done.stderr.contains("no result was too large"), "{done:?}");
    assert!(
        done.stderr.contains("no result is kept under 'nope'"),
        "{done:?}"
    );
}

#[test]
fn a_turn_that_fails_is_said_and_the_next_one_goes_on() {
    let llm = Llm::new([
        Answer::fails(400, "invalid_request_error", "no"),
        Answer::text("fine"),
    ]);
    let run = Run::new(["chat", "-p", "ollama"]).stdin("a\nb\n");
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(
        (done.stdout.as_str(), done.code),
        ("fine\n", Some(1)),
        "{done:?}"
    );
    assert!(done.stderr.starts_with("error: ollama"), "{done:?}");
}

/// The program in a terminal of its own.
struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// Nothing where there is no tmux; with `CI=true` that is a failure.
    fn open(llm: &Llm, config: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "tmux is not there; ./test.sh installs it"
            );
            drop(writeln!(
                std::io::stderr(),
                "skipped: tmux is not there; ./test.sh installs it"
            ));
            return None;
        }
        let terminal = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(terminal.home().join("toolgate.json"), config).unwrap();
        let home = terminal.folder.path().display().to_string();
        let command = format!(
            "trap : INT; cd {home} && env -i HOME={home} PATH=/usr/bin:/bin TERM=$TERM LANG=C.UTF-8 OLLAMA_HOST={} {} chat -p ollama; echo left with $?; cat",
            llm.url(),
            env!("CARGO_BIN_EXE_toolgate"),
        );
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "30",
            "sh",
            "-c",
            &command,
        ]);
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let socket = self.folder.path().join("tmux");
        let output = Command::new("tmux")
            .arg("-u")
            .arg("-S")
            .arg(socket)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn line(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// The screen once it shows something.
    fn shows(&self, expected: &str) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(expected) {
                return screen;
            }
            assert!(
                started.elapsed() < HANG,
                "'{expected}' does not come:\n{screen}"
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let socket = self.folder.path().join("tmux");
        // It ends by itself with the program.
        drop(
            Command::new("tmux")
                .arg("-S")
                .arg(socket)
                .arg("kill-server")
                .output(),
        );
    }
}

#[test]
fn a_person_sees_the_tools_run_and_the_answer_come() {
    let first = Answer::text("Let me look.")
        .and_call("a", "datetime", &weekday())
        .and_call("b", "volume", &json!({ "action": "fly" }))
        .prompt_tokens(1500);
    let llm = Llm::new([
        first,
        Answer::text("It was a\nSaturday.").prompt_tokens(1800),
    ]);
    let Some(terminal) = Terminal::open(&llm, "{}") else {
        return;
    };
    let screen = terminal.shows("\n›");
    assert!(screen.contains("ollama qwen3:0.6b, 5 tools"), "{screen}");
    terminal.line("which day was it?");
    let screen = terminal.shows(" · 2 calls · ");
    for expected in [
        "› which day was it?\nLet me look.\n",
        "✓ datetime {\"action\":\"weekday\",\"date\":\"1982-04-24\"} ",
        "✗ volume {\"action\":\"fly\"} ",
        "    Invalid parameters: 'action' must be one of",
        "It was a\nSaturday.\n",
        " · 2 calls · ",
    ] {
        assert!(screen.contains(expected), "{expected}\n{screen}");
    }
    assert!(!screen.contains("waiting for the model"), "{screen}");
    terminal.keys(&["C-d"]);
    terminal.shows("left with 0");
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_program() {
    let llm =
        Llm::scripted(Script::new([Answer::black_hole()]).then_always(Answer::text("here I am")));
    let Some(terminal) = Terminal::open(&llm, "{}") else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("hello?");
    terminal.shows("waiting for the model");
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("stopped;");
    assert!(!screen.contains("waiting for the model"), "{screen}");
    llm.left(1);
    terminal.line("again");
    terminal.shows("here I am");
    terminal.keys(&["half", "C-c"]);
    terminal.shows("› half\n›");
    terminal.keys(&["C-c"]);
    terminal.shows("Ctrl-D or /quit leaves");
    terminal.line("/quit");
    terminal.shows("left with 0");
}

#[test]
fn several_lines_are_one_question_and_history_is_kept_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let Some(terminal) = Terminal::open(&llm, "{}") else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("one \\");
    terminal.keys(&["two", "M-Enter", "three", "Enter"]);
    terminal.shows("tokens");
    let messages = llm.requests()[0].json()["messages"].clone();
    assert_eq!(
        messages.as_array().unwrap().last().unwrap()["content"],
        "one \ntwo\nthree"
    );
    terminal.line("/save c.json");
    terminal.shows("saved in c.json");
    terminal.keys(&["C-d"]);
    terminal.shows("left with 0");
    for file in [".local/state/toolgate/chat_history", "c.json"] {
        let mode = std::fs::metadata(terminal.home().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_call_waits_for_approval_and_ctrl_c_takes_the_question_back() {
    let call = || Answer::call("c", "echo", &json!({ "text": "hello" }));
    let llm = Llm::new([
        call(),
        Answer::text("granted"),
        call(),
        Answer::text("back again"),
    ]);
    let Some(terminal) = Terminal::open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say hello");
    terminal.shows("Run it? [y/N]");
    terminal.line("y");
    terminal.shows("granted");
    terminal.line("say it again");
    terminal.shows("say it again\necho {\"text\":\"hello\"}\nRun it? [y/N]");
    terminal.keys(&["C-c"]);
    terminal.shows("stopped;");
    terminal.line("now?");
    terminal.shows("back again");
}
