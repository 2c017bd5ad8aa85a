//! Checks what a person filled into a server's form, before it is sent. Every way to ask uses this.

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value, json};
use toolgate_core::{Schema, SchemaLimits, ToolError, Violation};

use super::questions::Elicitation;

/// The most fields that a form may have. Nobody fills in more.
const MAX_FIELDS: usize = 100;
// Bytes of a form's schema.
const MAX_SCHEMA: u64 = 64 << 10;

/// Why an answer, or the form itself, can't be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitationError {
    /// The server's form can't be shown.
    #[error("the form can't be shown: {0}")]
    Form(String),
    /// What was filled in doesn't match the form.
    #[error("{}", violations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Content { violations: Vec<Violation> },
}

impl Elicitation {
    /// Checks that the form, or the page to open, can be shown to a person.
    ///
    /// # Errors
    ///
    /// If the schema is not an object, is too large or can't be checked in bounded time, or if the
    /// page isn't one of the web.
    pub fn check_form(&self) -> Result<(), ElicitationError> {
        if let Some(url) = &self.url {
            return match Url::parse(url).ok().filter(is_web_page) {
                Some(_) => Ok(()),
                None => Err(ElicitationError::Form(
                    "its page must begin with https:// or http://".to_owned(),
                )),
            };
        }
        self.form().map(|_| ())
    }

    /// Returns the content for the server: all fields but the optional ones that are `null`.
    ///
    /// # Errors
    ///
    /// If a value is missing or doesn't match its schema or its format.
    pub fn check(
        &self,
        content: Map<String, Value>,
    ) -> Result<Map<String, Value>, ElicitationError> {
        let form = self.form()?;
        let checked = form.check(Arc::new(Value::Object(content)));
        let checked = checked.map_err(|error| ElicitationError::Content {
            violations: match error {
                ToolError::InvalidArguments { violations, .. } => violations,
                other => vec![Violation::new("", other.to_string())],
            },
        })?;
        let values = checked.as_value().as_object().cloned().unwrap_or_default();
        let violations = self.format_violations(&values);
        match violations.is_empty() {
            true => Ok(values),
            false => Err(ElicitationError::Content { violations }),
        }
    }

    /// The schema of the whole answer. A field that the server didn't ask for is a mistake.
    fn form(&self) -> Result<Schema, ElicitationError> {
        let wrong = |text: &str| ElicitationError::Form(text.to_owned());
        let mut document = self.schema.clone();
        let object = document
            .as_object_mut()
            .ok_or_else(|| wrong("it has no schema"))?;
        let fields = object.get("properties").and_then(Value::as_object);
        if fields.map_or(0, Map::len) > MAX_FIELDS {
            return Err(wrong("it has too many fields"));
        }
        if toolgate_core::sanitize::length(&self.schema) > MAX_SCHEMA {
            return Err(wrong("its schema is too long"));
        }
        object.insert("type".to_owned(), json!("object"));
        object.insert("additionalProperties".to_owned(), json!(false));
        let form = Schema::compile(document, &SchemaLimits::default());
        form.map_err(|error| ElicitationError::Form(error.to_string()))
    }

    // Schemas of tools treat formats as hints, but here a person can correct what they typed.
    fn format_violations(&self, values: &Map<String, Value>) -> Vec<Violation> {
        let wrong = |(name, value): (&String, &Value)| {
            let text = value.as_str()?;
            let (is_right, expected) = match self.schema["properties"][name]["format"].as_str()? {
                "email" => (is_email(text), "an email address, such as name@example.org"),
                "uri" => (
                    Url::parse(text).is_ok(),
                    "an address, such as https://example.org/",
                ),
                "date" => (is_date(text), "a date, such as 2026-11-16"),
                "date-time" => (
                    is_date_time(text),
                    "a date and time, such as 2026-11-16T08:30:00Z",
                ),
                _ => return None,
            };
            (!is_right).then(|| Violation::new(name.as_str(), format!("must be {expected}")))
        };
        values.iter().filter_map(wrong).collect()
    }
}

fn is_web_page(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some()
}

fn is_email(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    text.rsplit_once('@')
        .is_some_and(|(name, host)| is_part(name) && is_part(host))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(zone) = time.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (time, zone) = time.split_at(zone);
    let is_zone = match zone.strip_prefix(['+', '-']) {
        Some(offset) => is_clock(offset, 2),
        None => zone.len() == 1,
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock(whole, 3) && is_fraction && is_zone
}

/// True for `08:30` with two parts, and `08:30:00` with three.
fn is_clock(text: &str, count: usize) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let mut limits = parts.iter().zip([23, 59, 60]);
    parts.len() == count && limits.all(|(part, most)| digits(part, 2).is_some_and(|it| it <= most))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("should be an object: {other}"),
        }
    }

    #[test]
    fn an_answer_is_checked_against_the_form_and_its_formats() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "mail": { "type": "string", "format": "email" },
                "page": { "type": "string", "format": "uri" },
                "day": { "type": "string", "format": "date" },
                "at": { "type": "string", "format": "date-time" },
                "count": { "type": "integer", "minimum": 1, "maximum": 9 },
                "color": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b" }] },
                "pets": {
                    "type": "array", "minItems": 1, "maxItems": 2,
                    "items": { "anyOf": [{ "const": "cat" }, { "const": "dog" }, { "const": "emu" }] },
                },
            },
            "required": ["name"],
        });
        let question = Elicitation::new("house", "?", schema);
        assert_eq!(question.check_form(), Ok(()));
        let full = json!({
            "name": "Ada", "mail": "a@b", "page": "https://x/", "day": "2024-02-29",
            "at": "2026-11-16T08:30:00.5+01:00", "count": 9, "color": "r", "pets": ["cat", "emu"],
        });
        assert_eq!(question.check(object(full.clone())), Ok(object(full)));
        let given = object(json!({ "name": "Ada", "count": null }));
        assert_eq!(question.check(given), Ok(object(json!({ "name": "Ada" }))));
        for (given, field) in [
            (json!({}), "name"),
            (json!({ "name": "A" }), "name"),
            (json!({ "name": "Ada", "mail": "a@" }), "mail"),
            (json!({ "name": "Ada", "mail": "a b@c" }), "mail"),
            (json!({ "name": "Ada", "page": "example" }), "page"),
            (json!({ "name": "Ada", "day": "2023-02-29" }), "day"),
            (json!({ "name": "Ada", "day": "16.11.2026" }), "day"),
            (json!({ "name": "Ada", "at": "2026-11-16T08:30:00" }), "at"),
            (json!({ "name": "Ada", "at": "2026-11-16T25:30:00Z" }), "at"),
            (json!({ "name": "Ada", "count": 10 }), "count"),
            (json!({ "name": "Ada", "color": "green" }), "color"),
            (json!({ "name": "Ada", "pets": [] }), "pets"),
            (
                json!({ "name": "Ada", "pets": ["cat", "dog", "emu"] }),
                "pets",
            ),
            (json!({ "name": "Ada", "pets": ["cow"] }), "pets"),
        ] {
            let Err(ElicitationError::Content { violations }) =
                question.check(object(given.clone()))
            else {
                panic!("should be wrong: {given}");
            };
            assert!(
                violations[0].parameter().starts_with(field),
                "{given}: {violations:?}"
            );
        }
    }

    #[test]
    fn a_form_that_nobody_could_be_shown_is_an_error() {
        let fields: Map<String, Value> = (0..=MAX_FIELDS)
            .map(|number| (format!("f{number}"), json!({})))
            .collect();
        for schema in [
            Value::Null,
            json!("text"),
            json!({ "properties": fields }),
            json!({ "title": "x".repeat(70_000) }),
            json!({ "properties": { "a": { "type": "wrong" } } }),
        ] {
            let question = Elicitation::new("house", "?", schema.clone());
            assert!(question.check_form().is_err(), "{schema}");
        }
        for (url, is_shown) in [
            ("https://example.org/a?b", true),
            ("http://localhost:9", true),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("example.org", false),
        ] {
            let mut question = Elicitation::new("house", "?", Value::Null);
            question.url = Some(url.to_owned());
            assert_eq!(question.check_form().is_ok(), is_shown, "{url}");
        }
    }
}
