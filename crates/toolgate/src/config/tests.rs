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
    let document = ConfigDocument::parse(Path::new("/etc/t.json"), text.as_bytes())
        .map_err(|error| error.to_string())?;
    Config::resolve(
        document,
        ConfigReadOptions::new(&environment, SecretScope::Everything),
    )
    .map_err(|error| error.to_string())
}

#[test]
fn a_full_file_is_understood() {
    let config = read(
        r#"{
            "$schema": "x", // for editors
            "limits": { "timeout": "5s", "slowAfter": "100ms", "maxTotal": "1m", "maxTask": "48h", "maxArguments": "1KiB",
                        "maxResult": "2MiB", "concurrency": 3, "perTool": { "slow": { "timeout": "2m" } } },
            "policy": { "allow": ["*"], "deny": ["x"], "ask": ["house/*"] },
            "search": { "backend": "brave", "key": "${KEY}" },
            "documents": { "folders": ["notes", "~/docs", "/abs"] },
            "tools": [],
        }"#,
    )
    .unwrap();
    assert_eq!(config.limits.timeout, Duration::from_secs(5));
    assert_eq!(config.limits.max_task, Duration::from_secs(172_800));
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

/// Common mistakes and what people read then. No library's wording is among it.
#[test]
fn errors_have_file_line_column_key_and_fix() {
    for (text, expected) in [
        (
            r#"{
 "limts": {}
}"#,
            r#"2:2: unknown key 'limts'; did you mean 'limits'?"#,
        ),
        (
            r#"{
 "limits": {
  "timeot": "5s" }}"#,
            r#"3:3: unknown key 'limits.timeot'; did you mean 'timeout'?"#,
        ),
        (
            r#"{"limits": {"timeout": 30}}"#,
            r#"1:13: limits.timeout: 30 has no unit; write "30s" for seconds or "30ms" for milliseconds"#,
        ),
        (
            r#"{"limits": {"timeout": "30"}}"#,
            r#"1:13: limits.timeout: '30' is not a duration; write a number and ms, s, m or h, such as 30s"#,
        ),
        (
            r#"{"limits": {"timeout": "0s"}}"#,
            r#"1:13: limits.timeout: '0s' must be more than zero and at most a week"#,
        ),
        (
            r#"{"limits": {"timeout": null}}"#,
            r#"1:13: limits.timeout: must be a duration, such as "30s""#,
        ),
        (
            r#"{"limits": {"maxResult": 100}}"#,
            r#"1:13: limits.maxResult: 100 has no unit; write "100B" for bytes, or a size such as "1MiB""#,
        ),
        (
            r#"{"limits": {"concurrency": 0}}"#,
            r#"1:13: limits.concurrency: must be at least 1"#,
        ),
        (
            r#"{"limits": {"concurrency": -1}}"#,
            r#"1:13: limits.concurrency: must be a whole number, 0 or more, not -1"#,
        ),
        (
            r#"{"limits": {"concurrency": "many"}}"#,
            r#"1:13: limits.concurrency: must be a whole number, not a string"#,
        ),
        (
            r#"{"limits": {"concurrency": "8"}}"#,
            r#"1:13: limits.concurrency: must be a whole number, not a string; leave the quotes out"#,
        ),
        (
            r#"{"limits": {"perTool": {"x": {"timout": "1s"}}}}"#,
            r#"1:31: unknown key 'limits.perTool.x.timout'; did you mean 'timeout'?"#,
        ),
        (
            r#"{"limits": {"perTool": {"a.b": {"timeout": "x"}}}}"#,
            r#"1:33: limits.perTool.a.b.timeout: 'x' is not a duration; write a number and ms, s, m or h, such as 30s"#,
        ),
        (
            r#"{"limits": {"perTool": {"x": "5s"}}}"#,
            r#"1:25: limits.perTool.x: must be an object in { }, not a string"#,
        ),
        (
            r#"{"limits": {"timeout": "${NOPE}"}}"#,
            r#"1:13: limits.timeout: the variable NOPE is not set"#,
        ),
        (
            r#"{"policy": {"allow": "x"}}"#,
            r#"1:13: policy.allow: must be a list in [ ], not a string"#,
        ),
        (
            r#"{"policy": {"allow": ["x", 5]}}"#,
            r#"1:28: policy.allow.1: must be a string, not 5"#,
        ),
        (
            r#"{"policy": [["echo"], [], ["*"]]}"#,
            r#"1:2: policy: must be an object in { }"#,
        ),
        (
            r#"{"search": {"backend": "google"}}"#,
            r#"1:13: search.backend: 'google' is unknown; possible values: duckduckgo, searxng, brave"#,
        ),
        (
            r#"{"search": {"backend": true}}"#,
            r#"1:13: search.backend: must be a string, not true"#,
        ),
        (
            r#"{"tools": {}}"#,
            r#"1:2: tools: must be a list of tool definitions"#,
        ),
        (
            r#"{"serve": {"bind": "127.0.0.1:99999"}}"#,
            r#"1:12: serve.bind: ports go to 65535; write an address such as 127.0.0.1:7460"#,
        ),
        (
            r#"{"serve": {"bind": "example.org:80"}}"#,
            r#"1:12: serve.bind: must be an address of this machine and a port, such as 127.0.0.1:7460"#,
        ),
        (
            r#"{"serve": {"bind": 7460}}"#,
            r#"1:12: serve.bind: must be a string, not 7460"#,
        ),
        (
            r#"{"serve": {"tokens": [{"name": "kitchen"}]}}"#,
            r#"1:23: serve.tokens.0: 'token' is missing"#,
        ),
        (
            r#"{"serve": {"tokens": "s3cret"}}"#,
            r#"1:12: serve.tokens: must be a list in [ ], not a string"#,
        ),
        (
            r#"{"serve": {"rate": 99999999999}}"#,
            r#"1:12: serve.rate: must be a whole number up to 4294967295, not 99999999999"#,
        ),
        (
            r#"{"journal": {"keepDays": "30"}}"#,
            r#"1:14: journal.keepDays: must be a whole number, not a string; leave the quotes out"#,
        ),
        (
            r#"{"journal": {"sync": "never"}}"#,
            r#"1:14: journal.sync: 'never' is unknown; possible values: relaxed, normal, full"#,
        ),
        (
            r#"{"model": {"provider": "gpt"}}"#,
            r#"1:12: model.provider: 'gpt' is unknown; possible values: anthropic, ollama, openai, gemini, intents"#,
        ),
        (
            r#"{"model": {"think": "true"}}"#,
            r#"1:12: model.think: must be true or false, not a string; leave the quotes out"#,
        ),
        (
            r#"{"retry": {"attempts": 100}}"#,
            r#"1:12: retry.attempts: must be from 1 to 20"#,
        ),
        (
            r#"{"voice": {"silence": 700}}"#,
            r#"1:12: voice.silence: 700 has no unit; write "700s" for seconds or "700ms" for milliseconds"#,
        ),
        (
            r#"{"documents": {"folders": "notes"}}"#,
            r#"1:16: documents.folders: must be a list in [ ], not a string"#,
        ),
        (
            r#"{"mcpServers": []}"#,
            r#"1:2: mcpServers: must be an object that has a server under each name, such as { "files": { "command": "npx" } }"#,
        ),
        (
            r#"[]"#,
            r#"1:1: must be a JSON object, such as { "mcpServers": {} }"#,
        ),
        (
            r#"hello: world"#,
            r#"1:1: is not JSON (it looks like YAML); a configuration is an object such as { "mcpServers": {} }"#,
        ),
        (
            "{\"search\": {\"backend\": \"\\u001b[31mx\\nFAKE\"}}",
            "1:13: search.backend: '\\u{1b}[31mx\\nFAKE' is unknown; possible values: duckduckgo, searxng, brave",
        ),
    ] {
        let expected = format!("/etc/t.json:{expected}");
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn all_problems_are_reported_in_file_order() {
    let text = r#"{
  "limts": {},
  "policy": { "allow": ["a", 1, "b", { "c": 2 }], "dny": [] },
  "limits": { "timeout": 30, "concurrency": "${NOPE}", "perTool": { "x": { "timout": 1 } } },
  "serve": {
    "tokens": [{ "name": "a" }, { "token": 5, "alow": [] }, { "token": "good-good-good-good", "allow": 5 }],
    "rate": "fast"
  },
  "tools": {},
  "mcpServers": []
}"#;
    let told = read(text).unwrap_err();
    let told: Vec<&str> = told.split("; /etc/t.json:").collect();
    assert_eq!(
        told,
        [
            "/etc/t.json:2:3: unknown key 'limts'; did you mean 'limits'?",
            "3:30: policy.allow.1: must be a string, not 1",
            "3:38: policy.allow.3: must be a string, not an object",
            "3:51: unknown key 'policy.dny'; did you mean 'deny'?",
            r#"4:15: limits.timeout: 30 has no unit; write "30s" for seconds or "30ms" for milliseconds"#,
            "4:30: limits.concurrency: the variable NOPE is not set",
            "4:76: unknown key 'limits.perTool.x.timout'; did you mean 'timeout'?",
            "6:16: serve.tokens.0: 'token' is missing",
            "6:35: serve.tokens.1.token: must be a string, not 5",
            "6:47: unknown key 'serve.tokens.1.alow'; did you mean 'allow'?",
            "6:95: serve.tokens.2.allow: must be a list in [ ], not 5",
            "7:5: serve.rate: must be a whole number, not a string",
            "9:3: tools: must be a list of tool definitions",
            r#"10:3: mcpServers: must be an object that has a server under each name, such as { "files": { "command": "npx" } }"#,
        ]
    );
}

#[test]
fn an_unset_variable_counts_only_where_its_section_is_used() {
    let config = read(
        r#"{ "search": { "backend": "brave", "key": "${NOPE}" },
             "tools": [{ "name": "web", "implementation": { "type": "builtin", "handler": "search" } }] }"#,
    )
    .unwrap();
    let text = "/etc/t.json:1:35: search.key: the variable NOPE is not set";
    for tool in ["search", "web"] {
        assert_eq!(
            config
                .unset_for_tool(tool)
                .map(ToString::to_string)
                .as_deref(),
            Some(text)
        );
    }
    assert_eq!(config.unset_for_tool("echo"), None);
    assert_eq!(config.unset().count(), 1);
}

#[test]
fn errors_never_show_the_value_of_a_variable() {
    let error =
        read(r#"{ "search": { "backend": "${KEY}" }, "limits": { "timeout": "x${KEY}" } }"#);
    assert_eq!(
        error.unwrap_err(),
        "/etc/t.json:1:15: search.backend: '${KEY}' is unknown; possible values: duckduckgo, searxng, brave; \
         /etc/t.json:1:50: limits.timeout: 'x${KEY}' is not a duration; write a number and ms, s, m or h, such as 30s"
    );
    let config = read(
        r#"{ "mcpServers": { "a": { "command": "x", "timeout": "${KEY}\r" }, "b": { "command": "x", "sandbox": { "level": "${KEY}" } } } }"#,
    );
    let problems = config.unwrap().server_problems;
    let problems: Vec<String> = problems.iter().map(|one| one.error.to_string()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("timeout: '${KEY}"), "{problems:?}");
    assert!(!problems.concat().contains("s3cret-key"), "{problems:?}");
}

#[test]
fn files_of_other_clients_may_have_keys_of_their_own() {
    let config = read(r#"{ "mcpServers": {}, "inputs": [] }"#).unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["/etc/t.json:1:21: 'inputs' is not a Toolgate setting and is ignored"]
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
    // Those that can't be started are there by name, so that nobody else gets their tools' names.
    let (blocked, usable): (Vec<_>, Vec<_>) = config
        .servers
        .iter()
        .partition(|server| server.settings.blocked.is_some());
    let blocked: Vec<&str> = blocked
        .iter()
        .map(|server| &*server.settings.name)
        .collect();
    assert_eq!(blocked, ["b", "e", "f"]);
    let servers: Vec<String> = usable
        .iter()
        .map(|server| match &server.settings.connection {
            toolgate_mcp::ServerConnection::Stdio(program) => {
                format!("{} {}", server.settings.name, program.command)
            }
            toolgate_mcp::ServerConnection::Http { url, .. } => {
                format!("{} {url}", server.settings.name)
            }
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
            "/etc/t.json:5:21: server 'b' is left out: env.T: the variable NOPE is not set",
            "/etc/t.json:8:23: server 'd' is left out: type: a server of this type needs a 'url', not a 'command'",
            "/etc/t.json:10:20: server 'e' is left out: headers.K: ${input:…} makes VS Code ask for a value; write ${VAR} and set the variable",
            "/etc/t.json:11:12: server 'f' is left out: command: ${workspaceFolder} is a variable of another client; write a path, relative to this file or with ~/",
            "/etc/t.json:14:5: server 'a' is left out: 'mcpServers' already has a server of this name",
            "/etc/t.json:16:7: server 'g': unknown key 'autoApprove' is ignored",
        ]
    );
    assert_eq!(config.secrets(), ["s3cret-key"]);
}

proptest::proptest! {
    #[test]
    fn no_file_makes_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        if let Ok(document) = ConfigDocument::parse(Path::new("t"), &bytes) {
            drop(Config::resolve(document, ConfigReadOptions::new(&environment, SecretScope::Everything)));
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
    assert!(told(config.unset_in_sections(&["serve", "telemetry"])).contains("serve.token"));
    assert!(told(config.unset_in_sections(&["journal"])).contains("journal.file"));
    assert!(told(config.unset_for_tool("search")).contains("search.key"));
    assert_eq!(
        (
            config.unset_for_tool("serve"),
            config.unset_in_sections(&["model"])
        ),
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
#[cfg(feature = "voice")]
fn voice_and_mqtt_settings_are_read() {
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
    let text = config
        .unset_in_sections(&["mqtt", "voice"])
        .map(ToString::to_string);
    let expected = "/etc/t.json:1:13: mqtt.password: the variable NOPE is not set";
    assert_eq!(text.as_deref(), Some(expected));
    assert_eq!(
        (
            config.unset_in_sections(&["model"]),
            config.unset_in_sections(&["serve", "telemetry"])
        ),
        (None, None)
    );
    for (text, expected) in [
        (
            r#"{ "voice": { "asrs": "x" } }"#,
            "/etc/t.json:1:14: unknown key 'voice.asrs'; did you mean 'asr'?",
        ),
        (
            r#"{ "voice": { "sensitivity": "high" } }"#,
            "/etc/t.json:1:14: voice.sensitivity: must be a number, not a string",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), expected);
    }
}
