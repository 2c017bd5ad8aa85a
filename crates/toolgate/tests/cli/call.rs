use serde_json::json;

use crate::run::ProgramRun;
use crate::terminal::TmuxTerminal;

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
    let envelope = ProgramRun::new(["call", "echo", r#"{"b": [1, {"x": null}], "a": "ü"}"#]).json();
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
fn im2_a_mock_response_is_returned_unchanged() {
    assert_eq!(
        ProgramRun::new(["call", "add", "a=1", "b=2"])
            .config(TOOLS)
            .json()["result"],
        json!({ "sum": 3 })
    );
    let null = ProgramRun::new(["call", "nothing"]).config(TOOLS).json();
    assert_eq!(null.get("result"), Some(&json!(null)));
}

#[test]
fn im2_the_arguments_of_a_mock_are_logged_and_not_used() {
    let run = |a: &str| {
        ProgramRun::new(["-v", "call", "add"])
            .args(&[a, "b=8675309"])
            .config(TOOLS)
            .done()
    };
    let (one, other) = (run("a=1"), run("a=4242"));
    let result = json!({ "sum": 3 });
    assert_eq!(
        (&one.json()["result"], &other.json()["result"]),
        (&result, &result)
    );
    for logged in ["4242", "8675309"] {
        assert!(other.stderr.contains(logged), "{other:?}");
    }
    // Ten times the allowed time, because other tests use the processor too.
    let took = other.json()["execution_time_ms"].as_f64().unwrap();
    assert!(took < 100.0, "{took}");
}

#[test]
fn tm2_a_tool_of_any_name_is_listed_and_called() {
    let entry = |name: &str| json!({ "name": name, "description": "Odd", "inputSchema": { "type": "object" } });
    let odd = [
        "get weather",
        "größe",
        "日本",
        "a+b",
        "a_b",
        "tool(1)",
        "$(id)",
        "-v",
        "un\u{200b}lock",
        r"C:\new",
        " ",
        &*"long ".repeat(1000),
    ];
    let tools: Vec<_> = odd.iter().map(|name| entry(name)).collect();
    let run = |arguments: &[&str]| {
        let run = ProgramRun::new([])
            .args(arguments)
            .file("tools.json", json!(tools).to_string());
        let list = format!("list={}", run.path("tools.json").display());
        let server = json!({ "command": fakemcp::program(), "args": [list] });
        let config = json!({ "mcpServers": { "odd": server } }).to_string();
        run.file("c.json", config)
    };
    let listed = run(&["--config", "c.json", "list", "--json"]).json();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let shown = odd.map(|name| toolgate_core::display_name(name).into_owned());
    assert_eq!(
        names[names.len() - odd.len()..],
        shown.each_ref().map(String::as_str)
    );
    for (name, shown) in odd.iter().zip(&shown) {
        for asked in [(*name).to_owned(), shown.clone(), format!("odd__{name}")] {
            let envelope = run(&["--config", "c.json", "call", "--", &asked]).json();
            let text = envelope["result"].as_str().unwrap_or_default();
            let received: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            assert_eq!(received["tool"], **name, "{asked}: {envelope}");
        }
    }
    let envelope = run(&["--config", "c.json", "call", "odd__a-b"]).json();
    assert_eq!(envelope["error"], "Tool 'odd__a-b' not found");
}

#[test]
fn im3_a_builtin_is_found_by_the_name_of_its_handler() {
    let envelope = ProgramRun::new(["call", "copy", "x=1"])
        .config(TOOLS)
        .json();
    assert_eq!(envelope["result"], json!({ "echo": { "x": 1 } }));
    assert_eq!(envelope["tool_name"], "copy");
}

#[test]
fn im3_a_builtin_checks_what_a_foreign_definition_let_through() {
    let envelope = ProgramRun::new(["call", "when", "action=fly"])
        .config(TOOLS)
        .json();
    assert_eq!(
        envelope["error"],
        "Invalid parameters: 'action' must be one of: now, weekday, difference"
    );
}

#[test]
fn im3_im6_a_missing_handler_warns_at_load_and_fails_its_calls() {
    for (tool, text) in [
        ("lost", "Builtin handler 'teleport' not found"),
        ("gone", "Internal handler 'orders' not found"),
    ] {
        let done = ProgramRun::new(["call", tool]).config(TOOLS).done();
        assert_eq!(done.json()["error"], text);
        assert_eq!(done.json()["error_kind"], "handler_not_found");
        assert_eq!(done.code, Some(1));
        assert!(
            done.stderr.contains("toolgate.json:9:")
                && done
                    .stderr
                    .contains(": tool 'lost': Builtin handler 'teleport' not found"),
            "{done:?}"
        );
    }
}

#[test]
fn im6_documents_are_searched_through_an_internal_tool() {
    let config = r#"{ "documents": { "folders": ["notes"] }, "tools": [
        { "name": "notes", "description": "Notes", "parameters": { "type": "object" }, "implementation": { "type": "internal", "handler": "documents" } }] }"#;
    let run = |query: &str| {
        let run = ProgramRun::new(["call", "notes", query]).config(config);
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
    let done = ProgramRun::new(["call", "add", "a=1", "b=2", "code=012", "--dry-run"])
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
        let mut run = ProgramRun::new(["call"]).config(TOOLS);
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
        let done = ProgramRun::new([]).args(arguments).done();
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
        ProgramRun::new(["call", "echo", "-"])
            .stdin(r#"{"a": 1}"#)
            .json()["result"]["echo"],
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
        let done = ProgramRun::new(["call", "echo", "-"]).stdin(input).done();
        assert_eq!(
            (done.json()["error"].as_str(), done.code),
            (Some(expected), Some(1))
        );
    }
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(1 << 20));
    let done = ProgramRun::new(["call", "echo", "-"]).stdin(large).done();
    assert_eq!(
        (done.json()["error_kind"].as_str(), done.code),
        (Some("too_large"), Some(1)),
        "{}",
        &done.stderr
    );
}

#[test]
fn ex3_a_near_miss_is_suggested() {
    let envelope = ProgramRun::new(["call", "datetim"]).json();
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
        let done =
            ProgramRun::new(["-v", "call", "echo", &json!({ "x": value }).to_string()]).done();
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
        let done = ProgramRun::new(["-vv", "call", "echo"])
            .args(arguments)
            .done();
        assert!(!done.stderr.contains("sentinel-5e1f"), "{done:?}");
        assert!(done.stderr.contains("[REDACTED]"), "{done:?}");
    }
}

#[test]
fn duplicate_keys_inside_a_pair_are_refused_too() {
    let envelope = ProgramRun::new(["call", "echo", r#"a={"x":1,"x":2}"#]).json();
    assert_eq!(envelope["error"], "Invalid parameters: 'x' given twice");
}

#[test]
fn va5_an_unknown_parameter_is_ignored_with_a_warning() {
    let done = ProgramRun::new(["call", "datetime", "Action=weekday", "date=1982-04-24"]).done();
    assert_eq!(
        (done.json()["success"].as_bool(), done.code),
        (Some(true), Some(0))
    );
    let expected =
        "'Action' is not a parameter of this tool and is ignored; did you mean 'action'?";
    assert!(done.stderr.contains(expected), "{done:?}");
    let rehearsal = ProgramRun::new(["call", "datetime", "Action=weekday", "--dry-run"]).json();
    assert_eq!(rehearsal["dropped"], json!(["Action"]));
}

#[test]
fn the_real_size_of_unusable_input_is_reported() {
    let done = ProgramRun::new(["call", "echo", "-"])
        .stdin("y".repeat(100_000))
        .done();
    assert!(done.stderr.contains("(100000 bytes)"), "{done:?}");
}

#[test]
fn im6_a_service_checks_what_a_foreign_definition_let_through() {
    let config = r#"{ "documents": { "folders": ["."] }, "tools": [
        { "name": "notes", "description": "Notes", "parameters": { "type": "object" }, "implementation": { "type": "internal", "handler": "documents" } }] }"#;
    let envelope = ProgramRun::new(["call", "notes"]).config(config).json();
    assert_eq!(envelope["error"], "Invalid parameters: missing 'query'");
}

const ISSUES: &str = r#"{ "tools": [{
    "name": "create_issue", "description": "Makes an issue",
    "parameters": { "type": "object", "required": ["title"], "properties": {
        "title": { "type": "string" }, "labels": { "type": "array", "items": { "type": "string" } },
        "size": { "type": "object", "properties": { "width": { "type": "integer" }, "code": { "type": "string" } } } } },
    "implementation": { "type": "builtin", "handler": "echo" } }] }"#;

#[test]
fn lists_and_objects_are_typed_without_json() {
    for (words, expected) in [
        (
            &["labels=bug", "labels=7"][..],
            json!({ "labels": ["bug", "7"] }),
        ),
        (&["labels[]=bug"], json!({ "labels": ["bug"] })),
        (&["labels=bug"], json!({ "labels": ["bug"] })),
        (
            &["size.width=3", "size.code=07"],
            json!({ "size": { "width": 3, "code": "07" } }),
        ),
    ] {
        let run = ProgramRun::new(["call", "create_issue", "title=t"]).args(words);
        let mut echoed = run.config(ISSUES).json()["result"]["echo"].take();
        echoed.as_object_mut().unwrap().remove("title");
        assert_eq!(echoed, expected, "{words:?}");
    }
    let comma = ProgramRun::new(["call", "create_issue", "title=t", "labels=bug,ui"]);
    let done = comma.config(ISSUES).done();
    let error = done.json()["error"].take();
    assert_eq!(error, "Invalid parameters: 'labels' must be array");
    let hint = "a list is typed item by item: labels=bug labels=ui\n";
    assert!(done.stderr.ends_with(hint), "{done:?}");
    let rehearsed = ProgramRun::new(["call", "--dry-run", "create_issue", "labels=bug,ui"]);
    let done = rehearsed.config(ISSUES).done();
    assert_eq!((done.code, done.stderr.as_str()), (Some(1), hint));
}

#[test]
fn a_misspelled_parameter_is_named_with_the_one_that_was_meant() {
    for (word, hint) in [
        (
            "tittle=c",
            "'tittle' is not a parameter; did you mean 'title'?",
        ),
        (
            "TITLE=c",
            "'TITLE' is not a parameter; did you mean 'title'?",
        ),
    ] {
        let envelope = ProgramRun::new(["call", "create_issue", word])
            .config(ISSUES)
            .json();
        assert_eq!(envelope["error"], "Invalid parameters: missing 'title'");
        assert_eq!(envelope["hint"], hint);
    }
    let done = ProgramRun::new(["call", "create_issue", "title=t", "labls=x"])
        .config(ISSUES)
        .done();
    assert_eq!(done.code, Some(0));
    assert!(done.stderr.contains("did you mean 'labels'?"), "{done:?}");

    // Most servers close their schemas, so the misspelled name is left out before
    // the rest is checked.
    let closed = ISSUES.replacen(
        "\"required\"",
        "\"additionalProperties\": false, \"required\"",
        1,
    );
    for words in [&["tittle=c"][..], &["tittle=c", "--dry-run"]] {
        let run = ProgramRun::new(["call", "create_issue"]).args(words);
        let envelope = run.config(&closed).json();
        assert_eq!(envelope["error"], "Invalid parameters: missing 'title'");
        assert_eq!(
            envelope["hint"],
            "'tittle' is not a parameter; did you mean 'title'?"
        );
    }
}

#[test]
fn a_failure_is_printed_once_on_a_terminal() {
    let config = r#"{ "tools": [{ "name": "lost", "description": "?", "parameters": {},
        "implementation": { "type": "builtin", "handler": "teleport" } }] }"#;
    let command = "call lost";
    let Some(terminal) = TmuxTerminal::open(config, "X=1", command) else {
        return;
    };
    let screen = terminal.shows("left with 1");
    assert!(
        screen.contains("\"error_kind\": \"handler_not_found\""),
        "{screen}"
    );
    assert!(!screen.contains("tool call failed"), "{screen}");
    terminal.open_again("X=1", "-v call lost");
    terminal.shows("tool call failed");
    let piped = ProgramRun::new(["call", "lost"]).config(config).done();
    assert!(piped.stderr.contains("tool call failed"), "{piped:?}");
}

#[test]
fn calls_fit_a_terminal_of_80_columns() {
    let Some(terminal) = TmuxTerminal::open(
        ISSUES,
        "X=1",
        "call create_issue title='It rains in' labels=bug",
    ) else {
        return;
    };
    terminal.shows("left with 0");
    terminal.open_again("X=1", "calls");
    let screen = terminal.shows("left with 0");
    let mut lines = screen.lines();
    let title = lines.next().unwrap();
    assert!(
        title.starts_with("TIME      ID            WHO "),
        "{screen}"
    );
    let call = lines.next().unwrap();
    let (id, arguments) = (
        call.split_whitespace().nth(1).unwrap(),
        "create_issue title=\"It rains in\"",
    );
    assert!(id.len() < 18 && call.contains(" call "), "{screen}");
    assert!(screen.contains(arguments), "{screen}");
    terminal.open_again("X=1", &format!("calls {id}"));
    terminal.shows("left with 0");
}

#[test]
fn followed_calls_keep_their_columns() {
    let Some(terminal) = TmuxTerminal::open("{}", "X=1", "calls --follow") else {
        return;
    };
    terminal.shows_folded("waiting for the first one");
    let home = terminal.home();
    for command in ["no-such-tool", "echo"] {
        ProgramRun::new(["call", command]).within(home).done();
    }
    let screen = terminal.shows(" echo");
    let lines = screen.lines().skip_while(|line| !line.starts_with("TIME"));
    let lines: Vec<&str> = lines.collect();
    for (title, words) in [
        ("ID", &[][..]),
        ("WHO", &["call"]),
        ("CALL", &["echo", "no-such"]),
    ] {
        let column = lines[0].find(title).unwrap();
        for line in &lines[1..] {
            let (before, here) = line.split_at(column);
            assert!(before.ends_with("  "), "{title}: {screen}");
            let is_fit = words.is_empty() || words.iter().any(|word| here.starts_with(word));
            assert!(is_fit, "{title}: {screen}");
        }
    }
}
