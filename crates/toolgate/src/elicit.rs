//! Puts questions of an MCP server to the person at the terminal.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_mcp::{Elicitation, ElicitationAnswer, ElicitationHandler};

use crate::spinner::Spinner;
use crate::{output, questions, terminal};

pub(crate) struct TerminalElicitationHandler {
    spinner: Spinner,
}

impl TerminalElicitationHandler {
    pub(crate) fn new(spinner: &Spinner) -> Option<Self> {
        terminal::can_ask().then(|| Self {
            spinner: spinner.clone(),
        })
    }
}

impl ElicitationHandler for TerminalElicitationHandler {
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
    if let Err(error) = question.check_form() {
        output::print_to_stderr(&format!("It is declined: {}.", escape(&error.to_string())));
        return ElicitationAnswer::Decline;
    }
    if let Some(url) = &question.url {
        output::print_to_stderr(&format!(
            "It wants you to open a page of {}: {}\nHave you done so, and should it continue? [y/N]",
            host(url),
            escape(url)
        ));
        return match line().as_deref() {
            Some("y" | "yes" | "Y") => ElicitationAnswer::Accept(Map::new()),
            Some(_) => ElicitationAnswer::Decline,
            None => ElicitationAnswer::Cancel,
        };
    }
    output::print_to_stderr(
        "Enter a value, nothing for the default, '-' to decline. Ctrl-D dismisses the question.",
    );
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
                    Ok(Some(value)) => match check_field(question, name, &value) {
                        Ok(()) => {
                            values.insert(name.clone(), value);
                            break;
                        }
                        Err(problem) => output::print_to_stderr(&problem),
                    },
                    Ok(None) => break,
                    Err(problem) => output::print_to_stderr(problem),
                },
            }
        }
    }
    ElicitationAnswer::Accept(values)
}

/// The host of a page, as a browser would reach it.
fn host(url: &str) -> String {
    let url = reqwest::Url::parse(url).ok();
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "an unknown host".to_owned())
}

/// Checks one field alone, so that a mistake is reported before the next field is asked for.
fn check_field(question: &Elicitation, name: &str, value: &Value) -> Result<(), String> {
    let properties =
        Map::from_iter([(name.to_owned(), question.schema["properties"][name].clone())]);
    let schema = json!({ "type": "object", "properties": properties });
    let field = Elicitation::new(question.server.as_str(), "", schema);
    let content = Map::from_iter([(name.to_owned(), value.clone())]);
    match field.check(content) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("Please try again: {}.", escape(&error.to_string()))),
    }
}

fn prompt(name: &str, property: &Value, required: bool) -> String {
    let text = |key: &str| property[key].as_str().map(escape);
    let title = text("title")
        .or_else(|| text("description"))
        .unwrap_or_else(|| escape(name));
    let is_list = property["type"] == "array";
    let choices = choices(if is_list {
        &property["items"]
    } else {
        property
    });
    let choices = choices.iter().map(|(value, title)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        match title {
            Some(title) if *title != value => escape(&format!("{value} ({title})")),
            _ => escape(&value),
        }
    });
    let choices: Vec<String> = choices.collect();
    let choices = match (choices.is_empty(), is_list) {
        (true, _) => String::new(),
        (false, true) => format!(" (any of {}; with commas between them)", choices.join(", ")),
        (false, false) => format!(" (one of {})", choices.join(", ")),
    };
    let default = property
        .get("default")
        .map(|default| format!(" [{}]", escape(&default.to_string())));
    let kind = text("type").unwrap_or_default();
    let needed = if required { ", required" } else { "" };
    format!(
        "{title} ({kind}{needed}){choices}{}:",
        default.unwrap_or_default()
    )
}

/// The values that a schema lets a person choose, with their titles. They are listed in `enum`,
/// with or without `enumNames`, or in `oneOf` or `anyOf`.
fn choices(schema: &Value) -> Vec<(&Value, Option<&str>)> {
    if let Some(options) = schema["enum"].as_array() {
        let titles = |index: usize| schema["enumNames"][index].as_str();
        let options = options.iter().enumerate();
        return options
            .map(|(index, option)| (option, titles(index)))
            .collect();
    }
    let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let variants = variants.into_iter().flatten();
    variants
        .filter_map(|variant| Some((variant.get("const")?, variant["title"].as_str())))
        .collect()
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
    if property["type"] == "array" {
        let parts = text.split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        let values = parts.map(|part| parse_value(part, &property["items"]));
        return Ok(Some(Value::Array(values.collect::<Result<_, _>>()?)));
    }
    parse_value(text, property).map(Some)
}

fn parse_value(text: &str, schema: &Value) -> Result<Value, &'static str> {
    let value = match schema["type"].as_str() {
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
    let choices = choices(schema);
    if choices.is_empty() || choices.iter().any(|(option, _)| **option == value) {
        return Ok(value);
    }
    // A person may type what they read.
    let is_meant = |title: &Option<&str>| title.is_some_and(|it| it.eq_ignore_ascii_case(text));
    let meant = choices.iter().find(|(_, title)| is_meant(title));
    let meant = meant.map(|(option, _)| (*option).clone());
    meant.ok_or("That isn't one of the choices.")
}

#[cfg(test)]
mod tests {
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
    fn choices_have_titles_lists_have_commas_and_every_value_is_checked() {
        let schema = json!({ "properties": {
            "room": { "type": "string", "oneOf": [{ "const": "r1", "title": "Garden" }, { "const": "r2", "title": "Street" }] },
            "size": { "type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"] },
            "extras": {
                "type": "array", "maxItems": 2,
                "items": { "anyOf": [{ "const": "b", "title": "Breakfast" }, { "const": "p" }, { "const": "d" }] },
            },
            "guests": { "type": "integer", "minimum": 1, "maximum": 9 },
            "mail": { "type": "string", "format": "email" },
        } });
        let rooms = prompt("room", &schema["properties"]["room"], true);
        assert_eq!(
            rooms,
            "room (string, required) (one of r1 (Garden), r2 (Street)):"
        );
        let extras = prompt("extras", &schema["properties"]["extras"], false);
        let expected = "extras (array) (any of b (Breakfast), p, d; with commas between them):";
        assert_eq!(extras, expected);
        let lines = [
            "attic",
            "street",
            "l",
            "x",
            "b,p,d",
            "breakfast, d",
            "12",
            "3",
            "a",
            "a@b",
        ];
        let ElicitationAnswer::Accept(values) = answered(schema, None, &lines) else {
            panic!("should be accepted");
        };
        let expected =
            json!({ "room": "r2", "size": "l", "extras": ["b", "d"], "guests": 3, "mail": "a@b" });
        assert_eq!(Value::Object(values), expected);
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
