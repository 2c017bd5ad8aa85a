//! What a person at a terminal sees.

use std::io::Write;
use std::process::Command;

use fakellm::Answer;

use super::{FakeEngines, SPOKEN, SUM, TONELESS};
use crate::llm::{ScriptedLlm, weekday_call};
use crate::terminal::TmuxTerminal;

#[test]
fn a_terminal_shows_each_step_and_is_restored() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::text("It was a Saturday.")]);
    let engines = FakeEngines::new(["which day was it"]);
    let (asr, tts) = (engines.asr.address(), engines.tts.address());
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    // The microphone stays open after the request.
    let mic = format!("'sh -c \"tail -c +45 {SPOKEN}; head -c 96000 /dev/zero; sleep 600\"'");
    let command = format!("voice -p ollama --asr {asr} --tts {tts} --out none --mic {mic}");
    let Some(terminal) = TmuxTerminal::open(TONELESS, &ollama, &command) else {
        return;
    };
    let screen = terminal.shows("1 call");
    for expected in [
        "ollama qwen3:0.6b: ",
        "› which day was it",
        "✓ datetime {\"action\":\"weekday\",\"date\":\"1982-04-24\"} ",
        "It was a Saturday.\n",
    ] {
        assert!(screen.contains(expected), "{expected}\n{screen}");
    }
    // Requests that don't need the server don't wait for it.
    terminal.shows("Ready.");
    terminal.shows("○ listening");
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("left with 130");
    assert!(!screen.contains("listening"), "{screen}");
    terminal.line("seen again");
    terminal.shows("seen again\nseen again");
}

#[test]
fn the_terminal_is_restored_even_if_stdout_is_closed() {
    let engines = FakeEngines::new([SUM]);
    let (asr, tts) = (engines.asr.address(), engines.tts.address());
    let command =
        format!("voice -p intents --asr {asr} --tts {tts} --out none --wav {SPOKEN} | true");
    let Some(terminal) = TmuxTerminal::open("{}", "A=b", &command) else {
        return;
    };
    terminal.shows("left with 0");
    terminal.line("seen again");
    terminal.shows("seen again\nseen again");
}

#[test]
fn enter_works_even_if_stdin_carries_sound() {
    let engines = FakeEngines::new([SUM]);
    let (asr, tts) = (engines.asr.address(), engines.tts.address());
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("sound");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let command = format!(
        "voice -p intents --push-to-talk --mic - --asr {asr} --tts {tts} --out none < {}",
        pipe.display()
    );
    let Some(terminal) = TmuxTerminal::open("{}", "A=b", &command) else {
        return;
    };
    // Opening blocks until it is read.
    let mut sound = std::fs::File::create(&pipe).unwrap();
    terminal.shows("waiting for Enter");
    terminal.keys(&["Enter"]);
    terminal.shows("○ listening");
    let file = std::fs::read(SPOKEN).unwrap();
    sound.write_all(&file[44..]).unwrap();
    sound.write_all(&[0; 96_000]).unwrap();
    terminal.shows("57.8");
    terminal.keys(&["C-c"]);
    terminal.shows("left with 130");
    terminal.line("seen again");
    terminal.shows("seen again\nseen again");
}
