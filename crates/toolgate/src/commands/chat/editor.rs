//! The line editor of a chat, with history and completion.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::IsTerminal;
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

use super::content::ContentNames;
use super::input::PromptLine;
use super::slash_commands::COMMANDS;
use super::suspended_line::SuspendedLine;
use crate::config::state_folder;
use crate::prompt::LinePrompt;
use crate::terminal::{self, EchoRequest};
use crate::{file, output, wiring};

const PROMPT: &str = "› ";
const MAX_HISTORY: usize = 1000;

pub(super) struct LineEditor {
    editor: rustyline::Editor<EditorHelper, FileHistory>,
    history: Option<PathBuf>,
    /// Prints above the line, if stderr is on the same terminal.
    prompt: Option<LinePrompt>,
    suspended: SuspendedLine,
    runtime: Handle,
    /// Ctrl-C has cleared the line; a second one in a row asks how to leave.
    cleared: bool,
}

impl LineEditor {
    pub(super) fn new(runtime: Handle, names: ContentNames) -> anyhow::Result<Self> {
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)
            .and_then(|config| config.history_ignore_dups(true))
            .context("cannot edit lines here")?
            .history_ignore_space(true)
            .build();
        let mut editor =
            rustyline::Editor::with_config(config).context("cannot edit lines here")?;
        editor.set_helper(Some(EditorHelper {
            colors: output::stderr_has_color(),
            names: Some(names),
            continued: RefCell::default(),
        }));
        editor.bind_sequence(
            KeyEvent(KeyCode::Enter, Modifiers::ALT),
            EventHandler::Simple(Cmd::Newline),
        );
        let suspended = SuspendedLine::default();
        editor.bind_sequence(
            KeyEvent::ctrl('Z'),
            EventHandler::Conditional(Box::new(suspended.clone())),
        );
        let prompt = prompt(&mut editor);
        let history = history();
        if let Some(file) = &history
            && file.exists()
            && let Err(error) = editor.load_history(file)
        {
            tracing::debug!("the history of earlier chats can't be read: {error}");
        }
        Ok(Self {
            editor,
            history,
            prompt,
            suspended,
            runtime,
            cleared: false,
        })
    }

    pub(super) fn next(&mut self) -> anyhow::Result<PromptLine> {
        match self.read() {
            Ok(line) => {
                self.cleared = false;
                self.remember(&line);
                let continued = self.editor.helper().map(|helper| helper.continued.take());
                Ok(PromptLine::Text(join_continued(
                    &line,
                    &continued.unwrap_or_default(),
                )))
            }
            Err(ReadlineError::Interrupted) => {
                let again = std::mem::replace(&mut self.cleared, true);
                Ok(PromptLine::Cleared { again })
            }
            Err(ReadlineError::Eof) => Ok(PromptLine::End),
            Err(error) => Err(error).context("cannot read the terminal"),
        }
    }

    fn read(&mut self) -> rustyline::Result<String> {
        // Where lines can't be edited, the terminal itself has to echo what is typed.
        let _seen = EchoRequest::shown();
        let (mut before, mut behind) = (String::new(), String::new());
        loop {
            let typing = self.prompt.as_ref().map(LinePrompt::typing);
            let read = self
                .editor
                .readline_with_initial(PROMPT, (&before, &behind));
            drop(typing);
            let Some(line) = self.suspended.take() else {
                return read;
            };
            (before, behind) = line;
            terminal::suspend(&self.runtime);
        }
    }

    fn remember(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        let Some(file) = self.history.as_ref().filter(|_| is_new) else {
            return;
        };
        if let Err(error) = self.editor.append_history(file) {
            tracing::debug!("the history can't be saved: {error}");
            self.history = None;
        }
    }
}

/// `None` if stderr goes elsewhere, or if the terminal can't redraw the line.
fn prompt(editor: &mut rustyline::Editor<EditorHelper, FileHistory>) -> Option<LinePrompt> {
    let mut printer = match std::io::stderr().is_terminal() {
        true => editor.create_external_printer().ok()?,
        false => return None,
    };
    // Fails only if the terminal is gone.
    Some(LinePrompt::new(move |lines| drop(printer.print(lines))))
}

fn history() -> Option<PathBuf> {
    let file = state_folder(&wiring::environment)?.join("chat_history");
    file::create_parent_folder(&file).ok().map(|()| file)
}

/// Removes the backslashes that only continued a line. Pasted ones, and those inside fences, are
/// part of the text.
fn join_continued(text: &str, continued: &[String]) -> String {
    let mut joined = text.to_owned();
    // From the end, so that a removal doesn't shift the positions still to come.
    for typed in continued.iter().rev() {
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

struct EditorHelper {
    colors: bool,
    names: Option<ContentNames>,
    /// The text at each point where a backslash continued the line.
    continued: RefCell<Vec<String>>,
}

impl EditorHelper {
    fn wants_more(&self, text: &str) -> bool {
        let mut continued = self.continued.borrow_mut();
        // Forgets continuations of a text that was abandoned or edited.
        continued.retain(|typed| typed.len() < text.len() && text.starts_with(typed.as_str()));
        if is_fenced(text) {
            return true;
        }
        let ends_in_backslash = text.ends_with('\\');
        if ends_in_backslash {
            continued.push(text.to_owned());
        }
        ends_in_backslash
    }
}

impl Helper for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;
}

impl Highlighter for EditorHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        match self.colors {
            true => Cow::Owned(format!("\x1b[1;36m{prompt}\x1b[0m")),
            false => Cow::Borrowed(prompt),
        }
    }
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match self.wants_more(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or_default();
        let commands = complete_commands(typed);
        if !commands.is_empty() {
            return Ok((0, commands));
        }
        let (start, names) = match &self.names {
            Some(names) => names.complete(typed),
            None => return Ok((0, commands)),
        };
        let pairs = names.into_iter().map(|name| Pair {
            display: name.trim_end().to_owned(),
            replacement: name,
        });
        Ok((start, pairs.collect()))
    }
}

fn complete_commands(typed: &str) -> Vec<Pair> {
    if !typed.starts_with('/') {
        return Vec::new();
    }
    let like = COMMANDS.iter().filter(|(name, ..)| name.starts_with(typed));
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
    fn backslash_or_open_fence_continues_the_line() {
        for (text, expected) in [
            ("hello", false),
            ("hello \\", true),
            ("hello \\\nworld", false),
            ("```\ncode", true),
            ("look:\n```rust\ncode\n```", false),
            ("a ``` b", false),
            ("", false),
        ] {
            assert_eq!(helper().wants_more(text), expected, "{text:?}");
        }
    }

    fn helper() -> EditorHelper {
        EditorHelper {
            colors: false,
            names: None,
            continued: RefCell::default(),
        }
    }

    #[test]
    fn only_continuation_backslashes_are_removed() {
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
            let helper = helper();
            for text in entered {
                helper.wants_more(text);
            }
            let typed = entered[entered.len() - 1];
            assert_eq!(join_continued(typed, &helper.continued.take()), expected);
        }
    }

    #[test]
    fn commands_are_completed() {
        let found = |typed: &str| -> Vec<String> {
            let pairs = complete_commands(typed).into_iter();
            pairs.map(|pair| pair.replacement).collect()
        };
        assert_eq!(found("/to"), ["/tools "]);
        assert_eq!(found("/q"), ["/quit"]);
        assert!(found("to").is_empty() && found("/x").is_empty());
    }
}
