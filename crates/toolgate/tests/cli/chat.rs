use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

use fakellm::{Answer, Script};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::llm::{Llm, alone, weekday, weekday_call};
use crate::run::{Done, Run};
use crate::terminal::Terminal;

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
fn help_names_every_order_and_a_saved_conversation_is_gone_on_with() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let orders =
        "first\n/save talk.json\n/help\n/resume talk.json\nsecond\n/resume nope.json\n/resume\n";
    let run = Run::new(["chat", "-p", "ollama"]).stdin(orders);
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
        "the conversation stays as it is",
        "/resume what?",
    ] {
        assert!(done.stderr.contains(remark), "{remark}: {done:?}");
    }
    let last = llm.requests()[1].json()["messages"].to_string();
    assert!(last.contains("first") && last.contains("second"), "{last}");
}

#[test]
fn a_result_that_was_cut_for_the_model_can_be_seen_whole() {
    let lines: Vec<String> = (0..10_000).map(|n| format!("line {n} of it")).collect();
    let config = json!({
        "model": { "maxResult": "1KiB" },
        "tools": [{
            "name": "long", "description": "d", "parameters": {},
            "implementation": { "type": "mock", "mock_response": lines.join("\n") },
        }],
    });
    let llm = Llm::new([
        Answer::call("c", "long", &json!({})),
        Answer::text("It is long."),
    ]);
    let run = Run::new(["chat", "-p", "ollama"]).config(&config.to_string());
    let (mut child, _folder) = llm.known_to(run, "ollama").start_open();
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
    let done = Done::from(child.wait_with_output().unwrap());
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
    let doctor = "'toolgate doctor -p ollama -m qwen3:0.6b' looks at the model";
    assert!(done.stderr.contains(doctor), "{done:?}");
}

/// A chat in a terminal of its own.
fn open(llm: &Llm, config: &str) -> Option<Terminal> {
    open_with(llm, config, "")
}

/// The same with more arguments, as a shell reads them.
fn open_with(llm: &Llm, config: &str, arguments: &str) -> Option<Terminal> {
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    Terminal::open(config, &ollama, &format!("chat -p ollama {arguments}"))
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
    let Some(terminal) = open(&llm, "{}") else {
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
fn a_person_sees_what_runs_for_how_long() {
    // A searcher that never answers.
    let searcher = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", searcher.local_addr().unwrap());
    let config = json!({ "search": { "backend": "searxng", "url": url } }).to_string();
    let search = |id: &str| Answer::call(id, "search", &json!({ "query": id }));
    let calls = search("cats").and_call("dogs", "search", &json!({ "query": "dogs" }));
    let llm = Llm::new([calls]);
    let Some(terminal) = open(&llm, &config) else {
        return;
    };
    let screen = terminal.shows("\n›");
    assert!(screen.contains("the command line says so"), "{screen}");
    terminal.line("look for both");
    terminal.shows(" search {\"query\":\"dogs\"} 1.");
    let screen = terminal.screen();
    for query in ["cats", "dogs"] {
        let running = format!(" search {{\"query\":\"{query}\"}} ");
        let line = screen.lines().find(|line| line.contains(&running));
        let line = line.unwrap_or_else(|| panic!("{screen}"));
        assert!(
            line.starts_with(|turning| "⠋⠙⠸⠴⠦⠇⠏⠛".contains(turning)),
            "{line}"
        );
        assert!(line.trim_end().ends_with(" s"), "{line}");
    }
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("stopped;");
    assert!(!screen.contains(|c| "⠋⠙⠸⠴⠦⠇⠏⠛".contains(c)), "{screen}");
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_program() {
    let llm =
        Llm::scripted(Script::new([Answer::black_hole()]).then_always(Answer::text("here I am")));
    let Some(terminal) = open(&llm, "{}") else {
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
fn what_a_model_said_before_ctrl_c_stays_in_the_conversation() {
    let words: Vec<String> = (0..200).map(|n| format!("word{n}")).collect();
    let stalled = Answer::text(&words.join(" ")).stall_after(1200);
    let llm = Llm::scripted(Script::new([stalled]).then_always(Answer::text("and so on")));
    let Some(terminal) = open(&llm, "{}") else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("tell me");
    terminal.shows("word0 word1 ");
    terminal.keys(&["C-c"]);
    terminal.shows("stopped; what was said so far stays");
    terminal.line("go on");
    terminal.shows("and so on");
    let sent = llm.requests().pop().unwrap().json()["messages"].to_string();
    assert!(sent.contains("word0 word1 "), "{sent}");
    assert!(!sent.contains("ended before there was an answer"), "{sent}");
}

#[test]
fn several_lines_are_one_question_and_history_is_kept_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let Some(terminal) = open(&llm, "{}") else {
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
fn a_line_comes_back_with_the_arrow_in_the_next_chat_too_unless_it_began_with_a_space() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let said = |count: usize| {
        llm.asked(count);
        let messages = llm.requests()[count - 1].json()["messages"].clone();
        let last = messages.as_array().unwrap().last().unwrap();
        last["content"].as_str().unwrap().to_owned()
    };
    let Some(terminal) = open(&llm, "{}") else {
        return;
    };
    terminal.ends_with("\n›");
    terminal.line("the first");
    terminal.ends_with("tokens\n\n›");
    terminal.line(" a secret");
    assert_eq!(said(2).trim(), "a secret");
    terminal.ends_with("tokens\n\n›");
    terminal.keys(&["Up"]);
    terminal.ends_with("\n› the first");
    // It is edited like one that was typed.
    terminal.keys(&["Home"]);
    terminal.keys(&["-l", "not "]);
    terminal.keys(&["End", "C-w"]);
    terminal.keys(&["-l", "lost"]);
    terminal.keys(&["Left", "Left", "BSpace", "a"]);
    terminal.ends_with("\n› not the last");
    terminal.keys(&["Enter"]);
    assert_eq!(said(3), "not the last");
    terminal.ends_with("tokens\n\n›");
    terminal.keys(&["C-d"]);
    terminal.shows("left with 0");
    let file = terminal.home().join(".local/state/toolgate/chat_history");
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(
        kept.contains("the first") && !kept.contains("secret"),
        "{kept}"
    );

    terminal.open_again(&format!("OLLAMA_HOST={}", llm.url()), "chat -p ollama");
    terminal.ends_with("leaves\n›");
    for recalled in ["not the last", "the first"] {
        terminal.keys(&["Up"]);
        terminal.ends_with(&format!("\n› {recalled}"));
    }
    terminal.keys(&["Up", "Down"]);
    terminal.ends_with("\n› not the last");
    terminal.keys(&["Enter"]);
    assert_eq!(said(4), "not the last");
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
    let Some(terminal) = open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say hello");
    terminal.shows("Run echo? [y/N]");
    terminal.line("y");
    terminal.shows("granted");
    terminal.line("say it again");
    terminal
        .shows("say it again\necho (builtin, asked by chat) {\"text\":\"hello\"}\nRun echo? [y/N]");
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("stopped;");
    assert!(
        screen.contains("✗ echo {\"text\":\"hello\"} cancelled"),
        "{screen}"
    );
    terminal.line("now?");
    terminal.shows("back again");
}

#[test]
fn what_is_typed_before_a_question_is_no_answer_to_it() {
    let gate = Arc::new(Semaphore::new(0));
    let call = Answer::call("c", "echo", &json!({ "text": "hello" })).behind(&gate);
    let llm = Llm::new([call, Answer::text("and so it ends")]);
    let Some(terminal) = open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say hello");
    llm.asked(1);
    terminal.shows("waiting for the model");
    terminal.line("y");
    gate.add_permits(1);
    terminal.shows("Run echo? [y/N]");
    terminal.line("n");
    terminal.shows("and so it ends");
    let result = llm.requests()[1].json()["messages"].to_string();
    assert!(
        result.contains("refused") || result.contains("denied"),
        "{result}"
    );
}

#[test]
fn two_questions_stand_one_below_the_other_and_nothing_below_the_last() {
    let first = Answer::call("a", "echo", &json!({ "text": "one" })).and_call(
        "b",
        "echo",
        &json!({ "text": "two" }),
    );
    let llm = Llm::new([first, Answer::text("done")]);
    let Some(terminal) = open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say both");
    terminal.shows("Run echo? [y/N]");
    terminal.line("y");
    // Long enough for several pictures of a spinner.
    for _ in 0..25 {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let screen = terminal.screen();
    assert_eq!(screen.matches("Run echo? [y/N]").count(), 2, "{screen}");
    assert!(screen.ends_with("Run echo? [y/N]"), "{screen}");
    terminal.line("y");
    terminal.shows("done");
}

#[test]
fn lines_that_come_together_are_all_read() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let Some(terminal) = open(&llm, "{}") else {
        return;
    };
    terminal.shows("\n›");
    terminal.keys(&["-l", "one\rtwo\rthree\r"]);
    llm.asked(3);
    let last = llm.requests()[2].json()["messages"].to_string();
    assert!(last.contains("two") && last.contains("three"), "{last}");
}

#[test]
fn where_stderr_goes_elsewhere_stdout_carries_the_answer_alone() {
    let first = Answer::text("Let me look.").and_call("a", "datetime", &weekday());
    let llm = Llm::new([first, Answer::text("It was a Saturday.")]);
    let Some(terminal) = open_with(&llm, "{}", "2>errors") else {
        return;
    };
    terminal.shows("›");
    terminal.line("which day?");
    let screen = terminal.shows("It was a Saturday.");
    assert!(!screen.contains("Let me look."), "{screen}");
}

#[test]
fn nothing_but_a_saved_conversation_is_overwritten_and_a_resumed_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let run = Run::new(["chat", "-p", "ollama"])
        .within(folder.path())
        .stdin(
            "hello\n/save notes.txt\n/save /dev/null\n/save a/b.json\n/save c.json\n/save c.json\n",
        );
    let done = llm.known_to(run, "ollama").done();
    for expected in [
        "notes.txt is there and holds no saved conversation",
        "cannot write /dev/null: it is a folder, a device or a pipe",
        "cannot write a/b.json",
        "saved in c.json\nsaved in c.json",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
    let notes = std::fs::read_to_string(folder.path().join("notes.txt")).unwrap();
    assert_eq!(notes, "mine");
    assert!(!folder.path().join("a").exists());
    let run = Run::new(["chat", "--resume", "c.json"]).within(folder.path());
    let done = llm.known_to(run, "ollama").done();
    assert!(done.stderr.contains("2 messages from c.json"), "{done:?}");
}

#[test]
fn the_time_of_a_turn_stays_when_the_model_and_the_conversation_change() {
    let llm = Llm::new([Answer::black_hole()]);
    let run = Run::new(["chat", "-p", "intents", "--timeout", "300ms"])
        .stdin("/model ollama:qwen3:0.6b\n/clear\nhello\n");
    let done = llm.known_to(run, "ollama").done();
    assert!(done.stderr.contains("ollama did not"), "{done:?}");
}
