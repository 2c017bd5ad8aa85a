use serde_json::json;

use super::*;
use crate::text::escape;

#[test]
fn clones_share_secrets_and_keep_old_ones() {
    let redactor = Redactor::new(["first-secret".to_owned()]);
    let other = redactor.clone();
    redactor.add_secrets([
        "second-secret".to_owned(),
        "first-secret-and-more".to_owned(),
    ]);
    let text = "first-secret-and-more second-secret first-secret";
    assert_eq!(other.text(text), "[REDACTED] [REDACTED] [REDACTED]");
}

#[test]
fn secrets_are_hidden_by_key() {
    let redactor = Redactor::default();
    for (value, expected) in [
        (
            json!({ "password": "hunter2" }),
            r#"{"password":"[REDACTED]"}"#,
        ),
        (
            json!({ "a": [{ "API-Key": "k" }] }),
            r#"{"a":[{"API-Key":"[REDACTED]"}]}"#,
        ),
        (
            json!({ "Authorization": ["Bearer x"] }),
            r#"{"Authorization":"[REDACTED]"}"#,
        ),
        (
            json!({ "accessToken": "x", "max_tokens": 5 }),
            r#"{"accessToken":"[REDACTED]","max_tokens":5}"#,
        ),
        (
            json!({ "pin": 1234, "pinned": true }),
            r#"{"pin":"[REDACTED]","pinned":true}"#,
        ),
        (
            json!({ "key": "x", "keyboard": "qwerty" }),
            r#"{"key":"[REDACTED]","keyboard":"qwerty"}"#,
        ),
    ] {
        assert_eq!(redactor.json(&value, 1000), expected);
        assert_eq!(redactor.value(&value).to_string(), expected);
        assert_eq!(redactor.compact(&value, 1000), (expected.to_owned(), 0));
    }
}

#[test]
fn secrets_are_hidden_by_value_wherever_they_are() {
    let redactor = Redactor::new([
        "s3cret-value".to_owned(),
        "s3cret".to_owned(),
        "abc".to_owned(),
    ]);
    assert_eq!(
        redactor.line("url=http://u:s3cret-value@host s3cret abc", 100),
        "url=http://u:[REDACTED]@host [REDACTED] abc"
    );
    let value = json!({ "s3cret": ["x s3cret-value y"] });
    assert_eq!(
        redactor.json(&value, 100),
        r#"{"[REDACTED]":["x [REDACTED] y"]}"#
    );
    assert!(!format!("{redactor:?}").contains("s3cret"));
}

#[test]
fn long_values_are_cut_with_their_true_size() {
    let redactor = Redactor::default();
    let text = redactor.json(&json!({ "s": "x".repeat(10_000) }), 1000);
    assert!(
        text.ends_with("… (10000 bytes)\"}") && text.len() < 300,
        "{text}"
    );
    let text = redactor.json(&json!(vec![1; 100_000]), 100);
    assert!(
        text.ends_with("… (200001 bytes)") && text.len() < 150,
        "{text}"
    );
    assert_eq!(escape_truncated("ééé", 3), "é… (6 bytes)");
}

#[test]
fn a_kept_value_is_the_redacted_value_or_its_beginning() {
    let redactor = Redactor::new(["s3cret".to_owned(), "4711".to_owned()]);
    let value = json!({
        "a s3cret": "x\n\u{202e}\"s3cret", "n": [4711.5, -3, 1e300, true, null], "pin": 1, "é": {},
        "text": r#"{"password": "hunter2"}"#,
    });
    let whole = redactor.value(&value).to_string();
    assert!(!whole.contains("s3cret") && !whole.contains("4711") && !whole.contains("hunter2"));
    assert_eq!(redactor.compact(&value, 1000), (whole.clone(), 0));
    for longest in 0..whole.len() {
        let (text, missing) = redactor.compact(&value, longest);
        assert!(whole.starts_with(&text) && text.len() <= longest, "{text}");
        assert!(missing > 0 && missing < 200, "{missing}");
    }
    let mut deep = json!(1);
    for _ in 0..2000 {
        deep = Value::Array(vec![deep]);
    }
    let (text, missing) = redactor.compact(&deep, 10_000);
    assert!(text.contains("[\"…\"]") && missing == 0);
    // Dropped level by level: the default recursive drop would overflow the stack.
    while let Value::Array(mut inner) = deep {
        deep = inner.pop().unwrap_or_default();
    }
}

#[test]
fn nothing_can_forge_a_line_or_drive_a_terminal() {
    let hostile = "a\nb\r\u{1b}[31m\u{202e}\u{200b}\u{e0041}\u{85}\0";
    assert_eq!(
        escape(hostile),
        r"a\nb\r\u{1b}[31m\u{202e}\u{200b}\u{e0041}\u{85}\u{0}"
    );
    assert!(
        !Redactor::default()
            .json(&json!({ hostile: hostile }), 1000)
            .contains(char::is_control)
    );
}

#[test]
fn f28_a_tool_that_repeats_a_secret_argument_does_not_show_it() {
    let redactor = Redactor::new(["configured-token".to_owned()]);
    let asked = json!({ "user": "ann", "login": [{ "password": "hunter22" }], "pin": "1234" });
    let of_call = redactor.for_call(&asked);
    assert_eq!(
        of_call.value(&json!({ "echo": "hunter22 for ann, 1234, configured-token" })),
        json!({ "echo": "[REDACTED] for ann, 1234, [REDACTED]" })
    );
    // It is a secret in this call only.
    assert_eq!(redactor.text("hunter22"), "hunter22");
}
