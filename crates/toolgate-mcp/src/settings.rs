//! One MCP server, as configured.

mod read;
mod schema;
mod secrets;
mod values;

pub use read::{EntryProblem, Places};

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_core::{Normalize, ParameterNames, Pattern};

use crate::EraChoice;

/// How long a handshake may take unless told otherwise.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(10);

/// One entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Its name in the configuration.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
    /// Which era to speak.
    pub era: EraChoice,
    /// How long the handshake of one attempt may take.
    pub start_timeout: Duration,
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
    /// Named, but not started.
    pub disabled: bool,
    /// The memory its processes may hold together; none: any.
    pub max_memory: Option<u64>,
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
        /// Sent with every request. Their values are secrets.
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
    /// Variables besides the usual ones. Their values are secrets.
    pub env: BTreeMap<String, String>,
    /// Where it runs; none: here.
    pub cwd: Option<PathBuf>,
    /// True passes on the whole environment of this program.
    pub inherit_env: bool,
}

impl ServerSettings {
    /// With the usual settings.
    pub fn new(name: impl Into<String>, connection: Connection) -> Self {
        Self {
            name: name.into(),
            connection,
            era: EraChoice::default(),
            start_timeout: START_TIMEOUT,
            timeout: None,
            allowed_tools: Vec::new(),
            excluded_tools: Vec::new(),
            normalize: Normalize::Undeclared,
            validate: true,
            overrides: false,
            parameter_names: HashMap::new(),
            check: None,
            disabled: false,
            max_memory: None,
        }
    }

    /// How the parameters of one of its tools are renamed.
    pub(crate) fn names_of(&self, tool: &str) -> ParameterNames {
        let none = HashMap::new();
        let configured = self.parameter_names.get(tool).unwrap_or(&none);
        ParameterNames::of_server_tool(self.normalize, tool, configured)
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
            .finish()
    }
}
