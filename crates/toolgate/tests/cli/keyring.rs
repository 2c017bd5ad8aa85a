use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::run::{ProgramRun, RunOutput};
use crate::secrets::server;

const INDEX: &str = ".local/state/toolgate/secrets.json";

#[test]
fn a_secret_needs_a_valid_name_a_value_and_a_keyring() {
    for (arguments, stdin, code, expected) in [
        (
            ["set", "a b"],
            &b"x"[..],
            2,
            "is not a valid name for a secret",
        ),
        (["set", "a"], b"", 2, "the secret is empty"),
        (["set", "a"], b"\xff", 2, "the secret is not UTF-8"),
        (
            ["set", "a"],
            &[b'x'; (64 << 10) + 2],
            2,
            "the secret is larger than 64 KiB",
        ),
        (["set", "a"], b"S3NT1NEL-of-a-file", 1, "write ${file:PATH}"),
        (["remove", "a"], b"", 1, "there is no keyring to ask"),
    ] {
        let run = ProgramRun::new(["secret"]).args(&arguments).stdin(stdin);
        let index = run.home().join(INDEX);
        let done = run.done();
        assert_eq!(done.code, Some(code), "{arguments:?} {done:?}");
        assert!(done.stderr.contains(expected), "{arguments:?} {done:?}");
        assert!(!done.stderr.contains("S3NT1NEL"), "{done:?}");
        assert!(!index.exists());
    }
}

/// A session bus with a real keyring, unlocked, in which `script` runs with `$1` as the program.
fn with_keyring(home: &Path, script: &str) -> RunOutput {
    let script = format!(
        "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; {script}"
    );
    let mut command = Command::new("dbus-run-session");
    command
        .args([
            "--",
            "sh",
            "-ec",
            &script,
            "sh",
            env!("CARGO_BIN_EXE_toolgate"),
        ])
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .stdin(Stdio::null());
    command.output().unwrap().into()
}

#[test]
fn the_keyring_of_a_desktop_keeps_secrets() {
    if !thirdparty::has_programs(&["dbus-run-session", "gnome-keyring-daemon"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = json!({ "mcpServers": { "one": server(
        &json!({ "env": { "K": "${keyring:work/token}" } })
    ) } });
    std::fs::write(folder.path().join("t.json"), config.to_string()).unwrap();
    let done = with_keyring(
        folder.path(),
        "export TOOLGATE_CONFIG=t.json
        echo first-value | \"$1\" secret set work/token
        echo unused-value | \"$1\" secret set spare
        \"$1\" call one__env
        echo second-value | \"$1\" secret set work/token
        \"$1\" call one__env
        \"$1\" secret list
        \"$1\" secret list --json
        \"$1\" secret remove spare
        \"$1\" secret list
        \"$1\" secret remove spaer || echo \"code $?\"
        \"$1\" secret remove work/token
        \"$1\" list --refresh",
    );
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("first-value"), "{done:?}");
    assert!(lines[1].contains("second-value"), "{done:?}");
    assert_eq!(lines[2], "spare\tnot used", "{done:?}");
    assert_eq!(lines[3], "work/token\tmcpServers.one.env.K", "{done:?}");
    let listed: Value = serde_json::from_str(lines[4]).unwrap();
    let expected =
        json!({ "name": "work/token", "set": true, "used_by": ["mcpServers.one.env.K"] });
    assert_eq!(listed[1], expected);
    assert_eq!(
        lines[5..7],
        ["work/token\tmcpServers.one.env.K", "code 1"],
        "{done:?}"
    );
    assert!(!done.stderr.contains("-value"), "{done:?}");
    let told =
        "the keyring has no secret 'work/token'; 'toolgate secret set work/token' puts it there";
    assert!(done.stderr.contains(told), "{done:?}");
    let index = folder.path().join(INDEX);
    let mode = std::fs::metadata(&index).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_changed_secret_restarts_the_servers_that_use_it() {
    if !thirdparty::has_programs(&["dbus-run-session", "gnome-keyring-daemon"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = json!({ "mcpServers": {
        "one": server(&json!({ "env": { "K": "${keyring:token}" } })),
        "other": server(&json!({})),
    } });
    std::fs::write(folder.path().join("t.json"), config.to_string()).unwrap();
    // Waits for a line of the log, at most a minute.
    let done = with_keyring(
        folder.path(),
        "export TOOLGATE_CONFIG=t.json
        has() { n=0; until [ $(grep -c \"$1\" log) = $2 ]; do n=$((n + 1)); [ $n -lt 600 ]; sleep 0.1; done; }
        echo first-value | \"$1\" secret set token
        \"$1\" serve --bind 127.0.0.1:0 2> log & pid=$!
        trap 'kill $pid' EXIT
        has 'connected server=one' 1; has 'connected server=other' 1
        echo second-value | \"$1\" secret set token
        has 'connected server=one' 2
        grep -c 'connected server=other' log
        grep -c 'a secret of t.json changed' log",
    );
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    assert_eq!(done.stdout, "1\n1\n", "{done:?}\n{log}");
    assert!(!log.contains("-value"), "{log}");
}
