//! What each command takes.

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

/// A gateway that runs already.
#[derive(Debug, Args)]
pub(crate) struct RemoteOptions {
    /// Ask the gateway that runs there, such as http://localhost:7460, and start nothing
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// The gateway's token; a variable is seen by fewer than a command line is [default: $TOOLGATE_TOKEN]
    #[arg(long, value_name = "TOKEN", requires = "at")]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    /// Where the gateway is [default: serve.bind of the configuration, on this machine]
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
    /// As a JSON list of objects
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask every server, instead of listing what is remembered of it
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
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the servers, instead of showing what is remembered of them
    #[arg(long, conflicts_with = "at")]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// The tool's name
    pub(crate) tool: String,
    /// key=value pairs, one JSON object, or - for stdin
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Give up when the tool has run this long, such as 500ms, 5s or 2m; waiting for approval does not count
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Show what would be sent, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Approve the call if the policy asks for approval
    #[arg(short, long, conflicts_with = "at")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallsOptions {
    /// Show everything about this one
    #[arg(conflicts_with_all = ["tool", "server", "origin", "caller", "outcome", "since", "until", "search", "limit", "follow"])]
    pub(crate) id: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of tools of this MCP server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only calls from there
    #[arg(long, value_name = "ORIGIN", value_parser = PossibleValuesParser::new(ORIGINS))]
    pub(crate) origin: Option<String>,
    /// Only calls by this token of the gateway, or by this command where no token was shown, such as chat
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only calls that ended like this; failed is every kind of failure
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(toolgate_journal::OUTCOMES))]
    pub(crate) outcome: Option<String>,
    /// Only calls since then: 30m or 7d ago, or a date and time
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls before then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls with this text in the name, the arguments or the error
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// At most so many, newest first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub(crate) limit: usize,
    /// One JSON object in each line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with each call that ends, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Check that no recorded call was changed, deleted or added by others; exits with 1 if one was
    #[arg(long, conflicts_with_all = ["id", "tool", "server", "origin", "caller", "outcome", "since", "until", "search", "limit", "follow", "at", "export"])]
    pub(crate) verify: bool,
    /// The head that --verify or --export printed once: the journal must still have it
    #[arg(long, value_name = "HASH", requires = "verify")]
    pub(crate) expect: Option<String>,
    /// Write every call with its hash as a line of JSON, oldest first, to a new file or to stdout (-)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["id", "limit", "follow", "at"])]
    pub(crate) export: Option<String>,
    /// Put a tool into the configuration that always answers what this call answered, and print it
    #[arg(long, value_name = "NAME", requires = "id", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) save_as_mock: Option<String>,
    /// Print the tool, and write nothing
    #[arg(long, requires = "save_as_mock")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The call's id or its beginning, as 'toolgate calls' shows it, or last
    pub(crate) id: String,
    /// Run it without a question, whatever it does
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Run it even if the record was changed since, or is too old to be checked
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Give up when the tool has run this long, such as 500ms, 5s or 2m
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::parse_duration, allow_hyphen_values = true, conflicts_with = "at")]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

/// Which model is meant.
#[derive(Debug, Args)]
pub(crate) struct ChoiceOptions {
    /// Whose model [default: the configuration's, else whoever is there]
    #[arg(short, long, value_name = "PROVIDER", value_parser = providers())]
    pub(crate) provider: Option<AnswerSource>,
    /// Which model: a name, or PROVIDER:NAME
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
    /// Offer only tools like this; several with commas, or given several times [default: all that the policy allows]
    #[arg(short, long, value_name = "PATTERN", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) tools: Vec<String>,
    /// Approve every call that the policy asks about, those of destructive tools included
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Give up when a turn has lasted this long, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    /// Go on with a conversation that --save or /save has written
    #[arg(id = "resume", long = "resume", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AskOptions {
    /// The question; - at its end stands for what is piped in, and so does nothing at all
    #[arg(value_name = "TEXT", allow_negative_numbers = true)]
    pub(crate) text: Vec<String>,
    /// Print the whole record as a JSON object: answer, rounds, calls, notices, tokens
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the conversation in a file
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Take the lines of this file instead of what is typed; - stands for what is piped in
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

/// A pattern, without the space that people write after a comma.
fn trimmed(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

/// Known to the shell's completion too.
fn providers() -> impl TypedValueParser<Value = AnswerSource> {
    PossibleValuesParser::new(AnswerSource::NAMES).try_map(|name| name.parse::<AnswerSource>())
}

pub(super) const ORIGINS: [&str; 7] = ["cli", "chat", "http", "mcp", "voice", "worker", "library"];

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// What to call it
    pub(crate) name: String,
    /// Where it is, if it runs elsewhere
    #[arg(conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The program to start and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// A variable of the program; ${VAR} in the value keeps a secret out of the file
    #[arg(short, long = "env", value_name = "KEY=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header of every request; ${VAR} in the value keeps a secret out of the file
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
    /// What it may reach of this machine: default closes secrets and writing, strict all but what its entry lists
    /// [default: default; off for docker and podman]
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["default", "strict", "off"]), conflicts_with = "url")]
    pub(crate) sandbox: Option<String>,
    /// Replace a server of the same name; add one whose program isn't there
    #[arg(long)]
    pub(crate) force: bool,
    /// Write it down and don't start it
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Keep it in the file if it doesn't start, without a question
    #[arg(long, conflicts_with = "drop")]
    pub(crate) keep: bool,
    /// Take it out of the file again if it doesn't start, without a question
    #[arg(long)]
    pub(crate) drop: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveOptions {
    /// The server's name
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
    /// Show what would be taken over, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// Agree to these servers alone and to nothing else of the file, and to their tools as they are now
    #[arg(value_name = "SERVER", conflicts_with_all = ["list", "revoke"])]
    pub(crate) servers: Vec<String>,
    /// Show what was agreed to
    #[arg(long)]
    pub(crate) list: bool,
    /// Forget the agreement to the file in this folder
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// Agree without a question; needed where nobody can be asked
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Where to listen; beyond this machine only with a token [default: 127.0.0.1:7460]
    #[arg(long, value_name = "ADDRESS", value_parser = toolgate_server::parse_bind)]
    pub(crate) bind: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    /// Offer only tools like this; may be given several times [default: all that the policy allows]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Do not offer tools like this, though allowed; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// Where to write [default: the file that --config or $TOOLGATE_CONFIG names, else ./toolgate.json]
    pub(crate) file: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// What a completion script asks for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CompletedNames {
    Tools,
    Servers,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// For which shell
    #[arg(required_unless_present = "names")]
    pub(crate) shell: Option<Shell>,
    /// Print what a script completes: the names of tools or servers, from memory
    #[arg(long, hide = true, value_name = "KIND", conflicts_with = "shell")]
    pub(crate) names: Option<CompletedNames>,
}
