//! What a person can type.

mod help;
mod options;
#[cfg(feature = "keyring")]
mod secret_options;
#[cfg(feature = "voice")]
mod voice_options;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

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
#[command(name = "toolgate", version, styles = STYLES, arg_required_else_help = true, after_help = "\
Examples:
  toolgate list                                  the tools there are
  toolgate call datetime timezone=Europe/Berlin  run one of them
  toolgate call echo '{\"a\": 1}' | jq .result     use the answer elsewhere
  toolgate ask what time is it in Oslo           let a model use them
  toolgate chat                                  the same, turn by turn
  toolgate demo                                  the same, in a simulated house
  toolgate voice                                 the same, spoken
  toolgate serve                                 all tools over HTTP and MCP, with a dashboard
  toolgate calls                                 what was called, and what came of it

Exit codes: 0 success, 1 the tool, the model or a check failed, 2 usage or configuration, 130
after Ctrl-C.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Configuration file [default: $TOOLGATE_CONFIG, ./toolgate.json, ./.mcp.json, the user's]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Log every call; twice for more
    #[arg(short, long, action = clap::ArgAction::Count, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Log errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// How the log on stderr looks
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", global = true)]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line, for programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools there are, with their source
    #[command(after_help = "\
Examples:
  toolgate list
  toolgate list browser click                    those with both words in them
  toolgate list --server github
  toolgate list --refresh                        asks the servers, not the memory
  toolgate list --json | jq -r '.[].name'
  toolgate list --at localhost:7460              those of a gateway that runs")]
    List(ListOptions),
    /// Show one tool, its parameters and how its calls went; or an MCP server and its tools
    #[command(after_help = "\
Examples:
  toolgate inspect volume
  toolgate inspect github                        a server: how it is, and its tools
  toolgate inspect volume --json | jq .parameters")]
    Inspect(InspectOptions),
    /// Run a tool and print the envelope as JSON on stdout
    #[command(after_help = "\
Arguments are key=value pairs typed by the tool's schema, one JSON object, or - to read the
object from stdin. A key given several times, or with [] behind it, makes a list; a.b is the key b
of the object a, unless the tool has a parameter of that very name.

Examples:
  toolgate call datetime action=weekday date=2026-12-24
  toolgate call create_issue title='It rains in' labels=bug labels=roof    two labels
  toolgate call create_issue title='It rains in' labels[]=bug              a list of one
  toolgate call paint size.width=3 size.height=4                           an object
  toolgate call echo '{\"nested\": {\"a\": [1, 2]}}'
  echo '{\"query\": \"rust\"}' | toolgate call search - --timeout 5s
  toolgate call volume action=set level=30 --dry-run
  toolgate call --at localhost:7460 datetime     by a gateway that runs, with no server to start")]
    Call(CallOptions),
    /// Ask a model that may use the tools, and print its answer
    #[cfg(feature = "chat")]
    #[command(after_help = "\
The answer goes to stdout and nothing else does; what goes on beside it is shown on a terminal.
Without --provider and configuration it is Ollama, if it runs and has a model that can use
tools, else Anthropic, OpenAI or Gemini by their usual variables, else a matcher of sentences
that needs no model.

Examples:
  toolgate ask what time is it in Oslo
  toolgate ask --provider intents what is 17 percent of 340
  git log -5 | toolgate ask summarise these commits -
  toolgate ask --model ollama:qwen3:4b --tools 'house/*' turn the lamp on
  toolgate ask --json what is 2^64 | jq .rounds")]
    Ask(AskOptions),
    /// Talk to a model that may use the tools
    #[cfg(feature = "chat")]
    #[command(after_help = "\
/help shows what else can be typed. Ctrl-C stops the answer, Ctrl-D leaves. Piped in, one line
is one turn.

Examples:
  toolgate chat
  toolgate chat --provider anthropic --tools datetime --tools 'house/*'
  toolgate chat --resume yesterday.json
  printf 'what time is it\\nwhat time is it in Oslo\\n' | toolgate chat")]
    Chat(ChatOptions),
    /// Hear requests, let a model use the tools, and speak the answers
    #[cfg(feature = "voice")]
    #[command(after_help = "\
Needs a Wyoming service that makes text of speech, such as wyoming-faster-whisper, and a program
that speaks, such as espeak-ng: 'toolgate doctor' looks for everything and says how it is
started. Enter stops an answer, Ctrl-C ends it. Answers go to stdout, the rest to stderr. What
needs approval is asked aloud and takes a spoken yes, where it can't be said it is asked at the
terminal, else denied. The model is chosen as for ask; with --provider intents none is needed.

Examples:
  toolgate voice                                this machine's microphone and loudspeaker
  toolgate voice --push-to-talk                 Enter, then speak
  toolgate voice --wake tcp://localhost:10400   after a wake word, by openWakeWord
  toolgate voice --mic tcp://kitchen.local:10700    a satellite
  arecord -q -t raw -r 16000 -f S16_LE -c 1 | toolgate voice --mic -
  toolgate voice --wav request.wav --out answer.wav --json    files in, a file out
  toolgate voice --handle tcp://127.0.0.1:10800    a conversation agent for Home Assistant
  toolgate voice --handle tcp://127.0.0.1:10800 --mic arecord    and listens here too")]
    Voice(VoiceOptions),
    /// Try it all in a simulated house, with nothing to install
    #[cfg(feature = "demo")]
    #[command(after_help = "\
A house of a dozen Z-Wave devices, the MQTT broker they speak to, and the MCP server that offers
them as tools, beside all built-in tools, and the dashboard at the address that is shown.
Nothing real is touched and no network is needed. The model is chosen as for ask.

Examples:
  toolgate demo
  toolgate demo --provider ollama
  toolgate demo --script sentences.txt")]
    Demo(DemoOptions),
    /// Add an MCP server to the configuration
    #[command(
        override_usage = "toolgate add [OPTIONS] <NAME> -- <COMMAND>...\n       toolgate add [OPTIONS] <NAME> <URL>",
        after_help = "\
Writes the file that --config names, else ./toolgate.json if it is there, else the user's own,
then starts the server once: what npx, uvx, docker run and their like have to download comes now,
and is given five minutes. If it doesn't start you are asked whether it stays in the file; where
nobody can be asked it does, and the exit code is 1.

Examples:
  toolgate add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  toolgate add -e MQTT_BROKER_URL=mqtt://localhost:1883 zwave -- toolgate zwave-mcp-server
  toolgate add remote https://example.org/mcp -H 'Authorization: Bearer ${TOKEN}'
  toolgate add --no-start later -- uvx mcp-server-fetch"
    )]
    Add(AddOptions),
    /// Take an MCP server out of the configuration
    #[command(after_help = "\
Examples:
  toolgate remove files
  toolgate --config house.json remove zwave")]
    Remove(RemoveOptions),
    /// Take over the MCP servers of another client
    #[command(after_help = "\
Reads the other client's files and changes none of them. Starts nothing.

Examples:
  toolgate import claude --dry-run
  toolgate import cursor
  toolgate import ~/projects/house/.vscode/mcp.json")]
    Import(ImportOptions),
    /// Keep secrets of the configuration in the keyring, to be written as ${keyring:NAME}
    #[cfg(feature = "keyring")]
    #[command(after_help = "\
The keyring is the Secret Service of a Linux desktop (GNOME Keyring, KWallet, KeePassXC) or the
keychain of macOS. A machine without a desktop has none: write ${file:PATH} there. A secret is
typed or piped in, and is no argument: those are seen by others and kept by shells. Programs that
run take over a secret that was set, and restart the servers that use it.

Examples:
  toolgate secret set github                     asks for it, and shows nothing of it
  pass show github | toolgate secret set github
  toolgate secret list                           names, and what uses them
  toolgate secret remove github")]
    Secret(SecretOptions),
    /// Show what the configuration in this folder would do, or what changed in a server's tools, and agree to it
    #[command(after_help = "\
A toolgate.json or .mcp.json in the working folder may have come from anybody. Nothing of it is
used before you have agreed to it; until then your own configuration is. Any change of the file
asks again, and shows the difference. Your own policy always holds as well.

What a server lists first is agreed to. A destructive tool that is new or changed after that is
withheld until you agree to it, and so is every new or changed tool of a server with
\"pin\": \"ask\".

Examples:
  toolgate trust             each command, address, folder, variable, rule and tool; then asks
  toolgate trust files       only its server 'files', or what changed in that server's tools
  toolgate trust --yes       where nobody can be asked, such as in a script
  toolgate trust --list
  toolgate trust --revoke")]
    Trust(TrustOptions),
    /// Show the calls that were made, by whom, and what came of them
    #[command(after_help = "\
Every command that runs tools records its calls: 'toolgate --config … doctor' says where. An id
may be cut as long as no other call begins like it; last is the newest call.

Examples:
  toolgate calls --caller kitchen                  by the token of that name at the gateway
  toolgate calls --tool search --outcome failed --since 1h
  toolgate calls --follow
  toolgate calls --json --limit 1000 | jq -r 'select(.duration_ms > 1000) | .tool' | sort | uniq -c
  toolgate calls last
  toolgate calls 019a8c2f41d0 --save-as-mock search_offline
  toolgate calls --verify                          and note the head it prints elsewhere
  toolgate calls --verify --expect 3f0c…           was anything before that head changed?
  toolgate calls --export --since 1d >> /mnt/append-only/calls.ndjson")]
    Calls(CallsOptions),
    /// Make a recorded call once more
    #[command(after_help = "\
With the arguments as they were asked the first time. What does not say that it only reads is
asked about.

Examples:
  toolgate replay last
  toolgate replay 019a8c2f41d0 --yes | jq .result")]
    Replay(ReplayOptions),
    /// Serve all tools over HTTP: an API, MCP, and a dashboard
    #[cfg(feature = "serve")]
    #[command(after_help = "\
Only this machine gets in. Others do with a token: in $TOOLGATE_TOKEN, or in the configuration's
section serve. docs/deploy.md shows how it is kept running, and docs/clients.md how MCP clients
are connected.

Examples:
  toolgate serve
  toolgate serve --bind 127.0.0.1:8080
  curl -s localhost:7460/api/tools/echo/call -d '{\"a\": 1}'
  export TOOLGATE_TOKEN=$(openssl rand -hex 32); toolgate serve --bind 0.0.0.0")]
    Serve(ServeOptions),
    /// Offer all tools as one MCP server on stdin and stdout
    #[command(after_help = "\
An MCP client starts this command and talks to it; docs/clients.md has the block to paste for
each client. A pattern is a tool's name or server/name, and * stands for anything. The log goes
to stderr.

Examples:
  toolgate mcp
  toolgate mcp --deny volume --deny 'house/*_lock'
  toolgate --config house.json mcp --allow datetime --allow 'house/*'")]
    Mcp(McpOptions),
    #[cfg(feature = "zwave")]
    #[command(flatten)]
    HomeServer(HomeServer),
    /// Write a configuration to start from
    #[command(after_help = "\
Examples:
  toolgate init                 writes ./toolgate.json
  toolgate init ~/.config/toolgate/toolgate.json
  toolgate --config house.json init

Says which file is no longer read because of it, if there is one.")]
    Init(InitOptions),
    /// Check the configuration and what the tools need, and say what to do
    #[command(after_help = "\
Examples:
  toolgate doctor
  toolgate doctor --provider ollama --model qwen3:4b    the model of such an ask or chat
  toolgate --config house.json doctor
  toolgate doctor --at localhost:7460                   a gateway that runs

Asks the tools themselves, which sends one web search. Exit code 1 if a check failed; what is only
missing and optional is a warning.")]
    Doctor(DoctorOptions),
    /// Ask a running gateway whether it takes calls: exit code 0 if it does, else 1
    #[command(after_help = "\
Needs no token and starts nothing. A gateway whose servers are partly missing is degraded, and
takes calls.

Examples:
  toolgate health                               the gateway of the configuration
  toolgate health http://10.0.0.7:7460
  until toolgate health; do sleep 1; done")]
    Health(HealthOptions),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions fish > ~/.config/fish/completions/toolgate.fish
  toolgate completions zsh  > \"${fpath[1]}/_toolgate\"")]
    Completions(CompletionsOptions),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use toolgate_core::Origin;

    use super::*;

    #[test]
    fn origins_are_called_as_the_journal_writes_them() {
        use Origin::{Chat, CommandLine, Http, Library, Mcp, Voice, Worker};
        let all = [CommandLine, Chat, Http, Mcp, Voice, Worker, Library];
        assert_eq!(all.map(|origin| origin.to_string()), ORIGINS);
    }

    /// Longer lines are broken where nobody meant it.
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
    fn the_command_line_is_sound_and_every_command_has_examples() {
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
