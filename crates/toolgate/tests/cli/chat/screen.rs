//! What a person at a terminal sees.

use std::time::Duration;

use fakellm::{Answer, Script};
use serde_json::json;

use super::{open, open_with};
use crate::llm::{ScriptedLlm, weekday};

#[test]
fn a_terminal_shows_running_tools_and_the_streamed_answer() {
    let first = Answer::text("Let me look.")
        .and_call("a", "datetime", &weekday())
        .and_call("b", "volume", &json!({ "action": "fly" }))
        .prompt_tokens(1500);
    let llm = ScriptedLlm::new([
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
fn a_terminal_shows_how_long_a_call_runs() {
    // A search service that never answers.
    let searcher = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", searcher.local_addr().unwrap());
    let config = json!({ "search": { "backend": "searxng", "url": url } }).to_string();
    let search = |id: &str| Answer::call(id, "search", &json!({ "query": id }));
    let calls = search("cats").and_call("dogs", "search", &json!({ "query": "dogs" }));
    let llm = ScriptedLlm::new([calls]);
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
    // If the line is too narrow, the time is kept.
    terminal.resize(30);
    let screen = terminal.shows("\"dog… ");
    let line = screen.lines().find(|line| line.contains("dog…"));
    assert!(line.unwrap().trim_end().ends_with(" s"), "{screen}");
    terminal.resize(80);
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("stopped;");
    assert!(!screen.contains(|c| "⠋⠙⠸⠴⠦⠇⠏⠛".contains(c)), "{screen}");
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_program() {
    let llm = ScriptedLlm::scripted(
        Script::new([Answer::black_hole()]).then_always(Answer::text("here I am")),
    );
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
    let llm = ScriptedLlm::scripted(Script::new([stalled]).then_always(Answer::text("and so on")));
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
fn a_call_waits_for_approval_and_ctrl_c_withdraws_the_question() {
    let call = || Answer::call("c", "echo", &json!({ "text": "hello" }));
    let llm = ScriptedLlm::new([
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
fn two_questions_stand_one_below_the_other_and_nothing_below_the_last() {
    let first = Answer::call("a", "echo", &json!({ "text": "one" })).and_call(
        "b",
        "echo",
        &json!({ "text": "two" }),
    );
    let llm = ScriptedLlm::new([first, Answer::text("done")]);
    let Some(terminal) = open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say both");
    terminal.shows("Run echo? [y/N]");
    terminal.line("y");
    // Long enough for several frames of a spinner.
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
fn with_redirected_stderr_stdout_has_only_the_answer() {
    let first = Answer::text("Let me look.").and_call("a", "datetime", &weekday());
    let llm = ScriptedLlm::new([first, Answer::text("It was a Saturday.")]);
    let Some(terminal) = open_with(&llm, "{}", "2>errors") else {
        return;
    };
    terminal.shows("›");
    terminal.line("which day?");
    let screen = terminal.shows("It was a Saturday.");
    assert!(!screen.contains("Let me look."), "{screen}");
}

#[test]
fn with_redirected_stdout_the_chat_explains_how_to_type() {
    let llm = ScriptedLlm::new([Answer::text("It was a Saturday.")]);
    let Some(terminal) = open_with(&llm, "{}", ">answers") else {
        return;
    };
    terminal.ends_with("each line is one turn, Ctrl-D ends the chat");
    terminal.keys(&["-l", "which day?"]);
    terminal.ends_with("Ctrl-D ends the chat\nwhich day?");
    terminal.keys(&["Enter"]);
    terminal.keys(&["C-d"]);
    terminal.shows("left with 0");
    let answers = std::fs::read_to_string(terminal.home().join("answers")).unwrap();
    assert_eq!(answers, "It was a Saturday.\n");
}
