//! SIGTERM: running calls end with an error, and no process is left behind.

use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{self, ServeProcess, get, marked_server, nobody_is_left, pause};

/// Half of them end while the gateway waits for them, the other half never would.
const CALLS: u64 = 100;

/// Whatever is running, the gateway has ended by then.
const PROMISED: Duration = Duration::from_secs(10);

/// A caller that waits for its response.
type CallThread = JoinHandle<std::io::Result<(u16, Value)>>;

fn ends_in_time(number: u64) -> bool {
    number.is_multiple_of(2)
}

fn call(address: &str, number: u64) -> std::io::Result<(u16, Value)> {
    let ms = if ends_in_time(number) { 1500 } else { 600_000 };
    let body = json!({ "ms": ms + number }).to_string();
    support::request(address, "POST", "/api/tools/sleep/call?timeout=11m", &body)
}

pub(crate) fn in_flight(gateway: &ServeProcess, calls: u64) {
    for _ in 0..600 {
        if get(&gateway.address, "/api/status").1["in_flight"] == calls {
            return;
        }
        pause(20);
    }
    panic!("they do not run:\n{}", gateway.log());
}

/// A gateway with this server, and a call to it that would never end.
fn with_a_call(folder: &Path, server: &Value) -> (ServeProcess, CallThread) {
    let gateway = ServeProcess::start(folder, &json!({ "mcpServers": { "house": server } }));
    gateway.ready();
    let address = gateway.address.clone();
    let caller = std::thread::spawn(move || call(&address, 1));
    in_flight(&gateway, 1);
    (gateway, caller)
}

#[test]
fn j1_sigterm_answers_a_hundred_running_calls_and_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("ending-{}", std::process::id());
    let config = json!({
        "mcpServers": { "house": marked_server(&mark) },
        "limits": { "concurrency": CALLS },
    });
    let mut gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let (tell, told) = mpsc::channel();
    for number in 0..CALLS {
        let (tell, address) = (tell.clone(), gateway.address.clone());
        std::thread::spawn(move || tell.send((number, call(&address, number))));
    }
    drop(tell);
    in_flight(&gateway, CALLS);
    let began = std::time::SystemTime::now();
    gateway.terminate();
    assert_eq!(gateway.ended(), Some(0), "{}", gateway.log());
    let took = began.elapsed().unwrap();
    assert!(took < PROMISED, "{took:?}");
    let log = gateway.log();
    let mut seen = 0;
    for (number, answer) in told {
        seen += 1;
        let (status, envelope) = answer.unwrap_or_else(|error| panic!("{number}: {error}\n{log}"));
        let short = ends_in_time(number);
        assert_eq!(
            (status, &envelope["success"]),
            (200, &json!(short)),
            "{envelope}"
        );
        if !short {
            assert_eq!(envelope["error_kind"], "cancelled", "{envelope}");
            let id = envelope["call_id"].as_str().unwrap();
            assert!(log.contains(id), "{id} is not named:\n{log}");
        }
    }
    assert_eq!(seen, CALLS);
    nobody_is_left(&mark);
}

#[test]
fn j1_a_server_that_ignores_shutdown_is_killed_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("deaf-{}", std::process::id());
    let mut server = marked_server(&mark);
    server["args"] = json!(["deaf"]);
    let (mut gateway, caller) = with_a_call(folder.path(), &server);
    let began = std::time::SystemTime::now();
    gateway.terminate();
    assert_eq!(gateway.ended(), Some(0), "{}", gateway.log());
    let took = began.elapsed().unwrap();
    assert!(took < PROMISED, "{took:?}:\n{}", gateway.log());
    let (status, envelope) = caller.join().unwrap().unwrap();
    assert_eq!(
        (status, &envelope["error_kind"]),
        (200, &json!("cancelled"))
    );
    nobody_is_left(&mark);
}

#[test]
fn j1_a_second_sigterm_ends_the_gateway_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("again-{}", std::process::id());
    let (mut gateway, caller) = with_a_call(folder.path(), &marked_server(&mark));
    let began = std::time::SystemTime::now();
    gateway.terminate();
    for _ in 0..600 {
        if std::net::TcpStream::connect(&gateway.address).is_err() {
            break;
        }
        pause(20);
    }
    gateway.terminate();
    gateway.ended();
    let took = began.elapsed().unwrap();
    assert!(
        took < Duration::from_secs(7),
        "it waited for the call: {took:?}"
    );
    drop(caller.join());
    nobody_is_left(&mark);
}
