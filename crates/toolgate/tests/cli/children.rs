//! However the program ends, the servers it has started don't outlive it.

use std::io::Read;
use std::process::Child;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::run::ProgramRun;

/// Servers that never end by themselves: one ignores signals and has a child in its group, one has
/// a child in its own session.
fn config(mark: &str) -> String {
    let server = |modes: &[&str]| json!({ "command": fakemcp::program(), "args": modes, "env": { fakemcp::MARK: mark } });
    json!({ "mcpServers": {
        "deaf": server(&["deaf", "child"]),
        "apart": server(&["child=setsid"]),
        "mute": server(&["deaf", "mute"]),
    } })
    .to_string()
}

/// The program as an MCP server with its child servers, and the mark that identifies them.
fn start(name: &str) -> (Child, TempDir, String) {
    let mark = format!("{name} of {}", std::process::id());
    let run =
        ProgramRun::new(["--config", "servers.json", "mcp"]).file("servers.json", config(&mark));
    let (child, folder) = run.start_open();
    (child, folder, mark)
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
        pause(Duration::from_millis(10));
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing here is async")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

pub(crate) fn signal(name: &str, child: &Child) {
    fakemcp::send_signal(name, child.id());
}

#[test]
fn no_child_or_grandchild_outlives_the_program_however_it_ends() {
    for name in ["-TERM", "-INT", "-HUP", "-KILL"] {
        let (mut child, _folder, mark) = start(name);
        wait_until("all servers and their children run", || {
            fakemcp::processes(&mark).len() >= 5
        });
        signal(name, &child);
        child.wait().unwrap();
        wait_until(&format!("nothing is left after {name}"), || {
            fakemcp::processes(&mark).is_empty()
        });
    }
}

#[test]
fn no_child_outlives_the_program_whose_client_is_gone() {
    let (mut child, _folder, mark) = start("end of input");
    wait_until("all servers and their children run", || {
        fakemcp::processes(&mark).len() >= 5
    });
    drop(child.stdin.take());
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "", "nobody asked anything");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    wait_until("nothing is left", || fakemcp::processes(&mark).is_empty());
}

#[test]
fn no_child_outlives_a_program_that_is_killed_while_it_starts_them() {
    for moment in 0..20 {
        let (mut child, _folder, mark) = start(&format!("moment {moment}"));
        pause(Duration::from_millis(moment * 7));
        signal("-KILL", &child);
        child.wait().unwrap();
        // A process that was just about to be started may still come.
        pause(Duration::from_millis(100));
        wait_until(&format!("nothing is left after {} ms", moment * 7), || {
            fakemcp::processes(&mark).is_empty()
        });
    }
}
