//! The command line, as clap parses it.

mod content_options;
mod help;
mod options;
#[cfg(feature = "keyring")]
mod secret_options;
#[cfg(feature = "voice")]
mod voice_options;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use content_options::{
    ContentCallOptions, ContentListOptions, PromptOptions, ReadOptions,
};
pub(crate) use help::parse_with_fitted_help;
pub(crate) use options::*;
#[cfg(feature = "keyring")]
pub(crate) use secret_options::{SecretAction, SecretOptions};
#[cfg(feature = "voice")]
pub(crate) use voice_options::VoiceOptions;

#[cfg(feature = "zwave")]
use crate::commands::home_server::HomeServer;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold().underline())
    .usage(Style::new().bold().underline())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// One door for every tool call an AI model makes
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, styles = STYLES, arg_required_else_help = true, after_help = include_str!("cli/help/toolgate.txt"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Args)]
pub(crate) struct GlobalOptions {
    /// Configuration file [default: $TOOLGATE_CONFIG, ./toolgate.json, ./.mcp.json, the user's]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Log every call; twice for more
    #[arg(short, long, action = clap::ArgAction::Count, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Log only errors, no warnings
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// The format of the log on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", global = true)]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text, for people
    Text,
    /// One JSON object per line, for programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List all tools, with their source
    #[command(after_help = include_str!("cli/help/list.txt"))]
    List(ListOptions),
    /// Show a tool with its parameters and call statistics, or an MCP server with its tools
    #[command(after_help = include_str!("cli/help/inspect.txt"))]
    Inspect(InspectOptions),
    /// Run a tool and print the envelope as JSON on stdout
    #[command(after_help = include_str!("cli/help/call.txt"))]
    Call(CallOptions),
    /// List the resources of all servers, with the addresses to read them
    #[command(after_help = include_str!("cli/help/resources.txt"))]
    Resources(ContentListOptions),
    /// Print a resource
    #[command(after_help = include_str!("cli/help/read.txt"))]
    Read(ReadOptions),
    /// List the prompts of all servers, with their arguments
    #[command(after_help = include_str!("cli/help/prompts.txt"))]
    Prompts(ContentListOptions),
    /// Fill in a prompt and print its messages
    #[command(after_help = include_str!("cli/help/prompt.txt"))]
    Prompt(PromptOptions),
    /// Ask a model that may use the tools, and print its answer
    #[cfg(feature = "chat")]
    #[command(after_help = include_str!("cli/help/ask.txt"))]
    Ask(AskOptions),
    /// Chat with a model that may use the tools
    #[cfg(feature = "chat")]
    #[command(after_help = include_str!("cli/help/chat.txt"))]
    Chat(ChatOptions),
    /// Listen for requests, let a model use the tools, and speak the answers
    #[cfg(feature = "voice")]
    #[command(after_help = include_str!("cli/help/voice.txt"))]
    Voice(VoiceOptions),
    /// Try everything in a simulated house, with nothing to install
    #[cfg(feature = "demo")]
    #[command(after_help = include_str!("cli/help/demo.txt"))]
    Demo(DemoOptions),
    /// Add an MCP server to the configuration
    #[command(
        override_usage = "toolgate add [OPTIONS] <NAME> -- <COMMAND>...\n       toolgate add [OPTIONS] <NAME> <URL>",
        after_help = include_str!("cli/help/add.txt")
    )]
    Add(AddOptions),
    /// Remove an MCP server from the configuration
    #[command(after_help = include_str!("cli/help/remove.txt"))]
    Remove(RemoveOptions),
    /// Import the MCP servers of another client
    #[command(after_help = include_str!("cli/help/import.txt"))]
    Import(ImportOptions),
    /// Keep secrets in the keyring, and refer to them as ${keyring:NAME}
    #[cfg(feature = "keyring")]
    #[command(after_help = include_str!("cli/help/secret.txt"))]
    Secret(SecretOptions),
    /// Review and agree to the configuration in this folder, or to changed tools of a server
    #[command(after_help = include_str!("cli/help/trust.txt"))]
    Trust(TrustOptions),
    /// Show recorded calls, their callers and their outcomes
    #[command(after_help = include_str!("cli/help/calls.txt"))]
    Calls(CallsOptions),
    /// Repeat a recorded call
    #[command(after_help = include_str!("cli/help/replay.txt"))]
    Replay(ReplayOptions),
    /// Serve all tools over HTTP: an API, MCP, and a dashboard
    #[cfg(feature = "serve")]
    #[command(after_help = include_str!("cli/help/serve.txt"))]
    Serve(ServeOptions),
    /// Offer all tools as one MCP server on stdin and stdout
    #[command(after_help = include_str!("cli/help/mcp.txt"))]
    Mcp(McpOptions),
    #[cfg(feature = "zwave")]
    #[command(flatten)]
    HomeServer(HomeServer),
    /// Write a configuration file to start from
    #[command(after_help = include_str!("cli/help/init.txt"))]
    Init(InitOptions),
    /// Check the configuration and what the tools need, and say how to fix problems
    #[command(after_help = include_str!("cli/help/doctor.txt"))]
    Doctor(DoctorOptions),
    /// Check whether a running gateway accepts calls: exit code 0 if it does, else 1
    #[command(after_help = include_str!("cli/help/health.txt"))]
    Health(HealthOptions),
    /// Print a completion script for a shell
    #[command(after_help = include_str!("cli/help/completions.txt"))]
    Completions(CompletionsOptions),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use toolgate_core::Origin;

    use super::*;

    #[test]
    fn origins_are_named_as_in_the_journal() {
        use Origin::{Chat, CommandLine, Http, Library, Mcp, Voice, Worker};
        let all = [CommandLine, Chat, Http, Mcp, Voice, Worker, Library];
        assert_eq!(all.map(|origin| origin.to_string()), ORIGINS);
    }

    /// clap breaks longer lines at arbitrary places.
    #[test]
    fn help_fits_the_width_it_is_shown_in() {
        const WIDTH: usize = 100;
        let program = Cli::command();
        for command in program.get_subcommands().chain([&program]) {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.unwrap_or_default().lines() {
                assert!(
                    line.chars().count() <= WIDTH,
                    "{}: {line}",
                    command.get_name()
                );
            }
        }
    }

    #[test]
    fn the_command_line_is_valid_and_every_command_has_examples() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for subcommand in command
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
        {
            let help = subcommand
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", subcommand.get_name());
        }
    }
}
