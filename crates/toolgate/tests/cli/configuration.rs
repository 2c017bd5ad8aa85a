use crate::run::ProgramRun;

#[test]
fn a_broken_file_is_one_line_with_file_line_and_key_and_exit_code_2() {
    for (text, expected) in [
        (
            "{\n  \"limits\": { \"timeot\": \"5s\" }\n}",
            "error: toolgate.json:2:15: unknown key 'limits.timeot'; did you mean 'timeout'?",
        ),
        (
            "{\n  \"tols\": []\n}",
            "error: toolgate.json:2:3: unknown key 'tols'; did you mean 'tools'?",
        ),
        (
            "{ \"limits\": { \"timeout\": 0 } }",
            "error: toolgate.json:1:15: limits.timeout: must be a duration, such as \"30s\"",
        ),
        (
            "{ \"a\": 1, \"a\": 2 }",
            "error: toolgate.json:1:11: 'a' given twice",
        ),
        (
            "{ nope",
            "error: toolgate.json:1:3: a key in double quotes is expected here",
        ),
        (
            "{ \"policy\": { \"allow\": [\"${NOT_SET}\"] } }",
            "error: toolgate.json:1:25: policy.allow.0: the variable NOT_SET is not set",
        ),
    ] {
        let done = ProgramRun::new(["list"]).config(text).done();
        assert!(done.stderr.starts_with(expected), "{done:?}");
        assert_eq!(
            (done.stderr.lines().count(), done.stdout.as_str(), done.code),
            (1, "", Some(2)),
            "{done:?}"
        );
    }
}

#[test]
fn a_named_file_must_be_there() {
    for run in [
        ProgramRun::new(["--config", "no.json", "list"]),
        ProgramRun::new(["list"]).env("TOOLGATE_CONFIG", "no.json"),
    ] {
        let done = run.done();
        assert!(
            done.stderr
                .starts_with("error: no.json: cannot be read: No such file"),
            "{done:?}"
        );
        assert_eq!(done.code, Some(2));
    }
}

#[test]
fn configuration_files_are_found_in_order() {
    let named = |name: &str| {
        format!(
            r#"{{ "tools": [{{ "name": "{name}", "description": "d", "parameters": {{}}, "implementation": {{ "type": "mock", "mock_response": 1 }} }}] }}"#
        )
    };
    let run = || {
        ProgramRun::new(["list"])
            .file("toolgate.json", named("here"))
            .file(".mcp.json", named("shared"))
            .file(".config/toolgate/toolgate.json", named("user"))
            .file("x.json", named("x"))
    };
    assert!(
        run().done().stdout.contains("user\t"),
        "nobody agreed to the others"
    );
    let (child, folder) = run().args(&["--quiet"]).start();
    child.wait_with_output().unwrap();
    let agreed = ProgramRun::new(["trust", "--yes"])
        .within(folder.path())
        .done();
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    let done = ProgramRun::new(["list"]).within(folder.path()).done();
    assert!(done.stdout.contains("here\t"), "{done:?}");
    assert!(
        run()
            .env("TOOLGATE_CONFIG", "x.json")
            .done()
            .stdout
            .contains("x\t")
    );
    assert!(
        run()
            .args(&["--config", ".mcp.json"])
            .done()
            .stdout
            .contains("shared\t")
    );
    assert!(
        ProgramRun::new(["list"])
            .file(".config/toolgate/toolgate.json", named("user"))
            .done()
            .stdout
            .contains("user\t")
    );
}

#[test]
fn i2_one_bad_tool_is_left_out_and_named_and_the_rest_load() {
    let config = r#"{ "tools": [
  { "name": "bad", "description": "d", "parameters": null, "implementation": { "type": "mock", "mock_response": 1 } },
  { "name": "evil", "description": "d", "parameters": { "type": "object", "$ref": "file:///etc/passwd" },
    "implementation": { "type": "mock", "mock_response": 1 } },
  { "name": "odd", "descripton": "typo", "description": "d", "parameters": { "$schema": "urn:unknown" }, "implementation": { "type": "mock", "mock_response": 1 } },
  { "name": "good", "description": "d", "parameters": {}, "implementation": { "type": "mock", "mock_response": 1 } },
  { "name": "good", "description": "again", "parameters": {}, "implementation": { "type": "mock", "mock_response": 2 } }
] }"#;
    let done = ProgramRun::new(["list"]).config(config).done();
    assert_eq!(done.code, Some(0));
    let names: Vec<&str> = done
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(
        names,
        [
            "datetime",
            "echo",
            "math_eval",
            "search",
            "volume",
            "odd",
            "good"
        ]
    );
    for expected in [
        "toolgate.json:2:40: tool 'bad' is left out: parameters of tool 'bad': must be a JSON Schema object, not null",
        "toolgate.json:3:41: tool 'evil' is left out: parameters of tool 'evil': '$ref' at '/' to 'file:///etc/passwd' does not stay inside the schema",
        "toolgate.json:5:20: tool 'odd': unknown key 'descripton' is ignored, did you mean 'description'?",
        "tool registered again; the new one replaces the old one",
    ] {
        assert!(done.stderr.contains(expected), "{expected}\n{done:?}");
    }
}

#[test]
fn an_unset_variable_counts_only_in_a_section_the_command_uses() {
    let config = r#"{ "search": { "backend": "brave", "key": "${BRAVE_KEY}" } }"#;
    assert_eq!(
        ProgramRun::new(["call", "echo"]).config(config).done().code,
        Some(0)
    );
    let done = ProgramRun::new(["call", "search", "query=x"])
        .config(config)
        .done();
    assert_eq!(
        done.stderr,
        "error: toolgate.json:1:35: search.key: the variable BRAVE_KEY is not set\n"
    );
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)));
}

#[test]
fn d5_a_secret_of_the_configuration_is_never_shown() {
    let config = r#"{ "search": { "backend": "brave", "key": "${BRAVE_KEY}", "url": "http://127.0.0.1:1/" } }"#;
    for arguments in [
        &["-vvv", "call", "search", "query=sentinel-5e1f"][..],
        &["-vvv", "doctor"],
        &["-vvv", "list", "--json"],
        &["-vvv", "call", "echo", "x=sentinel-5e1f"],
    ] {
        let done = ProgramRun::new([])
            .args(arguments)
            .config(config)
            .env("BRAVE_KEY", "sentinel-5e1f")
            .done();
        assert!(!done.stderr.contains("sentinel-5e1f"), "{done:?}");
    }
}

#[test]
fn a_hidden_tool_is_never_shown() {
    let config = r#"{ "policy": { "deny": ["echo"] } }"#;
    assert!(
        !ProgramRun::new(["list"])
            .config(config)
            .done()
            .stdout
            .contains("echo")
    );
    let envelope = ProgramRun::new(["call", "echo"]).config(config).json();
    assert_eq!(envelope["error"], "Tool 'echo' not found");
    assert!(envelope.get("hint").is_none());
    assert_eq!(
        ProgramRun::new(["inspect", "echo"])
            .config(config)
            .done()
            .code,
        Some(1)
    );
}

#[test]
fn i3_an_unreadable_configuration_is_never_skipped() {
    use std::os::unix::fs::symlink;
    for make in [
        |path: &std::path::Path| symlink("toolgate.json", path),
        |path: &std::path::Path| symlink("nowhere", path),
        |path: &std::path::Path| std::fs::create_dir(path),
    ] {
        for (file, is_named) in [
            ("toolgate.json", true),
            (".config/toolgate/toolgate.json", false),
        ] {
            let run = ProgramRun::new(["list"]);
            std::fs::create_dir_all(run.path(file).parent().unwrap()).unwrap();
            make(&run.path(file)).unwrap();
            let done = match is_named {
                true => run.env("TOOLGATE_CONFIG", file).done(),
                false => run.done(),
            };
            let expected = format!("error: {file}: ");
            assert!(done.stderr.starts_with(&expected), "{done:?}");
            assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)), "{done:?}");
        }
    }
}

#[test]
fn a_large_configuration_is_read_quickly() {
    let started = tokio::time::Instant::now();
    let done = ProgramRun::new(["-q", "list"])
        .config(&format!("{{\"tools\":[{}1]}}", "1,".repeat(100_000)))
        .done();
    assert_eq!(done.code, Some(0));
    assert!(
        started.elapsed() < std::time::Duration::from_secs(20),
        "a hang guard"
    );
}

#[test]
fn every_line_of_a_json_log_is_json() {
    for arguments in [
        &["--log-format", "json", "--config", "nope", "list"][..],
        &["--log-format", "json", "-v", "call", "nope"],
    ] {
        let done = ProgramRun::new([]).args(arguments).done();
        assert!(!done.stderr.is_empty());
        for line in done.stderr.lines() {
            assert!(
                serde_json::from_str::<serde_json::Value>(line)
                    .is_ok_and(|line| line["level"].is_string()),
                "{line}"
            );
        }
    }
}

#[test]
fn a_login_in_an_address_is_a_secret() {
    let config = r#"{ "search": { "url": "http://ada:sentinel-5e1f@127.0.0.1:1/" } }"#;
    let done = ProgramRun::new(["-vv", "call", "search", "query=sentinel-5e1f"])
        .config(config)
        .done();
    assert!(!done.stderr.contains("sentinel-5e1f"), "{done:?}");
}
