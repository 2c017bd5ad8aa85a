//! `toolgate voice`: hears requests, lets a model use the tools, and speaks the answers.
//!
//! The voice loop itself is `toolgate-voice`. This module gives it a model, tools and a view.

mod calls;
mod canvas;
mod keys;
mod live_line;
mod settings;
mod view;
mod volume;

use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_core::Origin;
use toolgate_mcp::ServerSettings;
use toolgate_voice::{
    AudioInput, ListenMode, ModelFinder, ToolServerStatus, VoiceGatewayError, VoiceGatewayParts,
    VoiceSummary, VoiceVolume,
};
use tracing::info;

use super::block_on_threads;
use crate::chat_session::{ChatSession, SessionOptions};
use crate::cli::{GlobalOptions, VoiceOptions};
use crate::exit::Exit;
use crate::reload::{self, ConfigReload};
use crate::servers::{ServerFleet, ServerStart, StartingServers};
use crate::signals::CommandSignals;
use crate::terminal::{self, EchoRequest};
use crate::{output, spinner, wiring};
use settings::VoiceSetup;
use view::{ViewOptions, VoiceView};
use volume::GatewayVoice;

// Sections that are read only at the start.
const FIXED_KEYS: [&str; 3] = ["model", "mqtt", "voice"];

pub(crate) fn run(global: &GlobalOptions, options: &VoiceOptions) -> anyhow::Result<Exit> {
    let voice = Arc::new(GatewayVoice::default());
    let mut session_options = SessionOptions::new("toolgate voice");
    session_options.origin = Origin::Voice;
    session_options.services.sounding = Some(voice.clone());
    let session = Arc::new(ChatSession::new(global, &options.model, session_options)?);
    let wanted = VoiceSetup::read(&session.config, options)?;
    voice.check_audible(&wanted.settings, wanted.input.is_some());
    if let Some(note) = wanted.microphone_note() {
        match output::is_interactive() {
            true => output::print_note(note),
            false => info!("{note}"),
        }
    }
    let servers = session.needed_servers().unwrap_or_default();
    let volume = voice.volume.clone();
    block_on_threads(converse(&session, options, wanted, servers, volume))?
}

async fn converse(
    session: &Arc<ChatSession>,
    options: &VoiceOptions,
    wanted: VoiceSetup,
    servers: Vec<ServerSettings>,
    volume: VoiceVolume,
) -> anyhow::Result<Exit> {
    let mut signals = CommandSignals::listen().context("cannot listen to signals")?;
    let stop = CancellationToken::new();
    let is_file = matches!(wanted.input, Some(AudioInput::Wav(_)));
    // Echoed keys would end up in the lines that are drawn.
    let terminal = terminal::is_foreground().then(EchoRequest::hidden);
    // Files are answered without a person at the keys.
    let has_keys = terminal.is_some() && !is_file;
    let view = new_view(session, options, &wanted, has_keys, &stop);
    let painter = view.paint();
    let fleet = start_servers(session, servers);
    let (config, tools) = (Arc::clone(&session.config), &session.tools);
    let executor = session.toolbox.executor().clone();
    let reload = ConfigReload::new(config, tools, executor, fleet.servers.clone());
    let reload = reload.map(|reload| {
        reload
            .with_fixed(&FIXED_KEYS)
            .notify_person()
            .on_hangup(signals.reload.take())
    });
    let following = tokio::spawn(reload::run_if_any(reload));
    let parts = VoiceGatewayParts {
        settings: wanted.settings,
        input: wanted.input,
        mode: wanted.mode,
        model: model_finder(session, &view),
        model_settings: session.wanted.clone(),
        toolbox: session.toolbox.clone(),
        tools: watch_tool_servers(Arc::clone(&fleet)),
        approvals: session.spoken.clone(),
        journal: session.journal.journal().cloned(),
        mqtt: wanted.mqtt,
        volume,
        observer: Arc::new(view.clone()),
        keys: has_keys.then(keys::listen),
    };
    let (ended, signal_exit) = run_until_shutdown(parts, stop, &mut signals).await;
    painter.close();
    drop(terminal);
    following.abort();
    fleet.stop().await;
    session.journal.close().await;
    Ok(match (ended, signal_exit) {
        // Unanswered requests don't count as a failure if a person stopped the gateway.
        (Ok(_), Some(signal_exit)) => signal_exit,
        (ended, _) => exit_for(ended, is_file, &view),
    })
}

fn start_servers(session: &ChatSession, servers: Vec<ServerSettings>) -> Arc<ServerFleet> {
    let (config, tools) = (&session.config, &session.tools);
    let (start, spinner) = (ServerStart::AtOnce, Some(&session.spinner));
    let fleet = Arc::new(ServerFleet::start(config, tools, servers, start, spinner));
    fleet
        .servers
        .watch_health(wiring::probe_executor(config, tools));
    let starting = StartingServers(fleet.servers.clone());
    session.toolbox.set_readiness(Arc::new(starting));
    fleet
}

/// Runs the gateway to its end. The exit code is set if a signal ended it. A
/// second signal exits at once.
async fn run_until_shutdown(
    parts: VoiceGatewayParts,
    stop: CancellationToken,
    signals: &mut CommandSignals,
) -> (Result<VoiceSummary, VoiceGatewayError>, Option<Exit>) {
    let mut running = std::pin::pin!(toolgate_voice::run(parts, stop.clone()));
    tokio::select! {
        ended = &mut running => (ended, None),
        exit = signals.shutdown_requested() => {
            stop.cancel();
            tokio::select! {
                ended = &mut running => (ended, Some(exit)),
                _again = signals.shutdown_requested() => {
                    terminal::restore();
                    std::process::exit(i32::from(exit.code()));
                }
            }
        }
    }
}

fn new_view(
    session: &ChatSession,
    options: &VoiceOptions,
    wanted: &VoiceSetup,
    has_keys: bool,
    stop: &CancellationToken,
) -> VoiceView {
    let is_interactive = output::is_interactive();
    let view = ViewOptions {
        is_interactive,
        draws: is_interactive && spinner::can_draw(),
        json: options.json,
        waits_for: match (wanted.mode, has_keys) {
            (ListenMode::PushToTalk, _) => "Enter",
            (_, true) => "the wake word or Enter",
            (_, false) => "the wake word",
        },
        keys: has_keys,
    };
    let stop_after_one = options.once.then(|| stop.clone());
    VoiceView::new(
        view,
        session.redactor(),
        session.spinner.clone(),
        stop_after_one,
    )
}

fn model_finder(session: &Arc<ChatSession>, view: &VoiceView) -> ModelFinder {
    let (session, view) = (Arc::clone(session), view.clone());
    Arc::new(move || {
        let (session, view) = (Arc::clone(&session), view.clone());
        Box::pin(async move {
            let mut choice = session.select_model().await?;
            // The gateway has its own fallback for a lost model, and reports the loss.
            choice.is_automatic = false;
            let chosen = session.connect(choice)?;
            view.introduce(&chosen);
            Ok(chosen)
        })
    })
}

/// Reports what is missing, once all servers are connected or out of attempts, and
/// have reported their health.
fn watch_tool_servers(fleet: Arc<ServerFleet>) -> watch::Receiver<ToolServerStatus> {
    let (sender, status) = watch::channel(ToolServerStatus::Starting);
    tokio::spawn(async move {
        let mut changed = fleet.servers.subscribe();
        fleet.servers.wait_for_health_checks().await;
        if output::is_interactive() {
            fleet.note_missing(None);
        }
        loop {
            changed.mark_unchanged();
            let missing = fleet.missing();
            sender.send_if_modified(|status| {
                let new = ToolServerStatus::Settled { missing };
                let old = std::mem::replace(status, new);
                old != *status
            });
            tokio::select! {
                Ok(()) = changed.changed() => {}
                () = sender.closed() => return,
                else => return,
            }
        }
    });
    status
}

fn exit_for(
    ended: Result<VoiceSummary, VoiceGatewayError>,
    is_file: bool,
    view: &VoiceView,
) -> Exit {
    match ended {
        Ok(summary) if is_file && summary.turns == 0 && !view.has_heard() => {
            Exit::failure("no request was understood")
        }
        Ok(summary) if is_file && summary.failed > 0 => {
            let (failed, turns) = (summary.failed, summary.turns);
            let why = view
                .failure()
                .map_or_else(String::new, |why| format!(": {why}"));
            Exit::failure(format!("{failed} of {turns} requests failed{why}"))
        }
        Ok(_) => Exit::Success,
        Err(error) => {
            let exit = match error {
                VoiceGatewayError::Settings(_) => Exit::Usage,
                _ => Exit::Failure,
            };
            output::print_error(&error.into());
            exit
        }
    }
}
