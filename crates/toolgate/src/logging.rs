//! The log: stderr only, because stdout belongs to results and protocols.

mod json;

use toolgate_home::DIALECTS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Command, Global, LogFormat};
use crate::say;

/// WARN for commands that end by themselves, INFO for those that serve; `-v` is one more, `-vv` two.
pub(crate) fn start(options: &Global, command: &Command) {
    let serves = match command {
        Command::Mcp(_) => true,
        #[cfg(feature = "serve")]
        Command::Serve(_) => true,
        #[cfg(feature = "zwave")]
        Command::HomeServer(_) => true,
        // Where a person looks, they see what happens.
        #[cfg(feature = "voice")]
        Command::Voice(_) => !say::is_read(),
        _ => false,
    };
    // A gateway runs for months, and not everywhere is there somebody else who notes the time.
    let is_timed = match command {
        #[cfg(feature = "serve")]
        Command::Serve(_) => true,
        #[cfg(feature = "voice")]
        Command::Voice(_) => serves,
        _ => false,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Lines)
        .with_target(false);
    let lines = match options.log_format {
        LogFormat::Text if is_timed => lines.with_ansi(say::colours()).boxed(),
        LogFormat::Text => lines.with_ansi(say::colours()).without_time().boxed(),
        LogFormat::Json => lines
            .fmt_fields(JsonFields::new())
            .event_format(json::Json)
            .boxed(),
    };
    let filter = targets(options, command, level(options, command, serves));
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
    // A contained panic of a tool is told by the record of its call; the hook's own text would tear the log apart.
    std::panic::set_hook(Box::new(|panic| tracing::debug!(%panic, "panic")));
}

fn level(options: &Global, command: &Command, serves: bool) -> LevelFilter {
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
        Command::HomeServer(server) => server.log_level().unwrap_or(level),
        _ => level,
    }
}

/// Which records are kept: ours at this level, others' from WARN on, and less of what a command tells itself.
fn targets(options: &Global, command: &Command, ours: LevelFilter) -> Targets {
    let others = ours.min(LevelFilter::WARN);
    // The same again would stand between the lines that a person reads.
    let speech = match command {
        #[cfg(feature = "voice")]
        Command::Voice(_) if say::is_read() && options.verbose == 0 => LevelFilter::ERROR,
        _ => ours,
    };
    // It tells itself how the server's start went.
    let supervision = match command {
        Command::Add(_) if options.verbose == 0 => LevelFilter::OFF,
        _ => ours,
    };
    // Which of two tools has a name is a question for who looks at tools, not for each call of one.
    let clashes = match command {
        Command::Call(_) | Command::Replay(_) if options.verbose == 0 => LevelFilter::ERROR,
        #[cfg(feature = "chat")]
        Command::Ask(_) | Command::Chat(_) if options.verbose == 0 => LevelFilter::ERROR,
        _ => ours,
    };
    Targets::new()
        .with_default(others)
        .with_target("toolgate", ours)
        .with_target("toolgate_mcp", supervision)
        .with_target("toolgate_core::tools", clashes)
        .with_target("toolgate_voice", speech)
        .with_targets(DIALECTS.map(|dialect| (dialect.id, ours)))
}

struct Lines;

impl std::io::Write for Lines {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        let written = match std::str::from_utf8(record) {
            Ok(text) if say::is_read() => say::whole_lines(say::fitted(text, 2).as_bytes()),
            _ => say::whole_lines(record),
        };
        written.map(|()| record.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
