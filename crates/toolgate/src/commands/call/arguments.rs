//! Arguments as they are typed: pairs, one JSON text, or stdin.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use toolgate_core::{ToolCall, ToolError};

use crate::pairs::quoted;
use crate::{pairs, say};

/// What was typed or piped in.
pub(crate) enum Given {
    Words(Vec<String>),
    Stdin(Vec<u8>),
    /// Nobody typed them: they were asked before.
    Json(Value),
}

/// What that means.
pub(crate) enum Asked {
    Value(Value),
    /// JSON, perhaps, as it came.
    Text(Vec<u8>),
    /// No JSON object; refused with what the record shall show.
    Unusable(Value, ToolError),
}

impl Given {
    /// Reads stdin if it is asked for: before anything is started, as whoever feeds us may take his time.
    pub(crate) fn read(words: &[String], limit: usize) -> anyhow::Result<Self> {
        Ok(match words {
            [dash] if dash == "-" => Self::Stdin(stdin(limit)?),
            words => Self::Words(words.to_vec()),
        })
    }

    /// True if the tool's schema says what is meant.
    pub(crate) fn needs_schema(&self) -> bool {
        match self {
            Self::Words(words) => {
                !words.is_empty() && !matches!(words.as_slice(), [json] if is_json(json))
            }
            Self::Stdin(_) | Self::Json(_) => false,
        }
    }

    /// Tells how the lists are typed that were given as `a,b`. For arguments that were refused.
    pub(crate) fn tell_of_lists(&self, schema: &Value) {
        for hint in self.list_hints(schema) {
            say::note(&format!("a list is typed item by item: {hint}"));
        }
    }

    fn list_hints(&self, schema: &Value) -> Vec<String> {
        let Self::Words(words) = self else {
            return Vec::new();
        };
        let pairs: Vec<_> = words.iter().filter_map(|word| pairs::split(word)).collect();
        let lists = toolgate_core::comma_separated_lists(&pairs, schema).into_iter();
        let hints = lists.map(|(key, items)| {
            let items = items.iter().map(|item| quoted(&format!("{key}={item}")));
            toolgate_core::escape(&items.collect::<Vec<_>>().join(" "))
        });
        hints.collect()
    }

    pub(crate) fn asked(&self, schema: &Value) -> anyhow::Result<Asked> {
        let unusable = |raw: Value, text: &str| {
            let error = ToolError::invalid("arguments", text);
            Ok(Asked::Unusable(raw, error))
        };
        let words = match self {
            Self::Json(value) => return Ok(Asked::Value(value.clone())),
            Self::Stdin(bytes) if bytes.trim_ascii().is_empty() => {
                return unusable(
                    Value::Null,
                    "must be a JSON object, and stdin was empty; give {} for none",
                );
            }
            Self::Stdin(bytes) => return Ok(Asked::Text(bytes.clone())),
            Self::Words(words) => words,
        };
        match words.as_slice() {
            [] => Ok(Asked::Value(json!({}))),
            [json] if is_json(json) => Ok(Asked::Text(json.clone().into_bytes())),
            [word] if !word.contains('=') => match toolgate_core::parse_json(word.as_bytes()) {
                Ok(value) => Ok(Asked::Value(value)),
                Err(_) => unusable(json!(word), "must be a JSON object, or key=value pairs"),
            },
            several => typed(several, schema),
        }
    }
}

impl Asked {
    pub(crate) fn call(self, name: &str) -> ToolCall {
        match self {
            Self::Value(value) => ToolCall::new(name, value),
            Self::Text(bytes) => ToolCall::from_json(name, &bytes),
            Self::Unusable(raw, error) => ToolCall::refused(name, raw, error),
        }
    }
}

fn is_json(word: &str) -> bool {
    word.starts_with(['{', '[', '"'])
}

fn typed(words: &[String], schema: &Value) -> anyhow::Result<Asked> {
    let mut split = Vec::new();
    for word in words {
        let Some(pair) = pairs::split(word) else {
            let shown = toolgate_core::escape(word);
            bail!("'{shown}' is no key=value pair; give pairs, one JSON object, or - for stdin");
        };
        split.push(pair);
    }
    Ok(
        match toolgate_core::command_line_arguments(&split, schema) {
            Ok(arguments) => Asked::Value(Value::Object(arguments)),
            Err(error) => {
                // As an object, so that secrets are known by their keys.
                let asked: Map<String, Value> = split
                    .iter()
                    .map(|(key, text)| ((*key).to_owned(), json!(text)))
                    .collect();
                // Only an error of too many values names the tool, and pairs are never that.
                Asked::Unusable(Value::Object(asked), error.into_tool_error(""))
            }
        },
    )
}

/// White space may double the size of what fits; more can not fit, and is not read.
fn stdin(limit: usize) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        say::note("reading a JSON object from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(2 * limit as u64);
    input.read_to_end(&mut bytes).context("cannot read stdin")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_commas_is_shown_as_it_is_typed() {
        let schema = json!({ "properties": { "labels": { "type": "array" } } });
        for (words, expected) in [
            (
                &["labels=bug,ui", "title=a,b"][..],
                &["labels=bug labels=ui"][..],
            ),
            (&["labels=not now, ui"], &["'labels=not now' labels=ui"]),
            (&["labels=bug", "labels=ui"], &[]),
            (&[r#"{"labels":"bug,ui"}"#], &[]),
        ] {
            let given = Given::Words(words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(given.list_hints(&schema), expected, "{words:?}");
        }
    }
}
