//! The settings of one MCP server.

mod container;
mod home;
mod package_runner;
mod read;
mod sampling;
mod sandbox;
mod schema;
mod secrets;
mod values;

pub use container::{ContainerMount, ContainerSettings};
pub use read::{ConfigPaths, ServerConfigProblem};
pub use sampling::SamplingSettings;
pub use sandbox::{SandboxLevel, SandboxSettings};

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_core::{RenameMode, ToolPattern};

use crate::EraSetting;
use crate::client::stdio;

// The default timeout of an attempt to connect.
const START_TIMEOUT: Duration = Duration::from_secs(10);
// The default for the first start of a program that may have to download the server.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(5 * 60);
// Slow retries use the timeout times this factor, because the server may be slow from a download.
const SLOW_RETRY_FACTOR: u32 = 6;

/// The settings of one MCP server: an entry of the configuration's `mcpServers`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    pub name: String,
    /// A hash of the name and of what is run, under which the tools are remembered. `None`:
    /// they are not remembered.
    pub identity: Option<String>,
    pub connection: ServerConnection,
    pub era: EraSetting,
    /// The timeout of one attempt to connect. `None`: ten seconds, or five minutes for the first
    /// start of a package runner.
    pub start_timeout: Option<Duration>,
    /// The timeout of its tool calls. `None`: the general limit.
    pub timeout: Option<Duration>,
    /// Patterns for the tools to offer, by their name on the server. If empty, all are offered.
    pub allowed_tools: Vec<ToolPattern>,
    /// Patterns for the tools to leave out, by their name on the server.
    pub excluded_tools: Vec<ToolPattern>,
    /// Which parameter names are converted from snake_case to camelCase.
    pub normalize: RenameMode,
    /// False: only the server validates arguments.
    pub validate: bool,
    /// True: its tools win name clashes with local ones.
    pub overrides: bool,
    /// Renamed parameters by tool, from the model's name to the server's.
    pub parameter_names: HashMap<String, HashMap<String, String>>,
    /// Advice for a person when the server doesn't start.
    pub check: Option<String>,
    pub health: HealthToolChoice,
    /// Whether it serves a smart home. `None`: this is detected, see [`is_home`](Self::is_home).
    pub home: Option<bool>,
    pub pin: PinPolicy,
    pub disabled: bool,
    /// Why it can't be started, such as an unset variable. Its remembered tools keep their names,
    /// so that no other server answers under them.
    pub blocked: Option<String>,
    /// Memory limit in bytes for all its processes together.
    pub max_memory: Option<u64>,
    pub sandbox: SandboxSettings,
    /// What it may use of our own model. `None`: nothing.
    pub sampling: Option<SamplingSettings>,
}

/// The tool that says whether a server works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HealthToolChoice {
    /// The health tool of a known home server, such as `zwave-mcp-server`. Others have none.
    #[default]
    Auto,
    /// Calls no health tool.
    Off,
    /// A tool of the server by name. It is called without arguments.
    Named(String),
}

/// What happens to a tool that is new, or whose description, schema or annotations changed, since a
/// person agreed to its server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PinPolicy {
    /// Withholds a tool that is or was destructive, or that stopped being
    /// read-only. Warns about others.
    #[default]
    AskIfDestructive,
    /// Withholds the tool until a person agrees.
    Ask,
    /// Warns about the tool and offers it.
    Warn,
    /// Offers the tool without comparing it.
    Off,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerConnection {
    /// A child process that speaks over its stdin and stdout.
    Stdio(ServerProgram),
    Http {
        url: String,
        /// Sent with every request. [`ServerSettings::secrets`] lists the secret values.
        headers: SecretHeaders,
    },
}

/// HTTP headers whose values don't appear in `Debug` output.
#[derive(Clone, PartialEq, Default)]
pub struct SecretHeaders(pub Vec<(String, String)>);

/// A server that runs as a child process.
#[derive(Clone, PartialEq, Default)]
pub struct ServerProgram {
    /// A name on the PATH, or a path.
    pub command: String,
    pub args: Vec<String>,
    /// Variables in addition to the default ones. [`ServerSettings::secrets`]
    /// lists the secret values.
    pub env: BTreeMap<String, String>,
    /// The working directory. `None`: that of this process.
    pub cwd: Option<PathBuf>,
    /// True: the server inherits the environment of this process, except for credentials.
    pub inherit_env: bool,
    /// The container it runs in. Without a command the image's default command runs.
    pub container: Option<ContainerSettings>,
}

impl ServerSettings {
    pub fn new(name: impl Into<String>, connection: ServerConnection) -> Self {
        Self {
            name: name.into(),
            identity: None,
            connection,
            era: EraSetting::default(),
            start_timeout: None,
            timeout: None,
            allowed_tools: Vec::new(),
            excluded_tools: Vec::new(),
            normalize: RenameMode::Undeclared,
            validate: true,
            overrides: false,
            parameter_names: HashMap::new(),
            check: None,
            health: HealthToolChoice::Auto,
            home: None,
            pin: PinPolicy::default(),
            disabled: false,
            blocked: None,
            max_memory: None,
            sandbox: SandboxSettings::default(),
            sampling: None,
        }
    }

    /// Checks that the program is installed and executable.
    ///
    /// # Errors
    ///
    /// If there is no such program on the PATH, or it isn't executable. The text says what to do.
    pub fn find_program(&self) -> Result<(), String> {
        self.program().map_or(Ok(()), |program| {
            stdio::find_program(program).map_err(|error| error.to_string())
        })
    }

    fn program(&self) -> Option<&ServerProgram> {
        match &self.connection {
            ServerConnection::Stdio(program) => Some(program),
            ServerConnection::Http { .. } => None,
        }
    }

    /// True for programs such as `npx` or `docker run`, which may have to
    /// download the server first.
    pub fn is_package_runner(&self) -> bool {
        self.program().is_some_and(ServerProgram::is_package_runner)
    }

    pub fn is_container_engine(&self) -> bool {
        self.program()
            .is_some_and(ServerProgram::is_container_engine)
    }

    pub(crate) fn package_folder(&self) -> Option<PathBuf> {
        let program = self.program()?;
        program.npx_folder(&stdio::variables(program))
    }

    pub(crate) fn package_is_missing(&self) -> bool {
        let folder = self.package_folder();
        folder.is_some_and(|folder| !folder.exists())
    }

    /// The timeout of one attempt. `first_start` is true until a package runner has connected once;
    /// `slow` is true after a failed round of attempts.
    pub(crate) fn start_limit(&self, first_start: bool, slow: bool) -> Duration {
        match (self.start_timeout, first_start, slow) {
            (None, true, _) => FIRST_START_TIMEOUT,
            (configured, _, slow) => {
                let timeout = configured.unwrap_or(START_TIMEOUT);
                timeout.saturating_mul(if slow { SLOW_RETRY_FACTOR } else { 1 })
            }
        }
    }
}

impl ServerProgram {
    /// True if it runs this program: by name, by path, or as a subcommand of
    /// another such as `toolgate`.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let mut words = std::iter::once(&self.command).chain(&self.args);
        words.any(|word| Path::new(word).file_stem().is_some_and(|stem| stem == name))
    }
}

impl ServerConnection {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http { .. } => "http",
        }
    }
}

impl fmt::Debug for SecretHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

impl fmt::Debug for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProgram")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("inherit_env", &self.inherit_env)
            .field("container", &self.container)
            .finish()
    }
}
