//! What a confined server can't reach: a hostile one performs each attack.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_mcp::sandbox::kernel_support;

use crate::run::RunOutput;

/// A home folder outside of the temporary folders, which a confined server may write to.
struct SandboxHome(TempDir);

impl SandboxHome {
    fn new() -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = Self(folder);
        for secret in [
            ".ssh/id_rsa",
            ".aws/credentials",
            ".netrc",
            ".npmrc",
            ".cargo/credentials.toml",
            ".config/google-chrome/Default/Cookies",
            ".config/toolgate/toolgate.json",
            ".local/state/toolgate/trusted.json",
            ".local/state/toolgate/journal.db",
            "records/calls.db-wal",
            "other/notes",
        ] {
            home.write(secret, "sentinel");
        }
        for open in ["notes", ".config/editor", "own/file", "project/file"] {
            home.write(open, "open");
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Runs a script as a server with this sandbox, in its own folder unless the entry has another.
    /// What it says in the end is in `report`, in its own folder.
    fn attack(&self, sandbox: &Value, script: &str) -> (String, RunOutput) {
        let entry = json!({ "command": "sh", "args": ["-c", script], "cwd": self.path("own"), "sandbox": sandbox });
        let done = self.list(&json!({ "evil": entry }));
        (self.read("own/report"), done)
    }

    fn list(&self, servers: &Value) -> RunOutput {
        let mut servers = servers.clone();
        servers["other"] =
            json!({ "command": "true", "cwd": self.path("other"), "disabled": true });
        let config = json!({
            "mcpServers": servers,
            "journal": { "file": self.path("records/calls.db") },
            "retry": { "attempts": 1 },
        });
        self.write("config.json", &config.to_string());
        self.run(&["--config", "config.json", "list", "--refresh"])
    }

    fn run(&self, arguments: &[&str]) -> RunOutput {
        let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path())
            .output();
        output.unwrap().into()
    }
}

/// False if the kernel can't restrict files; the test is then skipped with a note.
fn can_confine() -> bool {
    let can = kernel_support().can_block_files();
    if !can {
        thirdparty::skip_optional("a kernel with Landlock");
    }
    can
}

/// Shell commands that say `NAME ok` or `NAME denied` for each of these.
fn attempts(attempts: &[(&str, String)]) -> String {
    let lines = attempts.iter().map(|(name, command)| {
        format!("if {{ {command}; }} > /dev/null 2>&1; then echo '{name} ok'; else echo '{name} denied'; fi >> report\n")
    });
    lines.collect()
}

fn outcome(report: &str, name: &str) -> String {
    let line = report.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or("was not tried").trim().to_owned()
}

#[track_caller]
fn assert_outcomes(report: &str, expected: &[(&str, &str)], done: &RunOutput) {
    for (name, expected) in expected {
        assert_eq!(
            outcome(report, name),
            *expected,
            "{name}: {report}\n{done:?}"
        );
    }
}

#[test]
fn a_confined_server_reads_no_secrets_and_none_of_our_files() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let secrets = [
        ".ssh/id_rsa",
        ".aws/credentials",
        ".netrc",
        ".npmrc",
        ".cargo/credentials.toml",
        ".config/google-chrome/Default/Cookies",
        ".config/toolgate/toolgate.json",
        ".local/state/toolgate/trusted.json",
        ".local/state/toolgate/journal.db",
        "records/calls.db-wal",
        "config.json",
        "other/notes",
    ];
    let open = ["notes", ".config/editor", "own/file"];
    let read = |name: &&'static str| (*name, format!("cat '{}'", home.path(name).display()));
    let script = attempts(&secrets.iter().chain(&open).map(read).collect::<Vec<_>>());
    let (report, done) = home.attack(&json!("default"), &script);
    assert_outcomes(&report, &secrets.map(|name| (name, "denied")), &done);
    assert_outcomes(&report, &open.map(|name| (name, "ok")), &done);
    // Without the sandbox the same script succeeds.
    std::fs::remove_file(home.path("own/report")).unwrap();
    let (report, done) = home.attack(&json!("off"), &script);
    assert_outcomes(&report, &secrets.map(|name| (name, "ok")), &done);
}

#[test]
fn a_confined_server_reads_no_secret_through_links_or_other_processes() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    std::os::unix::fs::symlink(home.path(".ssh"), home.path("harmless")).unwrap();
    let key = home.path(".ssh/id_rsa");
    let (report, done) = home.attack(
        &json!("default"),
        &attempts(&[
            (
                "link",
                format!("cat '{}'", home.path("harmless/id_rsa").display()),
            ),
            ("own link", format!("ln -s '{0}' l && cat l", key.display())),
            ("hard link", format!("ln '{0}' h && cat h", key.display())),
            ("moved", format!("mv '{0}' m && cat m", key.display())),
            ("root", format!("cat /proc/self/root{}", key.display())),
            ("listed", format!("ls '{}'", home.path(".ssh").display())),
            ("signal", "kill -0 $PPID".to_owned()),
            ("environment", "cat /proc/$PPID/environ".to_owned()),
        ]),
    );
    for attempt in [
        "link",
        "own link",
        "hard link",
        "moved",
        "root",
        "listed",
        "signal",
        "environment",
    ] {
        assert_outcomes(&report, &[(attempt, "denied")], &done);
    }
}

#[test]
fn a_confined_server_writes_only_to_allowed_folders() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let denied = [
        "x",
        ".bashrc",
        "notes",
        ".config/editor",
        ".local/state/toolgate/trusted.json",
        "other/x",
        ".ssh/authorized_keys",
    ];
    let open = ["own/x", ".cache/x", "project/x"];
    let write = |name: &&'static str| (*name, format!("echo x >> '{}'", home.path(name).display()));
    let mut tried: Vec<_> = denied.iter().chain(&open).map(write).collect();
    tried.push((
        "temporary",
        "f=$(mktemp) && echo x > $f && rm $f".to_owned(),
    ));
    tried.push(("null", "echo x > /dev/null".to_owned()));
    tried.push(("removed", format!("rm '{}'", home.path("notes").display())));
    let script = attempts(&tried);
    std::fs::create_dir(home.path("tmp")).unwrap();
    let entry = json!({
        // The last argument is a folder to work on.
        "command": "sh", "args": ["-c", script, "sh", home.path("project")],
        "cwd": home.path("own"), "sandbox": "default", "env": { "TMPDIR": home.path("tmp") },
    });
    let done = home.list(&json!({ "evil": entry }));
    let report = home.read("own/report");
    assert_outcomes(&report, &denied.map(|name| (name, "denied")), &done);
    assert_outcomes(&report, &[("removed", "denied")], &done);
    assert_outcomes(&report, &open.map(|name| (name, "ok")), &done);
    assert_outcomes(&report, &[("temporary", "ok"), ("null", "ok")], &done);
    assert_eq!(home.read("notes"), "open");
}

#[test]
fn a_server_that_runs_in_the_home_folder_does_not_own_it() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    home.write("own/report", "");
    for entry in [
        json!({ "cwd": home.0.path() }),
        json!({}),
        json!({ "cwd": "/" }),
    ] {
        let mut entry = entry;
        let tried = attempts(&[
            (
                "bashrc",
                format!("echo x > '{}'", home.path(".bashrc").display()),
            ),
            (
                "key",
                format!("cat '{}'", home.path(".ssh/id_rsa").display()),
            ),
        ]);
        let script = tried.replace("report", &home.path(".cache/report").display().to_string());
        entry["command"] = json!("sh");
        entry["args"] = json!(["-c", script]);
        entry["sandbox"] = json!("default");
        let done = home.list(&json!({ "evil": entry }));
        let report = home.read(".cache/report");
        assert_outcomes(&report, &[("bashrc", "denied"), ("key", "denied")], &done);
        std::fs::remove_file(home.path(".cache/report")).unwrap();
    }
}

#[test]
fn a_listed_folder_is_open_except_for_hidden_files_in_it() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let sandbox = json!({ "read": ["~/.aws"], "write": ["~"] });
    let (report, done) = home.attack(
        &sandbox,
        &attempts(&[
            (
                "listed",
                format!("cat '{}'", home.path(".aws/credentials").display()),
            ),
            (
                "hidden",
                format!("cat '{}'", home.path(".ssh/id_rsa").display()),
            ),
            (
                "written",
                format!("echo x >> '{}'", home.path("notes").display()),
            ),
            ("names", format!("ls '{}'", home.0.path().display())),
        ]),
    );
    let expected = [
        ("listed", "ok"),
        ("hidden", "denied"),
        ("written", "ok"),
        ("names", "ok"),
    ];
    assert_outcomes(&report, &expected, &done);
}

#[test]
fn a_strict_server_reads_and_writes_only_what_is_listed() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let sandbox = json!({ "level": "strict", "read": ["~/project"], "write": ["~/own"] });
    let (report, done) = home.attack(
        &sandbox,
        &attempts(&[
            (
                "listed",
                format!("cat '{}'", home.path("project/file").display()),
            ),
            (
                "unlisted",
                format!("cat '{}'", home.path("notes").display()),
            ),
            (
                "key",
                format!("cat '{}'", home.path(".ssh/id_rsa").display()),
            ),
            ("hostname", "cat /etc/hostname".to_owned()),
            ("written", "echo x > new".to_owned()),
            (
                "read-only",
                format!("echo x >> '{}'", home.path("project/file").display()),
            ),
            ("temporary", "mktemp".to_owned()),
        ]),
    );
    for (name, expected) in [
        ("listed", "ok"),
        ("unlisted", "denied"),
        ("key", "denied"),
        ("hostname", "denied"),
        ("written", "ok"),
        ("read-only", "denied"),
        ("temporary", "denied"),
    ] {
        assert_outcomes(&report, &[(name, expected)], &done);
    }
}

/// Ways to use the network, in Python. Each is tried against a port.
const NETWORK: &str = r#"
import socket, sys
AF, TCP, UDP = socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
def tcp(port): socket.create_connection(("127.0.0.1", port), 5)
def mptcp(port): socket.socket(AF, TCP, 262).connect(("127.0.0.1", port))
def udp(port): socket.socket(AF, UDP).sendto(b"x", ("127.0.0.1", port))
def fast_open(port): socket.socket(AF, TCP).sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))
def listen(port): socket.socket(AF, TCP).bind(("127.0.0.1", 0))
def pair(port): socket.socketpair()
for name, way, port in [
    ("listed", tcp, int(sys.argv[1])), ("unlisted", tcp, int(sys.argv[2])), ("multipath", mptcp, int(sys.argv[2])),
    ("datagram", udp, int(sys.argv[2])), ("fast", fast_open, int(sys.argv[2])), ("listening", listen, 0), ("pair", pair, 0),
]:
    try: way(port); outcome = "ok"
    except OSError as error: outcome = "denied" if error.errno == 13 else str(error)
    print(name, outcome, file=open("report", "a"))
"#;

#[test]
fn a_strict_server_reaches_only_listed_ports() {
    if !kernel_support().can_block_ports() {
        thirdparty::skip_optional("a kernel whose Landlock closes ports");
        return;
    }
    if !Path::new("/usr/bin/python3").exists() {
        thirdparty::skip_optional("/usr/bin/python3");
        return;
    }
    let home = SandboxHome::new();
    home.write("own/network.py", NETWORK);
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (listed, unlisted) = (listen(), listen());
    let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
    for (sandbox, expected) in [
        (
            json!({ "level": "strict", "write": ["~/own"], "ports": [port(&listed)] }),
            ["ok", "denied", "denied", "denied", "denied", "denied", "ok"],
        ),
        (
            json!({ "level": "strict", "write": ["~/own"], "ports": [port(&listed), 53] }),
            ["ok", "denied", "denied", "ok", "denied", "denied", "ok"],
        ),
    ] {
        home.write("own/report", "");
        let entry = json!({
            "command": "/usr/bin/python3",
            "args": ["network.py", port(&listed).to_string(), port(&unlisted).to_string()],
            "cwd": home.path("own"),
            "sandbox": sandbox,
        });
        let done = home.list(&json!({ "evil": entry }));
        let report = home.read("own/report");
        let names = [
            "listed",
            "unlisted",
            "multipath",
            "datagram",
            "fast",
            "listening",
            "pair",
        ];
        for (name, expected) in names.into_iter().zip(expected) {
            assert_outcomes(&report, &[(name, expected)], &done);
        }
    }
}

#[test]
fn a_servers_variables_do_not_affect_its_launcher() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let entry = json!({
        "command": "sh",
        "args": ["-c", "env > report; ulimit -c >> report"],
        "cwd": home.path("own"),
        "env": { "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": home.path("loaded"), "COLOUR": "green" },
        "sandbox": "default",
    });
    let done = home.list(&json!({ "evil": entry }));
    let report = home.read("own/report");
    assert!(report.contains("COLOUR=green\n"), "{report}\n{done:?}");
    assert!(report.contains("LD_DEBUG=files\n"), "{report}");
    assert!(!report.contains("TOOLGATE_PASSED_"), "{report}");
    assert!(report.ends_with("\n0\n"), "no core dumps: {report}");
    // The loader of the launcher would have written what it loaded there.
    let names = std::fs::read_dir(home.0.path()).unwrap();
    let is_debug = |name: &String| name.starts_with("loaded");
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(is_debug).count(), 0, "{done:?}");
}

#[test]
fn a_sandbox_denial_names_the_key_that_allows_it() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let key = home.path(".ssh/id_rsa").display().to_string();
    let (_, done) = home.attack(&json!("default"), &format!("cat '{key}'"));
    let expected = format!(
        "it was denied access to {key}, where secrets are stored, and its sandbox blocks that; if it needs access: \"sandbox\": {{\"level\":\"default\",\"read\":[\"{key}\"]}}"
    );
    assert!(done.stderr.contains(&expected), "{expected}\n{done:?}");
}

#[test]
fn added_servers_are_confined_unless_told_otherwise() {
    let home = SandboxHome::new();
    for (arguments, expected) in [
        (&["a", "--", "true"][..], json!("default")),
        (&["b", "--sandbox", "strict", "--", "true"], json!("strict")),
        (&["c", "--sandbox", "off", "--", "true"], json!("off")),
        (&["d", "--force", "--", "podman", "run", "x"], json!("off")),
        (
            &["e", "--force", "--", "env", "A=1", "docker", "run", "x"],
            json!("off"),
        ),
        (&["f", "https://example.org/mcp"], Value::Null),
    ] {
        let all = [&["--config", "c.json", "add", "--no-start"], arguments].concat();
        let done = home.run(&all);
        assert_eq!(done.code, Some(0), "{done:?}");
        let config: Value = serde_json::from_str(&home.read("c.json")).unwrap();
        assert_eq!(config["mcpServers"][arguments[0]]["sandbox"], expected);
    }
    let done = home.run(&[
        "--config",
        "c.json",
        "add",
        "g",
        "--sandbox",
        "tight",
        "--",
        "true",
    ]);
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn doctor_reports_kernel_support_and_confined_servers() {
    if !can_confine() {
        return;
    }
    let home = SandboxHome::new();
    let entry = |sandbox: &str| json!({ "command": fakemcp::program(), "sandbox": sandbox });
    let config = json!({ "mcpServers": { "a": entry("default"), "b": entry("off") } });
    home.write("c.json", &config.to_string());
    let done = home.run(&["--config", "c.json", "doctor"]);
    let row = done
        .stdout
        .lines()
        .find(|row| row.contains("sandbox"))
        .unwrap();
    assert!(row.contains("Landlock ABI "), "{row}");
    if kernel_support().missing().is_none() {
        assert!(row.ends_with("1 of 2 servers are confined, b not"), "{row}");
    }
}

/// Each does its work in its own folders, including writing.
#[test]
fn real_servers_work_confined() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let home = SandboxHome::new();
    let (project, own) = (home.path("project"), home.path("own"));
    let node = |package: &str, args: &[&Path]| {
        let script = format!("node_modules/@modelcontextprotocol/{package}/dist/index.js");
        let script = servers.join(script);
        let args: Vec<&Path> = std::iter::once(&*script)
            .chain(args.iter().copied())
            .collect();
        json!({ "command": fakemcp::node(&servers), "args": args, "sandbox": "default", "cwd": own, "startTimeout": "100s" })
    };
    let python = |program: &str, args: &[&Path]| {
        let program = servers.join("python/bin").join(program);
        json!({ "command": program, "args": args, "sandbox": "default", "cwd": own, "startTimeout": "100s" })
    };
    let made = Command::new("git")
        .args(["init", "-q"])
        .arg(&project)
        .status();
    assert!(made.unwrap().success());
    let mut memory = node("server-memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": own.join("memory.json") });
    let config = json!({ "mcpServers": {
        "everything": node("server-everything", &[Path::new("stdio")]),
        "filesystem": node("server-filesystem", &[&project]),
        "memory": memory,
        "thinking": node("server-sequential-thinking", &[]),
        "time": python("mcp-server-time", &[]),
        "git": python("mcp-server-git", &[Path::new("--repository"), &project]),
    } });
    home.write("c.json", &config.to_string());
    let note = project.join("note");
    for (tool, arguments) in [
        ("everything__echo", json!({ "message": "hello" })),
        (
            "filesystem__write_file",
            json!({ "path": note, "content": "x" }),
        ),
        (
            "memory__create_entities",
            json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["x"] }] }),
        ),
        (
            "thinking__sequentialthinking",
            json!({ "thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 }),
        ),
        (
            "time__get_current_time",
            json!({ "timezone": "Europe/Oslo" }),
        ),
        (
            "git__git_add",
            json!({ "repo_path": project, "files": ["note"] }),
        ),
    ] {
        let done = home.run(&["--config", "c.json", "call", tool, &arguments.to_string()]);
        assert_eq!(done.json()["success"], true, "{tool}: {done:?}");
    }
    assert_eq!(home.read("project/note"), "x");
    assert!(home.read("own/memory.json").contains("Ada"));
}
