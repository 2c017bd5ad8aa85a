//! Where the next line comes from: a person who edits it, or a pipe.

use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use toolgate_core::escape;

use super::editor;
use crate::terminal::Echo;
use crate::{prompt, questions, say};

/// A longer line is no question.
const LONGEST: usize = 4 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-C at the prompt; `again` if nothing was there to be cleared.
    Cleared {
        again: bool,
    },
    /// Ctrl-D, or the end of the pipe.
    End,
}

pub(crate) enum Source {
    /// A person at a terminal, who looks at the answers too.
    Person,
    Pipe,
    /// Lines that are known already; each is shown before it is answered.
    Script(Vec<String>),
}

impl Source {
    /// A person, if stdin and stdout are a terminal.
    pub(crate) fn stdin() -> Self {
        match std::io::stdin().is_terminal() && say::is_watched() {
            true => Self::Person,
            false => Self::Pipe,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Person)
    }

    /// True if a person types lines though the answers go elsewhere, where there is no prompt.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Pipe) && std::io::stdin().is_terminal()
    }
}

/// Lines, read on a thread of their own: reading blocks, and servers and timers must go on.
pub(super) struct Input {
    is_live: bool,
    wanted: mpsc::UnboundedSender<()>,
    lines: mpsc::UnboundedReceiver<anyhow::Result<Line>>,
}

impl Input {
    pub(super) fn new(source: Source) -> Self {
        let is_live = source.is_live();
        let (wanted, mut asked) = mpsc::unbounded_channel();
        let (sender, lines) = mpsc::unbounded_channel();
        let runtime = Handle::current();
        std::thread::spawn(move || {
            let mut read: Box<dyn FnMut() -> anyhow::Result<Line>> = match source {
                Source::Person => match editor::Editor::new(runtime) {
                    Ok(mut editor) => Box::new(move || editor.next()),
                    Err(error) => {
                        // Nobody waits any more if this can not be sent.
                        drop(sender.send(Err(error)));
                        return;
                    }
                },
                Source::Pipe => Box::new(piped),
                Source::Script(lines) => {
                    let mut lines = lines.into_iter();
                    Box::new(move || Ok(lines.next().map_or(Line::End, scripted)))
                }
            };
            while asked.blocking_recv().is_some() {
                if sender.send(read()).is_err() {
                    return;
                }
            }
        });
        Self {
            is_live,
            wanted,
            lines,
        }
    }

    pub(super) async fn next(&mut self) -> anyhow::Result<Line> {
        // A server's question waits until the prompt is gone: both would read from the same terminal.
        let _turn = match self.is_live {
            true => Some(questions::turn().await),
            false => None,
        };
        if self.wanted.send(()).is_err() {
            return Ok(Line::End);
        }
        self.lines.recv().await.unwrap_or(Ok(Line::End))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // The editor may still wait for a line that nobody wants any more; what comes next stands below it.
        if prompt::leave() {
            say::line("");
        }
    }
}

/// A line of a script, seen as if it had been typed.
fn scripted(line: String) -> Line {
    say::note(&format!("> {}", escape(&line)));
    Line::Text(line)
}

fn piped() -> anyhow::Result<Line> {
    let _seen = Echo::shown();
    let mut bytes = Vec::new();
    let stdin = std::io::stdin();
    let mut input = std::io::Read::take(stdin.lock(), LONGEST as u64);
    input
        .read_until(b'\n', &mut bytes)
        .context("cannot read stdin")?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.len() >= LONGEST {
        anyhow::bail!("a line on stdin is longer than {} MiB", LONGEST >> 20);
    }
    let text = String::from_utf8(bytes).context("stdin is not UTF-8")?;
    Ok(Line::Text(text.trim_end_matches(['\n', '\r']).to_owned()))
}
