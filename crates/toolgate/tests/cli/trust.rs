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
    assert_eq!(
        run(&folder, &["add", "lamp", "--force", "--", "lamp"]).code,
        Some(0)
    );
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

#[test]
fn servers_that_are_trusted_break_between_names_on_a_terminal() {
    let servers = (0..12).map(|n| (format!("server-{n}"), serde_json::json!({ "command": "x" })));
    let servers: serde_json::Map<_, _> = servers.collect();
    let config = serde_json::json!({ "mcpServers": servers }).to_string();
    let Some(terminal) = crate::terminal::Terminal::open(&config, "X=1", "trust --yes") else {
        return;
    };
    terminal.shows("left with 0");
    terminal.open_again("X=1", "trust --list");
    let screen = terminal.shows("left with 0");
    let rows: Vec<&str> = screen
        .lines()
        .take_while(|line| !line.starts_with("left"))
        .collect();
    assert!(rows[0].contains("/toolgate.json  server-0, "), "{screen}");
    assert!(rows.len() > 1, "{screen}");
    let is_whole =
        |row: &&str| row.ends_with(',') || row.ends_with("server-11") || row.ends_with("server-9");
    assert!(rows.iter().all(is_whole), "{screen}");
    let column = rows[0].find("server-0").unwrap();
    let is_aligned = |row: &&str| row.find("server-") == Some(column);
    assert!(rows.iter().all(is_aligned), "{screen}");
}
