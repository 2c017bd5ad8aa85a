//! Far more callers than the gateway has room for, and connections that stay idle.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::resource_use::{ProcessUse, print_line, size};
use crate::support::{HttpConnection, ServeProcess, fake_server, header, pause};

/// Memory that one idle connection may take, in KiB, and what all of them may take in addition.
const MEMORY_EACH: usize = 32;
const MEMORY: usize = 8 << 10;
/// Connections opened at the same time.
const CONNECTING: usize = 50;
/// Files beyond the limit on connections: 64 that are being refused with a response, up to 128
/// refused ones that the runtime hasn't closed yet, and a few of the gateway itself.
const LEAVING: usize = 64 + 128 + 64;
/// The limit on concurrent calls.
const PERMITS: usize = 16;
const CALLERS: usize = PERMITS * 10;
/// How long the tool of the overload test takes, and the longest a call may take, whether it
/// is accepted or refused.
const SLOW: u64 = 200;
const LATE: Duration = Duration::from_secs(5);
/// Memory that an overload may take, in KiB.
const OVERLOAD: usize = 64 << 10;

/// Opens this many silent connections. The gateway must still answer others, and close all of
/// them after ten seconds.
fn idle_sockets(sockets: usize, places: usize) {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({ "serve": { "connections": places } });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let before = ProcessUse::of(&gateway);
    let (idle, during) = connect(&gateway, sockets);
    let held = during.files.saturating_sub(before.files);
    // New connections aren't evicted for newer ones.
    pause(1500);
    let began = Instant::now();
    let mut line = HttpConnection::open(&gateway.address).unwrap();
    let answer = line.ask("POST", "/api/tools/echo/call", r#"{"text":"here"}"#);
    let took = began.elapsed();
    assert_eq!(answer.unwrap().body["success"], true);
    // On a busy machine the first ones are closed before the last one is open.
    assert!(held > sockets.min(places) / 4, "{held} are held");
    assert!(held <= places + LEAVING, "{held} are held");
    let grown = during.memory.saturating_sub(before.memory);
    assert!(grown < MEMORY + held * MEMORY_EACH, "{before}, {during}");
    for mut stream in idle {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // Refused connections get a response, and then the end.
        let mut told = String::new();
        match stream.read_to_string(&mut told) {
            Ok(_) => assert!(told.is_empty() || told.contains("retry-after"), "{told}"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    drop(line);
    let after = ProcessUse::again(&gateway, before);
    print_line(&format!(
        "{sockets} idle sockets, room for {places}: {before}; with {held} of them at once {during}; a call took {took:.1?}; then {after}"
    ));
}

/// Opens this many connections and returns the peak of what the gateway used. Opens many at a
/// time, because a connection that meets a full listen queue is retried only after seconds, and
/// then the first ones are closed before the last one is open.
fn connect(gateway: &ServeProcess, sockets: usize) -> (Vec<TcpStream>, ProcessUse) {
    let some = || -> Vec<TcpStream> {
        let streams = (0..sockets / CONNECTING).map(|_| TcpStream::connect(&gateway.address));
        streams.collect::<Result<_, _>>().unwrap()
    };
    std::thread::scope(|scope| {
        let all = [(); CONNECTING].map(|()| scope.spawn(some));
        let mut most = ProcessUse::of(gateway);
        while all.iter().any(|some| !some.is_finished())
            || ProcessUse::of(gateway).files > most.files
        {
            pause(50);
            let now = ProcessUse::of(gateway);
            if now.files > most.files {
                most = now;
            }
        }
        let idle = all.map(|some| some.join().unwrap());
        (idle.into_iter().flatten().collect(), most)
    })
}

#[test]
fn g6_idle_sockets_cost_little_and_are_dropped_after_ten_seconds() {
    let sockets = size("SOAK_SOCKETS", 500);
    idle_sockets(sockets, sockets + 100);
}

#[test]
fn g6_too_many_idle_sockets_leave_room_for_others() {
    let sockets = size("SOAK_SOCKETS", 500);
    // The limit is so low that the test notices if no connection is evicted.
    idle_sockets(sockets, sockets / 4);
}

/// How long accepted and refused calls took.
#[derive(Default)]
struct OverloadTimes {
    accepted: Vec<Duration>,
    refused: Vec<Duration>,
}

fn retry_until_ok(address: &str, until: Instant) -> OverloadTimes {
    let mut times = OverloadTimes::default();
    let mut line = HttpConnection::open(address).unwrap();
    let body = json!({ "ms": SLOW }).to_string();
    while Instant::now() < until {
        let began = Instant::now();
        let answer = line.ask("POST", "/api/tools/sleep/call", &body).unwrap();
        let took = began.elapsed();
        if answer.status() == 200 {
            assert_eq!(answer.body["success"], true, "{}", answer.body);
            times.accepted.push(took);
        } else {
            let told = (answer.status(), header(&answer.head, "retry-after"));
            assert_eq!(told, (503, Some("1")), "{}", answer.body);
            times.refused.push(took);
            // Fifty times sooner than `retry-after` says.
            pause(20);
        }
    }
    times
}

/// The 99th percentile of the times, and their number.
fn count_and_p99(mut times: Vec<Duration>) -> (usize, Duration) {
    times.sort();
    (times.len(), times[(times.len() - 1) * 99 / 100])
}

#[test]
fn h1_surplus_calls_are_refused_at_once_and_the_others_answered() {
    let seconds = size("SOAK_LOAD_SECONDS", 3);
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "house": fake_server(&[]) },
        "serve": { "concurrency": PERMITS },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let (address, before) = (&gateway.address, ProcessUse::of(&gateway));
    let until = Instant::now() + Duration::from_secs(seconds as u64);
    let is_over = AtomicBool::new(false);
    let mut all = OverloadTimes::default();
    let during = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut line = HttpConnection::open(address).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let status = line.ask("GET", "/api/status", "").unwrap();
                assert_eq!(status.status(), 200, "who only looks has a place");
                pause(100);
            }
        });
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| scope.spawn(|| retry_until_ok(address, until)))
            .collect();
        for caller in callers {
            let times = caller.join().unwrap();
            all.accepted.extend(times.accepted);
            all.refused.extend(times.refused);
        }
        let during = ProcessUse::of(&gateway);
        is_over.store(true, Ordering::Relaxed);
        looking.join().unwrap();
        during
    });
    let ((accepted, slow), (refused, quick)) =
        (count_and_p99(all.accepted), count_and_p99(all.refused));
    let after = ProcessUse::again(&gateway, before);
    print_line(&format!(
        "{CALLERS} callers for {PERMITS} permits, {seconds} s: {accepted} calls of {SLOW} ms answered, p99 {slow:.0?}; \
         {refused} refused, p99 {quick:.1?}; {before}, then {during}, then {after}"
    ));
    assert!(slow < LATE && quick < LATE, "{slow:?}, {quick:?}");
    let grown = during.memory.saturating_sub(before.memory);
    assert!(grown < OVERLOAD, "{before}, then {during}");
    let mut line = HttpConnection::open(address).unwrap();
    let answer = line.ask("POST", "/api/tools/sleep/call", r#"{"ms":0}"#);
    assert_eq!(answer.unwrap().status(), 200);
}
