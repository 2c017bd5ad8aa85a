//! Puts questions of an MCP server to the person at the terminal.

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use toolgate_core::escape;
use toolgate_mcp::{Elicitation, ElicitationAnswer, Elicitor};

use crate::spinner::Spinner;
use crate::{output, questions, terminal};

pub(crate) struct TerminalElicitor {
    spinner: Spinner,
}

impl TerminalElicitor {
    pub(crate) fn new(spinner: &Spinner) -> Option<Self> {
        terminal::can_ask().then(|| Self {
            spinner: spinner.clone(),
        })
    }
}

impl Elicitor for TerminalElicitor {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let asked = question.clone();
            let answer = questions::ask(&self.spinner, move |line| ask(&asked, line)).await;
            answer.unwrap_or(ElicitationAnswer::Cancel)
        })
    }
}

// Names the server, because its text could pretend to be ours.
fn ask(question: &Elicitation, line: &mut dyn FnMut() -> Option<String>) -> ElicitationAnswer {
    let server = escape(&question.server);
    output::print_to_stderr(&format!(
        "The MCP server '{server}' asks: {}",
        escape(&question.message)
    ));
    if let Some(url) = &question.url {
        output::print_to_stderr(&format!(
            "It wants you to open {}\nHave you done so, and should it continue? [y/N]",
            escape(url)
        ));
        return match line().as_deref() {
            Some("y" | "yes" | "Y") => ElicitationAnswer::Accept(Map::new()),
            Some(_) => ElicitationAnswer::Decline,
            None => ElicitationAnswer::Cancel,
        };
    }
    output::print_to_stderr("Enter a value, nothing for the default, '-' to decline.");
    let mut values = Map::new();
    let properties = question.schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        let required = question.schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|given| given == name));
        loop {
            output::print_to_stderr(&prompt(name, property, required));
            match line() {
                None => return ElicitationAnswer::Cancel,
                Some(text) if text == "-" => return ElicitationAnswer::Decline,
                Some(text) => match parse_answer(&text, property, required) {
                    Ok(Some(value)) => {
                        values.insert(name.clone(), value);
                        break;
                    }
                    Ok(None) => break,
                    Err(problem) => output::print_to_stderr(problem),
                },
            }
        }
    }
    ElicitationAnswer::Accept(values)
}

fn prompt(name: &str, property: &Value, required: bool) -> String {
    let text = |key: &str| property[key].as_str().map(escape);
    let title = text("title")
        .or_else(|| text("description"))
        .unwrap_or_else(|| escape(name));
    let options = property["enum"].as_array().map(|options| {
        format!(
            " (one of {})",
            escape(&Value::from(options.clone()).to_string())
        )
    });
    let default = property
        .get("default")
        .map(|default| format!(" [{}]", escape(&default.to_string())));
    let kind = text("type").unwrap_or_default();
    let needed = if required { ", required" } else { "" };
    format!(
        "{title} ({kind}{needed}){}{}:",
        options.unwrap_or_default(),
        default.unwrap_or_default()
    )
}

/// Parses the input by the schema. `Ok(None)` means that an optional value was left out.
fn parse_answer(
    text: &str,
    property: &Value,
    required: bool,
) -> Result<Option<Value>, &'static str> {
    if text.is_empty() {
        return match property.get("default") {
            Some(default) => Ok(Some(default.clone())),
            None if required => Err("A value is needed."),
            None => Ok(None),
        };
    }
    let value = match property["type"].as_str() {
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("Please answer yes or no."),
        },
        Some("integer") => Value::from(
            text.parse::<i64>()
                .map_err(|_| "That isn't a whole number.")?,
        ),
        Some("number") => {
            let number: f64 = text.parse().map_err(|_| "That isn't a number.")?;
            Value::from(number)
        }
        _ => Value::from(text),
    };
    match property["enum"].as_array() {
        Some(options) if !options.contains(&value) => Err("That isn't one of the choices."),
        _ => Ok(Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(schema: Value, url: Option<&str>, lines: &[&str]) -> ElicitationAnswer {
        let mut lines = lines.iter();
        let mut question = Elicitation::new("house", "Which one?", schema);
        question.url = url.map(str::to_owned);
        ask(&question, &mut || {
            lines.next().map(|line| (*line).to_owned())
        })
    }

    #[test]
    fn answers_are_typed_by_the_schema_and_asked_for_again() {
        let schema = json!({
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer", "default": 3 },
                "sure": { "type": "boolean" },
                "color": { "type": "string", "enum": ["red", "blue"] },
                "note": { "type": "string" },
            },
            "required": ["name", "sure", "color"],
        });
        let lines = ["", "Ada", "x", "", "perhaps", "yes", "green", "blue", ""];
        let expected = json!({ "name": "Ada", "count": 3, "sure": true, "color": "blue" });
        let ElicitationAnswer::Accept(values) = answered(schema.clone(), None, &lines) else {
            panic!("should be accepted");
        };
        assert_eq!(Value::Object(values), expected);
        assert_eq!(
            answered(schema.clone(), None, &["Ada", "-"]),
            ElicitationAnswer::Decline
        );
        assert_eq!(answered(schema, None, &["Ada"]), ElicitationAnswer::Cancel);
    }

    #[test]
    fn only_a_clear_yes_accepts_a_page() {
        let page = Some("https://example.org");
        for (line, expected) in [
            ("y", ElicitationAnswer::Accept(Map::new())),
            ("", ElicitationAnswer::Decline),
            ("no", ElicitationAnswer::Decline),
        ] {
            assert_eq!(answered(Value::Null, page, &[line]), expected);
        }
    }
}
