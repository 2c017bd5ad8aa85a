//! Reads the next line of a chat from a person, a pipe or a script.

use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use toolgate_core::text::escape;

use super::content::ContentNames;
use super::editor;
use crate::terminal::EchoRequest;
use crate::{output, prompt, questions};

// Bytes in a line. Nothing longer is a question.
const MAX_LINE_BYTES: usize = 4 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptLine {
    Text(String),
    /// Ctrl-C at the prompt; `again` if it was pressed twice in a row.
    Cleared {
        again: bool,
    },
    /// Ctrl-D, or the end of the pipe.
    End,
}

pub(crate) enum LineSource {
    /// A person at a terminal, where the answers go too.
    Person,
    Pipe,
    Script(Vec<String>),
}

impl LineSource {
    pub(crate) fn stdin() -> Self {
        match std::io::stdin().is_terminal() && output::stdout_is_terminal() {
            true => Self::Person,
            false => Self::Pipe,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Person)
    }

    /// True if a person types but stdout is redirected, so that no prompt is shown.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Pipe) && std::io::stdin().is_terminal()
    }
}

// Reads on its own thread, because reading blocks while servers and timers must keep running.
pub(super) struct LineReader {
    is_live: bool,
    wanted: mpsc::UnboundedSender<()>,
    lines: mpsc::UnboundedReceiver<anyhow::Result<PromptLine>>,
}

impl LineReader {
    pub(super) fn new(source: LineSource, names: ContentNames) -> Self {
        let is_live = source.is_live();
        let (wanted, mut asked) = mpsc::unbounded_channel();
        let (sender, lines) = mpsc::unbounded_channel();
        let runtime = Handle::current();
        std::thread::spawn(move || {
            let mut read: Box<dyn FnMut() -> anyhow::Result<PromptLine>> = match source {
                LineSource::Person => match editor::LineEditor::new(runtime, names) {
                    Ok(mut editor) => Box::new(move || editor.next()),
                    Err(error) => {
                        // Sending fails only if the chat is gone.
                        drop(sender.send(Err(error)));
                        return;
                    }
                },
                LineSource::Pipe => Box::new(read_piped_line),
                LineSource::Script(lines) => {
                    let mut lines = lines.into_iter();
                    Box::new(move || Ok(lines.next().map_or(PromptLine::End, echo_scripted)))
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

    pub(super) async fn next(&mut self) -> anyhow::Result<PromptLine> {
        // Keeps a server's questions away from the prompt, since both read from the same terminal.
        let _turn = match self.is_live {
            true => Some(questions::lock_terminal().await),
            false => None,
        };
        if self.wanted.send(()).is_err() {
            return Ok(PromptLine::End);
        }
        self.lines.recv().await.unwrap_or(Ok(PromptLine::End))
    }
}

impl Drop for LineReader {
    fn drop(&mut self) {
        // The editor may still be waiting for a line. Start a new one below it.
        if prompt::stop_typing() {
            output::print_to_stderr("");
        }
    }
}

fn echo_scripted(line: String) -> PromptLine {
    output::print_note(&format!("> {}", escape(&line)));
    PromptLine::Text(line)
}

fn read_piped_line() -> anyhow::Result<PromptLine> {
    let _seen = EchoRequest::shown();
    let mut bytes = Vec::new();
    let stdin = std::io::stdin();
    let mut input = std::io::Read::take(stdin.lock(), MAX_LINE_BYTES as u64);
    input
        .read_until(b'\n', &mut bytes)
        .context("cannot read stdin")?;
    if bytes.is_empty() {
        return Ok(PromptLine::End);
    }
    if bytes.len() >= MAX_LINE_BYTES {
        anyhow::bail!(
            "a line on stdin is longer than {} MiB",
            MAX_LINE_BYTES >> 20
        );
    }
    let text = String::from_utf8(bytes).context("stdin is not UTF-8")?;
    Ok(PromptLine::Text(
        text.trim_end_matches(['\n', '\r']).to_owned(),
    ))
}
