//! `toolgate chat`: a conversation with a model, turn by turn.

mod content;
mod editor;
mod greeting;
mod input;
mod result;
mod skills;
mod slash_commands;
mod suspended_line;

pub(crate) use input::LineSource;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use futures::future::LocalBoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_mcp::ServerSettings;
use toolgate_models::{
    ConnectedModel, Conversation, ModelError, ModelSelection, ModelSelectionError, TurnEnd,
    TurnRecord,
};

use super::block_on;
use crate::chat_session::{self, ChatSession, SessionOptions};
use crate::cli::{ChatOptions, GlobalOptions};
use crate::display::{self, ChatDisplay, DisplayOptions};
use crate::exit::{self, Exit};
use crate::gateway::ChatGateway;
use crate::output;
use crate::reload::{self, ConfigReload};
use crate::servers::{ServerFleet, ServerStart};
use crate::terminal::{self, EchoRequest, TerminalGuard};
use crate::wrap::pluralize;
use content::ContentNames;
use input::{LineReader, PromptLine};
use slash_commands::AfterCommand;

pub(crate) fn run(global: &GlobalOptions, options: &ChatOptions) -> anyhow::Result<Exit> {
    let resume = options.resume.file.as_deref();
    let session_options = SessionOptions::new("toolgate chat").resuming(resume);
    let session = ChatSession::new(global, &options.model, session_options)?;
    // An edit of the configuration may add servers later.
    let servers = session.needed_servers().unwrap_or_default();
    let setup = ChatSetup {
        source: LineSource::stdin(),
        resume,
        hook: None,
        gateway: None,
        follows_config: true,
    };
    block_on(converse(&session, servers, setup))?
}

pub(crate) struct ChatSetup<'a> {
    pub(crate) source: LineSource,
    pub(crate) resume: Option<&'a Path>,
    pub(crate) hook: Option<Box<dyn TurnHook + 'a>>,
    pub(crate) gateway: Option<ChatGateway>,
    /// Applies edits of the configuration. False if the servers don't come from it.
    pub(crate) follows_config: bool,
}

/// Called after each answered turn, before the next prompt.
pub(crate) trait TurnHook {
    fn after_turn<'a>(&'a mut self, turn: &'a TurnRecord) -> LocalBoxFuture<'a, ()>;
}

pub(crate) async fn converse(
    session: &ChatSession,
    servers: Vec<ServerSettings>,
    mut setup: ChatSetup<'_>,
) -> anyhow::Result<Exit> {
    // A chat that ends at its prompt must not leave the terminal in the editor's mode.
    let _terminal = TerminalGuard::save_modes();
    // Type-ahead would appear in the middle of the answer, and the next prompt shows it anyway.
    // With redirected stdout, no prompt would show it.
    let _unseen = (!setup.source.is_typed()).then(EchoRequest::hidden);
    let (fleet, choice) = session.start(Some(servers), ServerStart::AtOnce).await;
    let followed = fleet.as_ref().filter(|_| setup.follows_config);
    let reload = followed.and_then(|fleet| reload(session, fleet));
    let gateway = setup.gateway.take();
    let running = match (gateway, &fleet) {
        (Some(gateway), Some(fleet)) => Some(gateway.start(session, fleet)),
        _ => None,
    };
    let exit = tokio::select! {
        exit = connect_and_run(session, setup, choice) => exit,
        never = reload::run_if_any(reload) => match never {},
        never = terminal::keep_echo_hidden() => match never {},
    };
    if let Some(running) = running {
        running.stop().await;
    }
    if let Some(fleet) = &fleet {
        fleet.stop().await;
    }
    session.journal.close().await;
    exit
}

async fn connect_and_run(
    session: &ChatSession,
    setup: ChatSetup<'_>,
    choice: Option<Result<ModelSelection, ModelSelectionError>>,
) -> anyhow::Result<Exit> {
    let Some(choice) = choice else {
        return Ok(Exit::Interrupted);
    };
    match choice.and_then(|choice| session.connect(choice)) {
        Ok(chosen) => run_chat(session, setup, chosen).await,
        Err(error) => {
            output::print_error_text(&error.to_string());
            Ok(chat_session::exit_for(&error))
        }
    }
}

fn reload(session: &ChatSession, fleet: &ServerFleet) -> Option<ConfigReload> {
    let config = Arc::clone(&session.config);
    let executor = session.toolbox.executor().clone();
    let reload = ConfigReload::new(config, &session.tools, executor, fleet.servers.clone())?;
    // `/model` can switch to another model at any time, so edits of `model` aren't applied.
    Some(reload.with_fixed(&["model"]).notify_person())
}

struct ChatLoop<'a> {
    session: &'a ChatSession,
    chosen: ConnectedModel,
    conversation: Conversation,
    display: ChatDisplay,
    /// A person types and reads here; otherwise stdin or stdout is redirected.
    is_live: bool,
    streams: bool,
    failed: bool,
    // Registered once, so that a signal during a slash command isn't missed.
    terminate: Signal,
    hook: Option<Box<dyn TurnHook + 'a>>,
}

async fn run_chat(
    session: &ChatSession,
    setup: ChatSetup<'_>,
    chosen: ConnectedModel,
) -> anyhow::Result<Exit> {
    let is_live = setup.source.is_live();
    let options = DisplayOptions {
        streams: output::can_stream(),
        format: chat_session::answer_format(&chosen),
        progress: output::is_interactive(),
        thinking: chosen.settings.keep_thinking,
    };
    let mut chat = ChatLoop {
        session,
        conversation: session.conversation(&chosen, setup.resume)?,
        display: session.display(options),
        chosen,
        is_live,
        streams: options.streams,
        failed: false,
        terminate: signal(SignalKind::terminate()).context("cannot listen to signals")?,
        hook: setup.hook,
    };
    chat.introduce(&setup.source);
    if let Some(file) = setup.resume {
        chat.note_resumed(file);
    }
    if let Some(text) = session.unmatched_tools_error() {
        tracing::warn!("{text}");
    }
    let mut input = LineReader::new(setup.source, ContentNames::new(&session.toolbox));
    chat.turns(&mut input).await
}

impl ChatLoop<'_> {
    async fn turns(&mut self, input: &mut LineReader) -> anyhow::Result<Exit> {
        loop {
            let line = tokio::select! {
                line = input.next() => line?,
                () = self.leave_requested() => return Ok(Exit::Interrupted),
            };
            let text = match line {
                PromptLine::Text(text) => text,
                PromptLine::Cleared { again } => {
                    if again {
                        output::print_note("Ctrl-D or /quit leaves");
                    }
                    continue;
                }
                PromptLine::End => break,
            };
            if text.trim().is_empty() {
                continue;
            }
            let said = match slash_commands::SlashCommand::read(&text) {
                Some(command) => match self.run_command(command).await {
                    Ok(AfterCommand::Continue) => continue,
                    Ok(AfterCommand::Say(text)) => Ok(text),
                    Ok(AfterCommand::Leave) => break,
                    Err(error) => Err(error),
                },
                None => self.with_attachments(text).await,
            };
            match said {
                Ok(text) if !self.turn(&text).await => return Ok(Exit::Interrupted),
                Ok(_) => {}
                Err(error) => self.report_error(&error),
            }
        }
        Ok(Exit::success_if(!self.failed || self.is_live))
    }

    /// Completes on SIGTERM, or on Ctrl-C unless a person is at the prompt. There Ctrl-C is a key,
    /// and one that comes too late for the last turn must not end the chat.
    async fn leave_requested(&mut self) {
        let ctrl_c = async {
            match self.is_live {
                true => match ignoring_ctrl_c().await {},
                false => drop(tokio::signal::ctrl_c().await),
            }
        };
        tokio::select! {
            () = exit::wait_for_termination(&mut self.terminate) => {}
            () = ctrl_c => {}
        }
    }

    /// Runs one turn. Returns false if Ctrl-C stopped it and no person can continue the chat.
    async fn turn(&mut self, text: &str) -> bool {
        match chat_session::run_turn(&mut self.conversation, &self.display, text).await {
            Some(Ok(turn)) => {
                self.show_answer(&turn);
                if let Some(hook) = &mut self.hook {
                    hook.after_turn(&turn).await;
                }
                self.show_cost(&turn);
            }
            Some(Err(error)) => {
                self.report_error(&anyhow::anyhow!(error.to_string()));
                if let Some(help) = self.session.advise(&error, &self.chosen.settings) {
                    output::print_note(&help);
                }
                if matches!(error, ModelError::Unreachable { .. }) && self.session.names_model() {
                    output::print_note(
                        "'/model intents' continues without a model, using built-in sentences",
                    );
                }
            }
            None => {
                output::print_note("stopped; what was said so far stays in the conversation");
                return self.is_live;
            }
        }
        true
    }

    fn show_answer(&mut self, turn: &TurnRecord) {
        if !self.streams && turn.error.is_none() {
            output::print_result(&display::format_answer(
                &turn.answer,
                chat_session::answer_format(&self.chosen),
            ));
        }
        let (exit, note) = chat_session::turn_ending(turn, &self.chosen.settings, self.streams);
        match (exit, note) {
            (Exit::Success, Some(note)) => output::print_note(&note),
            (_, Some(note)) => self.report_error(&anyhow::anyhow!(note)),
            _ => {}
        }
        if turn.end == TurnEnd::Failed {
            output::print_note(&self.session.doctor_hint(&self.chosen.settings));
        }
    }

    fn show_cost(&self, turn: &TurnRecord) {
        if self.is_live && output::is_interactive() {
            let dim = anstyle::Style::new().dimmed();
            output::print_to_stderr(&format!("{dim}{}{dim:#}\n", cost(turn)));
        }
    }

    fn report_error(&mut self, error: &anyhow::Error) {
        self.failed = true;
        output::print_error(error);
    }
}

async fn ignoring_ctrl_c() -> Infallible {
    while tokio::signal::ctrl_c().await.is_ok() {}
    std::future::pending().await
}

/// Such as `1.2 s · 2 calls · 812 tokens`.
fn cost(turn: &TurnRecord) -> String {
    let calls: usize = turn.rounds.iter().map(|round| round.calls.len()).sum();
    let tokens = turn.usage.input + turn.usage.output;
    let mut parts = vec![match turn.took_ms {
        took if took < 1000.0 => format!("{took:.0} ms"),
        took => format!("{:.1} s", took / 1000.0),
    }];
    if calls > 0 {
        parts.push(pluralize(calls, "call"));
    }
    if tokens > 0 {
        parts.push(format!("{tokens} tokens"));
    }
    parts.join(" · ")
}
