//! Hostile callers: their cost for the gateway and for other callers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::resource_use::{ProcessUse, print_line, size};
use crate::support::{HttpConnection, ServeProcess, pause};

const OPERATOR: &str = "operator-0123456789abcdef";
const ECHO: &str = "echo-only-0123456789abcdef";
/// Memory that the gateway may take, in MB, and how long others may wait: far longer than
/// promised, for machines that are busy with other tests.
const MEMORY: usize = 300;
const LATE: Duration = Duration::from_secs(10);

fn gateway(folder: &std::path::Path) -> ServeProcess {
    let tokens = json!([{ "token": ECHO, "name": "echo", "allow": ["echo"] }]);
    let config = json!({ "serve": { "token": OPERATOR, "tokens": tokens } });
    ServeProcess::start(folder, &config)
}

/// Makes a call as the operator. Returns how long it took, including its connection.
fn call(gateway: &ServeProcess) -> Duration {
    let began = Instant::now();
    let mut line = HttpConnection::open(&gateway.address).unwrap();
    let token = format!("authorization: Bearer {OPERATOR}\r\n");
    let head = line
        .begin("POST", "/api/tools/echo/call", &token, r#"{"text":"here"}"#)
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    began.elapsed()
}

/// The slowest call of another caller while this runs, and the gateway's peak memory in MiB.
fn measure_during<T>(gateway: &ServeProcess, what: impl FnOnce() -> T) -> (T, Duration, usize) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let slowest = scope.spawn(|| {
            let (mut slowest, mut calls) = (Duration::ZERO, 0);
            while !over.load(Ordering::Relaxed) || calls < 10 {
                slowest = slowest.max(call(gateway));
                calls += 1;
                pause(5);
            }
            slowest
        });
        let memory = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = ProcessUse::of(gateway).memory.max(most);
                pause(5);
            }
            most >> 10
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
        over.store(true, Ordering::Relaxed);
        let (slowest, memory) = (slowest.join(), memory.join());
        (done.unwrap(), slowest.unwrap(), memory.unwrap())
    })
}

/// Sends a complete request and returns the response.
fn answer(address: &str, request: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LATE * 6)).unwrap();
    // The gateway may close the connection before everything is sent.
    drop(stream.write_all(request.as_bytes()));
    let mut answer = String::new();
    drop(stream.read_to_string(&mut answer));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    (
        status.unwrap_or(0),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// Opens `count` connections, sends the same beginning of a request on each, and keeps them.
fn begin(gateway: &ServeProcess, count: usize, start: &str) -> Vec<TcpStream> {
    let some = || -> Vec<TcpStream> {
        let one = |_| {
            let mut stream = TcpStream::connect(&gateway.address).unwrap();
            drop(stream.write_all(start.as_bytes()));
            stream
        };
        (0..count / 20).map(one).collect()
    };
    std::thread::scope(|scope| {
        let all = [(); 20].map(|()| scope.spawn(some));
        all.into_iter()
            .flat_map(|some| some.join().unwrap())
            .collect()
    })
}

#[test]
fn f20_f21_half_heads_and_slow_bodies_delay_no_other_request() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway(folder.path());
    let heads = size("SOAK_HALF_HEADS", 1500);
    let head = format!(
        "GET /api/tools HTTP/1.1\r\nhost: {}\r\nx: ",
        gateway.address
    );
    let (half, slowest, memory) = measure_during(&gateway, || begin(&gateway, heads, &head));
    let after = (0..20).map(|_| call(&gateway)).max().unwrap();
    print_line(&format!(
        "{heads} half heads: the slowest call took {slowest:.1?} while they came and {after:.1?} while they stayed; {memory} MiB"
    ));
    assert!(slowest.max(after) < LATE, "{slowest:?}, {after:?}");
    drop(half);
    let host = &gateway.address;
    let start = format!(
        "POST /login HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 40\r\n\r\ntok"
    );
    let (slow, slowest, _) = measure_during(&gateway, || begin(&gateway, 500, &start));
    let began = Instant::now();
    let body = format!("token={OPERATOR}");
    let length = body.len();
    let (status, _) = answer(
        host,
        &format!(
            "POST /login HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        ),
    );
    let took = began.elapsed();
    print_line(&format!(
        "500 slow bodies: the slowest call took {slowest:.1?}, signing in {took:.1?}"
    ));
    assert_eq!(status, 303);
    assert!(slowest.max(took) < LATE, "{slowest:?}, {took:?}");
    drop(slow);
}

#[test]
fn f7_requests_of_a_megabyte_of_tiny_objects_cost_little() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway(folder.path());
    let requests = size("SOAK_PRESSURE", 40);
    let objects = vec![r#"{"":0}"#; 149_000].join(",");
    let body = format!(r#"{{"a":[{objects}]}}"#);
    let (host, length) = (&gateway.address, body.len());
    let request = format!(
        "POST /api/tools/echo/call HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {ECHO}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let (answers, slowest, memory) = measure_during(&gateway, || {
        std::thread::scope(|scope| {
            let ask = || answer(host, &request);
            let asked: Vec<_> = (0..requests).map(|_| scope.spawn(ask)).collect();
            let answers = asked.into_iter().map(|asked| asked.join().unwrap());
            answers.collect::<Vec<_>>()
        })
    });
    for (status, envelope) in answers {
        assert_eq!(
            (status, &envelope["error_kind"]),
            (413, &json!("too_large"))
        );
    }
    print_line(&format!(
        "{requests} requests of {length} bytes of tiny objects: {memory} MiB at most, the slowest call of another token took {slowest:.1?}"
    ));
    assert!(memory < MEMORY, "{memory} MiB");
    assert!(slowest < LATE, "{slowest:?}");
}
