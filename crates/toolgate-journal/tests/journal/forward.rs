//! Forwarding records to other destinations.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::ToolCall;
use toolgate_journal::{ForwardTarget, Journal, JournalSettings, VerifyOptions};

use crate::support::{TestJournal, echo, eventually, executor_of};

/// A guard against hanging only.
const LONG: Duration = Duration::from_secs(60);

fn to(forward: ForwardTarget) -> JournalSettings {
    let mut settings = JournalSettings::default();
    settings.forward = Some(forward);
    settings
}

async fn call(journal: &Journal, n: usize) {
    let executor = executor_of(journal, [echo()]);
    let arguments = json!({ "n": n, "password": "hunter2" });
    executor.execute(ToolCall::new("echo", arguments)).await;
}

/// Parses the record in a syslog message.
fn parsed(message: &[u8]) -> Value {
    let text = std::str::from_utf8(message).unwrap();
    assert!(text.starts_with("<109>1 20"), "{text}");
    let (head, json) = text.split_once(" - ").unwrap();
    assert!(head.contains(" toolgate "), "{head}");
    serde_json::from_str(json).unwrap()
}

/// Checks that the record has no secret, and the same hash as in the journal.
fn expect_record(fixture: &TestJournal, record: &Value, n: usize) {
    assert_eq!(record["asked"], json!({ "n": n, "password": "[REDACTED]" }));
    assert_eq!(record["outcome"], "success");
    let mut options = VerifyOptions::default();
    options.expect = record["chain"]["hash"].as_str().map(str::to_owned);
    assert!(options.expect.is_some());
    assert!(fixture.reader().verify(&options).unwrap().is_intact());
}

#[tokio::test]
async fn each_call_is_a_datagram_for_syslog() {
    let fixture = TestJournal::new();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let address = receiver.local_addr().unwrap().to_string();
    let journal = fixture.journal_with(&to(ForwardTarget::SyslogUdp(address)));
    let mut message = [0; 65536];
    for n in 0..3 {
        call(&journal, n).await;
        let length = receiver.recv(&mut message).unwrap();
        expect_record(&fixture, &parsed(&message[..length]), n);
    }
    journal.close().await;
    assert_eq!(journal.dropped_forwards(), 0);
}

#[tokio::test]
async fn a_late_local_socket_gets_the_records_it_missed() {
    let fixture = TestJournal::new();
    let path = fixture.folder().join("log");
    let settings = to(ForwardTarget::SyslogUnix(path.clone()));
    let journal = fixture.journal_with(&settings);
    call(&journal, 0).await;
    // Nobody listens, and closing doesn't wait for it.
    journal.close().await;
    let receiver = UnixDatagram::bind(&path).unwrap();
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let journal = fixture.journal_with(&settings);
    call(&journal, 1).await;
    let mut message = [0; 65536];
    for n in 0..2 {
        let length = receiver.recv(&mut message).unwrap();
        expect_record(&fixture, &parsed(&message[..length]), n);
    }
    journal.close().await;
}

#[tokio::test]
async fn a_file_gets_every_call_once_from_all_processes() {
    let fixture = TestJournal::new();
    let file = fixture.folder().join("copies/calls.ndjson");
    let settings = to(ForwardTarget::File(file.clone()));
    let journals = [
        fixture.journal_with(&settings),
        fixture.journal_with(&settings),
    ];
    for n in 0..20 {
        call(&journals[n % 2], n).await;
    }
    for journal in &journals {
        journal.close().await;
    }
    let lines = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        // A call that is read while it runs has an extra line.
        let ended = lines.filter(|line: &Value| line["outcome"] != "running");
        ended.collect::<Vec<Value>>()
    };
    // The last ones to close may leave some for the next process.
    let journal = fixture.journal_with(&settings);
    eventually("all are there", || lines().len() >= 20).await;
    journal.close().await;
    let mut numbers: Vec<u64> = lines()
        .iter()
        .map(|line| line["asked"]["n"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0);
}

/// Answers one request and returns its path and body.
fn answer_once(listener: &TcpListener, status: &str) -> (String, Value) {
    let (mut connection, _) = listener.accept().unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = connection.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                connection.write_all(answer.as_bytes()).unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                return (path, serde_json::from_str(body).unwrap());
            }
        }
    }
}

#[tokio::test]
async fn an_otlp_collector_gets_logs_and_failures_are_retried() {
    let fixture = TestJournal::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let refused = answer_once(&listener, "503 Service Unavailable");
        (refused, answer_once(&listener, "200 OK"))
    });
    let journal = fixture.journal_with(&to(ForwardTarget::Otlp(address)));
    call(&journal, 0).await;
    eventually("it was asked twice", || collector.is_finished()).await;
    let (refused, taken) = collector.join().unwrap();
    assert_eq!(refused, taken, "nothing is lost");
    let (path, body) = taken;
    assert_eq!(path, "/v1/logs");
    let log = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    let record: Value = serde_json::from_str(log["body"]["stringValue"].as_str().unwrap()).unwrap();
    expect_record(&fixture, &record, 0);
    assert_eq!(log["traceId"].as_str().unwrap().len(), 32);
    journal.close().await;
}

#[tokio::test]
async fn an_unreachable_destination_delays_no_call() {
    let fixture = TestJournal::new();
    // UDP to an unused port succeeds, but a missing socket accepts nothing.
    let nowhere = fixture.folder().join("nowhere");
    let journal = fixture.journal_with(&to(ForwardTarget::SyslogUnix(nowhere)));
    let begin = tokio::time::Instant::now();
    for n in 0..200 {
        call(&journal, n).await;
    }
    assert!(begin.elapsed() < LONG);
    assert_eq!(journal.dropped_forwards(), 0, "they wait in the journal");
    journal.close().await;
    assert_eq!(fixture.calls().len(), 200);
}
