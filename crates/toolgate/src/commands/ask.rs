//! `toolgate ask TEXT…`: answers one question.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use toolgate_core::ToolError;
use toolgate_models::{
    AnswerSource, ConnectedModel, Conversation, Message, ModelError, ModelSelectionError, TurnEnd,
    TurnRecord,
};

use super::{block_on, rendered};
use crate::chat_session::{self, ChatSession, SessionOptions};
use crate::cli::{AskOptions, GlobalOptions};
use crate::display::{self, DisplayOptions};
use crate::exit::Exit;
use crate::servers::{ServerFleet, ServerStart};
use crate::{output, patterns, wanted_model};

const NO_MODEL: &str =
    "no model is configured or reachable, so only simple sentences are understood";

// Bytes of stdin. No model can hold more.
const MAX_INPUT_BYTES: u64 = 4 << 20;

pub(crate) fn run(global: &GlobalOptions, options: &AskOptions) -> anyhow::Result<Exit> {
    let text = read_question(&options.text)?;
    let session_options =
        SessionOptions::new("toolgate ask").resuming(options.resume.file.as_deref());
    let session = ChatSession::new(global, &options.model, session_options)?;
    if let Some(file) = &options.save {
        chat_session::check_savable(file)?;
    }
    patterns::warn_of_unmatched_policy(&session.config, &session.tools);
    let servers = session.needed_servers();
    block_on(async {
        let (fleet, choice) = session.start(servers, ServerStart::WhenNeeded).await;
        let exit = match choice {
            None => Ok(Exit::Interrupted),
            Some(choice) => match choice.and_then(|choice| session.connect(choice)) {
                Ok(chosen) => match unmatched_error(&session, fleet.as_ref()) {
                    Some(error) => Err(error),
                    None => ask(&session, options, chosen, &text).await,
                },
                Err(error) => Ok(report_no_model(options, &error)),
            },
        };
        if let Some(fleet) = &fleet {
            fleet.stop().await;
        }
        session.journal.close().await;
        exit
    })?
}

/// Joins the words. A trailing `-`, or no words at all, means stdin; elsewhere `-` is a minus.
fn read_question(words: &[String]) -> anyhow::Result<String> {
    let (typed, wants_stdin) = match words {
        [typed @ .., last] if last == "-" => (typed, true),
        [] => (words, !std::io::stdin().is_terminal()),
        _ => (words, false),
    };
    let mut text = typed.join(" ");
    if wants_stdin {
        let piped = read_stdin()?;
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{gap}{}", piped.trim_end());
    }
    if text.trim().is_empty() {
        bail!("ask what? Give the question as words, or - to read it from stdin");
    }
    Ok(text)
}

fn read_stdin() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        output::print_note("reading the question from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_INPUT_BYTES + 1);
    input.read_to_end(&mut bytes).context("cannot read stdin")?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        bail!(
            "stdin holds more than {} MiB, which no model can read at once",
            MAX_INPUT_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("stdin is not UTF-8")
}

// An error for a `--tools` pattern that matches no tool. While servers are missing it is only a
// warning, because the tool may belong to one of them.
fn unmatched_error(session: &ChatSession, fleet: Option<&ServerFleet>) -> Option<anyhow::Error> {
    let text = session.unmatched_tools_error()?;
    if fleet.is_none_or(ServerFleet::is_complete) {
        return Some(anyhow::anyhow!(text));
    }
    tracing::warn!("{text}");
    None
}

async fn ask(
    session: &ChatSession,
    options: &AskOptions,
    chosen: ConnectedModel,
    text: &str,
) -> anyhow::Result<Exit> {
    let is_interactive = output::is_interactive();
    let streams = output::can_stream() && !options.json;
    show_model(&chosen, is_interactive);
    let mut conversation = session.conversation(&chosen, options.resume.file.as_deref())?;
    let display = session.display(DisplayOptions {
        streams,
        format: chat_session::answer_format(&chosen),
        progress: is_interactive,
        thinking: chosen.settings.keep_thinking,
    });
    let before = conversation.history().len();
    let exit = match chat_session::run_turn(&mut conversation, &display, text).await {
        None => {
            let messages = conversation.save().messages;
            report_stopped(&chosen, options.json, messages.get(before..))
        }
        Some(Ok(turn)) => show_answer(session, &chosen, &turn, options.json, streams),
        Some(Err(error)) => report_failed(session, &chosen, options.json, &error),
    };
    // Saved even after a failure, because tools may have run.
    save_conversation(&conversation, options)?;
    Ok(exit)
}

fn save_conversation(conversation: &Conversation, options: &AskOptions) -> anyhow::Result<()> {
    match &options.save {
        Some(file) => chat_session::save(conversation, file),
        None => Ok(()),
    }
}

fn show_model(chosen: &ConnectedModel, is_interactive: bool) {
    let text = format!("{}: {}", wanted_model::describe_model(chosen), chosen.why);
    if is_interactive {
        let dim = anstyle::Style::new().dimmed();
        output::print_to_stderr(&format!("{dim}{text}{dim:#}"));
    } else {
        tracing::info!("{text}");
    }
    for reason in &chosen.skipped {
        tracing::info!("{reason}");
    }
}

fn show_answer(
    session: &ChatSession,
    chosen: &ConnectedModel,
    turn: &TurnRecord,
    as_json: bool,
    streamed: bool,
) -> Exit {
    let (exit, note) = chat_session::turn_ending(turn, &chosen.settings, streamed);
    if as_json {
        output::print_result(&rendered(&turn_json(chosen, json!(turn))));
    } else if !streamed && turn.error.is_none() {
        output::print_result(&display::format_answer(
            &turn.answer,
            chat_session::answer_format(chosen),
        ));
    }
    match (exit, note) {
        (Exit::Success, Some(note)) => output::print_note(&note),
        (_, Some(note)) => output::print_error_text(&note),
        _ => {}
    }
    if turn.end == TurnEnd::Failed {
        output::print_note(&session.doctor_hint(&session.wanted));
    }
    if !output::is_interactive() && needed_approval(turn) {
        output::print_note("nobody could be asked for approval; --yes approves calls in advance");
    }
    if is_fallback(chosen) && turn.end == TurnEnd::Refusal && has_no_calls(turn) {
        let doctor = session.doctor_hint(&session.wanted);
        // Only the first provider is probed; the others simply lack settings.
        let first = chosen.skipped.first().map_or("", String::as_str);
        output::print_note(&format!("{NO_MODEL} ({first}); {doctor}"));
    }
    exit
}

// True if sentences are matched only because no model was found.
fn is_fallback(chosen: &ConnectedModel) -> bool {
    chosen.router.source() == AnswerSource::Sentences && !chosen.skipped.is_empty()
}

fn needed_approval(turn: &TurnRecord) -> bool {
    let mut calls = turn.rounds.iter().flat_map(|round| &round.calls);
    calls.any(|call| {
        let error = call.outcome.result.as_ref().err();
        matches!(error, Some(ToolError::NeedsApproval { .. }))
    })
}

fn has_no_calls(turn: &TurnRecord) -> bool {
    turn.rounds.iter().all(|round| round.calls.is_empty())
}

fn turn_json(chosen: &ConnectedModel, turn: Value) -> Value {
    let mut object = json!({
        "provider": chosen.router.source(),
        "model": chosen.router.model_name(),
        "why": chosen.why,
        "passed_over": chosen.skipped,
    });
    if let (Value::Object(object), Value::Object(turn)) = (&mut object, turn) {
        object.extend(turn);
    }
    object
}

// Reports what was said and done before the person stopped the turn, since tools may have run.
fn report_stopped(chosen: &ConnectedModel, as_json: bool, turn: Option<&[Message]>) -> Exit {
    if as_json {
        let record = turn_json(
            chosen,
            json!({ "error": "stopped before there was an answer", "messages": turn.unwrap_or_default() }),
        );
        output::print_result(&rendered(&record));
    }
    Exit::Interrupted
}

fn report_failed(
    session: &ChatSession,
    chosen: &ConnectedModel,
    as_json: bool,
    error: &ModelError,
) -> Exit {
    if as_json {
        output::print_result(&rendered(&turn_json(
            chosen,
            json!({ "error": error.to_string(), "error_kind": error.kind() }),
        )));
    }
    output::print_error_text(&error.to_string());
    if let Some(help) = session.advise(error, &session.wanted) {
        output::print_note(&help);
    }
    // Without a named model the sentences were tried already.
    if matches!(error, ModelError::Unreachable { .. }) && session.names_model() {
        output::print_note("'--provider intents' answers built-in sentences without a model");
    }
    Exit::Failure
}

fn report_no_model(options: &AskOptions, error: &ModelSelectionError) -> Exit {
    let exit = chat_session::exit_for(error);
    if options.json && exit == Exit::Failure {
        output::print_result(&rendered(&json!({ "error": error.to_string() })));
    }
    output::print_error_text(&error.to_string());
    exit
}
