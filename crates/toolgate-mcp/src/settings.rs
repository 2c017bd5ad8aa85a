//! One MCP server, as configured.

mod container;
mod home;
mod package_runner;
mod read;
mod sandbox;
mod schema;
mod secrets;
mod values;

pub use container::{Container, Mount};
pub use read::{EntryProblem, Places};
pub use sandbox::{Sandbox, SandboxLevel};

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_core::{Normalize, Pattern};

use crate::EraChoice;
use crate::client::stdio;

/// How long an attempt may take unless told otherwise.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a program that may have to download what it runs.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// A slow retry has this many times the patience of a first attempt: a download may be what takes so long.
const SLOW_PATIENCE: u32 = 6;

/// One entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Its name in the configuration.
    pub name: String,
    /// What its tools are remembered under, see [`identified`](Self::identified); none: they aren't remembered.
    pub identity: Option<String>,
    /// How it is reached.
    pub connection: Connection,
    /// Which era to speak.
    pub era: EraChoice,
    /// How long one attempt to connect may take; none: ten seconds, and five minutes for the first start of a package runner.
    pub start_timeout: Option<Duration>,
    /// The limit for calls of its tools; none: the general one.
    pub timeout: Option<Duration>,
    /// Tools that are taken, by their name on the server.
    pub allowed_tools: Vec<Pattern>,
    /// Tools that are left out, by their name on the server.
    pub excluded_tools: Vec<Pattern>,
    /// When parameter names are rewritten.
    pub normalize: Normalize,
    /// False leaves the checking of arguments to the server.
    pub validate: bool,
    /// True ranks it above local tools.
    pub overrides: bool,
    /// Parameter names by tool: from, to.
    pub parameter_names: HashMap<String, HashMap<String, String>>,
    /// What to check if it does not start, for a person.
    pub check: Option<String>,
    /// Which of its tools says whether it can do its work.
    pub health: HealthTool,
    /// Whether it serves a home, as declared; none: see [`is_home`](Self::is_home).
    pub home: Option<bool>,
    /// What happens to tools that aren't what was agreed to.
    pub pin: PinPolicy,
    /// Named, but not started.
    pub disabled: bool,
    /// Why it can't be started as it is configured, such as a variable that isn't set. What is remembered of its tools stays
    /// under their names, so that nobody else answers there.
    pub blocked: Option<String>,
    /// The memory its processes may hold together; none: any.
    pub max_memory: Option<u64>,
    /// What its processes may reach of this machine.
    pub sandbox: Sandbox,
}

/// Which tool of a server says whether it can do its work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HealthTool {
    /// That of a known home server, such as `zwave-mcp-server`; none of any other.
    #[default]
    Usual,
    /// None is asked.
    Off,
    /// This one, by its name on the server. It is asked without arguments.
    Named(String),
}

/// What happens to a tool that is new, or whose description, schema or annotations changed, since a person agreed to the
/// tools of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PinPolicy {
    /// It is withheld if it is or was destructive, or isn't read-only any more; any other is told.
    #[default]
    AskIfDestructive,
    /// It is withheld until a person agrees.
    Ask,
    /// It is told.
    Warn,
    /// Nothing is compared.
    Off,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Connection {
    /// A child process, spoken to over its stdin and stdout.
    Stdio(Program),
    /// A server somewhere, spoken to over HTTP.
    Http {
        /// Where.
        url: String,
        /// Sent with every request. [`ServerSettings::secrets`] tells which values are secrets.
        headers: Headers,
    },
}

/// Headers whose values never show.
#[derive(Clone, PartialEq, Default)]
pub struct Headers(pub Vec<(String, String)>);

/// What to start.
#[derive(Clone, PartialEq, Default)]
pub struct Program {
    /// A name on the PATH, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides the usual ones. [`ServerSettings::secrets`] tells which values are secrets.
    pub env: BTreeMap<String, String>,
    /// Where it runs; none: here.
    pub cwd: Option<PathBuf>,
    /// True passes on the whole environment of this program.
    pub inherit_env: bool,
    /// The container it runs in; without a command, what the container's image starts by itself.
    pub container: Option<Container>,
}

impl ServerSettings {
    /// With the usual settings.
    pub fn new(name: impl Into<String>, connection: Connection) -> Self {
        Self {
            name: name.into(),
            identity: None,
            connection,
            era: EraChoice::default(),
            start_timeout: None,
            timeout: None,
            allowed_tools: Vec::new(),
            excluded_tools: Vec::new(),
            normalize: Normalize::Undeclared,
            validate: true,
            overrides: false,
            parameter_names: HashMap::new(),
            check: None,
            health: HealthTool::Usual,
            home: None,
            pin: PinPolicy::default(),
            disabled: false,
            blocked: None,
            max_memory: None,
            sandbox: Sandbox::default(),
        }
    }

    /// Why its program can't be started, with what to do, as far as that can be seen without starting it.
    ///
    /// # Errors
    ///
    /// If there is no such program on the PATH, or it can't be executed.
    pub fn find_program(&self) -> Result<(), String> {
        match &self.connection {
            Connection::Stdio(program) => stdio::find(program).map_err(|error| error.to_string()),
            Connection::Http { .. } => Ok(()),
        }
    }

    /// True if it is started by a program such as `npx` or `docker run`, which may have to download it first.
    pub fn is_package_runner(&self) -> bool {
        match &self.connection {
            Connection::Stdio(program) => program.is_package_runner(),
            Connection::Http { .. } => false,
        }
    }

    /// True if it is started by docker or podman.
    pub fn is_container_engine(&self) -> bool {
        match &self.connection {
            Connection::Stdio(program) => program.is_container_engine(),
            Connection::Http { .. } => false,
        }
    }

    /// The folder that its package is installed into, if that is known: npx has one for each.
    pub(crate) fn package_folder(&self) -> Option<PathBuf> {
        match &self.connection {
            Connection::Stdio(program) => program.npx_folder(&stdio::variables(program)),
            Connection::Http { .. } => None,
        }
    }

    /// True if it is known that what a package runner runs isn't there.
    pub(crate) fn package_is_missing(&self) -> bool {
        let folder = self.package_folder();
        folder.is_some_and(|folder| !folder.exists())
    }

    /// How long an attempt may take: `first_start` until a package runner has connected once, `slow` after a failed round.
    pub(crate) fn start_limit(&self, first_start: bool, slow: bool) -> Duration {
        match (self.start_timeout, first_start, slow) {
            (None, true, _) => FIRST_START_TIMEOUT,
            (configured, _, slow) => {
                let usual = configured.unwrap_or(START_TIMEOUT);
                usual.saturating_mul(if slow { SLOW_PATIENCE } else { 1 })
            }
        }
    }
}

impl Program {
    /// True if it is this program that runs: by its name, by a path, or as a part of another such as `toolgate`.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let mut words = std::iter::once(&self.command).chain(&self.args);
        words.any(|word| Path::new(word).file_stem().is_some_and(|stem| stem == name))
    }
}

impl Connection {
    /// `stdio` or `http`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http { .. } => "http",
        }
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("inherit_env", &self.inherit_env)
            .field("container", &self.container)
            .finish()
    }
}
