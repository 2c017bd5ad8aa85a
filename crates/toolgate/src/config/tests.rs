use std::time::Duration;

use super::*;

fn environment(name: &str) -> Option<String> {
    match name {
        "KEY" => Some("s3cret-key".to_owned()),
        "HOME" => Some("/home/ada".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> Result<Config, String> {
    let document = Document::parse(Path::new("/etc/t.json"), text.as_bytes())
        .map_err(|error| error.to_string())?;
    Config::resolve(document, &environment).map_err(|error| error.to_string())
}

#[test]
fn a_full_file_is_understood() {
    let config = read(
        r#"{
            "$schema": "x", // for editors
            "limits": { "timeout": "5s", "slowAfter": "100ms", "maxTotal": "1m", "maxArguments": "1KiB", "maxResult": "2MiB",
                        "concurrency": 3, "perTool": { "slow": { "timeout": "2m" } } },
            "policy": { "allow": ["*"], "deny": ["x"], "ask": ["house/*"] },
            "search": { "backend": "brave", "key": "${KEY}" },
            "documents": { "folders": ["notes", "~/docs", "/abs"] },
            "tools": [],
        }"#,
    )
    .unwrap();
    assert_eq!(config.limits.timeout, Duration::from_secs(5));
    assert_eq!(
        (config.limits.max_arguments, config.limits.concurrency),
        (1024, 3)
    );
    assert_eq!(
        config.limits.per_tool["slow"].timeout,
        Some(Duration::from_secs(120))
    );
    assert_eq!(config.secrets(), ["s3cret-key"]);
    let login = read(r#"{ "search": { "url": "http://ada:s3cret-word@host/" } }"#).unwrap();
    assert_eq!(login.secrets(), ["s3cret-word"]);
    let folders: Vec<&str> = config
        .documents
        .folders
        .iter()
        .filter_map(|path| path.to_str())
        .collect();
    assert_eq!(folders, ["/etc/notes", "/home/ada/docs", "/abs"]);
    assert!(config.warnings.is_empty());
}

#[test]
fn what_is_wrong_is_said_with_file_line_key_and_a_suggestion() {
    for (text, expected) in [
        (
            "{\n \"limts\": {}\n}",
            "/etc/t.json:2: unknown key 'limts'; did you mean 'limits'?",
        ),
        (
            "{\n \"limits\": {\n  \"timeot\": \"5s\" }}",
            "/etc/t.json:3: unknown key 'limits.timeot'; did you mean 'timeout'?",
        ),
        (
            r#"{"limits": {"timeout": 30}}"#,
            "/etc/t.json:1: limits.timeout: invalid type: integer `30`, expected a string",
        ),
        (
            r#"{"limits": {"timeout": "30"}}"#,
            "/etc/t.json:1: limits.timeout: '30' is no duration; write a number and ms, s, m or h, such as 30s",
        ),
        (
            r#"{"limits": {"timeout": "0s"}}"#,
            "/etc/t.json:1: limits.timeout: '0s' must be more than nothing and at most a week",
        ),
        (
            r#"{"limits": {"concurrency": 0}}"#,
            "/etc/t.json:1: limits.concurrency: must be at least 1",
        ),
        (
            r#"{"limits": {"perTool": {"x": {"timout": "1s"}}}}"#,
            "/etc/t.json:1: unknown key 'limits.perTool.x.timout'; did you mean 'timeout'?",
        ),
        (
            r#"{"policy": {"allow": "x"}}"#,
            "/etc/t.json:1: policy.allow: invalid type: string \"x\", expected a list",
        ),
        (
            r#"{"search": {"backend": "google"}}"#,
            "/etc/t.json:1: search.backend: unknown variant `google`, expected one of `duckduckgo`, `searxng`, `brave`",
        ),
        (
            r#"{"tools": {}}"#,
            "/etc/t.json:1: tools: must be a list of tool definitions",
        ),
        (
            r#"{"policy": [["echo"], [], ["*"]]}"#,
            "/etc/t.json:1: policy: must be an object",
        ),
        (
            r#"{"limits": {"concurrency": "many"}}"#,
            "/etc/t.json:1: limits.concurrency: invalid type: string \"many\", expected a whole number",
        ),
        (
            r#"{"limits": {"perTool": {"a.b": {"timeout": "x"}}}}"#,
            "/etc/t.json:1: limits.perTool.a.b.timeout: 'x' is no duration; write a number and ms, s, m or h, such as 30s",
        ),
        (
            "{\"search\": {\"backend\": \"\\u001b[31mx\\nFAKE\"}}",
            "/etc/t.json:1: search.backend: unknown variant `\\u{1b}[31mx\\nFAKE`, expected one of `duckduckgo`, `searxng`, `brave`",
        ),
        ("[]", "/etc/t.json:1: must be a JSON object"),
        (
            r#"{"limits": {"timeout": "${NOPE}"}}"#,
            "/etc/t.json:1: limits.timeout: the variable NOPE is not set",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn an_unset_variable_counts_only_where_its_section_is_used() {
    let config = read(
        r#"{ "search": { "backend": "brave", "key": "${NOPE}" },
             "tools": [{ "name": "web", "implementation": { "type": "builtin", "handler": "search" } }] }"#,
    )
    .unwrap();
    let text = "/etc/t.json:1: search.key: the variable NOPE is not set";
    for tool in ["search", "web"] {
        assert_eq!(
            config.unset_for(tool).map(ToString::to_string).as_deref(),
            Some(text)
        );
    }
    assert_eq!(config.unset_for("echo"), None);
    assert_eq!(config.unset().count(), 1);
}

#[test]
fn a_file_of_other_clients_may_hold_keys_of_theirs() {
    let config = read(r#"{ "mcpServers": {}, "inputs": [] }"#).unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[1].contains("'inputs' is not ours and is ignored"));
    assert!(read(r#"{ "mcpServers": {}, "limits": {}, "inputs": [] }"#).is_err());
}

proptest::proptest! {
    #[test]
    fn no_file_makes_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        if let Ok(document) = Document::parse(Path::new("t"), &bytes) {
            drop(Config::resolve(document, &environment));
        }
    }

    #[test]
    fn no_json_makes_it_panic(text in r#"(\{|\}|\[|\]|"tools"|"limits"|"policy"|"name"|"implementation"|"type"|:|,|1|-2.5|null|true|"\$\{A\}"|//x
)*"#) {
        drop(read(&text));
        drop(read(&format!("{{\"tools\":[{text}]}}")));
    }
}
