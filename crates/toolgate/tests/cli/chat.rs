mod keys;
mod screen;

use std::io::{BufRead, BufReader, Write};
use std::process::Child;

use fakellm::{Answer, Script};
use serde_json::json;
use tempfile::TempDir;

use crate::llm::{ScriptedLlm, alone, weekday_call};
use crate::run::{ProgramRun, RunOutput};
use crate::terminal::TmuxTerminal;

/// A chat in a terminal of its own.
fn open(llm: &ScriptedLlm, config: &str) -> Option<TmuxTerminal> {
    open_with(llm, config, "")
}

/// Like `open`, with more arguments in shell syntax.
fn open_with(llm: &ScriptedLlm, config: &str, arguments: &str) -> Option<TmuxTerminal> {
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    TmuxTerminal::open(config, &ollama, &format!("chat -p ollama {arguments}"))
}

#[test]
fn each_piped_line_is_one_turn() {
    let llm = ScriptedLlm::new([Answer::text("one"), weekday_call(), Answer::text("two")]);
    let run = ProgramRun::new(["chat", "-p", "ollama"]).stdin("first\n\nsecond\n");
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
fn a_model_failure_after_tools_points_to_doctor() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::fails(400, "", "no more")]);
    let run = ProgramRun::new(["chat", "-p", "ollama"]).stdin("which day?\n");
    let done = llm.known_to(run, "ollama").done();
    assert!(done.stderr.contains("no more"), "{done:?}");
    assert!(done.stderr.contains("doctor -p ollama"), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn commands_work_in_a_pipe_too() {
    let done = alone(ProgramRun::new(["chat"]))
        .stdin("/tools date*,nix*\n/model\n/nope\n/\n/ hlp\n/quit\nnever\n")
        .done();
    assert!(done.stdout.starts_with("datetime\tbuiltin\t"), "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    assert!(
        done.stderr
            .contains("intents en: no model is configured or reachable"),
        "{done:?}"
    );
    for expected in [
        "error: unknown command /nope",
        "error: a command follows its slash without a space; /help lists all commands",
        "error: a command follows its slash without a space; did you mean /help?",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
}

#[test]
fn help_lists_every_command_and_a_saved_conversation_resumes() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let commands =
        "first\n/save talk.json\n/help\n/resume talk.json\nsecond\n/resume nope.json\n/resume\n";
    let run = ProgramRun::new(["chat", "-p", "ollama"]).stdin(commands);
    let done = llm.known_to(run, "ollama").done();
    for order in [
        "/clear", "/help", "/model", "/quit", "/result", "/resume", "/save", "/tools",
    ] {
        let is_told = done
            .stdout
            .lines()
            .any(|line| line.trim_start().starts_with(order));
        assert!(is_told, "{order}: {done:?}");
    }
    for remark in [
        "saved in talk.json",
        "2 messages from talk.json",
        "the conversation is unchanged",
        "/resume what?",
    ] {
        assert!(done.stderr.contains(remark), "{remark}: {done:?}");
    }
    let last = llm.requests()[1].json()["messages"].to_string();
    assert!(last.contains("first") && last.contains("second"), "{last}");
}

/// A chat in which one reply made `times` calls with results too large for the model.
fn cut(lines: &[String], times: usize) -> (ScriptedLlm, Child, TempDir) {
    let config = json!({
        "model": { "maxResult": "1KiB" },
        "tools": [{
            "name": "long", "description": "d", "parameters": {},
            "implementation": { "type": "mock", "mock_response": lines.join("\n") },
        }],
    });
    let first = Answer::call("c0", "long", &json!({}));
    let calls = (1..times).fold(first, |answer, n| {
        answer.and_call(&format!("c{n}"), "long", &json!({ "n": n }))
    });
    let llm = ScriptedLlm::new([calls, Answer::text("It is long.")]);
    let run = ProgramRun::new(["chat", "-p", "ollama"]).config(&config.to_string());
    let (child, folder) = llm.known_to(run, "ollama").start_open();
    (llm, child, folder)
}

#[test]
fn a_result_cut_for_the_model_can_be_shown_in_full() {
    let lines: Vec<String> = (0..10_000).map(|n| format!("line {n} of it")).collect();
    let (llm, mut child, _folder) = cut(&lines, 1);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || stdout.next().unwrap().unwrap();
    writeln!(stdin, "/result\nhow long\n/result\n/result nope").unwrap();
    assert_eq!(next(), "It is long.");
    let kept = next();
    let (id, tool) = kept.split_once('\t').unwrap();
    assert_eq!(tool, "long");
    writeln!(stdin, "/result {id}").unwrap();
    drop(stdin);
    let shown: Vec<String> = std::iter::from_fn(|| stdout.next()?.ok()).collect();
    assert_eq!(shown, lines);
    let told = llm.requests()[1].json().to_string();
    assert!(told.contains(&format!("kept under call id {id}")), "{told}");
    assert!(told.contains("line 0 of it") && !told.contains("line 5000 of it"));
    let done = RunOutput::from(child.wait_with_output().unwrap());
    for expected in [
        "no result has been too large",
        "no kept result matches 'nope'",
        "/result long shows it",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
}

#[test]
fn results_are_found_by_id_part_or_tool() {
    let lines: Vec<String> = (0..500).map(|n| format!("line {n} of it")).collect();
    for times in [1, 2] {
        let (_llm, mut child, _folder) = cut(&lines, times);
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || stdout.next().unwrap().unwrap();
        writeln!(stdin, "how long\n/result").unwrap();
        assert_eq!(next(), "It is long.");
        let ids: Vec<String> = (0..times).map(|_| next()[..32].to_owned()).collect();
        let (beginning, end) = (&ids[0][..6], &ids[0][26..]);
        writeln!(stdin, "/result {beginning}\n/result {end}\n/result long").unwrap();
        drop(stdin);
        let shown: Vec<String> = std::iter::from_fn(|| stdout.next()?.ok()).collect();
        let expected = if times == 1 { 3 } else { 1 };
        assert_eq!(shown, vec![lines.clone(); expected].concat(), "{times}");
        let done = RunOutput::from(child.wait_with_output().unwrap());
        let several = done.stderr.matches("several kept results match").count();
        assert_eq!(several, 3 - expected, "{done:?}");
    }
}

#[test]
fn a_failed_turn_is_reported_and_the_chat_continues() {
    let llm = ScriptedLlm::new([
        Answer::fails(400, "invalid_request_error", "no"),
        Answer::text("fine"),
    ]);
    let run = ProgramRun::new(["chat", "-p", "ollama"]).stdin("a\nb\n");
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(
        (done.stdout.as_str(), done.code),
        ("fine\n", Some(1)),
        "{done:?}"
    );
    assert!(done.stderr.starts_with("error: ollama"), "{done:?}");
    let doctor = "'toolgate doctor -p ollama -m qwen3:0.6b' checks the model";
    assert!(done.stderr.contains(doctor), "{done:?}");
}

#[test]
fn only_a_saved_conversation_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let run = ProgramRun::new(["chat", "-p", "ollama"])
        .within(folder.path())
        .stdin(
            "hello\n/save notes.txt\n/save /dev/null\n/save a/b.json\n/save c.json\n/save c.json\n",
        );
    let done = llm.known_to(run, "ollama").done();
    for expected in [
        "notes.txt exists and is not a saved conversation",
        "cannot write /dev/null: it is a folder, a device or a pipe",
        "cannot write a/b.json",
        "saved in c.json\nsaved in c.json",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
    let notes = std::fs::read_to_string(folder.path().join("notes.txt")).unwrap();
    assert_eq!(notes, "mine");
    assert!(!folder.path().join("a").exists());
    let run = ProgramRun::new(["chat", "--resume", "c.json"]).within(folder.path());
    let done = llm.known_to(run, "ollama").done();
    assert!(done.stderr.contains("2 messages from c.json"), "{done:?}");
}

#[test]
fn a_file_may_be_in_the_home_folder_or_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let commands = "hello\n/save ~/talk.json\n/save \"my talk.json\"\n/save '~/b.json'\n/resume ~/talk.json\n/resume 'my talk.json'\n";
    let home = folder.path().display();
    let run = ProgramRun::new(["chat", "-p", "ollama"])
        .within(folder.path())
        .env("HOME", &home.to_string())
        .stdin(commands);
    let done = llm.known_to(run, "ollama").done();
    assert_eq!(done.code, Some(0), "{done:?}");
    for expected in [
        format!("saved in {home}/talk.json\nsaved in my talk.json\nsaved in {home}/b.json\n"),
        format!("resumed 2 messages from {home}/talk.json\nresumed 2 messages from my talk.json\n"),
    ] {
        assert!(done.stderr.contains(&expected), "{expected}: {done:?}");
    }
    assert!(folder.path().join("my talk.json").exists());
}

#[test]
fn the_time_of_a_turn_stays_when_the_model_and_the_conversation_change() {
    let llm = ScriptedLlm::new([Answer::black_hole()]);
    let run = ProgramRun::new(["chat", "-p", "intents", "--timeout", "300ms"])
        .stdin("/model ollama:qwen3:0.6b\n/clear\nhello\n");
    let done = llm.known_to(run, "ollama").done();
    assert!(done.stderr.contains("ollama did not"), "{done:?}");
}
