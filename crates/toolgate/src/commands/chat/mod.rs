//! `toolgate chat`: a conversation, turn by turn.

mod asleep;
mod editor;
mod greeting;
mod input;
mod orders;
mod result;

pub(crate) use input::Source;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use futures::future::LocalBoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_mcp::ServerSettings;
use toolgate_models::{Choice, ChooseError, Chosen, Conversation, ModelError, Turn, TurnEnd};

use super::runtime;
use crate::cli::{ChatOptions, Global};
use crate::display::{self, Display, Manner};
use crate::exit::{self, Exit};
use crate::gateway::Beside;
use crate::reload::{self, Reload};
use crate::say;
use crate::servers::{Fleet, Start};
use crate::talk::{self, Occasion, Setting};
use crate::terminal::{self, Echo, Terminal};
use input::{Input, Line};
use orders::Next;

pub(crate) fn run(global: &Global, options: &ChatOptions) -> anyhow::Result<Exit> {
    let resume = options.resume.file.as_deref();
    let occasion = Occasion::new("toolgate chat").resuming(resume);
    let setting = Setting::new(global, &options.model, occasion)?;
    // One that has no servers now may be given some.
    let servers = setting.needed_servers().unwrap_or_default();
    let runtime = runtime().context("cannot start")?;
    let company = Company {
        source: Source::stdin(),
        resume,
        onlooker: None,
        gateway: None,
        follows: true,
    };
    let exit = runtime.block_on(converse(&setting, servers, company));
    runtime.shutdown_background();
    exit
}

pub(crate) struct Company<'a> {
    pub(crate) source: Source,
    pub(crate) resume: Option<&'a Path>,
    pub(crate) onlooker: Option<Box<dyn Onlooker + 'a>>,
    pub(crate) gateway: Option<Beside>,
    /// Edits of the configuration are applied: the servers are those it names.
    pub(crate) follows: bool,
}

/// Sees every turn that was answered, and may say something about it before the next one.
pub(crate) trait Onlooker {
    fn after<'a>(&'a mut self, turn: &'a Turn) -> LocalBoxFuture<'a, ()>;
}

pub(crate) async fn converse(
    setting: &Setting,
    servers: Vec<ServerSettings>,
    mut company: Company<'_>,
) -> anyhow::Result<Exit> {
    // A chat that is ended at its prompt must not leave it in the editor's hands.
    let _terminal = Terminal::remember();
    // What is typed ahead would stand in the answer; the next prompt shows it. Where answers go elsewhere, no prompt would.
    let _unseen = (!company.source.is_typed()).then(Echo::hidden);
    let (fleet, choice) = setting.start(Some(servers), Start::AtOnce).await;
    let followed = fleet.as_ref().filter(|_| company.follows);
    let reload = followed.and_then(|fleet| reload(setting, fleet));
    let gateway = company.gateway.take();
    let running = match (gateway, &fleet) {
        (Some(gateway), Some(fleet)) => Some(gateway.start(setting, fleet)),
        _ => None,
    };
    let exit = tokio::select! {
        exit = talk_with(setting, company, choice) => exit,
        never = reload::followed(reload) => match never {},
        never = terminal::kept_hidden() => match never {},
    };
    if let Some(running) = running {
        running.stop().await;
    }
    if let Some(fleet) = &fleet {
        fleet.stop().await;
    }
    setting.record.close().await;
    exit
}

async fn talk_with(
    setting: &Setting,
    company: Company<'_>,
    choice: Option<Result<Choice, ChooseError>>,
) -> anyhow::Result<Exit> {
    let Some(choice) = choice else {
        return Ok(Exit::Interrupted);
    };
    match choice.and_then(|choice| setting.connect(choice)) {
        Ok(chosen) => talk_on(setting, company, chosen).await,
        Err(error) => {
            say::error(&anyhow::anyhow!(error.to_string()));
            Ok(talk::exit_of(&error))
        }
    }
}

fn reload(setting: &Setting, fleet: &Fleet) -> Option<Reload> {
    let config = Arc::clone(&setting.config);
    let executor = setting.toolbox.executor().clone();
    let reload = Reload::new(config, &setting.tools, executor, fleet.servers.clone())?;
    // '/model' goes on with another one at any time.
    Some(reload.also_fixed(&["model"]).attended())
}

struct Chat<'a> {
    setting: &'a Setting,
    chosen: Chosen,
    conversation: Conversation,
    display: Display,
    /// A person types and looks; else lines come from a pipe and answers go to one.
    is_live: bool,
    streams: bool,
    failed: bool,
    /// Listened to all the time: one that comes while an order is obeyed counts too.
    terminate: Signal,
    onlooker: Option<Box<dyn Onlooker + 'a>>,
}

async fn talk_on(setting: &Setting, company: Company<'_>, chosen: Chosen) -> anyhow::Result<Exit> {
    let is_live = company.source.is_live();
    let manner = Manner {
        streams: say::can_stream(),
        format: talk::answer_format(&chosen),
        progress: say::is_followed(),
        thinking: chosen.settings.keep_thinking,
    };
    let mut chat = Chat {
        setting,
        conversation: setting.conversation(&chosen, company.resume)?,
        display: setting.display(manner),
        chosen,
        is_live,
        streams: manner.streams,
        failed: false,
        terminate: signal(SignalKind::terminate()).context("cannot listen to signals")?,
        onlooker: company.onlooker,
    };
    chat.introduce(&company.source);
    if let Some(file) = company.resume {
        chat.tell_resumed(file);
    }
    if let Some(text) = setting.unmatched() {
        tracing::warn!("{text}");
    }
    let mut input = Input::new(company.source);
    chat.turns(&mut input).await
}

impl Chat<'_> {
    /// Until the person leaves, or the pipe ends.
    async fn turns(&mut self, input: &mut Input) -> anyhow::Result<Exit> {
        loop {
            let line = tokio::select! {
                line = input.next() => line?,
                () = self.told_to_leave() => return Ok(Exit::Interrupted),
            };
            let text = match line {
                Line::Text(text) => text,
                Line::Cleared { again } => {
                    if again {
                        say::note("Ctrl-D or /quit leaves");
                    }
                    continue;
                }
                Line::End => break,
            };
            if text.trim().is_empty() {
                continue;
            }
            match orders::Order::read(&text) {
                Some(order) => match self.obey(order).await {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => break,
                    Err(error) => self.complain(&error),
                },
                None => {
                    if !self.turn(&text).await {
                        return Ok(Exit::Interrupted);
                    }
                }
            }
        }
        Ok(match self.failed && !self.is_live {
            true => Exit::Failure,
            false => Exit::Success,
        })
    }

    /// At a prompt Ctrl-C is a key, and one that comes too late for the turn before is no reason to leave.
    async fn told_to_leave(&mut self) {
        let ctrl_c = async {
            match self.is_live {
                true => match ignoring_ctrl_c().await {},
                false => drop(tokio::signal::ctrl_c().await),
            }
        };
        tokio::select! {
            () = exit::told(&mut self.terminate) => {}
            () = ctrl_c => {}
        }
    }

    /// One turn. Ctrl-C stops it; false if that is the end of the program too, because nobody sits there.
    async fn turn(&mut self, text: &str) -> bool {
        match talk::turn(&mut self.conversation, &self.display, text).await {
            Some(Ok(turn)) => {
                self.answered(&turn);
                if let Some(onlooker) = &mut self.onlooker {
                    onlooker.after(&turn).await;
                }
                self.tell_cost(&turn);
            }
            Some(Err(error)) => {
                self.complain(&anyhow::anyhow!(error.to_string()));
                if let Some(help) = self.setting.help(&error, &self.chosen.settings) {
                    say::note(&help);
                }
                if matches!(error, ModelError::Unreachable { .. }) && self.setting.is_asked() {
                    say::note(
                        "'/model intents' goes on without a model, with the sentences it knows",
                    );
                }
            }
            None => {
                say::note("stopped; what was said so far stays in the conversation");
                return self.is_live;
            }
        }
        true
    }

    fn answered(&mut self, turn: &Turn) {
        if !self.streams && turn.error.is_none() {
            say::result(&display::whole(
                &turn.answer,
                talk::answer_format(&self.chosen),
            ));
        }
        let (exit, note) = talk::ending(turn, &self.chosen.settings, self.streams);
        match (exit, note) {
            (Exit::Success, Some(note)) => say::note(&note),
            (_, Some(note)) => self.complain(&anyhow::anyhow!(note)),
            _ => {}
        }
        if turn.end == TurnEnd::Failed {
            say::note(&self.setting.doctor(&self.chosen.settings));
        }
    }

    fn tell_cost(&self, turn: &Turn) {
        if self.is_live && say::is_followed() {
            let dim = anstyle::Style::new().dimmed();
            say::line(&format!("{dim}{}{dim:#}\n", cost(turn)));
        }
    }

    fn complain(&mut self, error: &anyhow::Error) {
        self.failed = true;
        say::error(error);
    }
}

async fn ignoring_ctrl_c() -> Infallible {
    while tokio::signal::ctrl_c().await.is_ok() {}
    std::future::pending().await
}

/// `1.2 s · 2 tools · 812 tokens`.
fn cost(turn: &Turn) -> String {
    let calls: usize = turn.rounds.iter().map(|round| round.calls.len()).sum();
    let tokens = turn.usage.input + turn.usage.output;
    let mut parts = vec![match turn.took_ms {
        took if took < 1000.0 => format!("{took:.0} ms"),
        took => format!("{:.1} s", took / 1000.0),
    }];
    match calls {
        0 => {}
        1 => parts.push("1 call".to_owned()),
        _ => parts.push(format!("{calls} calls")),
    }
    if tokens > 0 {
        parts.push(format!("{tokens} tokens"));
    }
    parts.join(" · ")
}
