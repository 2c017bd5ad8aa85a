//! Prints to stdout and stderr; no other module does. stdout carries results, stderr everything
//! else that a person reads. Text for a person is wrapped to the terminal; a
//! pipe gets every line whole.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};

use crate::cli::{GlobalOptions, LogFormat};
use crate::config::ConfigErrors;
use crate::exit::Exit;
use crate::spinner::clear_line;
use crate::{prompt, terminal, wrap};

static MODE: OnceLock<OutputMode> = OnceLock::new();

#[derive(Clone, Copy, PartialEq)]
enum OutputMode {
    Plain,
    Quiet,
    Json,
}

pub(crate) fn set_mode(options: &GlobalOptions) {
    let mode = match (options.log_format, options.quiet) {
        (LogFormat::Json, _) => OutputMode::Json,
        (_, true) => OutputMode::Quiet,
        _ => OutputMode::Plain,
    };
    // Set once, by main.
    MODE.get_or_init(|| mode);
}

fn mode() -> OutputMode {
    MODE.get().copied().unwrap_or(OutputMode::Plain)
}

/// Prints a result to stdout. If the reader has closed the pipe, the program ends quietly.
pub(crate) fn print_result(text: &str) {
    clear_line();
    let mut out = AutoStream::new(
        std::io::stdout().lock(),
        AutoStream::choice(&std::io::stdout()),
    );
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        exit_on_write_error(&error);
    }
}

/// Writes bytes to stdout as they are. If the reader has closed the pipe, the program ends quietly.
pub(crate) fn print_bytes(bytes: &[u8]) {
    clear_line();
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        exit_on_write_error(&error);
    }
}

/// Like [`print_result`], but wrapped to the terminal if there is one.
pub(crate) fn print_text(text: &str) {
    print_hanging(text, 0);
}

/// Prints terms and meanings in columns, or separated by a tab if stdout is not a terminal.
pub(crate) fn print_pairs(rows: &[(String, String)]) {
    match stdout_width() {
        Some(width) => print_result(&wrap::definition_list(rows, 0, Some(width))),
        None => rows
            .iter()
            .for_each(|(term, meaning)| print_result(&format!("{term}\t{meaning}"))),
    }
}

/// Like [`print_text`], with a hanging indent of `indent` columns.
pub(crate) fn print_hanging(text: &str, indent: usize) {
    match stdout_width() {
        Some(width) => print_result(&wrap::wrap_hanging(text, indent, width)),
        None => print_result(text),
    }
}

/// Columns of stdout, or `None` if it isn't a terminal and lines aren't wrapped.
pub(crate) fn stdout_width() -> Option<usize> {
    columns(std::io::stdout())
}

pub(crate) fn stderr_width() -> Option<usize> {
    columns(std::io::stderr())
}

fn columns(stream: impl AsFd) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stream)?;
    // A terminal that doesn't know its width reports 0.
    Some(usize::from(width.0)).filter(|width| *width > 0)
}

pub(crate) fn write_raw_stderr(text: &str) {
    clear_line();
    let mut err = AutoStream::new(
        std::io::stderr().lock(),
        AutoStream::choice(&std::io::stderr()),
    );
    drop(write!(err, "{text}").and_then(|()| err.flush()));
}

fn exit_on_write_error(error: &std::io::Error) -> ! {
    if error.kind() != ErrorKind::BrokenPipe {
        print_error_text(&format!("cannot write the result: {error}"));
    }
    terminal::restore();
    std::process::exit(i32::from(Exit::Failure.code()));
}

/// Prints a notice to stderr: nothing with `--quiet`, a warning in a JSON log.
pub(crate) fn print_note(text: &str) {
    match mode() {
        OutputMode::Plain => print_to_stderr(text),
        OutputMode::Quiet => {}
        OutputMode::Json => tracing::warn!("{text}"),
    }
}

/// Prints an error and its causes to stderr. Errors in a configuration get a line each.
pub(crate) fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<ConfigErrors>() {
        Some(errors) if error.chain().len() == 1 => {
            errors
                .iter()
                .for_each(|error| print_error_text(&error.to_string()));
        }
        _ => print_error_text(&format!("{error:#}")),
    }
}

/// Prints an error that is already text, causes included.
pub(crate) fn print_error_text(text: &str) {
    if mode() == OutputMode::Json {
        return tracing::error!("{text}");
    }
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    print_to_stderr(&format!("{style}error:{style:#} {text}"));
}

/// Prints a line to stderr. Errors are ignored, because they could only be reported on stderr.
pub(crate) fn print_to_stderr(text: &str) {
    let mut line = AutoStream::new(Vec::new(), AutoStream::choice(&std::io::stderr()));
    drop(writeln!(line, "{}", wrap_for_stderr(text, 0)));
    drop(write_stderr(&line.into_inner()));
}

pub(crate) fn wrap_for_stderr(text: &str, indent: usize) -> Cow<'_, str> {
    match stderr_width() {
        Some(width) => Cow::Owned(wrap::wrap_hanging(text, indent, width)),
        None => Cow::Borrowed(text),
    }
}

/// Writes whole lines to stderr, above the line that is being typed if there is one.
pub(crate) fn write_stderr(lines: &[u8]) -> std::io::Result<()> {
    if prompt::print_above(lines) {
        return Ok(());
    }
    clear_line();
    std::io::stderr().write_all(lines)
}

pub(crate) fn stderr_has_color() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

pub(crate) fn stdout_has_color() -> bool {
    AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
}

/// True if a person follows on stderr, so that progress and notices help.
pub(crate) fn is_interactive() -> bool {
    mode() == OutputMode::Plain && std::io::stderr().is_terminal()
}

pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True if words may stream to stdout. That takes a terminal on stderr too, where a person sees
/// which of them are the answer. Otherwise stdout carries the answer alone.
pub(crate) fn can_stream() -> bool {
    stdout_is_terminal() && std::io::stderr().is_terminal()
}

/// True if log lines appear on the terminal, between the lines that a person reads.
pub(crate) fn logs_to_terminal() -> bool {
    mode() != OutputMode::Json && std::io::stderr().is_terminal()
}

/// True if the log would repeat a result: both go to one terminal, and nobody asked for a log.
pub(crate) fn log_repeats_result() -> bool {
    stdout_is_terminal() && logs_to_terminal() && !tracing::enabled!(tracing::Level::INFO)
}
