//! The only place that prints. stdout carries results, stderr everything a person reads beside them. What a person reads is
//! broken between words to fit the terminal; a pipe gets every line whole.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};

use crate::cli::{Global, LogFormat};
use crate::config::ConfigErrors;
use crate::exit::Exit;
use crate::spinner::clear_line;
use crate::{prompt, terminal, wrap};

static MANNER: OnceLock<Manner> = OnceLock::new();

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Plain,
    /// `--quiet`: errors only.
    Quiet,
    /// `--log-format json`: every line on stderr is JSON.
    Json,
}

pub(crate) fn follow(options: &Global) {
    let manner = match (options.log_format, options.quiet) {
        (LogFormat::Json, _) => Manner::Json,
        (_, true) => Manner::Quiet,
        _ => Manner::Plain,
    };
    // Set once, by main.
    MANNER.get_or_init(|| manner);
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or(Manner::Plain)
}

/// A result, on stdout. If nobody reads on, the program ends quietly: that is how pipes work.
pub(crate) fn result(text: &str) {
    clear_line();
    let mut out = AutoStream::new(
        std::io::stdout().lock(),
        AutoStream::choice(&std::io::stdout()),
    );
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        unwritten(&error);
    }
}

/// A result in words, on stdout, fitted to the terminal if there is one.
pub(crate) fn text(text: &str) {
    hanging(text, 0);
}

/// Like [`text`], but lines go on `indent` columns right of where they begin.
pub(crate) fn hanging(text: &str, indent: usize) {
    match width() {
        Some(width) => result(&wrap::hanging(text, indent, width)),
        None => result(text),
    }
}

/// How many columns stdout has; `None` if that is not a terminal, and lines stay as long as they are.
pub(crate) fn width() -> Option<usize> {
    columns(std::io::stdout())
}

pub(crate) fn side_width() -> Option<usize> {
    columns(std::io::stderr())
}

fn columns(stream: impl AsFd) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stream)?;
    // A terminal that does not know how wide it is says 0.
    Some(usize::from(width.0)).filter(|width| *width > 0)
}

pub(crate) fn aside(text: &str) {
    clear_line();
    let mut err = AutoStream::new(
        std::io::stderr().lock(),
        AutoStream::choice(&std::io::stderr()),
    );
    drop(write!(err, "{text}").and_then(|()| err.flush()));
}

fn unwritten(error: &std::io::Error) -> ! {
    if error.kind() != ErrorKind::BrokenPipe {
        complain(&format!("cannot write the result: {error}"));
    }
    terminal::give_back();
    std::process::exit(i32::from(Exit::Failure.code()));
}

pub(crate) fn note(text: &str) {
    match manner() {
        Manner::Plain => line(text),
        Manner::Quiet => {}
        Manner::Json => tracing::warn!("{text}"),
    }
}

/// An error and its causes, on stderr. What is wrong with a configuration has a line for each error.
pub(crate) fn error(error: &anyhow::Error) {
    match error.downcast_ref::<ConfigErrors>() {
        Some(errors) if error.chain().len() == 1 => {
            errors.iter().for_each(|error| complain(&error.to_string()));
        }
        _ => complain(&format!("{error:#}")),
    }
}

fn complain(text: &str) {
    if manner() == Manner::Json {
        return tracing::error!("{text}");
    }
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    line(&format!("{style}error:{style:#} {text}"));
}

/// A line of ours on stderr. If stderr is closed, there is nobody left to tell.
pub(crate) fn line(text: &str) {
    let mut line = AutoStream::new(Vec::new(), AutoStream::choice(&std::io::stderr()));
    drop(writeln!(line, "{}", fitted(text, 0)));
    drop(whole_lines(&line.into_inner()));
}

/// Lines as stderr shows them: fitted to the terminal if there is one. They go on `indent` columns right of where they begin.
pub(crate) fn fitted(text: &str, indent: usize) -> Cow<'_, str> {
    match side_width() {
        Some(width) => Cow::Owned(wrap::hanging(text, indent, width)),
        None => Cow::Borrowed(text),
    }
}

/// Whole lines on stderr, above the one that a person is typing.
pub(crate) fn whole_lines(lines: &[u8]) -> std::io::Result<()> {
    if prompt::say_above(lines) {
        return Ok(());
    }
    clear_line();
    std::io::stderr().write_all(lines)
}

pub(crate) fn colours() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

pub(crate) fn result_colours() -> bool {
    AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
}

pub(crate) fn is_followed() -> bool {
    manner() == Manner::Plain && std::io::stderr().is_terminal()
}

pub(crate) fn is_watched() -> bool {
    std::io::stdout().is_terminal()
}

/// True if words may go to stdout as they come: whoever looks at stdout sees on stderr which of them are the answer. Where
/// stderr goes elsewhere, stdout carries the answer alone.
pub(crate) fn can_stream() -> bool {
    is_watched() && std::io::stderr().is_terminal()
}

/// True if what is logged would stand between the words that a person reads.
pub(crate) fn is_read() -> bool {
    manner() != Manner::Json && std::io::stderr().is_terminal()
}

/// True if what a result says would be said once more by the log: both go to one terminal, and nobody asked for a log.
pub(crate) fn shows_twice() -> bool {
    is_watched() && is_read() && !tracing::enabled!(tracing::Level::INFO)
}
