//! What can be typed besides a question: `/tools`, `/model` and the like.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use toolgate_core::{Pattern, escape, nearest};

use super::Chat;
use crate::commands::{first_sentence, table};
use crate::config::resolved;
use crate::{exit, say, talk, wiring};

/// Every order, how it is written, and what it does.
pub(super) const ORDERS: [(&str, &str, &str); 8] = [
    ("/tools", "[PATTERN]", "the tools the model may use"),
    (
        "/model",
        "[PROVIDER[:NAME]]",
        "which model answers, or go on with another",
    ),
    ("/save", "FILE", "keep the conversation in a file"),
    ("/resume", "FILE", "go on with a conversation from a file"),
    (
        "/result",
        "[ID]",
        "a result that was cut for the model, whole",
    ),
    ("/clear", "", "begin a new conversation"),
    ("/help", "", "this list"),
    ("/quit", "", "leave; so does Ctrl-D"),
];

/// An order with the rest of its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order<'a> {
    name: &'a str,
    rest: &'a str,
}

/// How the chat goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    Leave,
}

impl<'a> Order<'a> {
    /// `None` if the line is a question. A path is one: `/etc/hosts is missing, why?`.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = name.strip_prefix('/')?;
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '?');
        is_word.then_some(Self {
            name,
            rest: rest.trim(),
        })
    }
}

impl Chat<'_> {
    pub(super) async fn obey(&mut self, order: Order<'_>) -> anyhow::Result<Next> {
        match order.name {
            "/tools" => self.show_tools(order.rest),
            "/model" => self.model(order.rest).await?,
            "/save" => self.save(order.rest)?,
            "/resume" => self.resume(order.rest)?,
            "/result" => self.show_result(order.rest)?,
            "/clear" => {
                self.conversation = self.setting.conversation(&self.chosen, None)?;
                say::note("a new conversation");
            }
            "/help" | "/?" => help(),
            "/quit" | "/exit" | "/q" => return Ok(Next::Leave),
            other => {
                let known = ORDERS.iter().map(|(name, ..)| *name);
                let hint = match nearest(other, known, 1).pop() {
                    Some(name) => format!("did you mean {name}?"),
                    None => "/help shows what there is".to_owned(),
                };
                bail!("there is no {}; {hint}", escape(other));
            }
        }
        Ok(Next::Go)
    }

    fn show_tools(&self, pattern: &str) {
        let list = self.setting.toolbox.current();
        let pattern = (!pattern.is_empty()).then(|| Pattern::new(pattern));
        let definitions = list.tools().iter().map(|tool| tool.definition());
        let rows: Vec<_> = definitions
            .filter(|tool| pattern.as_ref().is_none_or(|pattern| pattern.matches(tool)))
            .map(|tool| {
                [
                    escape(tool.name()),
                    escape(&tool.source().to_string()),
                    escape(first_sentence(tool.description())),
                ]
            })
            .collect();
        if rows.is_empty() {
            return say::note("no tools like that");
        }
        if say::is_watched() {
            say::result(&table(rows).trim_fmt());
        } else {
            let lines: Vec<String> = rows.iter().map(|row| row.join("\t")).collect();
            say::result(&lines.join("\n"));
        }
        let catalog = self.chosen.client.catalog(&list);
        for left_out in catalog.left_out() {
            let (name, reason) = (escape(&left_out.name), escape(&left_out.reason));
            say::note(&format!("{name} is not offered to this model: {reason}"));
        }
    }

    async fn model(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            let who = talk::described(&self.chosen);
            say::note(&format!("{who}: {}", self.chosen.why));
            return Ok(());
        }
        let choosing = self.setting.rechoose(text, &self.chosen.settings);
        let choice = tokio::select! {
            choice = choosing => choice?,
            () = exit::interrupted() => bail!("stopped; the model stays as it is"),
        };
        let chosen = self.setting.connect(choice)?;
        self.conversation.set_client(Arc::clone(&chosen.client));
        self.chosen = chosen;
        say::note(&format!("now {}", talk::described(&self.chosen)));
        Ok(())
    }

    fn save(&self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            bail!("/save where? Give a file");
        }
        let file = file(text);
        talk::expect_savable(&file)?;
        talk::save(&self.conversation, &file)?;
        say::note(&format!("saved in {}", escape(&file.to_string_lossy())));
        Ok(())
    }

    fn resume(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            bail!("/resume what? Give a file that /save has written");
        }
        let file = file(text);
        let resumed = self.setting.conversation(&self.chosen, Some(&file));
        self.conversation = resumed.context("the conversation stays as it is")?;
        self.tell_resumed(&file);
        Ok(())
    }

    pub(super) fn tell_resumed(&self, file: &Path) {
        let count = self.conversation.history().len();
        let file = escape(&file.to_string_lossy());
        say::note(&format!("{count} messages from {file}"));
    }
}

/// A file as a person writes it, who is used to a shell: with quotes around it, or `~/` for the home folder.
fn file(text: &str) -> PathBuf {
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .filter(|inner| !inner.is_empty());
    let path = Path::new(unquoted.unwrap_or(text));
    resolved(path, Path::new(""), &wiring::environment)
}

fn help() {
    let orders = ORDERS.iter().map(|(name, arguments, what)| {
        let order = format!("{name} {arguments}");
        [order.trim_end().to_owned(), (*what).to_owned()]
    });
    let keys = [
        (
            "Ctrl-C",
            "stops the answer; at the prompt it clears the line",
        ),
        (
            "\\ at the end",
            "goes on in the next line; so do Alt-Enter and text between ``` fences",
        ),
    ];
    let keys = keys.map(|(key, what)| [key.to_owned(), what.to_owned()]);
    say::result(&table(orders.chain(keys).collect()).trim_fmt());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_slash_is_an_order_and_a_path_is_a_question() {
        for (line, expected) in [
            ("/tools", Some(("/tools", ""))),
            (
                "  /model  ollama:qwen3:4b ",
                Some(("/model", "ollama:qwen3:4b")),
            ),
            ("/save my file.json", Some(("/save", "my file.json"))),
            ("/nope", Some(("/nope", ""))),
            ("/etc/hosts is gone", None),
            ("/", None),
            ("what is 6/2?", None),
            ("/tools\nand more", Some(("/tools", "and more"))),
        ] {
            let expected = expected.map(|(name, rest)| Order { name, rest });
            assert_eq!(Order::read(line), expected, "{line}");
        }
    }
}
