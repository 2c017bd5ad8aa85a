use serde_json::json;

use crate::run::Run;

const TOOLS: &str = r#"{
  "tools": [
    { "name": "add", "description": "Adds", "implementation": { "type": "mock", "mock_response": { "sum": 3 } },
      "parameters": { "type": "object", "required": ["a", "b"],
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" }, "unit": { "enum": ["mm", "cm"] }, "code": { "type": "string" } } } },
    { "name": "nothing", "description": "Null", "parameters": { "type": "object" }, "implementation": { "type": "mock", "mock_response": null } },
    { "name": "copy", "description": "Echo by another name", "parameters": { "type": "object" }, "implementation": { "type": "builtin", "handler": "echo" } },
    { "name": "when", "description": "Date", "parameters": { "type": "object" }, "implementation": { "type": "builtin", "handler": "datetime" } },
    { "name": "lost", "description": "?", "parameters": { "type": "object" }, "implementation": { "type": "builtin", "handler": "teleport" } },
    { "name": "gone", "description": "?", "parameters": { "type": "object" }, "implementation": { "type": "internal", "handler": "orders" } }
  ]
}"#;

#[test]
fn im5_echo_gives_back_its_arguments() {
    let envelope = Run::new(["call", "echo", r#"{"b": [1, {"x": null}], "a": "ü"}"#]).json();
    assert_eq!(envelope["success"], true);
    assert_eq!(
        envelope["result"].to_string(),
        r#"{"echo":{"b":[1,{"x":null}],"a":"ü"}}"#
    );
    assert_eq!(envelope["tool_name"], "echo");
    assert!(envelope["execution_time_ms"].is_number());
    assert!(envelope.get("error").is_none());
}

#[test]
fn im2_a_mock_answers_as_it_is() {
    assert_eq!(
        Run::new(["call", "add", "a=1", "b=2"]).config(TOOLS).json()["result"],
        json!({ "sum": 3 })
    );
    let null = Run::new(["call", "nothing"]).config(TOOLS).json();
    assert_eq!(null.get("result"), Some(&json!(null)));
}

#[test]
fn im3_a_builtin_is_found_by_the_name_of_its_handler() {
    let envelope = Run::new(["call", "copy", "x=1"]).config(TOOLS).json();
    assert_eq!(envelope["result"], json!({ "echo": { "x": 1 } }));
    assert_eq!(envelope["tool_name"], "copy");
}

#[test]
fn im3_a_builtin_checks_what_a_foreign_definition_let_through() {
    let envelope = Run::new(["call", "when", "action=fly"])
        .config(TOOLS)
        .json();
    assert_eq!(
        envelope["error"],
        "Invalid parameters: 'action' must be one of: now, weekday, difference"
    );
}

#[test]
fn im3_im6_a_missing_handler_is_an_error_of_the_call_and_a_warning_at_load() {
    for (tool, text) in [
        ("lost", "Builtin handler 'teleport' not found"),
        ("gone", "Internal handler 'orders' not found"),
    ] {
        let done = Run::new(["call", tool]).config(TOOLS).done();
        assert_eq!(done.json()["error"], text);
        assert_eq!(done.json()["error_kind"], "handler_not_found");
        assert_eq!(done.code, Some(1));
        assert!(
            done.stderr
                .contains("toolgate.json:9: tool 'lost': Builtin handler 'teleport' not found"),
            "{done:?}"
        );
    }
}

#[test]
fn im6_documents_are_searched_through_an_internal_tool() {
    let config = r#"{ "documents": { "folders": ["notes"] }, "tools": [
        { "name": "notes", "description": "Notes", "parameters": { "type": "object" }, "implementation": { "type": "internal", "handler": "documents" } }] }"#;
    let run = |query: &str| {
        let run = Run::new(["call", "notes", query]).config(config);
        run.file(
            "notes/boiler.md",
            "# The boiler\n\nReset it with the red button.",
        )
        .file("notes/cat.txt", "The cat eats at seven.")
        .json()
    };
    let envelope = run("query=red button");
    assert_eq!(
        envelope["result"]["results"][0]["title"], "The boiler",
        "{envelope}"
    );
    assert_eq!(run("query=zebra")["result"]["results"], json!([]));
}

#[test]
fn pairs_are_typed_by_the_schema() {
    let done = Run::new(["call", "add", "a=1", "b=2", "code=012", "--dry-run"])
        .config(TOOLS)
        .done();
    assert_eq!(
        done.json()["arguments"],
        json!({ "a": 1, "b": 2, "code": "012" })
    );
    assert_eq!(done.code, Some(0));
}

#[test]
fn every_bad_input_gives_an_envelope_and_exit_code_1() {
    for (arguments, expected) in [
        (&["nope"][..], "Tool 'nope' not found"),
        (&["add"], "Invalid parameters: missing 'a', missing 'b'"),
        (&["add", "a=1"], "Invalid parameters: missing 'b'"),
        (
            &["add", "a=x", "b=true"],
            "Invalid parameters: 'a' must be integer, 'b' must be integer",
        ),
        (
            &["add", "a=1", "b=2", "unit=m"],
            "Invalid parameters: 'unit' must be one of: mm, cm",
        ),
        (
            &["add", "a=1", "a=2"],
            "Invalid parameters: 'a' given twice",
        ),
        (
            &["add", r#"{"a":1,"a":2}"#],
            "Invalid parameters: 'a' given twice",
        ),
        (
            &["add", "[1]"],
            "Invalid parameters: 'arguments' must be object",
        ),
        (
            &["add", "5"],
            "Invalid parameters: 'arguments' must be object",
        ),
        (
            &["add", "{"],
            "Invalid parameters: 'arguments' must be a JSON object: EOF while parsing an object at line 1 column 1",
        ),
        (
            &["add", "hello"],
            "Invalid parameters: 'arguments' must be a JSON object, or key=value pairs",
        ),
        (
            &["echo", r#"{"n":1e999}"#],
            "Invalid parameters: 'arguments' must be a JSON object: number out of range at line 1 column 10",
        ),
    ] {
        let mut run = Run::new(["call"]).config(TOOLS);
        run = run.args(arguments);
        let done = run.done();
        assert_eq!(
            (done.json()["error"].as_str(), done.code),
            (Some(expected), Some(1)),
            "{arguments:?}"
        );
        assert_eq!(done.json()["success"], false);
        assert!(
            done.stderr
                .lines()
                .filter(|line| line.contains("tool call refused"))
                .count()
                == 1,
            "one line says it: {done:?}"
        );
    }
}

#[test]
fn usage_errors_leave_stdout_empty_and_exit_with_2() {
    for arguments in [
        &["call"][..],
        &["call", "echo", "a=1", "oops"],
        &["call", "echo", "=x", "a=1"],
        &["call", "echo", "--timeout", "5"],
        &["call", "echo", "--timeout", "0s"],
        &["frobnicate"],
        &["list", "--nope"],
        &["-q", "-v", "list"],
    ] {
        let done = Run::new([]).args(arguments).done();
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("", Some(2)),
            "{arguments:?}: {done:?}"
        );
        assert!(done.stderr.starts_with("error: "), "{done:?}");
    }
}

#[test]
fn stdin_gives_the_arguments() {
    assert_eq!(
        Run::new(["call", "echo", "-"]).stdin(r#"{"a": 1}"#).json()["result"]["echo"],
        json!({ "a": 1 })
    );
    for (input, expected) in [
        (
            &b""[..],
            "Invalid parameters: 'arguments' must be a JSON object, and stdin was empty; give {} for none",
        ),
        (b"[]", "Invalid parameters: 'arguments' must be object"),
        (
            b"{\"a\": \"\xff\"}",
            "Invalid parameters: 'arguments' must be a JSON object: invalid unicode code point at line 1 column 8",
        ),
    ] {
        let done = Run::new(["call", "echo", "-"]).stdin(input).done();
        assert_eq!(
            (done.json()["error"].as_str(), done.code),
            (Some(expected), Some(1))
        );
    }
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(1 << 20));
    let done = Run::new(["call", "echo", "-"]).stdin(large).done();
    assert_eq!(
        (done.json()["error_kind"].as_str(), done.code),
        (Some("too_large"), Some(1)),
        "{}",
        &done.stderr
    );
}

#[test]
fn ex3_a_near_miss_is_suggested() {
    let envelope = Run::new(["call", "datetim"]).json();
    assert_eq!(envelope["hint"], "Did you mean 'datetime'?");
    assert_eq!(envelope["error"], "Tool 'datetim' not found");
}

#[test]
fn hostile_values_stay_data() {
    for value in [
        "; touch pwned",
        "$(touch pwned)",
        "--upload-pack=x",
        "../../etc/passwd",
        "a\nb",
        "\u{1b}[31m",
    ] {
        let done = Run::new(["-v", "call", "echo", &json!({ "x": value }).to_string()]).done();
        assert_eq!(done.json()["result"]["echo"]["x"], value);
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
        assert!(!done.stderr.contains('\u{1b}'));
    }
}

#[test]
fn d5_a_secret_is_known_by_its_key_however_it_is_given() {
    for arguments in [
        &["password=sentinel-5e1f", "password=x"][..],
        &[r#"{"password": "sentinel-5e1f", "password": "x"}"#],
        &[r#"{"api_key": "sentinel-5e1f""#],
        &["pwd=sentinel-5e1f"],
        &[r#"o={"token": "sentinel-5e1f"}"#],
    ] {
        let done = Run::new(["-vv", "call", "echo"]).args(arguments).done();
        assert!(!done.stderr.contains("sentinel-5e1f"), "{done:?}");
        assert!(done.stderr.contains("[REDACTED]"), "{done:?}");
    }
}

#[test]
fn duplicate_keys_inside_a_pair_are_refused_too() {
    let envelope = Run::new(["call", "echo", r#"a={"x":1,"x":2}"#]).json();
    assert_eq!(envelope["error"], "Invalid parameters: 'x' given twice");
}

#[test]
fn va5_an_unknown_parameter_is_ignored_and_told() {
    let done = Run::new(["call", "datetime", "Action=weekday", "date=1982-04-24"]).done();
    assert_eq!(
        (done.json()["success"].as_bool(), done.code),
        (Some(true), Some(0))
    );
    let expected =
        "'Action' is not a parameter of this tool and is ignored; did you mean 'action'?";
    assert!(done.stderr.contains(expected), "{done:?}");
    let rehearsal = Run::new(["call", "datetime", "Action=weekday", "--dry-run"]).json();
    assert_eq!(rehearsal["dropped"], json!(["Action"]));
}

#[test]
fn the_true_size_of_unusable_input_is_said() {
    let done = Run::new(["call", "echo", "-"])
        .stdin("y".repeat(100_000))
        .done();
    assert!(done.stderr.contains("(100000 bytes)"), "{done:?}");
}

#[test]
fn im6_a_service_checks_what_a_foreign_definition_let_through() {
    let config = r#"{ "documents": { "folders": ["."] }, "tools": [
        { "name": "notes", "description": "Notes", "parameters": { "type": "object" }, "implementation": { "type": "internal", "handler": "documents" } }] }"#;
    let envelope = Run::new(["call", "notes"]).config(config).json();
    assert_eq!(envelope["error"], "Invalid parameters: missing 'query'");
}
