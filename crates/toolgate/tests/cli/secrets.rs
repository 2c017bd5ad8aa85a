use std::process::Command;

use serde_json::{Value, json};

use crate::gateway::{RunningServe, wait_until};
use crate::run::{ProgramRun, RunOutput};

const SECRET: &str = "S3NT1NEL-of-a-file";

pub(crate) fn server(more: &Value) -> Value {
    let mut entry = json!({ "command": fakemcp::program() });
    let fields = entry.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    entry
}

fn hides(what: &str, text: &str) {
    assert!(!text.contains(SECRET), "{what}: {text}");
}

#[test]
fn a_secret_of_a_file_reaches_its_server_and_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("key"), format!("{SECRET}\n")).unwrap();
    let tools = json!([
        { "name": "env", "title": SECRET, "description": format!("Uses {SECRET}."), "inputSchema": {
            "type": "object",
            "properties": { "k": { "type": "string", "description": SECRET, "default": SECRET } },
        } },
        { "name": "crash", "description": "d", "inputSchema": { "type": "object" } },
    ]);
    std::fs::write(path("tools.json"), tools.to_string()).unwrap();
    let list = format!("list={}", path("tools.json").display());
    let said = format!("stderr={SECRET}\\n");
    let config = json!({ "mcpServers": {
        "one": server(&json!({ "args": [list, said], "env": { "PLAIN": "x-${file:key}" } })),
        "gone": { "command": "/no/such/program", "args": ["${file:key}"] },
    } });
    std::fs::write(path("t.json"), config.to_string()).unwrap();
    let run = |arguments: &[&str]| -> RunOutput {
        let run = ProgramRun::new([]).args(&["--config", "t.json"]);
        run.args(arguments).within(folder.path()).done()
    };
    let called = run(&["call", "one__env"]).json();
    assert!(
        called.to_string().contains(&format!("x-{SECRET}")),
        "{called}"
    );
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["list", "--refresh", "--json"],
        &["inspect", "one__env"],
        &["inspect", "one__env", "--json"],
        &["inspect", "one"],
        &["inspect", "gone"],
        &["doctor"],
        &["calls"],
        &["calls", "--json"],
        &["-vv", "call", "gone__x"],
        &["secret", "list"],
    ] {
        let done = run(arguments);
        hides(
            &arguments.join(" "),
            &format!("{}{}", done.stdout, done.stderr),
        );
    }
    let shown = run(&["inspect", "one__env"]).stdout;
    assert!(shown.contains("Uses [REDACTED]."), "{shown}");
    // Neither the journal nor the catalog stores it.
    let state = path(".local/state/toolgate");
    let kept = Command::new("grep")
        .args(["-r", "--text", "-l", SECRET])
        .arg(&state)
        .output();
    assert_eq!(String::from_utf8_lossy(&kept.unwrap().stdout), "");
}

#[test]
fn a_missing_secret_is_reported_with_its_position_and_affects_only_its_user() {
    let config = r#"{
  "search": { "key": "${file:nowhere}" },
  "mcpServers": {
    "pipe": { "command": "x", "env": { "K": "${file:pipe}" } },
    "command": { "command": "x", "args": ["${cmd:sh -c 'echo why >&2; exit 4'}"] },
    "keyring": { "url": "http://127.0.0.1:1/${keyring:token}" },
    "off": { "command": "x", "args": ["${cmd:touch ran}"], "disabled": true }
  }
}"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.json"), config).unwrap();
    let made = Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let done = ProgramRun::new(["--config", "t.json", "doctor"])
        .within(folder.path())
        .done();
    for expected in [
        "t.json:2:15: search.key: ${file:nowhere}: ",
        "nowhere cannot be read: No such file",
        "t.json:4:40: server 'pipe' is left out: env.K: ${file:pipe}: ",
        "pipe is not a file",
        "t.json:5:43: server 'command' is left out: args.0: ${cmd:sh -c 'echo why >&2; exit 4'}: sh failed (exit code 4): why",
        "server 'keyring' is left out: url: ${keyring:token}: there is no keyring to ask",
        "write ${file:PATH}",
    ] {
        assert!(
            done.stdout.contains(expected),
            "{expected}\n{}",
            done.stdout
        );
    }
    assert!(!folder.path().join("ran").exists());
    // A tool that doesn't need it works.
    let echo = ProgramRun::new(["--config", "t.json", "call", "echo", "a=1"]);
    assert_eq!(echo.within(folder.path()).done().code, Some(0));
}

#[test]
fn an_error_about_a_value_does_not_show_a_secret_in_it() {
    let config = json!({ "limits": { "timeout": "${file:key}" } }).to_string();
    let done = ProgramRun::new(["list"])
        .config(&config)
        .file("key", SECRET)
        .done();
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("limits.timeout"), "{done:?}");
    hides("error", &done.stderr);
}

#[test]
fn credentials_of_systemd_are_files() {
    let config = json!({ "mcpServers": { "one": server(
        &json!({ "env": { "K": "${file:$CREDENTIALS_DIRECTORY/token}" } })
    ) } });
    let run = ProgramRun::new(["call", "one__env"]).config(&config.to_string());
    let credentials = run.path("credentials").display().to_string();
    let run = run
        .file("credentials/token", SECRET)
        .env("CREDENTIALS_DIRECTORY", &credentials);
    let called = run.json().to_string();
    assert!(called.contains(SECRET), "{called}");
}

#[test]
fn secret_commands_run_once_and_only_if_needed() {
    let folder = tempfile::tempdir().unwrap();
    let once = "${cmd:sh -c 'echo run >> runs; echo s3cret-word'}";
    let config = json!({
        "model": { "key": "${cmd:touch model-ran}" },
        "mcpServers": {
            "one": server(&json!({ "env": { "A": once, "B": once } })),
            "two": server(&json!({ "env": { "A": once } })),
        },
    });
    std::fs::write(folder.path().join("t.json"), config.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let run = ProgramRun::new([]).args(&["--config", "t.json"]);
        run.args(arguments).within(folder.path()).done()
    };
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap_or_default();
    for arguments in [
        &["calls"][..],
        &["secret", "list"],
        &["completions", "--names", "tools"],
        &["health"],
    ] {
        run(arguments);
        assert_eq!(runs(), "", "{arguments:?}");
    }
    let called = run(&["call", "one__env"]).json().to_string();
    assert!(called.contains("s3cret-word"), "{called}");
    assert_eq!(runs(), "run\n");
    assert!(!folder.path().join("model-ran").exists());
}

#[test]
fn an_untrusted_file_fetches_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "search": { "key": "${file:nowhere}" },
        "mcpServers": { "evil": {
            "command": "sh", "args": ["-c", "true"],
            "env": { "API_KEY": "${cmd:touch pwned}", "K": "${keyring:stolen}", "F": "${file:~/.ssh/id}" },
        } },
    });
    std::fs::write(folder.path().join("toolgate.json"), config.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        ProgramRun::new([])
            .args(arguments)
            .within(folder.path())
            .done()
    };
    for arguments in [
        &["list"][..],
        &["doctor"],
        &["inspect", "echo"],
        &["call", "echo", "a=1"],
        &["ask", "--provider", "intents", "what is 6 times 7"],
        &["mcp"],
        &["secret", "list"],
        &["completions", "--names", "tools"],
        &["trust"],
    ] {
        let done = run(arguments);
        let told = format!("{}{}", done.stdout, done.stderr);
        let is_trust = arguments == ["trust"];
        assert!(!folder.path().join("pwned").exists(), "{arguments:?}");
        assert!(
            is_trust || !told.contains("nowhere"),
            "{arguments:?} {told}"
        );
        assert!(is_trust || !told.contains("stolen"), "{arguments:?} {told}");
    }
    let asked = run(&["trust"]).stderr;
    let real = folder.path().canonicalize().unwrap();
    for line in [
        "  runs a command and uses what it prints: touch pwned\n".to_owned(),
        "  reads the secret 'stolen' from the keyring\n".to_owned(),
        format!(
            "  reads a secret from the file {}\n",
            real.join("nowhere").display()
        ),
        format!(
            "  reads a secret from the file {}\n",
            folder.path().join(".ssh/id").display()
        ),
    ] {
        assert!(asked.contains(&line), "{line}\n{asked}");
    }
    run(&["trust", "--yes"]);
    run(&["list"]);
    assert!(folder.path().join("pwned").exists(), "agreed to, it runs");
}

#[test]
fn a_changed_secret_restarts_only_the_server_that_uses_it() {
    let config = json!({ "mcpServers": {
        "one": server(&json!({ "env": { "K": "${file:key}", "C": "${cmd:sh -c 'echo x >> runs; wc -l < runs'}" } })),
        "other": server(&json!({})),
    } });
    let run = ProgramRun::new(["serve"])
        .config(&config.to_string())
        .file("key", "first-value");
    let gateway = RunningServe::start(run);
    let starts = |name: &str| {
        let log = gateway.log();
        let is_start = |line: &&str| {
            line.contains("MCP server connected") && line.contains(&format!("server={name}"))
        };
        log.lines().filter(is_start).count()
    };
    let env = || gateway.call("one__env", "{}").to_string();
    wait_until("both start", || starts("one") == 1 && starts("other") == 1);
    assert!(env().contains("first-value"));
    let file = |name: &str| gateway.folder.path().join(name);
    std::fs::write(file("key.new"), "second-value\n").unwrap();
    std::fs::rename(file("key.new"), file("key")).unwrap();
    wait_until("the new value", || env().contains("second-value"));
    // Its record may come a moment after the first answer.
    wait_until("the record of its start", || starts("one") == 2);
    assert_eq!(starts("other"), 1, "{}", gateway.log());
    let runs = || {
        std::fs::read_to_string(file("runs"))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(runs(), 1, "a command isn't run again for another secret");
    gateway.signal("-HUP");
    wait_until("the command runs again", || starts("one") == 3);
    assert_eq!((runs(), starts("other")), (2, 1), "{}", gateway.log());
    // A lost secret changes nothing, and is reported.
    std::fs::remove_file(file("key")).unwrap();
    wait_until("the error", || gateway.log().contains("${file:key}: "));
    assert!(env().contains("second-value"));
    let log = gateway.log();
    assert!(
        log.contains("the previous configuration stays in force"),
        "{log}"
    );
    assert!(
        !log.contains("first-value") && !log.contains("second-value"),
        "{log}"
    );
}
