//! `toolgate voice`: hears requests, lets a model use the tools, and speaks the answers.
//!
//! What happens in between is `toolgate-voice`; here it is given a model, tools, and somebody who looks.

mod calls;
mod keys;
mod line;
mod paint;
mod settings;
mod view;
mod volume;

use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_core::Origin;
use toolgate_mcp::ServerSettings;
use toolgate_voice::{FindModel, GatewayError, Input, Loudness, Mode, Parts, Reach, Summary};
use tracing::info;

use crate::cli::{Global, VoiceOptions};
use crate::exit::Exit;
use crate::reload::{self, Reload};
use crate::servers::{Fleet, Start, StartingServers};
use crate::signals::Signals;
use crate::talk::{Occasion, Setting};
use crate::terminal::{self, Echo};
use crate::{say, spinner, wiring};
use settings::Wanted;
use view::{Manner, View};
use volume::Voice;

/// Sections that are read at the start alone.
const FIXED: [&str; 3] = ["model", "mqtt", "voice"];

pub(crate) fn run(global: &Global, options: &VoiceOptions) -> anyhow::Result<Exit> {
    let voice = Arc::new(Voice::default());
    let mut occasion = Occasion::new("toolgate voice");
    occasion.origin = Origin::Voice;
    occasion.services.sounding = Some(voice.clone());
    let setting = Arc::new(Setting::new(global, &options.model, occasion)?);
    let wanted = Wanted::read(&setting.config, options)?;
    voice.settle(&wanted.settings, wanted.input.is_some());
    if let Some(remark) = wanted.remark() {
        match say::is_followed() {
            true => say::note(remark),
            false => info!("{remark}"),
        }
    }
    let servers = setting.needed_servers().unwrap_or_default();
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let loudness = voice.loudness.clone();
    let exit = runtime.block_on(converse(&setting, options, wanted, servers, loudness));
    // A thread that waits for a key must not hold up the end.
    runtime.shutdown_background();
    exit
}

async fn converse(
    setting: &Arc<Setting>,
    options: &VoiceOptions,
    wanted: Wanted,
    servers: Vec<ServerSettings>,
    loudness: Loudness,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    let stop = CancellationToken::new();
    let is_file = matches!(wanted.input, Some(Input::Wav(_)));
    // What is typed would stand in the lines that are drawn.
    let terminal = terminal::is_ours().then(Echo::hidden);
    // Whoever answers files is not talked to.
    let has_keys = terminal.is_some() && !is_file;
    let view = view(setting, options, &wanted, has_keys, &stop);
    let painter = view.paint();
    let (config, tools) = (&setting.config, &setting.tools);
    let spinner = Some(&setting.spinner);
    let fleet = Arc::new(Fleet::start(config, tools, servers, Start::AtOnce, spinner));
    fleet.servers.watch_health(wiring::probe(config, tools));
    let starting = StartingServers(fleet.servers.clone());
    setting.toolbox.wait_for(Arc::new(starting));
    let executor = setting.toolbox.executor().clone();
    let reload = Reload::new(Arc::clone(config), tools, executor, fleet.servers.clone());
    let reload = reload.map(|reload| reload.also_fixed(&FIXED).attended().on(signals.reload()));
    let following = tokio::spawn(reload::followed(reload));
    let parts = Parts {
        settings: wanted.settings,
        input: wanted.input,
        mode: wanted.mode,
        model: model(setting, &view),
        model_settings: setting.wanted.clone(),
        toolbox: setting.toolbox.clone(),
        tools: reach(Arc::clone(&fleet)),
        approvals: setting.spoken.clone(),
        journal: setting.record.journal().cloned(),
        mqtt: wanted.mqtt,
        loudness,
        watcher: Arc::new(view.clone()),
        keys: has_keys.then(keys::listen),
    };
    let (ended, told) = run_until_told(parts, stop, &mut signals).await;
    painter.close();
    drop(terminal);
    following.abort();
    fleet.stop().await;
    setting.record.close().await;
    Ok(match (ended, told) {
        // Who ends it knows that not all was answered.
        (Ok(_), Some(told)) => told,
        (ended, _) => exit_of(ended, is_file, &view),
    })
}

/// How the gateway ended, and the exit code of the signal that ended it, if one did. A second signal ends at once.
async fn run_until_told(
    parts: Parts,
    stop: CancellationToken,
    signals: &mut Signals,
) -> (Result<Summary, GatewayError>, Option<Exit>) {
    let mut running = std::pin::pin!(toolgate_voice::run(parts, stop.clone()));
    tokio::select! {
        ended = &mut running => (ended, None),
        exit = signals.told() => {
            stop.cancel();
            tokio::select! {
                ended = &mut running => (ended, Some(exit)),
                _again = signals.told() => {
                    terminal::give_back();
                    std::process::exit(i32::from(exit.code()));
                }
            }
        }
    }
}

fn view(
    setting: &Setting,
    options: &VoiceOptions,
    wanted: &Wanted,
    has_keys: bool,
    stop: &CancellationToken,
) -> View {
    let followed = say::is_followed();
    let manner = Manner {
        followed,
        drawn: followed && spinner::can_draw(),
        json: options.json,
        waits_for: match (wanted.mode, has_keys) {
            (Mode::PushToTalk, _) => "Enter",
            (_, true) => "the wake word or Enter",
            (_, false) => "the wake word",
        },
        keys: has_keys,
    };
    let enough = options.once.then(|| stop.clone());
    View::new(manner, setting.redactor(), setting.spinner.clone(), enough)
}

fn model(setting: &Arc<Setting>, view: &View) -> FindModel {
    let (setting, view) = (Arc::clone(setting), view.clone());
    Arc::new(move || {
        let (setting, view) = (Arc::clone(&setting), view.clone());
        Box::pin(async move {
            let mut choice = setting.choose().await?;
            // The gateway stands in for a lost model itself, and tells of the loss.
            choice.is_unasked = false;
            let chosen = setting.connect(choice)?;
            view.introduce(&chosen);
            Ok(chosen)
        })
    })
}

/// What is missing, from when all servers are there, or have used their attempts, and said whether they can do their work.
fn reach(fleet: Arc<Fleet>) -> watch::Receiver<Reach> {
    let (tell, reach) = watch::channel(Reach::Starting);
    tokio::spawn(async move {
        let mut changed = fleet.servers.changed();
        fleet.servers.checked().await;
        if say::is_followed() {
            fleet.tell_missing();
        }
        loop {
            changed.mark_unchanged();
            let missing = fleet.missing();
            tell.send_if_modified(|reach| {
                let new = Reach::Settled { missing };
                let old = std::mem::replace(reach, new);
                old != *reach
            });
            tokio::select! {
                Ok(()) = changed.changed() => {}
                () = tell.closed() => return,
                else => return,
            }
        }
    });
    reach
}

/// How it went. Of files an answer is expected; whoever gets none is told why, however little they want to read.
fn exit_of(ended: Result<Summary, GatewayError>, is_file: bool, view: &View) -> Exit {
    match ended {
        Ok(summary) if is_file && summary.turns == 0 && !view.has_heard() => {
            say::error(&anyhow::anyhow!("no request was understood"));
            Exit::Failure
        }
        Ok(summary) if is_file && summary.failed > 0 => {
            let (failed, turns) = (summary.failed, summary.turns);
            let why = view
                .failure()
                .map_or_else(String::new, |why| format!(": {why}"));
            say::error(&anyhow::anyhow!("{failed} of {turns} requests failed{why}"));
            Exit::Failure
        }
        Ok(_) => Exit::Success,
        Err(error) => {
            let exit = match error {
                GatewayError::Settings(_) => Exit::Usage,
                _ => Exit::Failure,
            };
            say::error(&error.into());
            exit
        }
    }
}
