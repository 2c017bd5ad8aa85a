//! The slash commands of a chat: `/tools`, `/model` and the others.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use toolgate_core::text::{escape, nearest_names};
use toolgate_core::{ToolDefinition, ToolPattern};

use super::ChatLoop;
use crate::commands::tool_list::{self, ToolRow};
use crate::config::resolve_path;
use crate::{chat_session, exit, output, wanted_model, wiring};

pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("/tools", "[PATTERN,…]", "show the tools the model may use"),
    (
        "/model",
        "[PROVIDER[:NAME]]",
        "show which model answers, or switch to another",
    ),
    (
        "/prompt",
        "[NAME [KEY=VALUE…]]",
        "say what a server's prompt contains, or list the prompts",
    ),
    ("/save", "FILE", "save the conversation in a file"),
    ("/resume", "FILE", "continue a conversation from a file"),
    (
        "/result",
        "[ID]",
        "show in full a result that was cut for the model",
    ),
    ("/clear", "", "begin a new conversation"),
    ("/help", "", "show this list"),
    ("/quit", "", "leave; so does Ctrl-D"),
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlashCommand<'a> {
    name: &'a str,
    rest: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterCommand {
    Continue,
    /// The person says this.
    Say(String),
    Leave,
}

impl<'a> SlashCommand<'a> {
    /// `None` if the line is a question. A path counts as one: `/etc/hosts is missing, why?`.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = name.strip_prefix('/')?;
        let is_word = word.chars().all(|c| c.is_ascii_alphabetic() || c == '?');
        is_word.then_some(Self {
            name,
            rest: rest.trim(),
        })
    }
}

impl ChatLoop<'_> {
    pub(super) async fn run_command(
        &mut self,
        command: SlashCommand<'_>,
    ) -> anyhow::Result<AfterCommand> {
        match command.name {
            "/tools" => self.show_tools(command.rest),
            "/model" => self.model(command.rest).await?,
            "/prompt" => {
                if let Some(text) = self.prompt(command.rest).await? {
                    return Ok(AfterCommand::Say(text));
                }
            }
            "/save" => self.save(command.rest)?,
            "/resume" => self.resume(command.rest)?,
            "/result" => self.show_result(command.rest)?,
            "/clear" => {
                self.conversation = self.session.conversation(&self.chosen, None)?;
                output::print_note("started a new conversation");
            }
            "/help" | "/?" => help(),
            "/quit" | "/exit" | "/q" => return Ok(AfterCommand::Leave),
            "/" => {
                let word = command.rest.split_whitespace().next().unwrap_or_default();
                let hint = hint(&format!("/{word}"));
                bail!("a command follows its slash without a space; {hint}");
            }
            other => bail!("unknown command {}; {}", escape(other), hint(other)),
        }
        Ok(AfterCommand::Continue)
    }

    fn show_tools(&self, patterns: &str) {
        let list = self.session.toolbox.current();
        let definitions = list.tools().iter().map(|tool| tool.definition());
        let rows: Vec<_> = matching_tools(definitions.collect(), patterns)
            .into_iter()
            .map(|tool| ToolRow::new(tool.name(), &tool.source().to_string(), tool.description()))
            .collect();
        if rows.is_empty() {
            return output::print_note("no tool matches");
        }
        output::print_result(&tool_list::format_tools(&rows));
        let catalog = self.chosen.router.catalog(&list);
        for left_out in catalog.excluded() {
            let (name, reason) = (escape(&left_out.name), escape(&left_out.reason));
            output::print_note(&format!("{name} is not offered to this model: {reason}"));
        }
    }

    async fn model(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            let who = wanted_model::describe_model(&self.chosen);
            output::print_note(&format!("{who}: {}", self.chosen.why));
            for reason in &self.chosen.skipped {
                output::print_note(&format!("· {reason}"));
            }
            return Ok(());
        }
        let choosing = self.session.reselect_model(text, &self.chosen.settings);
        let choice = tokio::select! {
            choice = choosing => choice?,
            () = exit::wait_for_interrupt() => bail!("stopped; the model is unchanged"),
        };
        let chosen = self.session.connect(choice)?;
        self.conversation.set_router(chosen.router.clone());
        self.display
            .set_format(chat_session::answer_format(&chosen));
        self.chosen = chosen;
        output::print_note(&format!(
            "now using {}",
            wanted_model::describe_model(&self.chosen)
        ));
        Ok(())
    }

    fn save(&self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            bail!("/save where? Give a file");
        }
        let file = file(text);
        chat_session::check_savable(&file)?;
        chat_session::save(&self.conversation, &file)?;
        output::print_note(&format!("saved in {}", escape(&file.to_string_lossy())));
        Ok(())
    }

    fn resume(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            bail!("/resume what? Give a file that /save has written");
        }
        let file = file(text);
        let resumed = self.session.conversation(&self.chosen, Some(&file));
        self.conversation = resumed.context("the conversation is unchanged")?;
        self.note_resumed(&file);
        Ok(())
    }

    pub(super) fn note_resumed(&self, file: &Path) {
        let count = self.conversation.history().len();
        let file = escape(&file.to_string_lossy());
        output::print_note(&format!("resumed {count} messages from {file}"));
    }
}

fn hint(typed: &str) -> String {
    let known = COMMANDS.iter().map(|(name, ..)| *name);
    match nearest_names(typed, known, 1).pop() {
        Some(name) => format!("did you mean {name}?"),
        None => "/help lists all commands".to_owned(),
    }
}

/// The tools that match one of the patterns, or all of them without any. A word that names no tool
/// matches the names that contain it.
fn matching_tools<'a>(tools: Vec<&'a ToolDefinition>, patterns: &str) -> Vec<&'a ToolDefinition> {
    let texts = patterns.split(',').map(str::trim);
    let wanted: Vec<(ToolPattern, Option<&str>)> = texts
        .filter(|text| !text.is_empty())
        .map(|text| {
            let pattern = ToolPattern::new(text);
            let is_known = tools.iter().any(|tool| pattern.matches(tool));
            (pattern, (!is_known && !text.contains('*')).then_some(text))
        })
        .collect();
    let is_match = |tool: &&ToolDefinition| {
        let mut wanted = wanted.iter();
        wanted.len() == 0
            || wanted.any(|(pattern, part)| {
                pattern.matches(tool) || part.is_some_and(|part| tool.name().contains(part))
            })
    };
    tools.into_iter().filter(is_match).collect()
}

/// Accepts a path as typed in a shell: in quotes, or with `~/`.
fn file(text: &str) -> PathBuf {
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .filter(|inner| !inner.is_empty());
    let path = Path::new(unquoted.unwrap_or(text));
    resolve_path(path, Path::new(""), &wiring::environment)
}

fn help() {
    let commands = COMMANDS.iter().map(|(name, arguments, what)| {
        let command = format!("{name} {arguments}");
        [command.trim_end().to_owned(), (*what).to_owned()]
    });
    let keys = [
        (
            "@URI",
            "in what you say: attaches the text of a resource; Tab completes it",
        ),
        (
            "Ctrl-C",
            "stops the answer; at the prompt it clears the line",
        ),
        (
            "\\ at the end",
            "continues on the next line; so do Alt-Enter and text between ``` fences",
        ),
    ];
    let keys = keys.map(|(key, what)| [key.to_owned(), what.to_owned()]);
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .add_rows(commands.chain(keys));
    if let Some(width) = output::stdout_width().and_then(|width| u16::try_from(width).ok()) {
        table.set_width(width);
    }
    output::print_result(&table.trim_fmt());
}

#[cfg(test)]
mod tests {
    use toolgate_core::ToolSource;

    use super::*;

    #[test]
    fn a_slash_begins_a_command_and_a_path_is_a_question() {
        for (line, expected) in [
            ("/tools", Some(("/tools", ""))),
            (
                "  /model  ollama:qwen3:4b ",
                Some(("/model", "ollama:qwen3:4b")),
            ),
            ("/save my file.json", Some(("/save", "my file.json"))),
            ("/nope", Some(("/nope", ""))),
            ("/etc/hosts is gone", None),
            ("/", Some(("/", ""))),
            ("/ help me", Some(("/", "help me"))),
            ("//", None),
            ("what is 6/2?", None),
            ("/tools\nand more", Some(("/tools", "and more"))),
        ] {
            let expected = expected.map(|(name, rest)| SlashCommand { name, rest });
            assert_eq!(SlashCommand::read(line), expected, "{line}");
        }
    }

    #[test]
    fn tools_are_listed_by_patterns_or_by_a_part_of_their_names() {
        let tool = |name: &str| ToolDefinition::builder(name, "d", serde_json::json!({}));
        let lights = tool("house__lights")
            .original_name("lights")
            .source(ToolSource::Mcp("house".to_owned()));
        let tools = [tool("datetime"), tool("time"), tool("math_eval"), lights];
        let tools = tools.map(|tool| tool.build().unwrap());
        for (patterns, expected) in [
            ("", &["datetime", "time", "math_eval", "house__lights"][..]),
            ("date*,math*", &["datetime", "math_eval"]),
            (" date* , ,lights,", &["datetime", "house__lights"]),
            ("time", &["time"]),
            ("dat", &["datetime"]),
            ("math,tim", &["datetime", "time", "math_eval"]),
            ("house/*", &["house__lights"]),
            ("house", &["house__lights"]),
            ("at*", &[]),
            ("nope", &[]),
        ] {
            let found = matching_tools(tools.iter().collect(), patterns);
            let names: Vec<_> = found.iter().map(|tool| tool.name()).collect();
            assert_eq!(names, expected, "{patterns}");
        }
    }
}
