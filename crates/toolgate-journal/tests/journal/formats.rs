//! Files that an older version made.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use toolgate_core::{Scope, ToolCall, ToolPattern};

use crate::support::{FIRST_FORM, JournalLog, TestJournal, echo, executor_of, json_of};

fn called_by(caller: &str) -> ToolCall {
    let scope = Scope::only(vec![ToolPattern::new("echo")]).for_caller(caller);
    ToolCall::new("echo", json!({})).scope(scope)
}

/// A journal with calls, in the first format.
async fn in_first_format(calls: usize) -> TestJournal {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..calls {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(1000) }));
        executor.execute(call).await;
    }
    journal.close().await;
    fixture.sqlite().execute_batch(FIRST_FORM).unwrap();
    fixture
}

fn format_of(file: &Path) -> i64 {
    let connection = Connection::open(file).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn callers_of_calls_that_never_started_are_kept() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(called_by("kitchen")).await;
    let unknown = ToolCall::new("nothing", json!({}));
    let unknown = unknown.scope(Scope::default().for_caller("a\u{1b}[31m"));
    executor.execute(unknown).await;
    executor.execute(ToolCall::new("echo", json!({}))).await;
    let callers: Vec<Option<String>> = fixture
        .calls()
        .into_iter()
        .map(|call| call.caller)
        .collect();
    let escaped = "a\\u{1b}[31m".to_owned();
    assert_eq!(callers, [None, Some(escaped), Some("kitchen".to_owned())]);
    let detail = fixture
        .reader()
        .call(&fixture.calls()[2].id)
        .unwrap()
        .unwrap();
    assert_eq!(json_of(&detail)["caller"], "kitchen");
}

#[tokio::test]
async fn a_first_format_file_is_readable_and_upgraded_by_a_writer() {
    let fixture = in_first_format(3).await;
    let read = fixture.calls();
    assert_eq!(read.len(), 3);
    let detail = fixture.reader().call(&read[0].id).unwrap().unwrap();
    assert_eq!(detail.timings.queue_ms, None, "nobody knows");
    assert_eq!(detail.approval, None);
    assert_eq!(format_of(&fixture.file()), 1, "a reader changes nothing");

    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(called_by("kitchen")).await;
    let calls = fixture.calls();
    assert_eq!(calls[1..], read);
    assert_eq!(calls[0].caller.as_deref(), Some("kitchen"));
    assert_eq!(
        (
            format_of(&fixture.file()),
            fixture.files_with_suffix(".broken-").len()
        ),
        (8, 0)
    );
    journal.close().await;
    assert_eq!(
        fixture
            .journal()
            .reader()
            .calls(&crate::support::no_filter())
            .unwrap(),
        calls
    );
}

#[tokio::test]
async fn readable_calls_of_a_damaged_first_format_file_are_kept() {
    let fixture = in_first_format(200).await;
    let mut bytes = fs::read(fixture.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0x5a);
    fs::write(fixture.file(), bytes).unwrap();
    let (log, _guard) = JournalLog::listen();
    let journal = fixture.journal();
    assert_eq!(
        fixture.files_with_suffix(".broken-").len(),
        1,
        "{}",
        log.text()
    );
    let kept = fixture.calls().len();
    assert!((100..200).contains(&kept), "{kept}: {}", log.text());
    drop(journal);
}
