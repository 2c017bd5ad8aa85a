//! The options of each command.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{
    NonEmptyStringValueParser, PossibleValuesParser, RangedU64ValueParser, TypedValueParser,
};
use clap::{Args, ValueEnum};
use clap_complete::Shell;
use toolgate_models::AnswerSource;

#[derive(Debug, Args)]
pub(crate) struct RemoteOptions {
    /// Use the running gateway at this address, such as http://localhost:7460; starts no server
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// The gateway's token; the variable is safer, because other users can
    /// see arguments [default: $TOOLGATE_TOKEN]
    #[arg(long, value_name = "TOKEN", requires = "at")]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    /// The gateway's address [default: serve.bind of the configuration, on this machine]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Only tools with all these words in the name, the description or the server's name
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Only tools of this MCP server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Print a JSON list of objects
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask every server instead of using the cached list of its tools
    #[arg(long, conflicts_with = "at")]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct InspectOptions {
    /// The name of a tool or of an MCP server
    #[arg(value_name = "NAME")]
    pub(crate) tool: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the servers instead of using the cached lists of their tools
    #[arg(long, conflicts_with = "at")]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// The name of the tool
    pub(crate) tool: String,
    /// key=value pairs, one JSON object, or - for stdin
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Give up when the tool has run for this long, such as 500ms, 5s or 2m; approval doesn't count
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::text::parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Show what would be sent, without running the tool
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Approve the call, if the policy asks for approval
    #[arg(short, long, conflicts_with = "at")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallsOptions {
    /// Show everything about the call with this id
    #[arg(conflicts_with_all = ["tool", "server", "origin", "caller", "outcome", "since", "until", "search", "limit", "follow"])]
    pub(crate) id: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of tools of this MCP server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only calls of this origin
    #[arg(long, value_name = "ORIGIN", value_parser = PossibleValuesParser::new(ORIGINS))]
    pub(crate) origin: Option<String>,
    /// Only calls with the gateway's token of this name, or from this command, such as chat
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only calls with this outcome; failed means every kind of failure
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(toolgate_journal::OUTCOME_NAMES))]
    pub(crate) outcome: Option<String>,
    /// Only calls since this time: 30m or 7d ago, or a date with or without a time
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls with this text in the tool's name, the arguments or the error
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Show at most this many, newest first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub(crate) limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep printing each call as it ends, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Check whether recorded calls were changed, deleted or added; if so, exit with 1
    #[arg(long, conflicts_with_all = ["id", "tool", "server", "origin", "caller", "outcome", "since", "until", "search", "limit", "follow", "at", "export"])]
    pub(crate) verify: bool,
    /// A head that --verify or --export once printed, which the journal must still contain
    #[arg(long, value_name = "HASH", requires = "verify")]
    pub(crate) expect: Option<String>,
    /// Write each call with its hash as a line of JSON, oldest first, to a new file or stdout (-)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["id", "limit", "follow", "at"])]
    pub(crate) export: Option<String>,
    /// Add a tool to the configuration that always returns this call's result, and print it
    #[arg(long, value_name = "NAME", requires = "id", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) save_as_mock: Option<String>,
    /// Print the tool without writing it
    #[arg(long, requires = "save_as_mock")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The call's id as 'toolgate calls' shows it, the beginning of the id, or last
    pub(crate) id: String,
    /// Run it without asking, whatever it does
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Run it even if the record was changed or can't be checked
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Give up when the tool has run for this long, such as 500ms, 5s or 2m
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::text::parse_duration, allow_hyphen_values = true, conflicts_with = "at")]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ChoiceOptions {
    /// The model's provider [default: the configuration's, else the first that is available]
    #[arg(short, long, value_name = "PROVIDER", value_parser = providers())]
    pub(crate) provider: Option<AnswerSource>,
    /// The model's name, or PROVIDER:NAME
    #[arg(short, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    pub(crate) choice: ChoiceOptions,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ModelOptions {
    #[command(flatten)]
    pub(crate) choice: ChoiceOptions,
    /// Offer only matching tools; repeat it or use commas [default: all that the policy allows]
    #[arg(short, long, value_name = "PATTERN", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) tools: Vec<String>,
    /// Approve every call that the policy asks about, even those of destructive tools
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Give up when a turn has taken this long, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::text::parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    /// Continue a conversation that --save or /save wrote
    #[arg(id = "resume", long = "resume", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AskOptions {
    /// The question; stdin is read if there is none, and appended to one that ends in -
    #[arg(value_name = "TEXT", allow_negative_numbers = true)]
    pub(crate) text: Vec<String>,
    /// Print the whole record as a JSON object: answer, rounds, calls, notices, tokens
    #[arg(long)]
    pub(crate) json: bool,
    /// Save the conversation in a file
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Read the input from the lines of this file, or from stdin (-)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Open the dashboard in a browser
    #[arg(long, conflicts_with = "script")]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ChatOptions {
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
}

// People write a space after the comma.
fn trimmed(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

// A list of values, so that shell completion can offer them.
fn providers() -> impl TypedValueParser<Value = AnswerSource> {
    PossibleValuesParser::new(AnswerSource::NAMES).try_map(|name| name.parse::<AnswerSource>())
}

pub(super) const ORIGINS: [&str; 7] = ["cli", "chat", "http", "mcp", "voice", "worker", "library"];

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// The name of the server
    pub(crate) name: String,
    /// The address of a server that is already running
    #[arg(conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The program to start and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// An environment variable; ${VAR} as its value keeps a secret out of the file
    #[arg(short, long = "env", value_name = "KEY=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header for every request; ${VAR} as its value keeps a secret out of the file
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        conflicts_with = "command"
    )]
    pub(crate) headers: Vec<String>,
    /// The folder the program runs in
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    pub(crate) cwd: Option<PathBuf>,
    /// Its access to this machine: default forbids secrets and most writing, strict forbids
    /// everything that its entry doesn't list [default: default; off for docker and podman]
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["default", "strict", "off"]), conflicts_with = "url")]
    pub(crate) sandbox: Option<String>,
    /// Replace a server of the same name; add one even if its program is missing
    #[arg(long)]
    pub(crate) force: bool,
    /// Add it without starting it
    #[arg(long)]
    pub(crate) no_start: bool,
    /// If it doesn't start, keep it in the file without asking
    #[arg(long, conflicts_with = "drop")]
    pub(crate) keep: bool,
    /// If it doesn't start, remove it from the file without asking
    #[arg(long)]
    pub(crate) drop: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveOptions {
    /// The name of the server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// claude, cursor, vscode, or a file
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) from: PathBuf,
    /// Replace servers of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be imported, without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// Agree only to these servers, and to their tools as they are now
    #[arg(value_name = "SERVER", conflicts_with_all = ["list", "revoke"])]
    pub(crate) servers: Vec<String>,
    /// List what you have agreed to
    #[arg(long)]
    pub(crate) list: bool,
    /// Withdraw your agreement to the file in this folder
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// Agree without being asked
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The address to listen on; other machines need a token [default: 127.0.0.1:7460]
    #[arg(long, value_name = "ADDRESS", value_parser = toolgate_server::parse_bind)]
    pub(crate) bind: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    /// Offer only matching tools; can be repeated [default: all that the policy allows]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Don't offer matching tools, even if allowed; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// The new file [default: the one that --config or
    /// $TOOLGATE_CONFIG names, else ./toolgate.json]
    pub(crate) file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CompletedNames {
    Tools,
    Servers,
    Resources,
    Prompts,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell that the script is for
    #[arg(required_unless_present = "names")]
    pub(crate) shell: Option<Shell>,
    /// Print cached names of this kind, for a completion script
    #[arg(long, hide = true, value_name = "KIND", conflicts_with = "shell")]
    pub(crate) names: Option<CompletedNames>,
}
