use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use toolgate_core::RenameMode;

use super::*;
use crate::{EraSetting, HealthToolChoice};

fn places() -> ConfigPaths<'static> {
    ConfigPaths {
        folder: Path::new("/house"),
        home: Some(Path::new("/home/ada")),
    }
}

fn read(entry: &Value) -> (Option<ServerSettings>, Vec<String>) {
    let (settings, problems) = ServerSettings::read("s", entry, places());
    let texts = problems.into_iter().map(|problem| problem.text).collect();
    (settings, texts)
}

/// Reads an entry that must be free of errors and warnings.
fn good(entry: &Value) -> ServerSettings {
    match read(entry) {
        (Some(settings), problems) if problems.is_empty() => settings,
        (_, problems) => panic!("{entry}: {problems:?}"),
    }
}

fn program(entry: &Value) -> ServerProgram {
    match good(entry).connection {
        ServerConnection::Stdio(program) => program,
        ServerConnection::Http { .. } => panic!("{entry}"),
    }
}

fn http(entry: &Value) -> (String, Vec<(String, String)>) {
    match good(entry).connection {
        ServerConnection::Http { url, headers } => (url, headers.0),
        ServerConnection::Stdio(_) => panic!("{entry}"),
    }
}

#[test]
fn a_program_is_understood_as_every_client_writes_it() {
    let expected = ServerProgram {
        command: "npx".to_owned(),
        args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
            .map(str::to_owned)
            .to_vec(),
        env: BTreeMap::from([("KEY".to_owned(), "v".to_owned())]),
        cwd: None,
        inherit_env: false,
        container: None,
    };
    let args = json!(["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]);
    let whole = json!([
        "npx",
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/tmp"
    ]);
    for entry in [
        // Claude Desktop
        json!({ "command": "npx", "args": args, "env": { "KEY": "v" } }),
        // Claude Code, VS Code
        json!({ "type": "stdio", "command": "npx", "args": args, "env": { "KEY": "v" } }),
        // kit, mcphost
        json!({ "type": "local", "command": whole, "environment": { "KEY": "v" } }),
        // Goose
        json!({ "type": "stdio", "command": "npx", "args": args, "envs": { "KEY": "v" }, "enabled": true, "available_tools": [] }),
        // Inspector
        json!({ "command": "npx", "args": args, "env": { "KEY": "v" }, "protocolEra": "auto", "cwd": null }),
        // mcpo
        json!({ "command": "npx", "args": args, "env": { "KEY": "v" }, "disabledTools": ["x"] }),
        // ollmcp, Cline
        json!({ "command": "npx", "args": args, "env": { "KEY": "v" }, "disabled": false }),
    ] {
        assert_eq!(program(&entry), expected, "{entry}");
    }
}

#[test]
fn a_remote_server_is_understood_as_every_client_writes_it() {
    let headers = vec![("Authorization".to_owned(), "Bearer t".to_owned())];
    let url = "https://example.org/mcp";
    for entry in [
        json!({ "url": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "type": "http", "url": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "type": "sse", "url": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "type": "streamable-http", "url": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "type": "streamableHttp", "url": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "type": "remote", "url": url, "headers": ["Authorization: Bearer t"] }),
        json!({ "serverUrl": url, "headers": { "Authorization": "Bearer t" } }),
        json!({ "httpUrl": url, "headers": { "Authorization": "Bearer t" } }),
    ] {
        assert_eq!(http(&entry), (url.to_owned(), headers.clone()), "{entry}");
    }
}

#[test]
fn our_own_settings_are_read() {
    let settings = good(&json!({
        "command": "zwave-mcp-server", "args": ["--port", 1883], "env": { "DEBUG": true }, "inheritEnv": true,
        "disabled": true, "era": "modern", "startTimeout": "20s", "timeout": "1.5s",
        "allowedTools": ["get_*"], "excludedTools": ["reset"], "normalize": "always", "validate": false,
        "override": true, "parameterNames": { "control": { "device_name": "deviceName" } },
        "check": "broker running", "maxMemory": "1GiB",
    }));
    let ServerConnection::Stdio(program) = &settings.connection else {
        panic!("{settings:?}")
    };
    assert_eq!(program.args, ["--port", "1883"]);
    assert_eq!(program.env["DEBUG"], "true");
    assert!(program.inherit_env && settings.disabled && settings.overrides && !settings.validate);
    assert_eq!(settings.era, EraSetting::Modern);
    assert_eq!(settings.start_timeout, Some(Duration::from_secs(20)));
    assert_eq!(settings.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(settings.allowed_tools, [ToolPattern::new("get_*")]);
    assert_eq!(settings.excluded_tools, [ToolPattern::new("reset")]);
    assert_eq!(settings.normalize, RenameMode::Always);
    assert_eq!(
        settings.parameter_names["control"]["device_name"],
        "deviceName"
    );
    assert_eq!(settings.check.as_deref(), Some("broker running"));
    assert_eq!(settings.max_memory, Some(1 << 30));
}

#[test]
fn a_sandbox_is_a_level_or_an_object_with_lists() {
    use crate::SandboxLevel::{Default, Off, Strict};
    for (given, expected) in [
        (json!(null), Off),
        (json!("off"), Off),
        (json!("default"), Default),
        (json!({}), Default),
        (json!({ "level": "strict" }), Strict),
    ] {
        let settings = good(&json!({ "command": "x", "sandbox": given }));
        assert_eq!(settings.sandbox.level, expected, "{given}");
    }
    let settings = good(&json!({ "command": "x", "sandbox": {
        "level": "strict", "read": ["~", "~/a", "b", "/c"], "write": ["d"], "ports": [443],
    } }));
    let expected = ["/home/ada", "/home/ada/a", "/house/b", "/c"].map(PathBuf::from);
    assert_eq!(settings.sandbox.read, expected);
    assert_eq!(settings.sandbox.write, [Path::new("/house/d")]);
    assert_eq!(settings.sandbox.ports, [443]);
}

#[test]
fn missing_keys_have_defaults() {
    let settings = good(&json!({ "command": "x" }));
    assert_eq!(
        settings,
        ServerSettings::new(
            "s",
            ServerConnection::Stdio(ServerProgram {
                command: "x".to_owned(),
                ..ServerProgram::default()
            })
        )
    );
    assert!(good(&json!({ "command": "x", "enabled": false })).disabled);
}

#[test]
fn paths_are_relative_to_the_file() {
    for (command, cwd, expected) in [
        ("npx", ".", ("npx", "/house/.")),
        ("./run.sh", "sub", ("/house/./run.sh", "/house/sub")),
        ("bin/run", "/abs", ("/house/bin/run", "/abs")),
        ("/usr/bin/x", "~/notes", ("/usr/bin/x", "/home/ada/notes")),
        ("~/bin/x", "..", ("/home/ada/bin/x", "/house/..")),
    ] {
        let program = program(&json!({ "command": command, "cwd": cwd }));
        let found = (program.command.as_str(), program.cwd.unwrap());
        assert_eq!(found, (expected.0, PathBuf::from(expected.1)), "{command}");
    }
}

#[test]
fn invalid_entries_are_left_out_with_one_clear_message() {
    for (entry, expected) in [
        (json!("npx"), "it must be an object"),
        (json!({}), "it needs a 'command' or a 'url'"),
        (
            json!({ "command": null }),
            "it needs a 'command' or a 'url'",
        ),
        (
            json!({ "commnd": "cat" }),
            "it needs a 'command' or a 'url', and has the unknown key 'commnd' (did you mean 'command'?)",
        ),
        (json!({ "command": "" }), "command: is empty"),
        (json!({ "command": [] }), "command: is empty"),
        (json!({ "command": 5 }), "command: must be a string"),
        (
            json!({ "command": ["x", {}] }),
            "command.1: must be a string",
        ),
        (
            json!({ "command": "x\u{0}" }),
            "command: arguments can't contain a NUL character",
        ),
        (
            json!({ "command": "x", "args": "-y" }),
            "args: must be a list of strings",
        ),
        (
            json!({ "command": "x", "env": [] }),
            "env: must be an object",
        ),
        (
            json!({ "command": "x", "env": { "A": null } }),
            "env.A: must be a string",
        ),
        (
            json!({ "command": "x", "env": { "A=B": "" } }),
            "env.A=B: is not a valid name of a variable",
        ),
        (
            json!({ "command": "x", "env": {}, "envs": {} }),
            "envs: 'env' means the same; keep one of them",
        ),
        (
            json!({ "command": "x", "enabled": true, "disabled": false }),
            "enabled: 'disabled' means the same; keep one of them",
        ),
        (
            json!({ "command": "x", "url": "http://h/" }),
            "url: 'command' is set too; a server has only one of them",
        ),
        (
            json!({ "command": "x", "type": "http" }),
            "type: a server of this type needs a 'url', not a 'command'",
        ),
        (
            json!({ "url": "http://h/", "type": "stdio" }),
            "type: a server of this type needs a 'command', not a 'url'",
        ),
        (
            json!({ "command": "x", "type": "builtin" }),
            "type: must be one of: stdio, local, http, streamable-http, streamableHttp, sse, remote",
        ),
        (
            json!({ "url": "unix:///run/x" }),
            "url: must begin with http:// or https://",
        ),
        (
            json!({ "url": "example.org/mcp" }),
            "url: is not an address such as https://host/mcp",
        ),
        (
            json!({ "url": "http://h/", "headers": ["nope"] }),
            "headers.0: must look like 'Name: value'",
        ),
        (
            json!({ "url": "http://h/", "headers": { "a b": "" } }),
            "headers.a b: is not a valid header name",
        ),
        (
            json!({ "url": "http://h/", "headers": { "A": "x\r\nB: y" } }),
            "headers.A: can't be sent: it has a line break or another control character",
        ),
        (
            json!({ "command": "x", "timeout": 60 }),
            "timeout: 60 has no unit; write \"60s\" for seconds or \"60ms\" for milliseconds",
        ),
        (
            json!({ "command": "x", "startTimeout": 60000 }),
            "startTimeout: 60000 has no unit; write \"60000s\" for seconds or \"60000ms\" for milliseconds",
        ),
        (
            json!({ "command": "x", "timeout": "60" }),
            "timeout: '60' is not a duration; write a number and ms, s, m or h, such as 30s",
        ),
        (
            json!({ "command": "x", "timeout": true }),
            "timeout: must be a duration, such as \"30s\"",
        ),
        (
            json!({ "command": "x", "maxMemory": "1GB" }),
            "maxMemory: '1GB' is not a size; write a number and B, KiB, MiB or GiB, such as 1MiB",
        ),
        (
            json!({ "command": "x", "sandbox": "tight" }),
            "sandbox: must be one of: default, strict, off",
        ),
        (
            json!({ "command": "x", "sandbox": { "level": "strict", "raed": [] } }),
            "sandbox.raed: is unknown; a sandbox has level, read, write and ports",
        ),
        (
            json!({ "command": "x", "sandbox": { "level": 1 } }),
            "sandbox.level: must be one of: default, strict, off",
        ),
        (
            json!({ "command": "x", "sandbox": { "level": "strict", "read": "/x" } }),
            "sandbox.read: must be a list of strings",
        ),
        (
            json!({ "command": "x", "sandbox": { "write": [""] } }),
            "sandbox.write.0: is empty",
        ),
        (
            json!({ "command": "x", "sandbox": { "level": "strict", "ports": [0] } }),
            "sandbox.ports.0: must be a port, a number from 1 to 65535",
        ),
        (
            json!({ "command": "x", "sandbox": { "ports": [443] } }),
            "sandbox.ports: only the level 'strict' closes the network",
        ),
        (
            json!({ "command": "x", "era": "old" }),
            "era: must be one of: auto, legacy, modern",
        ),
        (
            json!({ "command": "x", "normalize": true }),
            "normalize: must be one of: undeclared, always, never",
        ),
        (
            json!({ "command": "x", "validate": "no" }),
            "validate: must be true or false",
        ),
        (
            json!({ "command": "x", "allowedTools": "*" }),
            "allowedTools: must be a list of strings",
        ),
        (
            json!({ "command": "x", "parameterNames": { "t": "x" } }),
            "parameterNames.t: must be an object such as { \"device_name\": \"deviceName\" }",
        ),
        (
            json!({ "command": "x", "parameterNames": { "t": { "a": 1 } } }),
            "parameterNames.t.a: must be a string",
        ),
    ] {
        let (settings, problems) = read(&entry);
        assert_eq!(settings, None, "{entry}");
        assert_eq!(problems, [format!("server 's' is left out: {expected}")]);
    }
}

#[test]
fn all_errors_of_an_entry_are_reported() {
    let entry = json!({ "comand": "x", "timeout": 5, "era": "old", "validate": "no", "excludedTools": "x" });
    let (settings, problems) = read(&entry);
    let told = [
        "it needs a 'command' or a 'url', and has the unknown key 'comand' (did you mean 'command'?)",
        "validate: must be true or false",
        "excludedTools: must be a list of strings",
        "era: must be one of: auto, legacy, modern",
        "timeout: 5 has no unit; write \"5s\" for seconds or \"5ms\" for milliseconds",
    ];
    assert_eq!(settings, None);
    assert_eq!(
        problems,
        told.map(|text| format!("server 's' is left out: {text}"))
    );
}

#[test]
fn a_name_must_be_fit_for_policies_and_tables() {
    for (name, expected) in [
        ("", "server '' is left out: its name is empty"),
        (
            "a/b",
            "server 'a/b' is left out: its name can't contain '/', which separates server and tool in a policy; rename it",
        ),
        (
            "a\u{1b}[31m",
            "server 'a\\u{1b}[31m' is left out: its name has invisible characters",
        ),
        (
            " a",
            "server ' a' is left out: its name has invisible characters",
        ),
    ] {
        let (settings, problems) = ServerSettings::read(name, &json!({ "command": "x" }), places());
        assert_eq!((settings, problems[0].text.as_str()), (None, expected));
    }
    assert!(
        ServerSettings::read("My Server 2.0", &json!({ "command": "x" }), places())
            .0
            .is_some()
    );
}

#[test]
fn odd_entries_are_accepted_with_one_warning() {
    for (entry, path, expected) in [
        (
            json!({ "command": "x", "autoApprove": [], "envFile": ".env" }),
            "autoApprove",
            "server 's': unknown keys 'autoApprove', 'envFile' (did you mean 'env'?) are ignored",
        ),
        (
            json!({ "command": "x", "timeot": "5s" }),
            "timeot",
            "server 's': unknown key 'timeot' (did you mean 'timeout'?) is ignored",
        ),
        (
            json!({ "command": "npx -y server" }),
            "command",
            "server 's': command: is taken as the name of one program, including the spaces; put its arguments into 'args'",
        ),
    ] {
        let (settings, problems) = ServerSettings::read("s", &entry, places());
        assert!(settings.is_some(), "{entry}");
        assert_eq!(problems.len(), 1);
        let problem = &problems[0];
        assert_eq!(
            (problem.text.as_str(), problem.path.as_slice()),
            (expected, &[path.to_owned()][..])
        );
        assert!(!problem.left_out);
    }
}

#[test]
fn the_identity_does_not_depend_on_other_settings() {
    let part = ServerSettings::identity_part;
    let base = json!({ "command": "x", "args": ["a"], "env": { "K": "${V}" } });
    assert_eq!(
        part(&json!({ "timeout": "5s", "env": { "K": "${V}" }, "args": ["a"], "command": "x", "check": "?" })).to_string(),
        part(&base).to_string()
    );
    for changed in [
        json!({ "command": "y", "args": ["a"], "env": { "K": "${V}" } }),
        json!({ "command": "x", "args": ["b"], "env": { "K": "${V}" } }),
        json!({ "command": "x", "args": ["a"], "env": { "K": "v" } }),
        json!({ "command": "x", "args": ["a"], "env": { "K": "${V}" }, "inheritEnv": true }),
        json!({ "command": "x", "args": ["a"], "env": { "K": "${V}" }, "cwd": "." }),
    ] {
        assert_ne!(part(&changed), part(&base), "{changed}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("http://h/")),
        Just(json!("5s")),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(".{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_entry_makes_it_panic(
        name in ".{0,8}",
        values in proptest::collection::vec((0..KEYS.len(), any_json()), 0..6),
    ) {
        let entry = values.into_iter().map(|(key, value)| (KEYS[key][0].to_owned(), value)).collect();
        let entry = Value::Object(entry);
        let (settings, problems) = ServerSettings::read(&name, &entry, places());
        prop_assert_eq!(settings.is_none(), problems.iter().any(|problem| problem.left_out));
        ServerSettings::identity_part(&entry);
        drop(settings.map(|settings| settings.secrets()));
    }
}

#[test]
fn a_health_tool_is_named_or_switched_off() {
    for (value, expected) in [
        (json!(null), HealthToolChoice::Auto),
        (json!(false), HealthToolChoice::Off),
        (
            json!("ping_all"),
            HealthToolChoice::Named("ping_all".to_owned()),
        ),
    ] {
        let entry = json!({ "command": "x", "health": value });
        assert_eq!(good(&entry).health, expected);
    }
    for value in [json!(true), json!(""), json!(["a"]), json!(1)] {
        let (settings, problems) = read(&json!({ "command": "x", "health": value }));
        assert!(settings.is_none());
        assert_eq!(
            problems,
            [
                "server 's' is left out: health: must be the name of one of the server's tools, or false"
            ]
        );
    }
    // Agreeing to a server is not agreeing to another tool that is called automatically.
    let [one, other] = ["look", "wipe"].map(|tool| json!({ "command": "x", "health": tool }));
    assert_ne!(
        ServerSettings::identity_part(&one),
        ServerSettings::identity_part(&other)
    );
}

#[test]
fn a_server_may_be_declared_to_be_that_of_a_home() {
    for (entry, expected) in [
        (json!({ "command": "x" }), None),
        (json!({ "command": "x", "home": true }), Some(true)),
        (json!({ "command": "x", "home": false }), Some(false)),
    ] {
        assert_eq!(good(&entry).home, expected, "{entry}");
    }
    let (settings, problems) = read(&json!({ "command": "x", "home": "yes" }));
    assert!(settings.is_none());
    assert!(
        problems[0].starts_with("server 's' is left out: home: must be"),
        "{problems:?}"
    );
}

#[test]
fn a_program_is_recognized_in_the_command_and_its_arguments() {
    for (command, args, expected) in [
        ("zwave-mcp-server", &[][..], true),
        ("/opt/bin/zwave-mcp-server", &[], true),
        ("toolgate", &["-v", "zwave-mcp-server"], true),
        ("npx", &["-y", "zwave-mcp-server-too"], false),
        ("files", &["/home/zwave-mcp-server/notes"], false),
    ] {
        let program = program(&json!({ "command": command, "args": args }));
        assert_eq!(
            program.runs("zwave-mcp-server"),
            expected,
            "{command} {args:?}"
        );
    }
}
