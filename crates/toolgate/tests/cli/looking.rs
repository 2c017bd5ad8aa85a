use crate::run::Run;

#[test]
fn im7_the_local_tools_are_there_without_a_file() {
    let done = Run::new(["list"]).done();
    let names: Vec<&str> = done
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(
        (names, done.stderr.as_str(), done.code),
        (
            vec!["datetime", "echo", "math_eval", "search", "volume"],
            "",
            Some(0)
        )
    );
}

#[test]
fn im7_datetime_answers() {
    let envelope = Run::new(["call", "datetime", "action=weekday", "date=1982-04-24"]).json();
    assert_eq!(envelope["result"]["weekday"], "Saturday", "{envelope}");
}

#[test]
fn list_as_json_is_a_list_of_objects_with_a_name() {
    let list = Run::new(["list", "--json"]).json();
    let tools = list.as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["name"].is_string()
        && tool["source"] == "builtin"
        && tool["parameters"].is_object()));
}

#[test]
fn inspect_shows_one_tool() {
    let text = Run::new(["inspect", "volume"]).done().stdout;
    for expected in [
        "volume",
        "builtin",
        "get | set | up | down | mute | unmute",
        "required",
        "toolgate call volume action=get",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(
        Run::new(["inspect", "volume", "--json"]).json()["name"],
        "volume"
    );
    let done = Run::new(["inspect", "volum"]).done();
    assert_eq!(
        done.stderr,
        "error: Tool 'volum' not found. Did you mean 'volume'?\n"
    );
}

#[test]
fn init_writes_a_file_that_is_understood_and_never_overwrites_by_itself() {
    let run = |arguments: &[&str]| Run::new([]).args(arguments).file("mine.json", "{}").done();
    assert_eq!(run(&["init"]).code, Some(0));
    let done = run(&["init", "mine.json"]);
    assert_eq!(
        (done.stderr.as_str(), done.code),
        (
            "error: mine.json is there already; --force overwrites it\n",
            Some(2)
        )
    );
    assert_eq!(run(&["init", "mine.json", "--force"]).code, Some(0));
    assert_eq!(run(&["init", "new/folder/toolgate.json"]).code, Some(0));

    let template = include_str!("../../src/commands/init.jsonc");
    let done = Run::new(["list"]).config(template).done();
    assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)));
    assert!(
        done.stdout.contains("get_weather\tmock")
            && done.stdout.contains("search_documents\tinternal")
    );
}

#[test]
fn doctor_names_what_is_wrong_and_fails() {
    let config = r#"{ "documents": { "folders": ["nowhere"] }, "search": { "url": "http://127.0.0.1:1/" }, "tools": [
        { "name": "lost", "description": "?", "parameters": {}, "implementation": { "type": "builtin", "handler": "teleport" } }] }"#;
    let done = Run::new(["doctor"]).config(config).done();
    assert_eq!(done.code, Some(1));
    for expected in [
        "ok       configuration  toolgate.json is read",
        "FAILED   configuration  toolgate.json:2: tool 'lost': Builtin handler 'teleport' not found",
        "FAILED   documents",
        "warning  search",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
    let broken = Run::new(["doctor"]).config("{").done();
    assert!(
        broken
            .stdout
            .starts_with("FAILED   configuration  toolgate.json:1:"),
        "{broken:?}"
    );
    assert_eq!(broken.code, Some(1));
}

#[test]
fn completions_exist_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let done = Run::new(["completions", shell]).done();
        assert!(
            done.stdout.contains("toolgate") && done.stdout.contains("doctor"),
            "{shell}"
        );
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["call", "--help"],
        &["--version"],
    ] {
        let done = Run::new([]).args(arguments).done();
        assert_eq!(
            (done.stderr.as_str(), done.code),
            ("", Some(0)),
            "{arguments:?}"
        );
        assert!(!done.stdout.is_empty());
    }
    assert_eq!(Run::new([]).done().code, Some(2), "no command at all");
}

#[test]
fn nothing_is_coloured_in_a_pipe() {
    for arguments in [
        &["list"][..],
        &["inspect", "echo"],
        &["doctor"],
        &["--help"],
        &["frobnicate"],
    ] {
        let done = Run::new([]).args(arguments).done();
        assert!(
            !done.stdout.contains('\u{1b}') && !done.stderr.contains('\u{1b}'),
            "{arguments:?}: {done:?}"
        );
    }
}

#[test]
fn doctor_only_warns_of_what_is_odd_but_harmless() {
    let config = r#"{ "mcpServers": { "lamp": { "command": "x", "disabled": true, "autoApprove": [] } }, "policy": { "deny": ["ech0"] }, "limits": { "perTool": { "serch": { "timeout": "1s" } } },
        "search": { "url": "http://127.0.0.1:1/" } }"#;
    let done = Run::new(["doctor"]).config(config).done();
    assert_eq!(done.code, Some(0), "{done:?}");
    for expected in [
        "warning  configuration  'ech0'",
        "warning  configuration  'serch'",
        "warning  configuration  toolgate.json:1: server 'lamp': unknown key 'autoApprove' is ignored",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
}
