//! What a person at a terminal types.

use std::sync::Arc;

use fakellm::{Answer, Script};
use serde_json::json;
use tokio::sync::Semaphore;

use super::open;
use crate::llm::ScriptedLlm;
use crate::terminal::TmuxTerminal;

#[test]
fn several_lines_are_one_question_and_history_is_kept_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
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
fn history_survives_a_chat_but_skips_lines_that_begin_with_a_space() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
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
    // It can be edited like a typed one.
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
fn type_ahead_does_not_answer_a_question() {
    let gate = Arc::new(Semaphore::new(0));
    let call = Answer::call("c", "echo", &json!({ "text": "hello" })).behind(&gate);
    let llm = ScriptedLlm::new([call, Answer::text("and so it ends")]);
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
        result.contains("declined") || result.contains("denied"),
        "{result}"
    );
}

#[test]
fn several_lines_in_one_read_are_all_read() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
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
fn type_ahead_is_hidden_until_the_prompt() {
    let gate = Arc::new(Semaphore::new(0));
    let call = Answer::call("c", "echo", &json!({ "text": "hello" }));
    let llm = ScriptedLlm::new([call, Answer::text("The quick brown fox").behind(&gate)]);
    let Some(terminal) = open(&llm, r#"{ "policy": { "ask": ["echo"] } }"#) else {
        return;
    };
    terminal.shows("\n›");
    terminal.line("say hello");
    terminal.shows("Run echo? [y/N]");
    terminal.keys(&["-l", "yes"]);
    terminal.ends_with("[y/N]\nyes");
    terminal.keys(&["Enter"]);
    llm.asked(2);
    terminal.shows("waiting for the model");
    terminal.line("/quix");
    terminal.keys(&["-l", "typed ahead"]);
    // It would be visible at once, if at all.
    terminal.shows("waiting for the model 1.");
    let screen = terminal.screen();
    assert!(
        !screen.contains("typed") && !screen.contains("/quix"),
        "{screen}"
    );
    assert_eq!(screen.matches("waiting").count(), 1, "{screen}");
    gate.add_permits(1);
    let screen = terminal.ends_with("\n› typed ahead");
    assert!(screen.contains("\nThe quick brown fox\n"), "{screen}");
    assert!(
        screen.contains("\n› /quix\nerror: unknown command /quix"),
        "{screen}"
    );
    terminal.keys(&["C-u", "C-d"]);
    terminal.shows("left with 0");
    terminal.line("seen again");
    terminal.shows("seen again\nseen again");
}

#[test]
fn ctrl_z_and_fg_work_at_the_prompt_and_in_a_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let llm = ScriptedLlm::new([Answer::text("here I am").behind(&gate)]);
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    // A shell such as bash sets the terminal right before it asks for the next command.
    let sleep = "stty sane; echo asleep; read awake; fg";
    let command = format!("chat -p ollama; {sleep}; {sleep}");
    let Some(terminal) = TmuxTerminal::open_with_jobs("{}", &ollama, &command) else {
        return;
    };
    terminal.ends_with("\n›");
    terminal.keys(&["-l", "helo"]);
    terminal.keys(&["Left", "C-z"]);
    terminal.ends_with("\nasleep");
    terminal.line("awake");
    terminal.ends_with("\n› helo");
    terminal.keys(&["l", "End", "?"]);
    terminal.ends_with("\n› hello?");
    terminal.keys(&["Enter"]);
    llm.asked(1);
    terminal.shows("waiting for the model");
    terminal.keys(&["C-z"]);
    terminal.ends_with(" sasleep");
    terminal.line("awake");
    terminal.ends_with(" s");
    terminal.keys(&["-l", "unseen"]);
    gate.add_permits(1);
    let screen = terminal.ends_with("\n› unseen");
    assert!(screen.contains("here I am"), "{screen}");
    assert_eq!(screen.matches("unseen").count(), 1, "{screen}");
}
