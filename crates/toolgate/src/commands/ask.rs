//! `toolgate ask TEXT…`: one question, one answer.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use toolgate_core::ToolError;
use toolgate_models::{
    AnswerSource, ChooseError, Chosen, Conversation, Message, ModelError, Turn, TurnEnd,
};

use super::{rendered, runtime};
use crate::cli::{AskOptions, Global};
use crate::display::{self, Manner};
use crate::exit::Exit;
use crate::servers::{Fleet, Start};
use crate::talk::{self, Occasion, Setting};
use crate::{patterns, say, wanted_model};

/// For a sentence that was not understood.
const NO_MODEL: &str =
    "no model is configured or reachable, so only simple sentences are understood";

/// More than any model can hold.
const LONGEST: u64 = 4 << 20;

pub(crate) fn run(global: &Global, options: &AskOptions) -> anyhow::Result<Exit> {
    let text = text(&options.text)?;
    let occasion = Occasion::new("toolgate ask").resuming(options.resume.file.as_deref());
    let setting = Setting::new(global, &options.model, occasion)?;
    if let Some(file) = &options.save {
        talk::expect_savable(file)?;
    }
    patterns::warn_of_unmatched_policy(&setting.config, &setting.tools);
    let servers = setting.needed_servers();
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let (fleet, choice) = setting.start(servers, Start::WhenNeeded).await;
        let exit = match choice {
            None => Ok(Exit::Interrupted),
            Some(choice) => match choice.and_then(|choice| setting.connect(choice)) {
                Ok(chosen) => match unmatched(&setting, fleet.as_ref()) {
                    Some(error) => Err(error),
                    None => ask(&setting, options, chosen, &text).await,
                },
                Err(error) => Ok(refused(options, &error)),
            },
        };
        if let Some(fleet) = &fleet {
            fleet.stop().await;
        }
        setting.record.close().await;
        exit
    });
    // A thread that waits for an answer at the terminal must not hold up the end.
    runtime.shutdown_background();
    exit
}

/// The words of the command line; `-` behind them, or no words at all, stands for what is piped in. Between words it is a minus.
fn text(words: &[String]) -> anyhow::Result<String> {
    let (typed, wants_stdin) = match words {
        [typed @ .., last] if last == "-" => (typed, true),
        [] => (words, !std::io::stdin().is_terminal()),
        _ => (words, false),
    };
    let mut text = typed.join(" ");
    if wants_stdin {
        let piped = stdin()?;
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{gap}{}", piped.trim_end());
    }
    if text.trim().is_empty() {
        bail!("ask what? Give the question as words, or - to read it from stdin");
    }
    Ok(text)
}

fn stdin() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        say::note("reading the question from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(LONGEST + 1);
    input.read_to_end(&mut bytes).context("cannot read stdin")?;
    if bytes.len() as u64 > LONGEST {
        bail!(
            "stdin holds more than {} MiB, which no model can read at once",
            LONGEST >> 20
        );
    }
    String::from_utf8(bytes).context("stdin is not UTF-8")
}

/// A pattern of `--tools` that means nothing; while servers are away, it may mean one of theirs.
fn unmatched(setting: &Setting, fleet: Option<&Fleet>) -> Option<anyhow::Error> {
    let text = setting.unmatched()?;
    if fleet.is_none_or(Fleet::is_complete) {
        return Some(anyhow::anyhow!(text));
    }
    tracing::warn!("{text}");
    None
}

async fn ask(
    setting: &Setting,
    options: &AskOptions,
    chosen: Chosen,
    text: &str,
) -> anyhow::Result<Exit> {
    let is_followed = say::is_followed();
    let streams = say::can_stream() && !options.json;
    introduce(&chosen, is_followed);
    let mut conversation = setting.conversation(&chosen, options.resume.file.as_deref())?;
    let display = setting.display(Manner {
        streams,
        format: talk::answer_format(&chosen),
        progress: is_followed,
        thinking: chosen.settings.keep_thinking,
    });
    let before = conversation.history().len();
    let exit = match talk::turn(&mut conversation, &display, text).await {
        None => {
            let messages = conversation.save().messages;
            stopped(&chosen, options.json, messages.get(before..))
        }
        Some(Ok(turn)) => answer(setting, &chosen, &turn, options.json, streams),
        Some(Err(error)) => failed(setting, &chosen, options.json, &error),
    };
    // What was said and done stays, however it ended.
    keep(&conversation, options)?;
    Ok(exit)
}

fn keep(conversation: &Conversation, options: &AskOptions) -> anyhow::Result<()> {
    match &options.save {
        Some(file) => talk::save(conversation, file),
        None => Ok(()),
    }
}

fn introduce(chosen: &Chosen, is_followed: bool) {
    let text = format!("{}: {}", wanted_model::described(chosen), chosen.why);
    if is_followed {
        let dim = anstyle::Style::new().dimmed();
        say::line(&format!("{dim}{text}{dim:#}"));
    } else {
        tracing::info!("{text}");
    }
    for reason in &chosen.passed_over {
        tracing::info!("{reason}");
    }
}

fn answer(setting: &Setting, chosen: &Chosen, turn: &Turn, as_json: bool, streamed: bool) -> Exit {
    let (exit, note) = talk::ending(turn, &chosen.settings, streamed);
    if as_json {
        say::result(&rendered(&record(chosen, json!(turn))));
    } else if !streamed && turn.error.is_none() {
        say::result(&display::whole(&turn.answer, talk::answer_format(chosen)));
    }
    match (exit, note) {
        (Exit::Success, Some(note)) => say::note(&note),
        (_, Some(note)) => say::error(&anyhow::anyhow!(note)),
        _ => {}
    }
    if turn.end == TurnEnd::Failed {
        say::note(&setting.doctor(&setting.wanted));
    }
    if !say::is_followed() && needed_approval(turn) {
        say::note("nobody could be asked for approval; --yes gives it beforehand");
    }
    if stands_in(chosen) && turn.end == TurnEnd::Refusal && has_no_calls(turn) {
        let doctor = setting.doctor(&setting.wanted);
        // The others are not set up; this one is looked for.
        let first = chosen.passed_over.first().map_or("", String::as_str);
        say::note(&format!("{NO_MODEL} ({first}); {doctor}"));
    }
    exit
}

/// True if sentences are matched because there is no model, and not because somebody wanted it so.
fn stands_in(chosen: &Chosen) -> bool {
    chosen.router.source() == AnswerSource::Sentences && !chosen.passed_over.is_empty()
}

fn needed_approval(turn: &Turn) -> bool {
    let mut calls = turn.rounds.iter().flat_map(|round| &round.calls);
    calls.any(|call| {
        let error = call.outcome.result.as_ref().err();
        matches!(error, Some(ToolError::NeedsApproval { .. }))
    })
}

fn has_no_calls(turn: &Turn) -> bool {
    turn.rounds.iter().all(|round| round.calls.is_empty())
}

fn record(chosen: &Chosen, turn: Value) -> Value {
    let mut object = json!({
        "provider": chosen.router.source(),
        "model": chosen.router.model_name(),
        "why": chosen.why,
        "passed_over": chosen.passed_over,
    });
    if let (Value::Object(object), Value::Object(turn)) = (&mut object, turn) {
        object.extend(turn);
    }
    object
}

/// A person left; tools may have run, and a program is told so.
fn stopped(chosen: &Chosen, as_json: bool, turn: Option<&[Message]>) -> Exit {
    if as_json {
        let record = record(
            chosen,
            json!({ "error": "stopped before there was an answer", "messages": turn.unwrap_or_default() }),
        );
        say::result(&rendered(&record));
    }
    Exit::Interrupted
}

fn failed(setting: &Setting, chosen: &Chosen, as_json: bool, error: &ModelError) -> Exit {
    if as_json {
        say::result(&rendered(&record(
            chosen,
            json!({ "error": error.to_string(), "error_kind": error.kind() }),
        )));
    }
    say::error(&anyhow::anyhow!(error.to_string()));
    if let Some(help) = setting.help(error, &setting.wanted) {
        say::note(&help);
    }
    // Where nobody named the model, they were asked already.
    if matches!(error, ModelError::Unreachable { .. }) && setting.is_asked() {
        say::note("'--provider intents' needs no model, and answers the sentences it knows");
    }
    Exit::Failure
}

fn refused(options: &AskOptions, error: &ChooseError) -> Exit {
    let exit = talk::exit_of(error);
    if options.json && exit == Exit::Failure {
        say::result(&rendered(&json!({ "error": error.to_string() })));
    }
    say::error(&anyhow::anyhow!(error.to_string()));
    exit
}
