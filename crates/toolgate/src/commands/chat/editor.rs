//! The line a person edits, with history and completion.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::DirBuilder;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Config, EventHandler, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers};
use tokio::runtime::Handle;

use super::asleep::Asleep;
use super::input::Line;
use super::orders::ORDERS;
use crate::config::state_folder;
use crate::prompt::Prompt;
use crate::terminal::{self, Echo};
use crate::{say, wiring};

const PROMPT: &str = "› ";
const REMEMBERED: usize = 1000;

pub(super) struct Editor {
    editor: rustyline::Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
    /// Where something can be said above the line, if that is where the log goes too.
    prompt: Option<Prompt>,
    asleep: Asleep,
    runtime: Handle,
    /// The last line was cleared by Ctrl-C already.
    cleared: bool,
}

impl Editor {
    pub(super) fn new(runtime: Handle) -> anyhow::Result<Self> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)
            .and_then(|config| config.history_ignore_dups(true))
            .context("cannot edit lines here")?
            .history_ignore_space(true)
            .build();
        let mut editor =
            rustyline::Editor::with_config(config).context("cannot edit lines here")?;
        editor.set_helper(Some(Assistant {
            colours: say::colours(),
            went_on: RefCell::default(),
        }));
        editor.bind_sequence(
            KeyEvent(KeyCode::Enter, Modifiers::ALT),
            EventHandler::Simple(Cmd::Newline),
        );
        let asleep = Asleep::default();
        editor.bind_sequence(
            KeyEvent::ctrl('Z'),
            EventHandler::Conditional(Box::new(asleep.clone())),
        );
        let prompt = prompt(&mut editor);
        let history = history();
        if let Some(file) = &history
            && file.exists()
            && let Err(error) = editor.load_history(file)
        {
            tracing::debug!("the history of earlier chats can not be read: {error}");
        }
        Ok(Self {
            editor,
            history,
            prompt,
            asleep,
            runtime,
            cleared: false,
        })
    }

    pub(super) fn next(&mut self) -> anyhow::Result<Line> {
        match self.read() {
            Ok(line) => {
                self.cleared = false;
                self.remember(&line);
                let went_on = self.editor.helper().map(|helper| helper.went_on.take());
                Ok(Line::Text(joined(&line, &went_on.unwrap_or_default())))
            }
            Err(ReadlineError::Interrupted) => {
                let again = std::mem::replace(&mut self.cleared, true);
                Ok(Line::Cleared { again })
            }
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error).context("cannot read the terminal"),
        }
    }

    /// A line, also over several sleeps.
    fn read(&mut self) -> rustyline::Result<String> {
        // A terminal that can not be edited on shows what is typed by itself.
        let _seen = Echo::shown();
        let (mut before, mut behind) = (String::new(), String::new());
        loop {
            let typing = self.prompt.as_ref().map(Prompt::typing);
            let read = self
                .editor
                .readline_with_initial(PROMPT, (&before, &behind));
            drop(typing);
            let Some(line) = self.asleep.take() else {
                return read;
            };
            (before, behind) = line;
            terminal::sleep(&self.runtime);
        }
    }

    /// For this chat, and for the next ones where there is a place for it.
    fn remember(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        let Some(file) = self.history.as_ref().filter(|_| is_new) else {
            return;
        };
        if let Err(error) = self.editor.append_history(file) {
            tracing::debug!("the history can not be kept: {error}");
            self.history = None;
        }
    }
}

/// What prints above the line; `None` where the log goes elsewhere, or at a terminal that can not draw the line again.
fn prompt(editor: &mut rustyline::Editor<Assistant, FileHistory>) -> Option<Prompt> {
    let mut printer = match std::io::stderr().is_terminal() {
        true => editor.create_external_printer().ok()?,
        false => return None,
    };
    // If the terminal is gone, nobody looks.
    Some(Prompt::new(move |lines| drop(printer.print(lines))))
}

/// The file, in a folder for its owner alone.
fn history() -> Option<PathBuf> {
    let folder = state_folder(&wiring::environment)?;
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    made.ok().map(|()| folder.join("chat_history"))
}

/// Without the backslashes that only said that a line goes on: those that stood at the end when Enter was pressed. One that
/// was pasted, or stands between fences, is a part of the text.
fn joined(text: &str, went_on: &[String]) -> String {
    let mut joined = text.to_owned();
    // From the end, so that what is taken away moves nothing that is looked for.
    for typed in went_on.iter().rev() {
        let rest = text.strip_prefix(typed.as_str());
        if rest.is_some_and(|rest| rest.starts_with('\n')) {
            joined.remove(typed.len() - 1);
        }
    }
    joined
}

fn is_fenced(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count();
    fences % 2 == 1
}

struct Assistant {
    colours: bool,
    /// What was there each time a backslash asked for another line.
    went_on: RefCell<Vec<String>>,
}

impl Assistant {
    /// True if a text wants another line: it ends in a backslash, or a fence is open.
    fn goes_on(&self, text: &str) -> bool {
        let mut went_on = self.went_on.borrow_mut();
        // One that was given up, or changed, is another text.
        went_on.retain(|typed| typed.len() < text.len() && text.starts_with(typed.as_str()));
        if is_fenced(text) {
            return true;
        }
        let ends_in_backslash = text.ends_with('\\');
        if ends_in_backslash {
            went_on.push(text.to_owned());
        }
        ends_in_backslash
    }
}

impl Helper for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        match self.colours {
            true => Cow::Owned(format!("\x1b[1;36m{prompt}\x1b[0m")),
            false => Cow::Borrowed(prompt),
        }
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match self.goes_on(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or_default();
        Ok((0, orders_like(typed)))
    }
}

fn orders_like(typed: &str) -> Vec<Pair> {
    if !typed.starts_with('/') {
        return Vec::new();
    }
    let like = ORDERS.iter().filter(|(name, ..)| name.starts_with(typed));
    like.map(|(name, arguments, _)| Pair {
        display: format!("{name} {arguments}").trim_end().to_owned(),
        replacement: match arguments.is_empty() {
            true => (*name).to_owned(),
            false => format!("{name} "),
        },
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_or_an_open_fence_asks_for_another_line() {
        for (text, expected) in [
            ("hello", false),
            ("hello \\", true),
            ("hello \\\nworld", false),
            ("```\ncode", true),
            ("look:\n```rust\ncode\n```", false),
            ("a ``` b", false),
            ("", false),
        ] {
            assert_eq!(assistant().goes_on(text), expected, "{text:?}");
        }
    }

    fn assistant() -> Assistant {
        Assistant {
            colours: false,
            went_on: RefCell::default(),
        }
    }

    #[test]
    fn only_a_backslash_that_asked_for_another_line_is_taken_away() {
        for (entered, expected) in [
            (&["a \\", "a \\\nb \\", "a \\\nb \\\nc"][..], "a \nb \nc"),
            (&["run \\\n-p 1 \\\nimg"], "run \\\n-p 1 \\\nimg"),
            (
                &["```\ngcc \\", "```\ngcc \\\n-o a\n```"],
                "```\ngcc \\\n-o a\n```",
            ),
            // The first was given up with Ctrl-C, the second was pasted.
            (&["a \\", "x", "a \\\nb"], "a \\\nb"),
        ] {
            let assistant = assistant();
            for text in entered {
                assistant.goes_on(text);
            }
            let typed = entered[entered.len() - 1];
            assert_eq!(joined(typed, &assistant.went_on.take()), expected);
        }
    }

    #[test]
    fn orders_are_completed() {
        let found = |typed: &str| -> Vec<String> {
            let pairs = orders_like(typed).into_iter();
            pairs.map(|pair| pair.replacement).collect()
        };
        assert_eq!(found("/to"), ["/tools "]);
        assert_eq!(found("/q"), ["/quit"]);
        assert!(found("to").is_empty() && found("/x").is_empty());
    }
}
