//! Files that an older version made.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use toolgate_core::{Pattern, Scope, ToolCall};

use crate::support::{FIRST_FORM, House, Log, echo, executor_of, json_of};

fn called_by(caller: &str) -> ToolCall {
    let scope = Scope::only(vec![Pattern::new("echo")]).of(caller);
    ToolCall::new("echo", json!({})).scope(scope)
}

/// A journal with calls in it, as the first form has it.
async fn of_the_first_form(calls: usize) -> House {
    let house = House::new();
    let journal = house.journal();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..calls {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(1000) }));
        executor.execute(call).await;
    }
    journal.close().await;
    house.sqlite().execute_batch(FIRST_FORM).unwrap();
    house
}

fn form(file: &Path) -> i64 {
    let connection = Connection::open(file).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn who_called_is_kept_also_of_calls_that_never_started() {
    let house = House::new();
    let journal = house.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(called_by("kitchen")).await;
    let unknown = ToolCall::new("nothing", json!({}));
    let unknown = unknown.scope(Scope::default().of("a\u{1b}[31m"));
    executor.execute(unknown).await;
    executor.execute(ToolCall::new("echo", json!({}))).await;
    let callers: Vec<Option<String>> = house.calls().into_iter().map(|call| call.caller).collect();
    let escaped = "a\\u{1b}[31m".to_owned();
    assert_eq!(callers, [None, Some(escaped), Some("kitchen".to_owned())]);
    let detail = house.reader().call(&house.calls()[2].id).unwrap().unwrap();
    assert_eq!(json_of(&detail)["caller"], "kitchen");
}

#[tokio::test]
async fn a_file_of_the_first_form_is_read_as_it_is_and_renewed_by_who_writes() {
    let house = of_the_first_form(3).await;
    let read = house.calls();
    assert_eq!(read.len(), 3);
    let detail = house.reader().call(&read[0].id).unwrap().unwrap();
    assert_eq!(detail.timings.queue_ms, None, "nobody knows");
    assert_eq!(detail.approval, None);
    assert_eq!(form(&house.file()), 1, "a reader changes nothing");

    let journal = house.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(called_by("kitchen")).await;
    let calls = house.calls();
    assert_eq!(calls[1..], read);
    assert_eq!(calls[0].caller.as_deref(), Some("kitchen"));
    assert_eq!(
        (form(&house.file()), house.beside(".broken-").len()),
        (7, 0)
    );
    journal.close().await;
    assert_eq!(
        house
            .journal()
            .reader()
            .calls(&crate::support::all())
            .unwrap(),
        calls
    );
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_file_of_the_first_form_is_kept() {
    let house = of_the_first_form(200).await;
    let mut bytes = fs::read(house.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0x5a);
    fs::write(house.file(), bytes).unwrap();
    let (log, _guard) = Log::listen();
    let journal = house.journal();
    assert_eq!(house.beside(".broken-").len(), 1, "{}", log.text());
    let kept = house.calls().len();
    assert!((100..200).contains(&kept), "{kept}: {}", log.text());
    drop(journal);
}
