//! Runs a server in a sandbox: a launcher process drops its privileges, then executes the server.
//!
//! The launcher is this program, started again. Privileges are dropped in a separate process
//! because it has to happen between fork and exec, where only `unsafe` code could run. The server's
//! variables reach the launcher under prefixed names, so that none of them, such as `LD_PRELOAD`,
//! can run code before the process is confined.

#[cfg(target_os = "linux")]
mod capabilities;
mod denial;
mod grants;
#[cfg_attr(not(target_os = "linux"), path = "kernel_elsewhere.rs")]
mod kernel;
mod limits;
#[cfg(target_os = "linux")]
mod network;
mod places;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub(crate) use self::denial::find_advice;
pub use self::kernel::{KernelSupport, kernel_support};
use super::command::{ResolvedProgram, ServerStartError, shebang_line, spawn_error};
use super::environment;
use crate::{SandboxLevel, ServerConnection, ServerProgram, ServerSettings};

/// The first argument that starts the program as the launcher; `main` must then call [`run`]
/// with the remaining arguments.
pub const SUBCOMMAND: &str = "sandbox-exec";

const PASSED_PREFIX: &[u8] = b"TOOLGATE_PASSED_";

static WARN_ABOUT_KERNEL: Once = Once::new();

/// How servers are confined. Cheap to clone.
#[derive(Clone)]
pub struct SandboxLauncher(Arc<LauncherInner>);

struct LauncherInner {
    program: Option<(PathBuf, Vec<OsString>)>,
    hidden: Vec<String>,
    // Folders of all servers.
    folders: Mutex<Vec<PathBuf>>,
}

impl SandboxLauncher {
    /// The launcher is `program` with `args`, which must call [`run`] with the remaining
    /// arguments. Confined servers can't see the `hidden` paths; a trailing `*` matches every
    /// path with that prefix.
    pub fn new<I: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = I>,
        hidden: Vec<String>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::with_program(Some((program.into(), args)), hidden)
    }

    /// Without a launcher, servers that must be confined aren't started.
    pub fn none() -> Self {
        Self::with_program(None, Vec::new())
    }

    fn with_program(program: Option<(PathBuf, Vec<OsString>)>, hidden: Vec<String>) -> Self {
        Self(Arc::new(LauncherInner {
            program,
            hidden,
            folders: Mutex::default(),
        }))
    }

    /// Hides the folder of each of these servers from all other servers.
    pub fn hide_folders_of<'a>(&self, servers: impl IntoIterator<Item = &'a ServerSettings>) {
        let mut folders = self.0.folders.lock();
        let folder = |settings: &ServerSettings| match &settings.connection {
            ServerConnection::Stdio(program) => program.cwd.clone(),
            ServerConnection::Http { .. } => None,
        };
        for folder in servers.into_iter().filter_map(folder) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }

    pub(super) fn command(
        &self,
        settings: &ServerSettings,
        program: &ServerProgram,
        resolved: &ResolvedProgram,
        mut variables: BTreeMap<OsString, OsString>,
    ) -> Result<Command, ServerStartError> {
        if settings.sandbox.level == SandboxLevel::Off {
            let mut command = Command::new(&resolved.file);
            command.args(&program.args).env_clear().envs(variables);
            return Ok(command);
        }
        let Some((launcher, args)) = &self.0.program else {
            return Err(ServerStartError(
                "it has a 'sandbox', and this program can't confine servers: start it with 'toolgate', or set its 'sandbox' to 'off'"
                    .to_owned(),
            ));
        };
        WARN_ABOUT_KERNEL.call_once(|| {
            if let Some(missing) = kernel_support().missing() {
                tracing::warn!("servers with a 'sandbox' are not fully confined: {missing}");
            }
        });
        let mut confinement = Confinement::new(settings, program, resolved, &variables);
        confinement.hide(&self.0.hidden, &self.0.folders.lock());
        confinement.set_tool_folder(&mut variables);
        let text = serde_json::to_string(&confinement).map_err(|error| {
            ServerStartError(format!("its sandbox can't be described: {error}"))
        })?;
        let mut command = Command::new(launcher);
        command
            .args(args)
            .arg(text)
            .arg(&resolved.file)
            .args(&program.args);
        command.env_clear();
        for (name, value) in variables {
            let name = [PASSED_PREFIX, name.as_bytes()].concat();
            command.env(OsString::from_vec(name), value);
        }
        Ok(command)
    }
}

/// What one server may access. Paths are unresolved; the launcher resolves links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Confinement {
    level: SandboxLevel,
    home: Option<PathBuf>,
    cwd: PathBuf,
    temporary: Vec<PathBuf>,
    caches: Vec<PathBuf>,
    // Caches that the launcher creates, because the server can't.
    created_caches: Vec<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    ports: Vec<u16>,
    hidden: Vec<String>,
}

impl Confinement {
    fn new(
        settings: &ServerSettings,
        program: &ServerProgram,
        resolved: &ResolvedProgram,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let home = places::folder(variables, "HOME");
        let caches = places::CacheFolders::new(program, variables, home.as_deref());
        let sandbox = &settings.sandbox;
        Self {
            level: sandbox.level,
            cwd: resolved.cwd.clone(),
            temporary: places::temporary(variables),
            created_caches: caches.created,
            caches: caches.all,
            read: sandbox.read.clone(),
            write: sandbox.write.clone(),
            ports: sandbox.ports.clone(),
            hidden: places::secrets(home.as_deref()),
            home,
        }
    }

    // `folders` are those of all servers. The server's own folder is allowed again later.
    fn hide(&mut self, places: &[String], folders: &[PathBuf]) {
        let is_private = |folder: &&PathBuf| !places::is_shared(folder, self.home.as_deref());
        let folders = folders.iter().filter(is_private);
        let folders = folders.map(|folder| folder.to_string_lossy().into_owned());
        let hidden: Vec<String> = places.iter().cloned().chain(folders).collect();
        self.hidden.extend(hidden);
    }

    // uv keeps a lock beside the user's installed programs. Write access there would allow
    // changing those programs, so a confined uv gets a folder among the caches instead.
    fn set_tool_folder(&self, variables: &mut BTreeMap<OsString, OsString>) {
        if let (SandboxLevel::Default, Some(cache)) = (self.level, self.caches.first()) {
            let tools = cache.join("uv-tools").into_os_string();
            variables.entry("UV_TOOL_DIR".into()).or_insert(tools);
        }
    }
}

/// Runs as the launcher, with the arguments after [`SUBCOMMAND`]. Returns only if the server can't
/// be started, with the reason.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> String {
    let mut arguments = arguments.into_iter();
    let (Some(confinement), Some(file)) = (arguments.next(), arguments.next()) else {
        return "Toolgate uses this command to start confined servers; it can't be used directly"
            .to_owned();
    };
    let launch = ConfinedLaunch {
        file: file.into(),
        arguments: arguments.collect(),
        variables: std::env::vars_os().filter_map(passed_variable).collect(),
    };
    if let Err(error) = launch.confine(&confinement) {
        return format!("the sandbox of this server can't be set up: {error}");
    }
    launch.exec()
}

struct ConfinedLaunch {
    file: PathBuf,
    arguments: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
}

impl ConfinedLaunch {
    fn confine(&self, confinement: &OsStr) -> io::Result<()> {
        let confinement: Confinement = serde_json::from_slice(confinement.as_bytes())?;
        for folder in &confinement.created_caches {
            // The server will report a cache that can't be written.
            std::fs::create_dir_all(folder).ok();
        }
        let named = grants::NamedPaths {
            programs: self.programs(),
            arguments: self.argument_paths(&confinement.cwd),
        };
        let grants = grants::build_grants(&confinement, &named);
        limits::set();
        let ports = (confinement.level == SandboxLevel::Strict).then_some(&confinement.ports[..]);
        kernel::restrict(&grants, ports)
    }

    // The program, and for a script its interpreter.
    fn programs(&self) -> Vec<PathBuf> {
        let mut programs = vec![self.file.clone()];
        let line = shebang_line(&self.file).unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(interpreter) = words.next().map(PathBuf::from) else {
            return programs;
        };
        let is_env = interpreter.ends_with("env");
        programs.push(interpreter);
        let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
        if let Some(named) = named.filter(|_| is_env) {
            let path = environment::path(&self.variables);
            let mut files = std::env::split_paths(path).map(|folder| folder.join(named));
            programs.extend(files.find(|file| file.is_file()));
        }
        programs
    }

    fn argument_paths(&self, cwd: &Path) -> Vec<PathBuf> {
        let place = |argument: &OsString| {
            let argument = argument.to_str()?;
            let path = match argument.split_once('=') {
                Some((option, path)) if option.starts_with('-') => path,
                _ => argument,
            };
            let is_path = ["/", "./", "../"]
                .iter()
                .any(|start| path.starts_with(start));
            (is_path || path == ".").then(|| cwd.join(path))
        };
        self.arguments.iter().filter_map(place).collect()
    }

    fn exec(&self) -> String {
        let mut server = Command::new(&self.file);
        server
            .args(&self.arguments)
            .env_clear()
            .envs(&self.variables);
        let error = server.exec();
        let path = environment::path(&self.variables);
        spawn_error(&self.file, path, &error).to_string()
    }
}

fn passed_variable((name, value): (OsString, OsString)) -> Option<(OsString, OsString)> {
    let name = name.as_bytes().strip_prefix(PASSED_PREFIX)?;
    Some((OsStr::from_bytes(name).to_owned(), value))
}

#[cfg(test)]
mod tests;
