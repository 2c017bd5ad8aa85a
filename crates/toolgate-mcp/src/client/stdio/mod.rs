//! The stdio transport: a server as a child process, with messages on stdin and stdout.

mod command;
mod container;
mod credentials;
mod environment;
mod keeper;
mod oversized_line;
mod processes;
mod salvage;
pub mod sandbox;
mod server_processes;
pub(super) mod stderr;
mod stdin;
mod stdout;
#[cfg_attr(not(target_os = "linux"), path = "table_elsewhere.rs")]
mod table;
#[cfg(test)]
mod tests;
pub mod watcher;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Stdio as Pipe;
use std::sync::{Arc, Once};

use futures::future::BoxFuture;
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

pub(crate) use self::command::ServerStartError;
use self::container::ContainerRemoval;
use self::keeper::{PipeReader, ProcessKeeper};
use self::sandbox::SandboxLauncher;
use self::server_processes::ServerProcesses;
use self::stdin::ServerStdin;
use self::stdout::StdoutReader;
use self::watcher::ServerWatcher;
use super::diagnostics::ServerDiagnostics;
use super::message::OutgoingMessage;
use super::start_chain;
use super::transport::{Transport, TransportError, TransportInbox};
use crate::{ServerProgram, ServerSettings};

#[derive(Clone)]
pub(crate) struct StdioOptions {
    pub(crate) watcher: ServerWatcher,
    pub(crate) max_message: usize,
    // The value of `TOOLGATE_CHAIN` for servers.
    pub(crate) chain: String,
    pub(crate) launcher: SandboxLauncher,
}

// Bytes.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

// Servers must not inherit the file descriptors that this program inherited. Those that it opens
// itself are close-on-exec anyway.
static CLOSE_INHERITED_FDS: Once = Once::new();

pub(crate) struct StdioTransport {
    stdin: Arc<ServerStdin>,
    group: Arc<ServerProcesses>,
    stop: CancellationToken,
    exited: CancellationToken,
}

impl StdioTransport {
    /// Starts the server. Must be called in a tokio runtime. Messages go to `inbox`, which is
    /// closed exactly once. `installing` means that it may be downloading its program: until
    /// [`mark_installed`](Self::mark_installed) is called, it gets more time to end.
    pub(crate) fn start(
        settings: &ServerSettings,
        program: &ServerProgram,
        shared: &StdioOptions,
        diagnostics: Arc<ServerDiagnostics>,
        inbox: Arc<dyn TransportInbox>,
        installing: bool,
    ) -> Result<Arc<Self>, ServerStartError> {
        CLOSE_INHERITED_FDS.call_once(|| close_fds::set_fds_cloexec(3, &[]));
        let marker = shared.watcher.new_marker();
        let (mut child, removal) = spawn(settings, program, &marker, shared)?;
        let Some(leader) = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)) else {
            return Err(ServerStartError("the command ended immediately".to_owned()));
        };
        // From here on, dropping the group kills the process.
        let group =
            ServerProcesses::new(leader, marker, shared.watcher.clone(), installing, removal);
        let group = Arc::new(group);
        let (stdin, stdout, stderr) = take_pipes(&mut child)?;
        let stdin = Arc::new(ServerStdin::new(&settings.name, stdin));
        let buffer = diagnostics.new_stderr_buffer();
        let reader = StdoutReader {
            inbox: Arc::clone(&inbox),
            diagnostics: Arc::clone(&diagnostics),
            limit: shared.max_message,
        };
        let (stop, exited) = (CancellationToken::new(), CancellationToken::new());
        let keeper = ProcessKeeper {
            child,
            group: Arc::clone(&group),
            stdin: Arc::clone(&stdin),
            stdout: PipeReader::spawn(reader.read(stdout)),
            redactor: diagnostics.redactor().clone(),
            stderr: PipeReader::spawn(stderr::drain(stderr, Arc::clone(&buffer), diagnostics)),
            stderr_buffer: buffer,
            inbox,
            max_memory: settings.max_memory,
            stop: stop.clone(),
        };
        tokio::spawn(keeper.run(exited.clone().drop_guard()));
        Ok(Arc::new(Self {
            stdin,
            group,
            stop,
            exited,
        }))
    }
}

impl StdioTransport {
    pub(crate) fn pid(&self) -> u32 {
        self.group.leader().as_raw_nonzero().get().unsigned_abs()
    }

    pub(crate) fn mark_installed(&self) {
        self.group.mark_installed();
    }

    /// Cancelled once no process of the server is left.
    pub(crate) fn exited(&self) -> CancellationToken {
        self.exited.clone()
    }
}

impl Transport for StdioTransport {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(self.stdin.send(message.body))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(self.exited.cancelled())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Returns the environment of a server.
pub(crate) fn variables(program: &ServerProgram) -> BTreeMap<OsString, OsString> {
    environment::build(program, std::env::vars_os())
}

/// Checks that the program, or its container engine, is installed and executable.
pub(crate) fn find_program(program: &ServerProgram) -> Result<(), ServerStartError> {
    let contained = container_program(program, "", None)?;
    let program = contained.as_ref().unwrap_or(program);
    command::resolve(program, environment::path(&variables(program))).map(drop)
}

fn container_program(
    program: &ServerProgram,
    name: &str,
    max_memory: Option<u64>,
) -> Result<Option<ServerProgram>, ServerStartError> {
    let container = program.container.as_ref();
    let contained = container.map(|it| container::engine_program(program, it, name, max_memory));
    contained.transpose()
}

fn spawn(
    settings: &ServerSettings,
    program: &ServerProgram,
    marker: &str,
    shared: &StdioOptions,
) -> Result<(Child, Option<ContainerRemoval>), ServerStartError> {
    let name = container::container_name(marker);
    let contained = container_program(program, &name, settings.max_memory)?;
    let container = program.container.as_ref();
    let program = contained.as_ref().unwrap_or(program);
    let mut variables = variables(program);
    let path = environment::path(&variables).to_owned();
    let resolved = command::resolve(program, &path)?;
    let removal =
        container.map(|it| ContainerRemoval::new(resolved.file.clone(), it, &name, &variables));
    variables.insert(processes::MARKER.into(), marker.into());
    variables.insert(start_chain::VARIABLE.into(), shared.chain.clone().into());
    let launcher = &shared.launcher;
    let command = launcher.command(settings, program, &resolved, variables)?;
    let child = Command::from(command)
        // The launcher itself has the marker too, so that it can be found if it hangs.
        .env(processes::MARKER, marker)
        .current_dir(&resolved.cwd)
        .process_group(0)
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::piped())
        .spawn()
        .map_err(|error| command::spawn_error(&resolved.file, &path, &error))?;
    Ok((child, removal))
}

// Converts the pipes of the child into tokio's plain pipes, which can be written without waiting.
fn take_pipes(
    child: &mut Child,
) -> Result<(pipe::Sender, pipe::Receiver, pipe::Receiver), ServerStartError> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(ServerStartError("the command has no pipes".to_owned()));
    };
    let failed =
        |error| ServerStartError(format!("the pipes of the command cannot be used: {error}"));
    Ok((
        pipe::Sender::from_owned_fd(stdin.into_owned_fd().map_err(failed)?).map_err(failed)?,
        pipe::Receiver::from_owned_fd(stdout.into_owned_fd().map_err(failed)?).map_err(failed)?,
        pipe::Receiver::from_owned_fd(stderr.into_owned_fd().map_err(failed)?).map_err(failed)?,
    ))
}
