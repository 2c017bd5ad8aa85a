//! Confines a server: the program started once more as a launcher, which gives up rights and
//! becomes the server.
//!
//! ```text
//!  Launcher      how to start the launcher, and what no server may see
//!  Confinement   what one server may reach; travels to the launcher as an argument
//!  run           in the launcher: opens (grants), closes everything else (kernel, capabilities, limits), becomes the server
//!  denial        what a server says when something was closed to it
//! ```
//!
//! Rights are given up in a process of its own because that has to happen between fork and exec,
//! where only `unsafe` code could run. The variables of the server reach the launcher under other
//! names, so that none of them, such as `LD_PRELOAD`, can make it run something before it is
//! confined.

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

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

pub(crate) use self::denial::advice;
pub use self::kernel::{KernelSupport, kernel_support};
use super::command::{Found, StartError, first_line, refused};
use super::environment;
use crate::{Program, SandboxLevel, ServerSettings};

/// The word that a program should know as "be the launcher", and call [`run`] for with the
/// arguments behind it.
pub const WORD: &str = "sandbox-exec";

/// In front of each of the server's variables on its way through the launcher.
const PASSED: &[u8] = b"TOOLGATE_PASSED_";

static TELL_OF_KERNEL: Once = Once::new();

/// How servers are confined. Cheap to clone.
#[derive(Clone)]
pub struct Launcher(Arc<Inner>);

struct Inner {
    /// How to start this program as a launcher.
    program: Option<(PathBuf, Vec<OsString>)>,
    hidden: Vec<String>,
    folders: Mutex<Vec<PathBuf>>,
}

impl Launcher {
    /// `program` is started with `args`, and must then call [`run`] with the arguments behind
    /// those. No confined server may see what is `hidden`: paths, of which those that end in `*`
    /// mean everything that begins so.
    pub fn new<I: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = I>,
        hidden: Vec<String>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::with(Some((program.into(), args)), hidden)
    }

    /// No launcher: a server that has to be confined isn't started.
    pub fn none() -> Self {
        Self::with(None, Vec::new())
    }

    fn with(program: Option<(PathBuf, Vec<OsString>)>, hidden: Vec<String>) -> Self {
        Self(Arc::new(Inner {
            program,
            hidden,
            folders: Mutex::default(),
        }))
    }

    /// Hides the folders of these servers from all others, besides those that are hidden already.
    pub fn hide_folders_of<'a>(&self, servers: impl IntoIterator<Item = &'a ServerSettings>) {
        let mut folders = self.folders();
        for folder in servers.into_iter().filter_map(ServerSettings::folder) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }

    fn folders(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.folders.lock()
    }

    /// The command that becomes the server, confined as its settings say.
    pub(super) fn command(
        &self,
        settings: &ServerSettings,
        program: &Program,
        found: &Found,
        mut variables: BTreeMap<OsString, OsString>,
    ) -> Result<Command, StartError> {
        if settings.sandbox.level == SandboxLevel::Off {
            let mut command = Command::new(&found.file);
            command.args(&program.args).env_clear().envs(variables);
            return Ok(command);
        }
        let Some((launcher, args)) = &self.0.program else {
            return Err(StartError(
                "it has a 'sandbox', and this program can't confine servers: start it with 'toolgate', or set its 'sandbox' to 'off'"
                    .to_owned(),
            ));
        };
        TELL_OF_KERNEL.call_once(|| {
            if let Some(missing) = kernel_support().missing() {
                tracing::warn!(
                    "servers with a 'sandbox' are not confined as they should be: {missing}"
                );
            }
        });
        let mut confinement = Confinement::new(settings, program, found, &variables);
        confinement.hide(&self.0.hidden, &self.folders());
        confinement.adjust(&mut variables);
        let text = serde_json::to_string(&confinement)
            .map_err(|error| StartError(format!("its sandbox can't be described: {error}")))?;
        let mut command = Command::new(launcher);
        command
            .args(args)
            .arg(text)
            .arg(&found.file)
            .args(&program.args);
        command.env_clear();
        for (name, value) in variables {
            let name = [PASSED, name.as_bytes()].concat();
            command.env(OsString::from_vec(name), value);
        }
        Ok(command)
    }
}

impl ServerSettings {
    /// The folder that is its own, as far as its entry names one.
    fn folder(&self) -> Option<PathBuf> {
        match &self.connection {
            crate::Connection::Stdio(program) => program.cwd.clone(),
            crate::Connection::Http { .. } => None,
        }
    }
}

/// What one server may reach. Paths are as they were configured: the launcher looks where they
/// lead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Confinement {
    level: SandboxLevel,
    home: Option<PathBuf>,
    cwd: PathBuf,
    temporary: Vec<PathBuf>,
    caches: Vec<PathBuf>,
    /// Caches that it can't make by itself.
    made: Vec<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    ports: Vec<u16>,
    hidden: Vec<String>,
}

impl Confinement {
    fn new(
        settings: &ServerSettings,
        program: &Program,
        found: &Found,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let home = places::folder(variables, "HOME");
        let caches = places::Caches::new(program, variables, home.as_deref());
        let sandbox = &settings.sandbox;
        Self {
            level: sandbox.level,
            cwd: found.cwd.clone(),
            temporary: places::temporary(variables),
            made: caches.made,
            caches: caches.all,
            read: sandbox.read.clone(),
            write: sandbox.write.clone(),
            ports: sandbox.ports.clone(),
            hidden: places::secrets(home.as_deref()),
            home,
        }
    }

    /// `folders` are those of all servers: its own is open to it all the same.
    fn hide(&mut self, places: &[String], folders: &[PathBuf]) {
        let is_apart = |folder: &&PathBuf| !places::is_shared(folder, self.home.as_deref());
        let folders = folders.iter().filter(is_apart);
        let folders = folders.map(|folder| folder.to_string_lossy().into_owned());
        let hidden: Vec<String> = places.iter().cloned().chain(folders).collect();
        self.hidden.extend(hidden);
    }

    /// uv keeps a lock beside the programs that people installed with it. Who may write there may
    /// change these programs, so a confined uv gets a folder among the caches instead.
    fn adjust(&self, variables: &mut BTreeMap<OsString, OsString>) {
        if let (SandboxLevel::Default, Some(cache)) = (self.level, self.caches.first()) {
            let tools = cache.join("uv-tools").into_os_string();
            variables.entry("UV_TOOL_DIR".into()).or_insert(tools);
        }
    }
}

/// The launcher itself, with the arguments behind [`WORD`]. Returns only if the server can't be
/// started, with the reason.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> String {
    let mut arguments = arguments.into_iter();
    let (Some(confinement), Some(file)) = (arguments.next(), arguments.next()) else {
        return "this is how Toolgate starts a server that it confines; it can't be called by hand"
            .to_owned();
    };
    let launch = Launch {
        file: file.into(),
        arguments: arguments.collect(),
        variables: std::env::vars_os().filter_map(passed).collect(),
    };
    if let Err(error) = launch.confine(&confinement) {
        return format!("the sandbox of this server can't be set up: {error}");
    }
    launch.exec()
}

struct Launch {
    file: PathBuf,
    arguments: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
}

impl Launch {
    fn confine(&self, confinement: &OsStr) -> io::Result<()> {
        let confinement: Confinement = serde_json::from_slice(confinement.as_bytes())?;
        for folder in &confinement.made {
            // One that can't be made is one that can't be written to; the server will say so.
            std::fs::create_dir_all(folder).ok();
        }
        let named = grants::Named {
            programs: self.programs(),
            arguments: self.places(&confinement.cwd),
        };
        let grants = grants::grants(&confinement, &named);
        limits::set();
        let ports = (confinement.level == SandboxLevel::Strict).then_some(&confinement.ports[..]);
        kernel::restrict(&grants, ports)
    }

    /// The program, and what its first line asks for.
    fn programs(&self) -> Vec<PathBuf> {
        let mut programs = vec![self.file.clone()];
        let line = first_line(&self.file).unwrap_or_default();
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

    /// Files and folders among the arguments, by themselves or behind a `=`.
    fn places(&self, cwd: &Path) -> Vec<PathBuf> {
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
        refused(&self.file, path, &error).to_string()
    }
}

fn passed((name, value): (OsString, OsString)) -> Option<(OsString, OsString)> {
    let name = name.as_bytes().strip_prefix(PASSED)?;
    Some((OsStr::from_bytes(name).to_owned(), value))
}

#[cfg(test)]
mod tests;
