//! A server as a child process: messages over its stdin and stdout, its stderr kept for reports.
//!
//! ```text
//!  command, environment   what to start
//!  sandbox                what it may reach
//!  stdin                  whole messages to it
//!  stdout                 lines ─ messages to the inbox, the rest (salvage) into quarantine
//!  stderr                 the last of it
//!  keeper                 sees its end, and brings it about
//!  group, processes       everything that came from it, as the process table shows it
//!  guard                  ends all servers if this program is killed
//! ```

mod command;
mod container;
mod credentials;
mod environment;
mod group;
pub mod guard;
mod keeper;
mod lines;
mod processes;
mod salvage;
pub mod sandbox;
pub(super) mod stderr;
mod stdin;
mod stdout;
#[cfg_attr(not(target_os = "linux"), path = "table_elsewhere.rs")]
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Stdio as Pipe;
use std::sync::{Arc, Once};

use futures::future::BoxFuture;
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

pub(crate) use self::command::StartError;
use self::container::Removal;
use self::group::Group;
use self::guard::Guard;
use self::keeper::{Keeper, Reading};
use self::sandbox::Launcher;
use self::stdin::Stdin;
use self::stdout::Stdout;
use super::chain;
use super::diagnostics::Diagnostics;
use super::message::Outgoing;
use super::transport::{Inbox, Transport, TransportError};
use crate::{Program, ServerSettings};

#[derive(Clone)]
pub(crate) struct Shared {
    /// Ends the servers if this program is killed.
    pub(crate) guard: Guard,
    /// The largest message that is read from a server, in bytes.
    pub(crate) max_message: usize,
    /// The Toolgates that a server stands below, for one that is a Toolgate itself.
    pub(crate) chain: String,
    pub(crate) launcher: Launcher,
}

pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// What whoever started this program has left open in it is for nobody else. Our own files are never passed on anyway.
static KEEP_TO_OURSELVES: Once = Once::new();

pub(crate) struct Stdio {
    stdin: Arc<Stdin>,
    group: Arc<Group>,
    /// Asks the keeper to end the server.
    stop: CancellationToken,
    /// Nothing is left of the server.
    gone: CancellationToken,
}

impl Stdio {
    /// Starts the server. What it says goes to `inbox`, and [`Inbox::closed`] is called once, however it ends. With `installing`
    /// it may have to download what it runs, and is given time to clean up until it is [`installed`](Self::installed).
    ///
    /// Must be called inside of a runtime.
    pub(crate) fn start(
        settings: &ServerSettings,
        program: &Program,
        shared: &Shared,
        diagnostics: Arc<Diagnostics>,
        inbox: Arc<dyn Inbox>,
        installing: bool,
    ) -> Result<Arc<Self>, StartError> {
        KEEP_TO_OURSELVES.call_once(|| close_fds::set_fds_cloexec(3, &[]));
        let marker = shared.guard.marker();
        let (mut child, removal) = spawn(settings, program, &marker, shared)?;
        let Some(leader) = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)) else {
            return Err(StartError("the command ended at once".to_owned()));
        };
        // From here on, dropping the group kills what was started.
        let group = Group::new(leader, marker, shared.guard.clone(), installing, removal);
        let group = Arc::new(group);
        let (stdin, stdout, stderr) = pipes(&mut child)?;
        let stdin = Arc::new(Stdin::new(&settings.name, stdin));
        let ring = diagnostics.started();
        let reader = Stdout {
            inbox: Arc::clone(&inbox),
            diagnostics: Arc::clone(&diagnostics),
            limit: shared.max_message,
        };
        let (stop, gone) = (CancellationToken::new(), CancellationToken::new());
        let keeper = Keeper {
            child,
            group: Arc::clone(&group),
            stdin: Arc::clone(&stdin),
            stdout: Reading::spawn(reader.read(stdout)),
            redactor: diagnostics.redactor().clone(),
            stderr: Reading::spawn(stderr::drain(stderr, Arc::clone(&ring), diagnostics)),
            tail: ring,
            inbox,
            max_memory: settings.max_memory,
            stop: stop.clone(),
        };
        tokio::spawn(keeper.run(gone.clone().drop_guard()));
        Ok(Arc::new(Self {
            stdin,
            group,
            stop,
            gone,
        }))
    }
}

impl Stdio {
    pub(crate) fn pid(&self) -> u32 {
        self.group.leader().as_raw_nonzero().get().unsigned_abs()
    }

    /// It has connected, so whatever it had to download is there.
    pub(crate) fn installed(&self) {
        self.group.installed();
    }

    /// Cancelled once nothing is left of it.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }
}

impl Transport for Stdio {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(self.stdin.send(message.body))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(self.gone.cancelled())
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn variables(program: &Program) -> BTreeMap<OsString, OsString> {
    environment::environment(program, std::env::vars_os())
}

/// Looks for the file that would be started.
pub(crate) fn find(program: &Program) -> Result<(), StartError> {
    let contained = contained(program, "", None)?;
    let program = contained.as_ref().unwrap_or(program);
    command::find(program, environment::path(&variables(program))).map(drop)
}

/// What is started instead of a program that runs in a container.
fn contained(
    program: &Program,
    name: &str,
    max_memory: Option<u64>,
) -> Result<Option<Program>, StartError> {
    let container = program.container.as_ref();
    let contained = container.map(|it| container::program(program, it, name, max_memory));
    contained.transpose()
}

fn spawn(
    settings: &ServerSettings,
    program: &Program,
    marker: &str,
    shared: &Shared,
) -> Result<(Child, Option<Removal>), StartError> {
    let name = container::name(marker);
    let contained = contained(program, &name, settings.max_memory)?;
    let container = program.container.as_ref();
    let program = contained.as_ref().unwrap_or(program);
    let mut variables = variables(program);
    let path = environment::path(&variables).to_owned();
    let found = command::find(program, &path)?;
    let removal = container.map(|it| Removal::new(found.file.clone(), it, &name, &variables));
    variables.insert(processes::MARKER.into(), marker.into());
    variables.insert(chain::VARIABLE.into(), shared.chain.clone().into());
    let launcher = &shared.launcher;
    let command = launcher.command(settings, program, &found, variables)?;
    let child = Command::from(command)
        // A launcher that hangs must be found too.
        .env(processes::MARKER, marker)
        .current_dir(&found.cwd)
        .process_group(0)
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::piped())
        .spawn()
        .map_err(|error| command::refused(&found.file, &path, &error))?;
    Ok((child, removal))
}

/// The ends of its pipes. Those of tokio's child are taken apart, because only plain ones can be written to without waiting.
fn pipes(child: &mut Child) -> Result<(pipe::Sender, pipe::Receiver, pipe::Receiver), StartError> {
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
        return Err(StartError("the command has no pipes".to_owned()));
    };
    let failed = |error| StartError(format!("the pipes of the command cannot be used: {error}"));
    Ok((
        pipe::Sender::from_owned_fd(stdin.into_owned_fd().map_err(failed)?).map_err(failed)?,
        pipe::Receiver::from_owned_fd(stdout.into_owned_fd().map_err(failed)?).map_err(failed)?,
        pipe::Receiver::from_owned_fd(stderr.into_owned_fd().map_err(failed)?).map_err(failed)?,
    ))
}
