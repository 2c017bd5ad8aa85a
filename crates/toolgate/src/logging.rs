//! The log: stderr only, because stdout belongs to results and protocols.

mod json;

use toolgate_home::PROTOCOLS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{CliCommand, GlobalOptions, LogFormat};
use crate::output;

/// WARN for commands that end by themselves, INFO for those that serve. `-v` adds
/// one level, `-vv` two.
pub(crate) fn start(options: &GlobalOptions, command: &CliCommand) {
    let serves = match command {
        CliCommand::Mcp(_) => true,
        #[cfg(feature = "serve")]
        CliCommand::Serve(_) => true,
        #[cfg(feature = "zwave")]
        CliCommand::HomeServer(_) => true,
        // A person at the terminal sees all of it in the view.
        #[cfg(feature = "voice")]
        CliCommand::Voice(_) => !output::logs_to_terminal(),
        _ => false,
    };
    // A gateway runs for months, and not every log collector adds the time.
    let is_timed = match command {
        #[cfg(feature = "serve")]
        CliCommand::Serve(_) => true,
        #[cfg(feature = "voice")]
        CliCommand::Voice(_) => serves,
        _ => false,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| LogWriter)
        .with_target(false);
    let lines = match options.log_format {
        LogFormat::Text if is_timed => lines.with_ansi(output::stderr_has_color()).boxed(),
        LogFormat::Text => lines
            .with_ansi(output::stderr_has_color())
            .without_time()
            .boxed(),
        LogFormat::Json => lines
            .fmt_fields(JsonFields::new())
            .event_format(json::JsonLogFormat)
            .boxed(),
    };
    let filter = targets(options, command, level(options, command, serves));
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
    // The record of a call reports a panic in its tool, and the default hook's text would break up
    // the log.
    std::panic::set_hook(Box::new(|panic| tracing::debug!(%panic, "panic")));
}

fn level(options: &GlobalOptions, command: &CliCommand, serves: bool) -> LevelFilter {
    let level = match (
        options.quiet,
        options.verbose.saturating_add(u8::from(serves)),
    ) {
        (true, _) => LevelFilter::ERROR,
        (_, 0) => LevelFilter::WARN,
        (_, 1) => LevelFilter::INFO,
        (_, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    match command {
        #[cfg(feature = "zwave")]
        CliCommand::HomeServer(server) => server.log_level().unwrap_or(level),
        _ => level,
    }
}

/// Keeps our records at this level, those of other crates from WARN on, and fewer of those
/// that a command reports itself.
fn targets(options: &GlobalOptions, command: &CliCommand, ours: LevelFilter) -> Targets {
    let others = ours.min(LevelFilter::WARN);
    // The person at the terminal reads the same in the view.
    let speech = match command {
        #[cfg(feature = "voice")]
        CliCommand::Voice(_) if output::logs_to_terminal() && options.verbose == 0 => {
            LevelFilter::ERROR
        }
        _ => ours,
    };
    // `add` itself reports the outcome of the start.
    let supervision = match command {
        CliCommand::Add(_) if options.verbose == 0 => LevelFilter::OFF,
        _ => ours,
    };
    // Name clashes matter to a person who lists tools, not on every call of one.
    let clashes = match command {
        CliCommand::Call(_)
        | CliCommand::Replay(_)
        | CliCommand::Resources(_)
        | CliCommand::Read(_)
        | CliCommand::Prompts(_)
        | CliCommand::Prompt(_)
            if options.verbose == 0 =>
        {
            LevelFilter::ERROR
        }
        #[cfg(feature = "chat")]
        CliCommand::Ask(_) | CliCommand::Chat(_) if options.verbose == 0 => LevelFilter::ERROR,
        _ => ours,
    };
    Targets::new()
        .with_default(others)
        .with_target("toolgate", ours)
        .with_target("toolgate_mcp", supervision)
        .with_target("toolgate_core::tool_set", clashes)
        .with_target("toolgate_voice", speech)
        .with_targets(PROTOCOLS.map(|protocol| (protocol.id, ours)))
}

struct LogWriter;

impl std::io::Write for LogWriter {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        let written = match std::str::from_utf8(record) {
            Ok(text) if output::logs_to_terminal() => {
                output::write_stderr(output::wrap_for_stderr(text, 2).as_bytes())
            }
            _ => output::write_stderr(record),
        };
        written.map(|()| record.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
