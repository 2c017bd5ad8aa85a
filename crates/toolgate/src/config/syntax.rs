//! Explains JSON syntax errors to people who rarely write JSON.

use jsonc_parser::ParseStringErrorKind;
use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};

use super::error::TextPosition;

pub(super) fn describe(text: &str, error: &ParseError) -> (TextPosition, String) {
    if let Some(other) = other_format(text) {
        let text = format!(
            "is not JSON{other}; a configuration is an object such as {{ \"mcpServers\": {{}} }}"
        );
        return (TextPosition { line: 1, column: 1 }, text);
    }
    let told = match error.kind() {
        Kind::ExpectedColonAfterObjectKey => "a ':' is missing after this key",
        Kind::ExpectedObjectValue => "a value is missing after the ':'",
        Kind::ExpectedStringObjectProperty | Kind::UnexpectedTokenInObject => {
            "a key in double quotes is expected here, such as \"tools\""
        }
        Kind::ExpectedComma => "a ',' is missing here",
        Kind::MultipleRootJsonValues => "unexpected text after the end of the JSON object",
        Kind::SingleQuotedStringsNotAllowed => "single quotes are not JSON; write \"…\"",
        Kind::UnexpectedCloseBrace => "unexpected '}'",
        Kind::UnexpectedCloseBracket => "unexpected ']'",
        Kind::UnexpectedColon => "unexpected ':'",
        Kind::UnexpectedComma => "unexpected ','",
        Kind::UnexpectedWord => "a word must be in double quotes, unless it is true, false or null",
        Kind::UnexpectedToken => "unexpected character",
        Kind::UnterminatedArray => "the list that begins here is not closed; a ']' is missing",
        Kind::UnterminatedObject => "the object that begins here is not closed; a '}' is missing",
        Kind::UnterminatedCommentBlock => {
            "the comment that begins here is not closed; '*/' is missing"
        }
        Kind::NestingDepthExceeded => "is nested too deeply",
        Kind::BareDecimalPointNumbersNotAllowed
        | Kind::ExpectedDigit
        | Kind::ExpectedDigitFollowingNegativeSign
        | Kind::ExpectedPlusMinusOrDigitInNumberLiteral
        | Kind::HexadecimalNumbersNotAllowed
        | Kind::NonFiniteNumbersNotAllowed
        | Kind::UnaryPlusNumbersNotAllowed => {
            "this is not a number as JSON writes it, such as 5 or -2.5"
        }
        Kind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "the string that begins here is not closed; a '\"' is missing"
        }
        Kind::String(_) => "this escape is unknown; a backslash itself is written as \\\\",
        _ => "this is not JSON",
    };
    // Counted here as everywhere else, because the parser takes a lone carriage return
    // for a line end.
    let before = text.get(..error.range().start).unwrap_or(text);
    (TextPosition::after(before), told.to_owned())
}

fn other_format(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']))?;
    let is_json = first.starts_with(['{', '[', '"', '/']);
    let is_section = first.starts_with('[') && first.ends_with(']') && first.len() > 2 && {
        let name = &first[1..first.len() - 1];
        let is_part = |c: char| c.is_alphanumeric() || "._-[]".contains(c);
        name.chars().all(is_part) && name.contains(char::is_alphabetic)
    };
    if first.starts_with('<') {
        Some(" (it looks like XML or HTML)")
    } else if is_section || !is_json && first.contains(" = ") {
        Some(" (it looks like TOML)")
    } else if is_json {
        None
    } else if first.starts_with("---") || first.ends_with(':') || first.contains(": ") {
        Some(" (it looks like YAML)")
    } else {
        Some("")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::ConfigDocument;

    #[test]
    fn json_errors_are_plain_and_located() {
        let other = |what: &str| {
            format!(
                "is not JSON{what}; a configuration is an object such as {{ \"mcpServers\": {{}} }}"
            )
        };
        let mut wrong = Vec::new();
        for (text, expected) in [
            (
                "hello: world",
                format!("1:1: {}", other(" (it looks like YAML)")),
            ),
            (
                "---\ntools: []",
                format!("1:1: {}", other(" (it looks like YAML)")),
            ),
            (
                "# mine\nlimits:\n  timeout: 5s",
                format!("1:1: {}", other(" (it looks like YAML)")),
            ),
            (
                "[serve]\nbind = \"x\"",
                format!("1:1: {}", other(" (it looks like TOML)")),
            ),
            (
                "timeout = 5",
                format!("1:1: {}", other(" (it looks like TOML)")),
            ),
            (
                "<html>",
                format!("1:1: {}", other(" (it looks like XML or HTML)")),
            ),
            ("nothing", format!("1:1: {}", other(""))),
            (
                "{\n  \"a\": 1\n  \"b\": 2\n}",
                "2:9: a ',' is missing here".to_owned(),
            ),
            (
                "{\n  a: 1\n}",
                "2:3: a key in double quotes is expected here, such as \"tools\"".to_owned(),
            ),
            (
                "{ \"a\": 'x' }",
                "1:8: single quotes are not JSON; write \"…\"".to_owned(),
            ),
            (
                "{ \"a\": yes }",
                "1:8: a word must be in double quotes, unless it is true, false or null".to_owned(),
            ),
            (
                "{ \"a\" 1 }",
                "1:7: a ':' is missing after this key".to_owned(),
            ),
            ("{ \"a\": }", "1:8: unexpected '}'".to_owned()),
            (
                "{",
                "1:1: the object that begins here is not closed; a '}' is missing".to_owned(),
            ),
            (
                "{ \"a\": [1, 2",
                "1:8: the list that begins here is not closed; a ']' is missing".to_owned(),
            ),
            (
                "{} {}",
                "1:4: unexpected text after the end of the JSON object".to_owned(),
            ),
            (
                "{ \"a\": .5 }",
                "1:8: this is not a number as JSON writes it, such as 5 or -2.5".to_owned(),
            ),
            (
                "{ \"a\": 0x5 }",
                "1:8: this is not a number as JSON writes it, such as 5 or -2.5".to_owned(),
            ),
            (
                "{ /* x",
                "1:3: the comment that begins here is not closed; '*/' is missing".to_owned(),
            ),
            (
                "{ \"a\": \"x\n }",
                "1:8: the string that begins here is not closed; a '\"' is missing".to_owned(),
            ),
            (
                "{ \"a\": \"\\q\" }",
                "1:9: this escape is unknown; a backslash itself is written as \\\\".to_owned(),
            ),
            (
                "{ ]",
                "1:3: a key in double quotes is expected here, such as \"tools\"".to_owned(),
            ),
            (
                "{\r\n\r]",
                "2:2: a key in double quotes is expected here, such as \"tools\"".to_owned(),
            ),
            (
                "{ \"a\": 1,, }",
                "1:10: a key in double quotes is expected here, such as \"tools\"".to_owned(),
            ),
        ] {
            let error = ConfigDocument::parse(Path::new("t.json"), text.as_bytes()).unwrap_err();
            let expected = format!("t.json:{expected}");
            if error.to_string() != expected {
                wrong.push(format!("{text}: {error}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let deep = ConfigDocument::parse(Path::new("t.json"), "[".repeat(100_000).as_bytes());
        assert!(
            deep.unwrap_err()
                .to_string()
                .ends_with("is nested too deeply")
        );
    }
}
