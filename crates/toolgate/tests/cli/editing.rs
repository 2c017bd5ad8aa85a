use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{ProgramRun, RunOutput};

/// A folder that is its own home, so that several commands can run in it.
fn home(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> RunOutput {
    ProgramRun::new([])
        .args(arguments)
        .within(folder.path())
        .done()
}

fn text(folder: &TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

const USER: &str = ".config/toolgate/toolgate.json";

#[test]
fn add_makes_the_users_file_private_and_says_what_comes_next() {
    let folder = home(&[("notes/one.txt", "")]);
    let done = run(
        &folder,
        &[
            "add",
            "files",
            "--no-start",
            "-e",
            "KEY=a=b",
            "--cwd",
            "notes",
            "--",
            "sh",
            "-y",
            "server",
            "--flag",
        ],
    );
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{done:?}");
    for expected in [
        "added 'files' to ",
        "toolgate/toolgate.json",
        "${VAR} keeps a secret out of it",
        "toolgate doctor",
    ] {
        assert!(done.stderr.contains(expected), "{expected}\n{done:?}");
    }
    let written: Value = serde_json::from_str(&text(&folder, USER)).unwrap();
    let cwd = folder.path().canonicalize().unwrap().join("notes");
    assert_eq!(
        written,
        json!({ "mcpServers": { "files": { "command": "sh", "args": ["-y", "server", "--flag"], "env": { "KEY": "a=b" }, "cwd": cwd, "sandbox": "default" } } })
    );
    assert_eq!(mode(&folder.path().join(USER)), 0o600);

    let done = run(
        &folder,
        &[
            "add",
            "--no-start",
            "remote",
            "https://example.org/mcp",
            "-H",
            "Authorization: Bearer ${TOKEN}",
        ],
    );
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stderr.contains("secret"), "{done:?}");
    let written: Value = serde_json::from_str(&text(&folder, USER)).unwrap();
    assert_eq!(
        written["mcpServers"]["remote"],
        json!({ "url": "https://example.org/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } })
    );
}

#[test]
fn add_and_remove_keep_comments_layout_and_mode() {
    let before = "// our house\n{\n  \"limits\": { \"timeout\": \"5s\" }, // short\n\n  \"mcpServers\": {\n    // the lamp\n    \"lamp\": { \"command\": \"lamp\" }\n  }\n}\n";
    let folder = home(&[("toolgate.json", before)]);
    let file = folder.path().join("toolgate.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(
        run(
            &folder,
            &["add", "door", "--force", "--", "./door", "--lock"]
        )
        .code,
        Some(0)
    );
    assert_eq!(
        text(&folder, "toolgate.json"),
        "// our house\n{\n  \"limits\": { \"timeout\": \"5s\" }, // short\n\n  \"mcpServers\": {\n    // the lamp\n    \"lamp\": { \"command\": \"lamp\" },\n    \"door\": {\n      \"command\": \"./door\",\n      \"args\": [\"--lock\"],\n      \"sandbox\": \"default\"\n    }\n  }\n}\n"
    );
    assert_eq!(mode(&file), 0o640);
    let done = run(&folder, &["remove", "door"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (Some(0), "removed 'door' from toolgate.json\n")
    );
    assert_eq!(text(&folder, "toolgate.json"), before);
    assert!(!folder.path().join(USER).exists());
}

#[test]
fn a_failed_add_or_remove_writes_nothing() {
    let before = "{ \"mcpServers\": { \"lamp\": { \"command\": \"lamp\" } } }";
    for (arguments, expected) in [
        (
            &["add", "lamp", "--", "x"][..],
            "error: toolgate.json already has a server 'lamp'; --force replaces it\n",
        ),
        (
            &["add", "x", "npx"],
            "error: server 'x': url: is not an address such as https://host/mcp; a command goes after two dashes: toolgate add x -- npx\n",
        ),
        (
            &["add", "x", "ftp://h/"],
            "error: server 'x': url: must begin with http:// or https://\n",
        ),
        (
            &["add", "a/b", "--", "x"],
            "error: server 'a/b': its name can't contain '/', which separates server and tool in a policy; rename it\n",
        ),
        (
            &["add", "x", "-e", "KEY", "--", "x"],
            "error: -e takes KEY=VALUE\n",
        ),
        (
            &["add", "x", "http://h/", "-H", "nope"],
            "error: -H takes 'Name: value'\n",
        ),
        (
            &["remove", "lmp"],
            "error: toolgate.json has no server 'lmp'; did you mean 'lamp'?\n",
        ),
        (
            &["remove", "zzz"],
            "error: toolgate.json has no server 'zzz'; it has: lamp\n",
        ),
    ] {
        let folder = home(&[("toolgate.json", before)]);
        let done = run(&folder, arguments);
        assert_eq!(
            (done.stderr.as_str(), done.code),
            (expected, Some(2)),
            "{arguments:?}"
        );
        assert_eq!(text(&folder, "toolgate.json"), before);
    }
    for arguments in [&["add", "x"][..], &["add", "x", "http://h/", "--", "y"]] {
        let done = run(&home(&[]), arguments);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    }
    let broken = home(&[("toolgate.json", "{\n  nope")]);
    let done = run(&broken, &["add", "x", "--", "y"]);
    assert!(
        done.stderr.starts_with("error: toolgate.json:2:3: "),
        "{done:?}"
    );
    assert_eq!(text(&broken, "toolgate.json"), "{\n  nope");
}

#[test]
fn force_replaces_and_a_named_file_is_the_one_that_is_written() {
    let folder = home(&[(
        "house.json",
        "{ \"servers\": { /* old */ \"lamp\": { \"command\": \"lamp\" } } }",
    )]);
    let done = run(
        &folder,
        &[
            "--config",
            "house.json",
            "add",
            "--force",
            "lamp",
            "--",
            "lamp2",
        ],
    );
    assert_eq!(done.code, Some(0), "{done:?}");
    let written = text(&folder, "house.json");
    assert!(
        written.contains("/* old */ \"lamp\": {") && written.contains("lamp2"),
        "{written}"
    );
}

#[test]
fn a_file_of_other_programs_is_never_written() {
    let shared = "{ \"mcpServers\": {} }";
    let folder = home(&[(".mcp.json", shared)]);
    assert_eq!(run(&folder, &["trust", "--yes"]).code, Some(0));
    let done = run(&folder, &["add", "--no-start", "x", "--", "sh"]);
    assert!(
        done.stderr
            .contains("in this folder, .mcp.json is used instead"),
        "{done:?}"
    );
    assert_eq!(text(&folder, ".mcp.json"), shared);
    assert!(text(&folder, USER).contains("\"x\""));
}

#[test]
fn import_reports_what_it_takes_and_skips() {
    let cursor = r#"{ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "files", "${workspaceFolder}"], "env": { "KEY": "s3cret-key" }, "autoApprove": ["x"] },
        "asks": { "url": "https://h/", "headers": { "K": "${input:k}" } },
        "there": { "command": "x" } } }"#;
    let folder = home(&[
        (".cursor/mcp.json", cursor),
        (
            "toolgate.json",
            "{ // mine\n  \"mcpServers\": { \"there\": { \"command\": \"y\" } }\n}\n",
        ),
    ]);
    let before = text(&folder, "toolgate.json");
    let dry = run(&folder, &["import", "cursor", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert_eq!(text(&folder, "toolgate.json"), before);
    let done = run(&folder, &["import", "cursor"]);
    assert_eq!(
        (done.code, &done.stdout),
        (Some(0), &dry.stdout),
        "{done:?}"
    );
    for expected in [
        ".cursor/mcp.json\n",
        "  take  files: npx -y files ",
        "(env: KEY=[REDACTED]) (sandbox: default) (without autoApprove)\n",
        "  skip  asks: headers.K: ${input:…} makes VS Code ask for a value",
        "  skip  there: is already in toolgate.json; --force replaces it\n",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
    assert!(
        !done.stdout.contains("s3cret-key")
            && done.stderr.contains("added 1 server to toolgate.json"),
        "{done:?}"
    );
    let after = text(&folder, "toolgate.json");
    assert!(
        after.contains("// mine") && after.contains("s3cret-key") && !after.contains("autoApprove"),
        "{after}"
    );
    assert_eq!(text(&folder, ".cursor/mcp.json"), cursor);
}

#[test]
fn import_finds_the_files_of_each_client() {
    let entry = |name: &str| format!(r#"{{ "mcpServers": {{ "{name}": {{ "command": "x" }} }} }}"#);
    let vscode =
        r#"{ "inputs": [], "servers": { "code": { "type": "http", "url": "https://h/mcp" } } }"#;
    for (client, file, content, name) in [
        ("claude", ".claude.json", entry("user"), "user"),
        ("claude", ".mcp.json", entry("project"), "project"),
        (
            "claude",
            ".config/Claude/claude_desktop_config.json",
            entry("desktop"),
            "desktop",
        ),
        ("cursor", ".cursor/mcp.json", entry("cursor"), "cursor"),
        ("vscode", ".vscode/mcp.json", vscode.to_owned(), "code"),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            vscode.to_owned(),
            "code",
        ),
        ("./some.json", "some.json", entry("file"), "file"),
    ] {
        let folder = home(&[(file, &content)]);
        let done = run(&folder, &["import", client]);
        assert!(
            done.stdout.contains(&format!("  take  {name}: ")),
            "{client} {file}\n{done:?}"
        );
        assert!(text(&folder, USER).contains(&format!("\"{name}\"")));
    }
    let none = run(&home(&[]), &["import", "cursor"]);
    assert!(
        none.stderr
            .starts_with("error: cursor has no servers here; looked for "),
        "{none:?}"
    );
    let unknown = run(&home(&[]), &["import", "curser"]);
    assert_eq!(
        unknown.stderr,
        "error: 'curser' is neither a client nor a file; did you mean cursor?\n"
    );
    let missing = run(&home(&[]), &["import", "no.json"]);
    assert!(
        missing.stderr.starts_with("error: no.json: cannot be read"),
        "{missing:?}"
    );
}

#[test]
fn import_output_wraps_between_words() {
    let Some(terminal) = crate::terminal::TmuxTerminal::open("{}", "X=1", "list") else {
        return;
    };
    terminal.shows("left with 0");
    let long = [
        "--allow",
        "/srv/notes",
        "--allow",
        "/srv/pictures",
        "--allow",
        "/srv/music",
        "--allow",
        "/srv/mail",
    ];
    let servers =
        serde_json::json!({ "mcpServers": { "files": { "command": "npx", "args": long } } });
    std::fs::write(terminal.home().join("o.json"), servers.to_string()).unwrap();
    terminal.open_again("X=1", "import o.json --dry-run");
    let screen = terminal.shows("left with 0");
    let expected = "  take  files: npx --allow /srv/notes --allow /srv/pictures --allow /srv/music\n        --allow /srv/mail (sandbox: default)\n";
    assert!(screen.contains(expected), "{screen}");
}
