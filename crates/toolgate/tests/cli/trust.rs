use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::run::{Done, Run};

const STORE: &str = ".local/state/toolgate/trusted.json";

fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolgate.json"), config).unwrap();
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Done {
    Run::new([]).args(arguments).within(folder.path()).done()
}

const ONE: &str = r#"{ "mcpServers": { "lamp": { "command": "lamp", "args": ["--on now"] } } }"#;

#[test]
fn trust_shows_what_would_be_started_and_remembers_it_privately() {
    let folder = folder(ONE);
    let done = run(&folder, &["trust"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{done:?}");
    assert!(
        done.stderr.contains(
            "toolgate.json names MCP servers that are not trusted yet:\n  lamp: lamp '--on now'\n"
        ),
        "{done:?}"
    );
    let store = folder.path().join(STORE);
    assert_eq!(
        std::fs::metadata(&store).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        run(&folder, &["trust"]).stderr,
        "every server of toolgate.json is trusted\n"
    );
    assert!(
        run(&folder, &["trust", "--list"])
            .stdout
            .ends_with("/toolgate.json\tlamp\n")
    );
    let revoked = run(&folder, &["trust", "--revoke"]);
    assert_eq!(
        revoked.stderr,
        "the servers of toolgate.json are not trusted any more\n"
    );
    assert_eq!(
        run(&folder, &["trust", "--list"]).stderr,
        "no file in a folder is trusted\n"
    );
}

#[test]
fn another_command_must_be_agreed_to_and_another_timeout_need_not() {
    for (after, asks) in [
        (
            r#"{ "mcpServers": { "lamp": { "timeout": "9s", "args": ["--on now"], "command": "lamp" } }, "limits": {} }"#,
            false,
        ),
        (
            r#"{ "mcpServers": { "lamp": { "command": "rm", "args": ["--on now"] } } }"#,
            true,
        ),
        (
            r#"{ "mcpServers": { "lamp": { "command": "lamp", "args": ["--off"] } } }"#,
            true,
        ),
        (
            r#"{ "mcpServers": { "lamp": { "command": "lamp", "args": ["--on now"], "env": { "LD_PRELOAD": "x" } } } }"#,
            true,
        ),
        (
            r#"{ "mcpServers": { "other": { "command": "lamp", "args": ["--on now"] } } }"#,
            true,
        ),
    ] {
        let folder = folder(ONE);
        run(&folder, &["trust"]);
        std::fs::write(folder.path().join("toolgate.json"), after).unwrap();
        let done = run(&folder, &["trust"]);
        assert_eq!(
            done.stderr.contains("not trusted yet"),
            asks,
            "{after}\n{done:?}"
        );
    }
}

#[test]
fn a_named_file_and_the_users_own_need_no_agreement() {
    let folder = folder(ONE);
    let done = run(&folder, &["--config", "toolgate.json", "trust"]);
    assert!(
        done.stderr.starts_with("there is nothing to agree to"),
        "{done:?}"
    );
    assert!(!folder.path().join(STORE).exists());
}

#[test]
fn a_server_that_was_added_here_is_trusted() {
    let folder = folder("{}");
    assert_eq!(run(&folder, &["add", "lamp", "--", "lamp"]).code, Some(0));
    assert_eq!(
        run(&folder, &["trust"]).stderr,
        "every server of toolgate.json is trusted\n"
    );
}

#[test]
fn a_broken_store_counts_for_nothing() {
    let folder = folder(ONE);
    let store = folder.path().join(STORE);
    std::fs::create_dir_all(store.parent().unwrap()).unwrap();
    std::fs::write(&store, "{ nope").unwrap();
    let done = run(&folder, &["trust"]);
    assert!(
        done.stderr.contains("counts for nothing") && done.stderr.contains("not trusted yet"),
        "{done:?}"
    );
    assert_eq!(
        run(&folder, &["trust"]).stderr,
        "every server of toolgate.json is trusted\n"
    );
}
