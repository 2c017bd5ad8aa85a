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
    assert_eq!(
        warnings,
        ["/etc/t.json:1: 'inputs' is not ours and is ignored"]
    );
    assert!(read(r#"{ "mcpServers": {}, "limits": {}, "inputs": [] }"#).is_err());
}

#[test]
fn servers_are_read_from_both_keys_and_a_bad_one_costs_only_itself() {
    let config = read(
        r#"{
  "mcpServers": {
    "a": { "command": "./run", "args": ["${KEY}"], "env": { "TOKEN": "${KEY}" } },
    "b": { "command": "x",
           "env": { "T": "${NOPE}" } },
    "c": { "command": "x", "disabled": true, "env": { "T": "${NOPE}" } },
    "d": {
      "command": "x", "type": "http" },
    "e": { "url": "http://h/",
      "headers": { "K": "${input:key}" } },
    "f": { "command": "${workspaceFolder}/x" },
  },
  "servers": {
    "a": { "command": "y" },
    "g": { "type": "stdio", "command": "${env://HOME}/y",
      "autoApprove": [] }
  }
}"#,
    )
    .unwrap();
    let servers: Vec<String> = config
        .servers
        .iter()
        .map(|server| match &server.settings.connection {
            toolgate_mcp::Connection::Stdio(program) => {
                format!("{} {}", server.settings.name, program.command)
            }
            toolgate_mcp::Connection::Http { url, .. } => format!("{} {url}", server.settings.name),
        })
        .collect();
    assert_eq!(servers, ["a /etc/./run", "c x", "g /home/ada/y"]);
    assert_eq!(config.servers[0].entry["args"][0], "${KEY}");
    let problems: Vec<String> = config
        .server_problems
        .iter()
        .map(|problem| problem.error.to_string())
        .collect();
    assert_eq!(
        problems,
        [
            "/etc/t.json:5: server 'b' is left out: env.T: the variable NOPE is not set",
            "/etc/t.json:8: server 'd' is left out: type: a server of this type needs a 'url', not a 'command'",
            "/etc/t.json:10: server 'e' is left out: headers.K: ${input:…} is a question that VS Code asks; write ${VAR} and set the variable",
            "/etc/t.json:11: server 'f' is left out: command: ${workspaceFolder} is a variable of another client; write a path, relative to this file or with ~/",
            "/etc/t.json:14: server 'a' is left out: 'mcpServers' has one of this name",
            "/etc/t.json:16: server 'g': unknown key 'autoApprove' is ignored",
        ]
    );
    assert_eq!(config.secrets(), ["s3cret-key"]);
    assert_eq!(
        read(r#"{ "mcpServers": [] }"#).unwrap_err(),
        "/etc/t.json:1: mcpServers: must be an object that has a server under each name"
    );
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

#[test]
fn tokens_and_logins_of_the_gateway_are_secrets() {
    let config = read(
        r#"{ "serve": { "token": "${KEY}", "tokens": [{ "token": "second-token", "allow": [] }] },
             "telemetry": { "otlp": "https://me:third-word@h:4318" } }"#,
    );
    assert_eq!(
        config.unwrap().secrets(),
        ["third-word", "s3cret-key", "second-token"]
    );
}

#[test]
fn a_variable_that_is_not_set_counts_where_its_section_is_used() {
    let config = read(
        r#"{ "serve": { "token": "${NONE}" }, "journal": { "file": "${NONE}" }, "search": { "key": "${NONE}" } }"#,
    )
    .unwrap();
    let told = |error: Option<&ConfigError>| error.map(ToString::to_string).unwrap_or_default();
    assert!(told(config.unset_for_serve()).contains("serve.token"));
    assert!(told(config.unset_for_journal()).contains("journal.file"));
    assert!(told(config.unset_for("search")).contains("search.key"));
    assert_eq!(
        (config.unset_for("serve"), config.unset_for_model()),
        (None, None)
    );
    assert_eq!(
        (config.unset_for_tools().count(), config.unset().count()),
        (1, 3)
    );
}

#[test]
fn the_journal_lies_beside_the_file_or_in_the_home_folder() {
    for (text, expected) in [
        ("calls.db", "/etc/calls.db"),
        ("~/calls.db", "/home/ada/calls.db"),
        ("/var/calls.db", "/var/calls.db"),
    ] {
        let config = read(&format!(r#"{{ "journal": {{ "file": "{text}" }} }}"#)).unwrap();
        assert_eq!(config.journal.file.as_deref(), Some(Path::new(expected)));
    }
    assert_eq!(read("{}").unwrap().journal.file, None);
    let wrong = read(r#"{ "journal": { "keepday": 1 } }"#).unwrap_err();
    assert!(wrong.contains("did you mean 'keepDays'?"), "{wrong}");
}

#[test]
fn what_is_said_of_voices_is_read_and_counts_where_it_is_used() {
    let config = read(
        r#"{ "voice": { "silence": "1s", "output": "spoken.wav" },
             "mqtt": { "url": "mqtt://h", "username": "house", "password": "${KEY}" } }"#,
    )
    .unwrap();
    assert_eq!(config.voice.silence, Duration::from_secs(1));
    assert_eq!(config.voice.output, "/etc/spoken.wav");
    assert_eq!(config.secrets(), ["s3cret-key"]);
    let kept = read(r#"{ "voice": { "output": "tcp://h:1/x.wav" } }"#).unwrap();
    assert_eq!(kept.voice.output, "tcp://h:1/x.wav");
    let config = read(r#"{ "mqtt": { "password": "${NOPE}" } }"#).unwrap();
    let text = config.unset_for_voice().map(ToString::to_string);
    let expected = "/etc/t.json:1: mqtt.password: the variable NOPE is not set";
    assert_eq!(text.as_deref(), Some(expected));
    assert_eq!(
        (config.unset_for_model(), config.unset_for_serve()),
        (None, None)
    );
    for (text, expected) in [
        (
            r#"{ "voice": { "asrs": "x" } }"#,
            "/etc/t.json:1: unknown key 'voice.asrs'; did you mean 'asr'?",
        ),
        (
            r#"{ "voice": { "sensitivity": "high" } }"#,
            "/etc/t.json:1: voice.sensitivity: invalid type: string \"high\", expected a number",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), expected);
    }
}
