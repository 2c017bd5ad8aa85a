//! The cache of MCP servers between two runs: names, lists, lookups and completion.

mod completion;
mod mcp;
mod mute;
mod owners;
mod pinning;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::gateway::{HANG, RunningServe};
use crate::run::{ProgramRun, RunOutput};

/// A folder with a configuration, for several commands in a row.
struct CatalogFolder {
    folder: TempDir,
}

impl CatalogFolder {
    /// Servers by name and modes. Each counts its starts in a file with its name.
    fn new(servers: &[(&str, &[&str])]) -> Self {
        let home = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        home.configure(servers);
        home
    }

    fn configure(&self, servers: &[(&str, &[&str])]) {
        let entry = |(name, modes): &(&str, &[&str])| {
            let file = self.path(&format!("{name}.starts"));
            let counting = format!("failing=0:{}", file.display());
            let args: Vec<&str> = modes.iter().copied().chain([counting.as_str()]).collect();
            let entry = json!({ "command": self.program(name), "args": args });
            ((*name).to_owned(), entry)
        };
        let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
        let config =
            json!({ "mcpServers": servers, "retry": { "attempts": 2, "baseDelay": "50ms" } });
        std::fs::write(self.path("house.json"), config.to_string()).unwrap();
    }

    /// A server's program is a file of its own, so that it can be broken without a
    /// change of the configuration.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.path(&format!("{name}-mcp"));
        let fake = fakemcp::program().display();
        self.write_program(name, &format!("exec '{fake}' \"$@\""));
        path
    }

    fn write_program(&self, name: &str, line: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(&format!("{name}-mcp"));
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn tools(&self, file: &str, names: &[&str]) -> String {
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "description": "Does it", "inputSchema": { "type": "object" } }))
            .collect();
        let path = self.path(file);
        std::fs::write(&path, json!(tools).to_string()).unwrap();
        format!("list={}", path.display())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> ProgramRun {
        ProgramRun::new(["--config", "house.json"])
            .args(arguments)
            .within(self.folder.path())
    }

    fn run(&self, arguments: &[&str]) -> RunOutput {
        self.command(arguments).done()
    }

    /// How often a server was started so far.
    fn starts(&self, name: &str) -> u64 {
        let file = self.path(&format!("{name}.starts"));
        std::fs::metadata(file).map_or(0, |file| file.len())
    }

    fn remembered(&self) -> Vec<PathBuf> {
        let folder = self.path(".local/state/toolgate/catalogue");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|name| name == "json"))
            .collect()
    }
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list.as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn list_and_inspect_answer_from_memory_and_say_so() {
    let home = CatalogFolder::new(&[("house", &[])]);
    let first = home.run(&["list"]);
    assert!(
        first.stdout.contains("\narguments\tmcp:house\t"),
        "{first:?}"
    );
    assert!(!first.stderr.contains("remembered"), "{first:?}");
    assert_eq!(home.starts("house"), 1);

    let second = home.run(&["list"]);
    assert_eq!((second.stdout, home.starts("house")), (first.stdout, 1));
    let note = "the tools of 1 server are remembered, listed just now; --refresh asks the servers";
    assert!(second.stderr.contains(note), "{}", second.stderr);
    let list = home.run(&["list", "--json"]).json();
    let tool = &list
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "arguments");
    let tool = tool.unwrap();
    assert_eq!(
        (&tool["remembered"], &tool["state"]),
        (&json!(true), &json!("idle"))
    );
    let inspected = home.run(&["inspect", "arguments"]).stdout;
    assert!(
        inspected.contains("Server house  (remembered, over stdio, "),
        "{inspected}"
    );
    let server = home.run(&["inspect", "house", "--json"]).json();
    assert_eq!(
        (&server["remembered"], &server["name"]),
        (&json!(true), &json!("house"))
    );
    assert_eq!(home.starts("house"), 1, "nothing of this starts it");

    for arguments in [
        &["list", "--refresh", "--json"][..],
        &["inspect", "arguments", "--refresh", "--json"],
    ] {
        let before = home.starts("house");
        let answer = home.run(arguments).json();
        assert!(
            !answer.to_string().contains("\"remembered\":true"),
            "{answer}"
        );
        assert_eq!(home.starts("house"), before + 1);
    }
}

#[test]
fn a_call_starts_only_the_server_that_owns_the_name() {
    let home = CatalogFolder::new(&[]);
    let (one, two) = (home.tools("1", &["alpha"]), home.tools("2", &["beta"]));
    home.configure(&[("one", &[&one]), ("two", &[&two])]);
    home.run(&["list"]);
    let done = home.run(&["call", "beta"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(["one", "two"].map(|name| home.starts(name)), [1, 2]);
    // The start of the server doesn't count as the tool's time.
    assert!(!done.stderr.contains("slow"), "{done:?}");
    home.run(&["call", "echo", "a=1"]);
    assert_eq!(["one", "two"].map(|name| home.starts(name)), [1, 2]);
    // The remembered schema is enough to validate it, so nothing is started.
    let dry = home.run(&["call", "beta", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert_eq!(["one", "two"].map(|name| home.starts(name)), [1, 2]);

    // Its server has a new tool that isn't remembered yet.
    home.tools("1", &["alpha", "gamma"]);
    let done = home.run(&["call", "gamma"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(home.run(&["list"]).stdout.contains("\ngamma\t"));
    // It has removed a tool.
    home.tools("1", &["gamma"]);
    let gone = home.run(&["call", "alpha"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(!home.run(&["list"]).stdout.contains("\nalpha\t"));
}

#[test]
fn mc5_a_mute_server_is_not_started_for_other_tools() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools", &["alpha"]);
    home.configure(&[("good", &[&tools])]);
    home.run(&["list"]);
    // The tools of the mute server are unknown.
    home.configure(&[("mute", &["mute"]), ("good", &[&tools])]);
    for arguments in [
        &["call", "alpha"][..],
        &["call", "echo", "a=1"],
        &["inspect", "alpha"],
    ] {
        let done = home.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments:?} {done:?}");
    }
    assert_eq!(home.starts("mute"), 0);
    let begin = Instant::now();
    let ask = home.run(&["ask", "-p", "intents", "what is 17 percent of 340"]);
    assert!(
        ask.stdout.contains("57.8") && begin.elapsed() < HANG,
        "{ask:?}"
    );
}

#[test]
fn tm7_no_other_source_answers_for_a_server_that_is_down() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools", &["send_money"]);
    home.configure(&[("bank", &[&tools]), ("evil", &[&tools])]);
    home.run(&["list"]);
    home.write_program("bank", "echo no vault >&2; exit 3");
    let done = home.run(&["call", "send_money"]);
    let answer = done.json();
    assert_eq!(
        (answer["error_kind"].as_str(), answer["error"].as_str()),
        (
            Some("unavailable"),
            Some(
                "The send_money service is currently unavailable: its server 'bank' is not running"
            )
        ),
        "{done:?}"
    );
    assert!(
        answer["details"].as_str().unwrap().contains("no vault"),
        "{answer}"
    );
    assert_eq!(home.starts("evil"), 1, "it was listed, and not asked since");
    let list = home.run(&["list", "--json"]).json();
    let owner = list
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "send_money");
    assert_eq!(owner.unwrap()["server"], "bank");

    // The same is true in a gateway from its start.
    let run = home.command(&["serve"]);
    let gateway = RunningServe::start(run);
    for _ in 0..2 {
        let answer = gateway.call("send_money", "{}");
        assert_eq!(answer["error_kind"], "unavailable", "{answer}");
    }
    let (_, servers) = gateway.get("/api/servers");
    let servers: Value = serde_json::from_str(&servers).unwrap();
    assert_eq!(
        (&servers[0]["tools"], &servers[0]["remembered"]),
        (&json!(1), &json!(true))
    );
}

#[test]
fn tm7_a_server_whose_variable_is_not_set_keeps_its_names() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools", &["send_money"]);
    home.configure(&[("bank", &[&tools]), ("evil", &[&tools])]);
    let file = home.path("house.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["mcpServers"]["bank"]["env"] = json!({ "BANK_KEY": "${BANK_KEY}" });
    std::fs::write(&file, config.to_string()).unwrap();
    home.command(&["list"]).env("BANK_KEY", "4711").done();
    let done = home.run(&["call", "send_money"]);
    let error = "The send_money service is currently unavailable: its server 'bank' can't be started: the variable BANK_KEY is not set";
    assert_eq!(done.json()["error"], error, "{done:?}");
    let told = done.stderr.matches("server 'bank' is left out").count();
    assert_eq!(told, 1, "{done:?}");
    assert_eq!(home.starts("evil"), 1, "it was listed, and not asked since");
    assert_eq!(home.run(&["doctor"]).code, Some(1));
}

#[test]
fn inspecting_one_server_shows_callable_names() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools", &["send_money"]);
    home.configure(&[("bank", &[&tools]), ("evil", &[&tools])]);
    home.run(&["list"]);
    for refresh in [&[][..], &["--refresh"]] {
        let with = |words: &[&str]| home.run(&[words, refresh].concat());
        let list = with(&["list", "--server", "evil", "--json"]).json();
        assert_eq!(names(&list), ["evil__send_money"]);
        let server = with(&["inspect", "evil", "--json"]).json();
        assert_eq!(server["tool_names"], json!(["evil__send_money"]));
        let tool = with(&["inspect", "evil__send_money"]).stdout;
        assert!(tool.contains("toolgate call evil__send_money"), "{tool}");
    }
    assert_eq!((home.starts("bank"), home.starts("evil")), (1, 4));
}

#[test]
fn changed_entries_and_broken_caches_are_refreshed() {
    let home = CatalogFolder::new(&[("house", &[])]);
    home.run(&["list"]);
    let [file] = &home.remembered()[..] else {
        panic!("{:?}", home.remembered());
    };
    let whole = std::fs::read(file).unwrap();
    for (bytes, is_told) in [
        (&whole[..whole.len() / 2], true),
        (b"{\"version\": 99}", false),
        (b"", true),
    ] {
        std::fs::write(file, bytes).unwrap();
        let before = home.starts("house");
        let done = home.run(&["list"]);
        assert!(done.stdout.contains("mcp:house"), "{done:?}");
        assert_eq!(done.stderr.contains("can't be used"), is_told, "{done:?}");
        assert_eq!(home.starts("house"), before + 1);
        assert_eq!(std::fs::read(file).unwrap(), whole, "it is whole again");
    }
    home.configure(&[("house", &["modern"])]);
    let before = home.starts("house");
    home.run(&["list"]);
    assert_eq!(home.starts("house"), before + 1);
    assert_eq!(home.remembered().len(), 2);
}

#[test]
fn a_server_that_never_answers_is_waited_for_once() {
    let home = CatalogFolder::new(&[("house", &[]), ("dead", &["after:initialize=exit:3"])]);
    let first = home.run(&["list"]);
    assert!(first.stderr.contains("❌"), "{first:?}");
    let starts = home.starts("dead");
    let second = home.run(&["list"]);
    assert_eq!((second.stdout, home.starts("dead")), (first.stdout, starts));
    let expected = "server 'dead' has no tools here: it stopped during the handshake";
    assert!(second.stderr.contains(expected), "{}", second.stderr);
    assert!(
        second
            .stderr
            .contains("'toolgate list --refresh' asks it again")
    );
    home.run(&["list", "--refresh"]);
    assert!(home.starts("dead") > starts);
}

#[test]
fn killed_writers_and_many_at_once_leave_a_catalog_that_can_be_read() {
    let home = CatalogFolder::new(&[("house", &["many=900"])]);
    home.run(&["list"]);
    for round in 0..12 {
        let (mut child, _unused) = home.command(&["list", "--refresh"]).start();
        let file = home.path("house.starts");
        // As soon as it listens, and a little later in each round.
        let begin = Instant::now();
        let before = home.starts("house");
        while std::fs::metadata(&file).unwrap().len() == before && begin.elapsed() < HANG {
            std::thread::yield_now();
        }
        let listens = Instant::now();
        while listens.elapsed() < Duration::from_millis(40 * round) {
            std::thread::yield_now();
        }
        drop(child.kill());
        child.wait().unwrap();
        let list = home.run(&["list", "--json"]);
        assert!(
            names(&list.json()).len() > 900,
            "round {round}: {}",
            list.stderr
        );
        assert!(!list.stderr.contains("can't be used"), "{}", list.stderr);
    }
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| home.run(&["list", "--refresh", "--json"])))
            .collect();
        for run in runs {
            assert!(names(&run.join().unwrap().json()).len() > 900);
        }
    });
    assert_eq!(home.remembered().len(), 1);
}

#[test]
fn untrusted_servers_are_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "command": fakemcp::program() });
    let config = json!({ "mcpServers": { "house": entry } }).to_string();
    std::fs::write(folder.path().join("toolgate.json"), config).unwrap();
    let run = |arguments: &[&str]| {
        ProgramRun::new([])
            .args(arguments)
            .within(folder.path())
            .done()
    };
    // Agreed to by its name, and so seen.
    let named = run(&["--config", "toolgate.json", "list"]);
    assert!(named.stdout.contains("mcp:house"), "{named:?}");
    let found = run(&["list"]);
    assert!(!found.stdout.contains("mcp:house"), "{found:?}");
    let completed = run(&["completions", "--names", "tools"]);
    assert!(!completed.stdout.contains("arguments"), "{completed:?}");
}

#[test]
fn a_misspelled_policy_pattern_is_reported_by_single_calls() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools.json", &["alpha", "beta"]);
    home.configure(&[("house", &[tools.as_str()])]);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(home.path("house.json")).unwrap()).unwrap();
    config["policy"] = json!({ "deny": ["house/alpah", "volum", "house/beta", "ech0*"], "ask": ["away/x", "search"] });
    config["mcpServers"]["away"] = json!({ "command": "x", "disabled": true });
    std::fs::write(home.path("house.json"), config.to_string()).unwrap();
    // The server's tools are unknown, and it isn't started to find out.
    let done = home.run(&["call", "echo"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    assert_eq!(home.run(&["list"]).code, Some(0));
    let starts = home.starts("house");
    for command in [&["call", "echo"][..], &["ask", "what is 2 + 2"]] {
        let done = home.run(command);
        assert_eq!(done.code, Some(0), "{done:?}");
        for expected in [
            "policy.deny: 'house/alpah' matches no tool; did you mean 'house/alpha'?",
            "policy.deny: 'volum' matches no tool; did you mean 'volume'?",
            "policy.deny: 'ech0*' matches no tool; did you mean 'echo'?",
        ] {
            assert!(done.stderr.contains(expected), "{expected}: {done:?}");
        }
        let told = done.stderr.matches("matches no tool").count();
        assert_eq!(told, 3, "{done:?}");
    }
    assert_eq!(home.starts("house"), starts);
}
