//! Rewrites serde's errors for people who write JSON.

use serde_json::Value;

use super::nearest_names;

/// Rewords a serde type error for people editing a settings file.
///
/// `problem` is serde's message about the value `found`. Where that value is in the file is left to
/// the caller. A string is never quoted, because it may be a secret in the wrong place.
pub fn describe_mismatch(problem: &str, found: &Value) -> String {
    // The line number of a value read from memory is meaningless.
    let problem = problem.split(" at line ").next().unwrap_or(problem);
    if let Some(field) = problem.strip_prefix("missing field ") {
        return format!("'{}' is missing", field.trim_matches('`'));
    }
    let Some((what, expected)) = problem.rsplit_once(", expected ") else {
        return problem.to_owned();
    };
    if what.starts_with("unknown variant") {
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        return unknown_value_message(found.as_str().unwrap_or_default(), &known);
    }
    if !what.starts_with("invalid type: ") && !what.starts_with("invalid value: ") {
        return problem.to_owned();
    }
    let wanted = expected_kind(expected, found);
    format!(
        "must be {wanted}, not {}{}",
        found_kind(found),
        quotes_hint(expected, found)
    )
}

/// Builds an "unknown value" message with the closest suggestion, or else all known values.
pub fn unknown_value_message(value: &str, known: &[&str]) -> String {
    let hint = match nearest_names(value, known.iter().copied(), 1).pop() {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("possible values: {}", known.join(", ")),
    };
    format!("'{value}' is unknown; {hint}")
}

fn expected_kind(expected: &str, found: &Value) -> String {
    let is_number = matches!(expected, "f32" | "f64");
    let is_whole = matches!(
        expected,
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize"
    );
    match expected {
        "a sequence" => "a list in [ ]".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "an object in { }".to_owned(),
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged enum") => {
            "an object in { }".to_owned()
        }
        _ if is_number => "a number".to_owned(),
        _ if is_whole => match found.as_i64() {
            Some(small) if small < 0 && expected.starts_with('u') => {
                "a whole number, 0 or more".to_owned()
            }
            Some(_) if expected == "u32" => format!("a whole number up to {}", u32::MAX),
            _ => "a whole number".to_owned(),
        },
        // An enum's variant is a string as well.
        _ => "a string".to_owned(),
    }
}

fn found_kind(found: &Value) -> String {
    match found {
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

// Quoted numbers and booleans are the usual mistake.
fn quotes_hint(expected: &str, found: &Value) -> &'static str {
    let text = found.as_str().unwrap_or_default();
    let is_quoted = match expected {
        "a boolean" => text.parse::<bool>().is_ok(),
        "a string" => false,
        _ => text.parse::<f64>().is_ok(),
    };
    if is_quoted {
        "; leave the quotes out"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Settings {
        text: String,
        list: Vec<String>,
        flag: bool,
        count: u32,
        size: usize,
        share: f64,
        word: Word,
        inner: Inner,
        path: std::path::PathBuf,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        #[default]
        Mock,
        Builtin,
    }

    #[derive(Debug, Default, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only its absence matters")]
        needed: String,
    }

    #[test]
    fn people_see_no_serde_jargon() {
        for (key, value, expected) in [
            ("text", json!(30), "must be a string, not 30"),
            ("text", json!(null), "must be a string, not null"),
            ("path", json!(["x"]), "must be a string, not a list"),
            (
                "list",
                json!("secret"),
                "must be a list in [ ], not a string",
            ),
            (
                "flag",
                json!("true"),
                "must be true or false, not a string; leave the quotes out",
            ),
            ("flag", json!("yes"), "must be true or false, not a string"),
            (
                "count",
                json!(-1),
                "must be a whole number, 0 or more, not -1",
            ),
            (
                "count",
                json!(5_000_000_000_u64),
                "must be a whole number up to 4294967295, not 5000000000",
            ),
            ("count", json!(1.5), "must be a whole number, not 1.5"),
            (
                "size",
                json!("8"),
                "must be a whole number, not a string; leave the quotes out",
            ),
            ("size", json!({}), "must be a whole number, not an object"),
            ("share", json!("many"), "must be a number, not a string"),
            (
                "word",
                json!("mok"),
                "'mok' is unknown; did you mean 'mock'?",
            ),
            (
                "word",
                json!("shell"),
                "'shell' is unknown; possible values: mock, builtin",
            ),
            ("word", json!(true), "must be a string, not true"),
            (
                "inner",
                json!("x"),
                "must be an object in { }, not a string",
            ),
            ("inner", json!({}), "'needed' is missing"),
        ] {
            let error = serde_json::from_value::<Settings>(json!({ key: value })).unwrap_err();
            assert_eq!(describe_mismatch(&error.to_string(), &value), expected);
        }
        assert_eq!(
            describe_mismatch("must be at least 1", &json!(0)),
            "must be at least 1"
        );
    }
}
