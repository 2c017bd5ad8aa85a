use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::run::{ProgramRun, RunOutput};

#[test]
fn im7_local_tools_exist_without_a_file() {
    let done = ProgramRun::new(["list"]).done();
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
    let envelope =
        ProgramRun::new(["call", "datetime", "action=weekday", "date=1982-04-24"]).json();
    assert_eq!(envelope["result"]["weekday"], "Saturday", "{envelope}");
}

#[test]
fn im7_search_answers_with_what_its_backend_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let backend = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0);
        }
        let body = r#"{"answers":[],"results":[{"title":"Zugspitze","url":"https://alps.example/","content":"2962 m"}]}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        head
    });
    let config = json!({ "search": { "backend": "searxng", "url": format!("http://{address}") } });
    let envelope = ProgramRun::new(["call", "search", "query=tallest mountain"])
        .config(&config.to_string())
        .json();
    let found =
        json!([{ "title": "Zugspitze", "url": "https://alps.example/", "snippet": "2962 m" }]);
    assert_eq!(envelope["result"]["results"], found, "{envelope}");
    let asked = backend.join().unwrap();
    assert!(
        asked.contains("tallest+mountain") || asked.contains("tallest%20mountain"),
        "{asked}"
    );
}

#[test]
fn im7_volume_sets_the_volume_of_the_machine() {
    // The parts of a sound server's program that are used.
    let wpctl = r#"#!/bin/sh
here=${0%/*}
read -r level < "$here/level"
case "$1" in
get-volume) printf 'Volume: %d.%02d\n' $((level / 100)) $((level % 100)) ;;
set-volume) echo "${3%\%}" > "$here/level" ;;
esac
"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("level"), "40\n").unwrap();
    std::fs::write(folder.path().join("script"), wpctl).unwrap();
    // Written by another process, because a program that is open for writing can't be started.
    let install = std::process::Command::new("install")
        .args(["-m755", "script", "wpctl"])
        .current_dir(folder.path())
        .status();
    assert!(install.unwrap().success());
    let call = |arguments: &[&str]| {
        let run = ProgramRun::new(["call", "volume"]).args(arguments);
        run.env("PATH", folder.path().to_str().unwrap()).json()
    };
    assert_eq!(call(&["action=get"])["result"]["level"], 40);
    assert_eq!(call(&["action=set", "level=55"])["result"]["level"], 55);
    assert_eq!(call(&["action=up"])["result"]["level"], 65);
    let kept = std::fs::read_to_string(folder.path().join("level")).unwrap();
    assert_eq!(kept.trim(), "65");
}

#[test]
fn list_as_json_is_a_list_of_objects_with_a_name() {
    let list = ProgramRun::new(["list", "--json"]).json();
    let tools = list.as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["name"].is_string()
        && tool["source"] == "builtin"
        && tool["parameters"].is_object()));
}

#[test]
fn list_filters_by_all_given_words() {
    let names = |arguments: &[&str]| {
        let done = ProgramRun::new(["list"]).args(arguments).done();
        let names = done
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next());
        (
            names.map(str::to_owned).collect::<Vec<_>>(),
            done.stderr,
            done.code,
        )
    };
    let found = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["MATH"]),
        (found(&["math_eval"]), String::new(), Some(0))
    );
    assert_eq!(names(&["returns", "web"]).0, found(&["search"]));
    let note = "no tool matches 'frob nicate'; 'toolgate list' shows all 5\n";
    assert_eq!(
        names(&["frob", "nicate"]),
        (vec![], note.to_owned(), Some(0))
    );
    let none = ProgramRun::new(["list", "--json", "frobnicate"]).done();
    assert_eq!(
        (none.stdout.as_str(), none.code),
        ("[]\n", Some(0)),
        "{none:?}"
    );
    let config = r#"{ "mcpServers": { "github": { "command": "cat", "disabled": true } } }"#;
    let done = ProgramRun::new(["list", "--server", "githup"])
        .config(config)
        .done();
    let expected = "error: no server is called 'githup'; did you mean 'github'?";
    assert!(done.stderr.contains(expected), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn inspect_shows_one_tool() {
    let text = ProgramRun::new(["inspect", "volume"]).done().stdout;
    for expected in [
        "volume",
        "builtin",
        "required, one of: get, set, up, down, mute, unmute",
        "integer, 0 to 100",
        "toolgate call volume action=get",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(
        ProgramRun::new(["inspect", "volume", "--json"]).json()["name"],
        "volume"
    );
    let done = ProgramRun::new(["inspect", "volum"]).done();
    assert_eq!(
        done.stderr,
        "error: Tool 'volum' not found. Did you mean 'volume'?\n"
    );
}

#[test]
fn init_writes_a_valid_file_and_never_overwrites_one() {
    let run = |arguments: &[&str]| {
        ProgramRun::new([])
            .args(arguments)
            .file("mine.json", "{}")
            .done()
    };
    assert_eq!(run(&["init"]).code, Some(0));
    let done = run(&["init", "mine.json"]);
    assert_eq!(
        (done.stderr.as_str(), done.code),
        (
            "error: mine.json already exists; --force overwrites it\n",
            Some(2)
        )
    );
    assert_eq!(run(&["init", "mine.json", "--force"]).code, Some(0));
    assert_eq!(run(&["init", "new/folder/toolgate.json"]).code, Some(0));

    let template = include_str!("../../src/commands/init.jsonc");
    let done = ProgramRun::new(["list"]).config(template).done();
    assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)));
    assert_eq!(
        done.stdout.lines().count(),
        5,
        "only what is built in: {done:?}"
    );
    // Its examples are valid once they are uncommented.
    let lines = template
        .lines()
        .map(|line| match line.strip_prefix("    // ") {
            Some(rest) if rest.trim_start().starts_with(['{', '}', '"']) => rest,
            _ => line,
        });
    let examples = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("\"files\":", "// \"files\":");
    let done = ProgramRun::new(["list"]).config(&examples).done();
    for tool in [
        "get_weather\tmock",
        "what_time_is_it\tbuiltin",
        "search_documents\tinternal",
    ] {
        assert!(done.stdout.contains(tool), "{tool}: {done:?}");
    }
}

#[test]
fn init_says_which_file_it_hides_and_writes_the_one_that_is_named() {
    let users = r#"{ "mcpServers": { "files": { "command": "x" }, "mail": { "command": "y" } } }"#;
    let run = |arguments: &[&str]| {
        ProgramRun::new([])
            .args(arguments)
            .file(".config/toolgate/toolgate.json", users)
    };
    let done_of = |run: ProgramRun| {
        let (child, folder) = run.start();
        (RunOutput::from(child.wait_with_output().unwrap()), folder)
    };
    let init = run(&["init"]);
    let written = init.path("toolgate.json");
    let schema = init.path(".local/state/toolgate/toolgate.schema.json");
    let (done, _folder) = done_of(init);
    for expected in [
        "wrote toolgate.json; try: toolgate list\n",
        "toolgate.json and its servers 'files', 'mail', because only one file is read",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
    let text = std::fs::read_to_string(&written).unwrap();
    let line = format!("\"$schema\": \"{}\",", schema.display());
    assert!(text.contains(&line), "{line}: {text}");
    let described = std::fs::read(&schema).unwrap();
    let described: serde_json::Value = serde_json::from_slice(&described).unwrap();
    assert_eq!(described["title"], "Toolgate configuration");
    let mode = std::fs::metadata(&written).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let named = run(&["--config", "house.json", "init"]);
    let (house, here) = (named.path("house.json"), named.path("toolgate.json"));
    let (done, _folder) = done_of(named);
    assert_eq!(
        done.stderr,
        "wrote house.json; try: toolgate --config house.json list\n"
    );
    assert!(house.exists() && !here.exists());
    let both = run(&["--config", "house.json", "init", "other.json"]).done();
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn doctor_names_each_problem_and_fails() {
    let config = r#"{ "documents": { "folders": ["nowhere"] }, "search": { "url": "http://127.0.0.1:1/" }, "tools": [
        { "name": "lost", "description": "?", "parameters": {}, "implementation": { "type": "builtin", "handler": "teleport" } }] }"#;
    let done = ProgramRun::new(["doctor"]).config(config).done();
    assert_eq!(done.code, Some(1));
    for expected in [
        "ok       configuration  toolgate.json is in use",
        "FAILED   configuration  toolgate.json:2:104: tool 'lost': Builtin handler 'teleport' not found",
        "FAILED   documents",
        "warning  search",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
    let broken = ProgramRun::new(["doctor"]).config("{").done();
    assert!(
        broken.stdout.starts_with(
            "FAILED   configuration  toolgate.json:1:1: the object that begins here is not closed"
        ),
        "{broken:?}"
    );
    assert_eq!(broken.code, Some(1));
}

#[test]
fn completions_exist_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let done = ProgramRun::new(["completions", shell]).done();
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
        let done = ProgramRun::new([]).args(arguments).done();
        assert_eq!(
            (done.stderr.as_str(), done.code),
            ("", Some(0)),
            "{arguments:?}"
        );
        assert!(!done.stdout.is_empty());
    }
    assert_eq!(
        ProgramRun::new([]).done().code,
        Some(2),
        "no command at all"
    );
}

#[test]
fn nothing_is_colored_in_a_pipe() {
    for arguments in [
        &["list"][..],
        &["inspect", "echo"],
        &["doctor"],
        &["--help"],
        &["frobnicate"],
    ] {
        let done = ProgramRun::new([]).args(arguments).done();
        assert!(
            !done.stdout.contains('\u{1b}') && !done.stderr.contains('\u{1b}'),
            "{arguments:?}: {done:?}"
        );
    }
}

#[test]
fn doctor_only_warns_of_harmless_oddities() {
    let config = r#"{ "mcpServers": { "lamp": { "command": "x", "disabled": true, "autoApprove": [] } }, "policy": { "deny": ["ech0"] }, "limits": { "perTool": { "serch": { "timeout": "1s" } } },
        "search": { "url": "http://127.0.0.1:1/" } }"#;
    let done = ProgramRun::new(["doctor"]).config(config).done();
    assert_eq!(done.code, Some(0), "{done:?}");
    for expected in [
        "warning  configuration  policy.deny: 'ech0' matches no tool; did you mean 'echo'?",
        "warning  configuration  limits.perTool: 'serch' matches no tool; did you mean 'search'?",
        "warning  configuration  toolgate.json:1:63: server 'lamp': unknown key 'autoApprove' is ignored",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
}

#[test]
fn rows_of_doctor_break_between_words() {
    let config = r#"{ "limits": { "timeot": "5s" }, "serve": { "bind": "127.0.0.1:99999" } }"#;
    let Some(terminal) = crate::terminal::TmuxTerminal::open(config, "X=1", "doctor") else {
        return;
    };
    let screen = terminal.shows("left with 1");
    let expected =
        "FAILED   configuration  toolgate.json:1:15: unknown key 'limits.timeot'; did you
                        mean 'timeout'?
FAILED   configuration  toolgate.json:1:44: serve.bind: ports go to 65535; write
                        an address such as 127.0.0.1:7460";
    assert!(screen.starts_with(expected), "{screen}");
}

#[test]
fn inspect_shows_item_types_and_choices() {
    let config = json!({ "tools": [{
        "name": "file_issue", "description": "Files", "implementation": { "type": "mock", "mock_response": 1 },
        "parameters": { "type": "object", "properties": {
            "labels": { "type": "array", "items": { "type": "string" } },
            "keys": { "type": "array", "items": { "type": "string", "enum": ["Alt", "Shift"] } },
            "state": { "type": "string", "enum": ["open", "closed"] },
        } },
    }] });
    let text = ProgramRun::new(["inspect", "file_issue"])
        .config(&config.to_string())
        .done()
        .stdout;
    for (name, expected) in [
        ("labels", "array of string"),
        ("keys", "array, each one of: Alt, Shift"),
        ("state", "one of: open, closed"),
    ] {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(row.is_some_and(|row| row.contains(expected)), "{text}");
    }
}

#[test]
fn gateway_problems_wrap_between_words() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let reasons = [
        "server 'house' is down: it stopped during the handshake (exit status 1)",
        "the journal can't be written",
    ];
    let body = json!({ "status": "degraded", "reasons": reasons }).to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _request = stream.read(&mut [0; 4096]).unwrap();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    });
    let command = format!("health {address}");
    let Some(terminal) = crate::terminal::TmuxTerminal::open("{}", "X=1", &command) else {
        return;
    };
    let screen = terminal.shows("left with 0");
    let expected = "degraded: server 'house' is down: it stopped during the handshake (exit status\n1); the journal can't be written\n";
    assert!(screen.starts_with(expected), "{screen}");
}
