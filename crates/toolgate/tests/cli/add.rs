//! `add` and the first start of the server it adds.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::children::{signal, wait_until};
use crate::run::{ProgramRun, RunOutput};
use crate::terminal::TmuxTerminal;

const USER: &str = ".config/toolgate/toolgate.json";

fn run(folder: &TempDir, arguments: &[&str]) -> RunOutput {
    ProgramRun::new([])
        .args(arguments)
        .within(folder.path())
        .done()
}

fn fake() -> &'static str {
    fakemcp::program().to_str().unwrap()
}

fn servers(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join(USER)).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["mcpServers"].take()
}

/// A server that prints why it fails and exits.
const FAILS: &str = "echo 'the key is wrong' >&2; exit 3";

#[test]
fn add_starts_the_server_once_and_counts_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&folder, &["add", "fake", "--", fake()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let listed = run(&folder, &["list"]).stdout;
    let tools = listed.lines().filter(|line| line.contains("\tmcp:fake\t"));
    let expected = format!("connected to fake: {} tools\n", tools.count());
    assert!(
        done.stderr.ends_with(&expected),
        "{expected}{done:?}\n{listed}"
    );
    assert!(done.stderr.contains("added 'fake' to "), "{done:?}");
}

#[test]
fn an_added_server_that_cannot_work_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let house = [env!("CARGO_BIN_EXE_toolgate"), "zwave-mcp-server"];
    // Nobody listens on this port.
    let add = [
        "add",
        "-e",
        "MQTT_BROKER_URL=mqtt://127.0.0.1:1",
        "house",
        "--",
    ];
    let done = run(&folder, &[&add[..], &house].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = done.stderr.split_once("connected to house: 6 tools\n");
    let (_, told) = told.unwrap_or_else(|| panic!("{done:?}"));
    assert!(
        told.starts_with(
            "but it can't do its work: The MQTT broker mqtt://127.0.0.1:1 refused the connection"
        ),
        "{done:?}"
    );
}

#[test]
fn a_failed_start_shows_stderr_and_keeps_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&folder, &["add", "bad", "--", "sh", "-c", FAILS]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in [
        "error: server 'bad' did not start: ",
        "Its stderr: the key is wrong\n",
        "Check: 'sh' installed and on the PATH, settings of 'bad' in ",
        "'bad' stays in ",
        "'toolgate remove bad' removes it",
    ] {
        assert!(done.stderr.contains(expected), "{expected}\n{done:?}");
    }
    // Reported once, by the command itself.
    assert_eq!(
        done.stderr.matches("the key is wrong").count(),
        1,
        "{done:?}"
    );
    assert!(!done.stderr.contains("Continuing"), "{done:?}");
    assert!(servers(folder.path())["bad"].is_object());
}

#[test]
fn drop_removes_a_failed_server_and_restores_the_previous_entry() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&folder, &["add", "x", "--drop", "--", "sh", "-c", FAILS]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("removed 'x' from "));
    assert_eq!(servers(folder.path()).as_object().unwrap().len(), 0);
    assert_eq!(
        run(&folder, &["add", "x", "--no-start", "--", "sh"]).code,
        Some(0)
    );
    let done = run(
        &folder,
        &["add", "x", "--force", "--drop", "--", "sh", "-c", FAILS],
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.stderr.contains("restored the previous 'x' in "),
        "{done:?}"
    );
    assert_eq!(
        servers(folder.path())["x"],
        serde_json::json!({ "command": "sh", "sandbox": "default" })
    );
    let done = run(
        &folder,
        &["add", "y", "https://127.0.0.1:9/", "-H", "K: ${NOT_SET}"],
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.stderr.contains("the variable NOT_SET is not set"),
        "{done:?}"
    );
}

#[test]
fn missing_programs_and_names_with_spaces_are_refused() {
    for (arguments, expected) in [
        (
            &["add", "x", "--", "nosuchprogram-zz"][..],
            "error: server 'x': command 'nosuchprogram-zz' was not found on the PATH: ",
        ),
        (&["add", "x", "--", "./none"], "none does not exist: "),
        (
            &["add", "my server", "--", "sh"],
            "error: server 'my server': its name can't contain spaces, because it is part of tool names that people type; try 'my-server'\n",
        ),
        (
            &["add", "x"],
            "error: what is 'x'? Give a command after two dashes, or an address: ",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let done = run(&folder, arguments);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains(expected), "{expected}\n{done:?}");
        assert!(!folder.path().join(USER).exists());
    }
    let folder = tempfile::tempdir().unwrap();
    let done = run(&folder, &["add", "x", "--force", "--", "nosuchprogram-zz"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr
            .contains("not started: command 'nosuchprogram-zz' was not found")
    );
    assert_eq!(servers(folder.path())["x"]["command"], "nosuchprogram-zz");
}

#[test]
fn the_usage_of_add_has_both_forms_and_asks_for_a_name() {
    let done = ProgramRun::new(["add"]).done();
    assert_eq!(done.code, Some(2));
    let text = &done.stderr;
    assert!(
        text.contains("  <NAME>\n") && !text.contains("  <URL"),
        "{text}"
    );
    assert!(
        text.contains("toolgate add [OPTIONS] <NAME> -- <COMMAND>...\n       toolgate add [OPTIONS] <NAME> <URL>"),
        "{text}"
    );
}

/// A package runner that downloads until it is asked to stop, and then takes a while to clean up.
fn slow_npx(folder: &Path, seconds: u32) -> String {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    // Where a confined npx may write.
    let told = folder.join(".npm/told").display().to_string();
    let script = format!(
        "#!/bin/sh\ntrap 'echo INT >> {told}' INT\ntrap 'echo TERM >> {told}' TERM\necho started >> {told}\necho 'fetching 3 of 9' >&2\nwhile ! grep -q INT {told}; do sleep 0.1; done\nsleep {seconds}\necho cleaned >> {told}\n"
    );
    let file = bin.join("npx");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    told
}

#[test]
fn a_stopped_download_may_clean_up() {
    // The program itself waits for ten seconds; then it is up to its guard.
    for (name, code, seconds) in [
        ("-INT", Some(130), 12),
        ("-TERM", Some(143), 3),
        ("-KILL", None, 3),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let told = slow_npx(folder.path(), seconds);
        let path = format!("{}/bin:/usr/bin:/bin", folder.path().display());
        let run = ProgramRun::new(["add", "docs", "--", "npx", "-y", "docs-mcp"])
            .within(folder.path())
            .env("PATH", &path);
        let (mut child, _folder) = run.start();
        let text = || std::fs::read_to_string(&told).unwrap_or_default();
        wait_until("the download has begun", || text().contains("started"));
        signal(name, &child);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        wait_until("it has cleaned up", || text().contains("cleaned"));
        assert_eq!(text(), "started\nINT\ncleaned\n", "{name}");
        assert!(servers(folder.path())["docs"].is_object());
    }
}

#[test]
fn on_a_terminal_the_last_line_of_stderr_is_shown_and_a_person_is_asked() {
    let command = "add slow -- sh -c 'echo fetching 3 of 9 >&2; sleep 2; echo no key >&2; exit 3'";
    let Some(terminal) = TmuxTerminal::open("{}", "", command) else {
        return;
    };
    terminal.shows(" s fetching 3 of 9");
    let screen = terminal.shows("Remove 'slow' from toolgate.json? [y/N]");
    assert!(
        screen.contains("error: server 'slow' did not start"),
        "{screen}"
    );
    terminal.line("y");
    terminal.shows("removed 'slow' from toolgate.json");
    terminal.shows("left with 1");
}
