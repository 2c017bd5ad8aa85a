//! The options of `resources`, `read`, `prompts` and `prompt`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::RemoteOptions;

#[derive(Debug, Args)]
pub(crate) struct ContentListOptions {
    /// Only those of this MCP server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask every server instead of using the cached lists
    #[arg(long, conflicts_with = "at")]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReadOptions {
    /// The address of the resource, as 'toolgate resources' shows it
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// Print the envelope as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write to this file, or each part to a file of its own in this folder
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) call: ContentCallOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PromptOptions {
    /// The name of the prompt, as 'toolgate prompts' shows it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// key=value pairs, one JSON object, or - for stdin
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Print the envelope as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) call: ContentCallOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ContentCallOptions {
    /// Give up when the server has taken this long, such as 500ms, 5s or 2m; approval doesn't count
    #[arg(long, value_name = "DURATION", value_parser = toolgate_core::text::parse_duration, allow_hyphen_values = true, conflicts_with = "at")]
    pub(crate) timeout: Option<Duration>,
    /// Approve it, if the policy asks for approval
    #[arg(short, long, conflicts_with = "at")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}
