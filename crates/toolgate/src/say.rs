//! The only place that prints. stdout carries results, stderr everything a person reads beside them.

use std::io::{ErrorKind, Write};

use anstream::{AutoStream, ColorChoice};

use crate::exit::Exit;

/// A result, on stdout. If nobody reads on, the program ends quietly: that is how pipes work.
pub(crate) fn result(text: &str) {
    let mut out = AutoStream::new(std::io::stdout().lock(), colour(&std::io::stdout()));
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            note(&format!("cannot write the result: {error}"));
        }
        std::process::exit(i32::from(Exit::Failure.code()));
    }
}

/// A remark, on stderr. If that is closed, there is nobody left to tell.
pub(crate) fn note(text: &str) {
    let mut err = AutoStream::new(std::io::stderr().lock(), colour(&std::io::stderr()));
    drop(writeln!(err, "{text}"));
}

/// An error and its causes, on stderr.
pub(crate) fn error(error: &anyhow::Error) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    note(&format!("{style}error:{style:#} {error:#}"));
}

/// Colour for terminals, as `NO_COLOR` and its friends wish.
fn colour(stream: &impl anstream::stream::RawStream) -> ColorChoice {
    AutoStream::choice(stream)
}
