use serde_json::{Value, json};

use super::*;

fn read(value: Value) -> Result<ModelSettings, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn an_empty_section_is_the_defaults() {
    assert_eq!(read(json!({})), Ok(ModelSettings::default()));
}

#[test]
fn every_key_is_read() {
    let read = read(json!({
        "provider": "openai", "name": "m", "url": "http://h/v1", "key": "k", "system": "s",
        "contextTokens": 4096, "maxTokens": 64, "think": false, "keepThinking": true, "keepAlive": 60,
        "temperature": 0.5, "seed": 7, "maxToolRounds": 2, "maxSameCalls": 1, "maxTools": 5,
        "maxToolTokens": 900, "schemas": "original", "pinnedTools": ["a"], "maxResult": "1KiB", "rescue": false,
        "intentsFirst": true, "intents": ["own.json"], "attempts": 1, "firstByteTimeout": "5s",
        "timeout": "1m",
    }));
    let expected = ModelSettings {
        provider: Some(AnswerSource::Model(crate::Provider::OpenAi)),
        name: "m".to_owned(),
        url: "http://h/v1".to_owned(),
        key: "k".to_owned(),
        system: "s".to_owned(),
        context_tokens: Some(4096),
        max_tokens: 64,
        think: Some(false),
        keep_thinking: true,
        keep_alive: 60,
        temperature: Some(0.5),
        seed: Some(7),
        max_tool_rounds: 2,
        max_same_calls: 1,
        max_tools: 5,
        max_tool_tokens: 900,
        schemas: SchemaForm::Original,
        pinned_tools: vec!["a".to_owned()],
        max_result: 1024,
        rescue: false,
        intents_first: true,
        intents: vec!["own.json".into()],
        attempts: 1,
        first_byte: Duration::from_secs(5),
        timeout: Duration::from_secs(60),
    };
    assert_eq!(read, Ok(expected));
}

#[test]
fn invalid_messages_are_rejected() {
    for (wrong, expected) in [
        (
            json!({ "provider": "chatgpt" }),
            "unknown variant `chatgpt`",
        ),
        (json!({ "models": "x" }), "unknown field `models`"),
        (json!({ "schemas": "raw" }), "unknown variant `raw`"),
        (json!({ "maxToolRounds": 0 }), "must be from 1 to 1000"),
        (json!({ "contextTokens": 10 }), "must be at least 512"),
        (json!({ "temperature": 3 }), "must be from 0 to 2"),
        (json!({ "attempts": 0 }), "must be from 1 to 20"),
        (json!({ "timeout": 30 }), "write \"30s\""),
        (json!({ "maxResult": "64" }), "is not a size"),
        (json!({ "keepAlive": -2 }), "must be a number of seconds"),
        (json!({ "keepAlive": "soon" }), "is not a duration"),
    ] {
        let error = read(wrong.clone()).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn an_address_is_shown_without_login_and_query() {
    for (url, expected) in [
        ("https://ada:pa55word@host/v1/", "https://host/v1"),
        ("https://host/v1?key=s3cret#there", "https://host/v1"),
        ("https://host?mail=a@b", "https://host"),
        ("ada:pa55word@host:11434", "host:11434"),
        ("", ""),
    ] {
        assert_eq!(display_url(url), expected);
    }
}

#[test]
fn the_key_and_a_login_are_secrets() {
    for (url, expected) in [
        ("https://ada:pa55word@host/v1", vec!["k3y", "pa55word"]),
        ("https://t0ken@host/v1", vec!["k3y", "t0ken"]),
        ("https://host/v1?mail=a@b", vec!["k3y"]),
        ("", vec!["k3y"]),
    ] {
        let settings = ModelSettings {
            url: url.to_owned(),
            key: "k3y".to_owned(),
            ..ModelSettings::default()
        };
        assert_eq!(settings.secrets(), expected, "{url}");
        let shown = format!("{settings:?}");
        assert!(
            expected.iter().all(|secret| !shown.contains(secret)),
            "{shown}"
        );
    }
}
