//! Repeats the same work many times: resource use must not grow.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::resource_use::{ProcessUse, print_line, size};
use crate::support::{HttpConnection, ServeProcess, header, marked_server};

/// Parts of a test. The first is the warm-up; after it, memory may grow by `GROWTH` KiB.
const STRETCHES: usize = 5;
const GROWTH: usize = 8 << 10;

/// Repeats an action with concurrent callers, each with its own connection.
fn assert_stays_flat(
    what: &str,
    gateway: &ServeProcess,
    (times, callers): (usize, usize),
    act: impl Fn(&mut HttpConnection, usize) + Sync,
) {
    let start = ProcessUse::of(gateway);
    let uses = [(); STRETCHES].map(|()| {
        run_callers(gateway, times / STRETCHES, callers, &act);
        // Connections end a moment after their callers have gone.
        ProcessUse::again(gateway, start)
    });
    let [warm, .., end] = uses;
    print_line(&format!(
        "{times} {what}: after each fifth {}; at the end {end}",
        uses.map(|now| format!("{:.1}", now.memory as f64 / 1024.0))
            .join(", ")
    ));
    let grown = end.memory.saturating_sub(warm.memory);
    assert!(grown < GROWTH, "{what}: {grown} KiB more: {warm}, {end}");
}

fn run_callers(
    gateway: &ServeProcess,
    times: usize,
    callers: usize,
    act: &(impl Fn(&mut HttpConnection, usize) + Sync),
) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let mut line = HttpConnection::open(&gateway.address).unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= times {
                        break;
                    }
                    act(&mut line, number);
                }
            });
        }
    });
}

fn call_echo(line: &mut HttpConnection, number: usize) {
    let tool = ["echo", "house__echo"][number % 2];
    let body = json!({ "text": format!("number {number}") }).to_string();
    let path = format!("/api/tools/{tool}/call");
    let answer = line.ask("POST", &path, &body).unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.body);
    assert_eq!(answer.body["success"], true, "{}", answer.body);
}

/// A gateway with a server whose processes carry the mark.
fn start_with_fake_server(folder: &std::path::Path, mark: &str) -> ServeProcess {
    let config = json!({ "mcpServers": { "house": marked_server(mark) } });
    let gateway = ServeProcess::start(folder, &config);
    gateway.ready();
    gateway
}

#[test]
fn h3_endless_calls_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start_with_fake_server(folder.path(), &format!("calls-{}", std::process::id()));
    let times = size("SOAK_CALLS", 5000);
    assert_stays_flat("calls", &gateway, (times, 8), call_echo);
}

#[test]
fn h3_repeated_server_restarts_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("restarts-{}", std::process::id());
    let gateway = start_with_fake_server(folder.path(), &mark);
    let times = size("SOAK_RESTARTS", 20);
    assert_stays_flat("restarts", &gateway, (times, 1), |line, _| {
        let path = "/api/servers/house/reconnect";
        let answer = line.ask("POST", path, "").unwrap();
        assert_eq!(answer.body["state"], "connected", "{}", answer.body);
        call_echo(line, 1);
        assert_eq!(fakemcp::processes(&mark).len(), 1, "only the last is left");
    });
}

#[test]
fn h3_abandoned_sessions_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let gateway =
        start_with_fake_server(folder.path(), &format!("sessions-{}", std::process::id()));
    let times = size("SOAK_SESSIONS", 500);
    assert_stays_flat("abandoned sessions", &gateway, (times, 4), |_, number| {
        let accept = "accept: application/json, text/event-stream\r\n";
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "forgetful", "version": "1" },
        } })
        .to_string();
        let mut line = HttpConnection::open(&gateway.address).unwrap();
        let head = line.begin("POST", "/mcp", accept, &body).unwrap();
        let id = header(&head, "mcp-session-id").unwrap_or_else(|| panic!("{head}"));
        if number.is_multiple_of(2) {
            // An event stream that nobody reads any more.
            let headers = format!("{accept}mcp-session-id: {id}\r\n");
            let mut stream = HttpConnection::open(&gateway.address).unwrap();
            let head = stream.begin("GET", "/mcp", &headers, "").unwrap();
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        }
    });
}
