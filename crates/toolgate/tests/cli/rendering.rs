//! What a person reads at a terminal: words aren't broken, and Markdown is rendered.

use fakellm::{Answer, Script};

use crate::llm::ScriptedLlm;
use crate::terminal::TmuxTerminal;

/// Keeps the program from finding an Ollama on this machine.
const ALONE: &str = "OLLAMA_HOST=127.0.0.1:1";

const MARKDOWN: &str = "# The house\n\nThe **kitchen** light is *off*, and the lamp in the living room is at `60 %` as somebody may have wanted it.\n\n- one\n- two\n\n| Room | State |\n|---|---|\n| Hall | locked |\n\n```sh\ntoolgate list\n```\n\n[More](http://h/)";

/// Words as they follow each other, wherever a line ends.
fn joined(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_banner_of_the_demo_fits_the_smallest_terminal_with_its_prompt() {
    let Some(terminal) = TmuxTerminal::open_sized("{}", ALONE, "demo", (80, 24)) else {
        return;
    };
    let screen = terminal.ends_with("›");
    assert!(screen.starts_with("A simulated house"), "{screen}");
    let words = joined(&screen);
    for expected in [
        "Balcony Door closed",
        "Motion Sensor no motion",
        "Garage Light does not answer",
        "dim the living room lamp to 30 percent",
        "zwave -- toolgate zwave-mcp-server",
        "(no model is configured or reachable; /model says more)",
    ] {
        assert!(words.contains(expected), "{expected}:\n{screen}");
    }
    assert!(!screen.contains("ANTHROPIC_API_KEY"), "{screen}");
    terminal.line("/model");
    let reasons = joined(&terminal.shows("OPENAI_BASE_URL"));
    assert!(
        reasons.contains("· anthropic: ANTHROPIC_API_KEY is not set"),
        "{reasons}"
    );
}

#[test]
fn no_word_is_broken_at_any_width() {
    for (size, ending) in [((80, 24), 1), ((100, 30), 2), ((120, 40), 3)] {
        let Some(terminal) = TmuxTerminal::open_sized("{}", ALONE, "demo", size) else {
            return;
        };
        terminal.ends_with("›");
        terminal.line("turn on the garage light");
        let screen = terminal.shows("Last known");
        let words = joined(&screen);
        let sentence = "does not answer: the Z-Wave network reports it as dead. Check that it has power and is in range.";
        assert_eq!(
            words.matches(sentence).count(),
            1,
            "whole, and once:\n{screen}"
        );
        terminal.line("turn everything off");
        let question = "“turn Bathroom Fan, Bedside Lamp, Coffee Machine, Garage Light, Kitchen Light, Living Room Lamp and TV Plug off”?";
        let screen = terminal.shows("off”?");
        assert!(joined(&screen).contains(question), "{ending}:\n{screen}");
    }
}

#[test]
fn an_error_in_the_answer_is_not_printed_twice() {
    let Some(terminal) = TmuxTerminal::open_sized("{}", ALONE, "demo", (100, 40)) else {
        return;
    };
    terminal.ends_with("›");
    terminal.line("turn on the kitchen light");
    terminal.shows("1 call");
    terminal.line("activate the movie night scene");
    let screen = terminal.shows("Living Room: on at 60 % → on at 15 %");
    assert!(screen.contains("Kitchen Light in Kitchen is now on."));
    assert!(!screen.contains("Kitchen: off → on"), "{screen}");
}

#[test]
fn markdown_is_shown_as_it_is_meant() {
    let llm = ScriptedLlm::new([Answer::text(MARKDOWN), Answer::text("2 * 3 * 4 = **24**")]);
    let variable = format!("OLLAMA_HOST={}", llm.url());
    let Some(terminal) = TmuxTerminal::open_sized("{}", &variable, "chat", (61, 40)) else {
        return;
    };
    terminal.ends_with("›");
    terminal.line("hello");
    let screen = terminal.shows("More (http://h/)");
    for expected in [
        "\nThe house\n\nThe kitchen light is off, and the lamp in the living room is\nat 60 % as somebody may have wanted it.\n\n• one\n• two\n\n Room   State\n",
        "\n Hall   locked\n\n  toolgate list\n\nMore (http://h/)\n",
    ] {
        assert!(screen.contains(expected), "{expected}:\n{screen}");
    }
    terminal.line("and now?");
    let screen = terminal.shows("2 * 3 * 4");
    assert!(screen.contains("2 * 3 * 4 = 24"), "{screen}");
}

#[test]
fn without_colors_markdown_still_has_its_structure() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text(MARKDOWN)));
    let variable = format!("NO_COLOR=1 OLLAMA_HOST={}", llm.url());
    let Some(terminal) = TmuxTerminal::open_sized("{}", &variable, "ask hello", (60, 40)) else {
        return;
    };
    let screen = terminal.shows("left with 0");
    assert!(
        screen.contains("\n# The house\n\nThe kitchen light is off,") && screen.contains("`60 %`"),
        "{screen}"
    );
    assert!(!terminal.styled_screen().contains('\u{1b}'), "{screen}");
}

#[test]
fn hostile_markdown_cannot_control_the_terminal() {
    let hostile = "&#27;]0;title&#7;one &#27;[2J\u{1b}[2Jtwo\n\n> > > > > > > > > > deep\n\n`\u{1b}[31m`three";
    let llm = ScriptedLlm::new([Answer::text(hostile)]);
    let variable = format!("OLLAMA_HOST={}", llm.url());
    let Some(terminal) = TmuxTerminal::open_sized("{}", &variable, "ask hello", (60, 20)) else {
        return;
    };
    let screen = terminal.shows("left with 0");
    assert!(screen.starts_with("ollama"), "not cleared:\n{screen}");
    assert!(
        joined(&screen).contains("one [2Jtwo │ │ │ │ │ │ deep"),
        "{screen}"
    );
}

#[test]
fn a_pipe_gets_markdown_and_long_lines_unchanged() {
    let llm = ScriptedLlm::new([Answer::text(MARKDOWN)]);
    let done = llm.ask("ollama", &["hello"]).done();
    assert_eq!((done.stdout, done.code), (format!("{MARKDOWN}\n"), Some(0)));
}

#[test]
fn a_model_error_is_printed_once() {
    let llm = ScriptedLlm::new([Answer::fails(400, "invalid_request_error", "it exploded")]);
    let variable = format!("OLLAMA_HOST={}", llm.url());
    let Some(terminal) = TmuxTerminal::open_sized("{}", &variable, "chat", (80, 24)) else {
        return;
    };
    terminal.ends_with("›");
    terminal.line("hello");
    terminal.shows("it exploded");
    let screen = terminal.ends_with("›");
    assert_eq!(screen.matches("it exploded").count(), 1, "{screen}");
}

#[test]
fn notes_and_log_lines_wrap_between_words() {
    let config = r#"{ "mcpServers": { "lamp": { "command": "cat", "disabled": true, "a_key_that_nobody_knows": [] } } }"#;
    let Some(terminal) = TmuxTerminal::open_sized(config, ALONE, "list frobnicate", (40, 24))
    else {
        return;
    };
    let words = joined(&terminal.shows("left with"));
    for expected in [
        "unknown key 'a_key_that_nobody_knows' is ignored",
        "no tool matches 'frobnicate'; 'toolgate list' shows all 5",
    ] {
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn tools_are_listed_by_source_and_no_name_is_cut() {
    let name = "a_tool_with_a_name_that_is_far_too_long_for_half_a_line";
    let tool = |name: &str, description: &str| {
        serde_json::json!({ "name": name, "description": description, "parameters": {},
            "implementation": { "type": "mock", "mock_response": 1 } })
    };
    let tools = [
        tool(name, "\nDoes something.\n\n**Best for:** nothing"),
        tool(
            "short",
            "Does something with a description that has to be wrapped somewhere in the middle",
        ),
    ];
    let config = serde_json::json!({ "tools": tools }).to_string();
    let Some(terminal) = TmuxTerminal::open_sized(&config, ALONE, "list something", (60, 24))
    else {
        return;
    };
    let screen = terminal.shows("left with 0");
    let expected = format!(
        "mock\n  {name}\n         Does something\n  short  Does something with a description that has to be\n         wrapped somewhere in the middle\n"
    );
    assert!(screen.contains(&expected), "{screen}");
    assert!(!screen.contains("echo"), "{screen}");
}

#[test]
fn help_wraps_at_the_width_of_the_terminal() {
    let Some(terminal) = TmuxTerminal::open_sized("{}", ALONE, "demo --help", (80, 60)) else {
        return;
    };
    let screen = terminal.shows("left with 0");
    let expected = "Starts a house with a dozen simulated Z-Wave devices, their MQTT broker, and the\nMCP server that offers them as tools";
    assert!(screen.contains(expected), "{screen}");
}

#[test]
fn unneeded_servers_are_not_reported_missing() {
    let config = r#"{ "mcpServers": { "late": { "command": "sleep", "args": ["600"] } } }"#;
    let variable = format!("{ALONE} TOOLGATE_CONFIG=toolgate.json");
    let Some(terminal) = TmuxTerminal::open(config, &variable, "ask what is 6 times 7") else {
        return;
    };
    let screen = terminal.shows("left with 0");
    assert!(screen.contains("42"), "{screen}");
    assert!(!screen.contains("'late'"), "{screen}");
}
