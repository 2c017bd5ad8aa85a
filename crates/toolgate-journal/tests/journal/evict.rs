//! Which calls are deleted when the journal is full.

use serde_json::json;
use toolgate_core::{Scope, ToolCall};
use toolgate_journal::{JournalSettings, VerifyOptions};

use crate::support::{TestJournal, destructive, echo, eventually, executor_of};

fn small(bytes: u64) -> JournalSettings {
    let mut settings = JournalSettings::default();
    settings.max_size = bytes;
    settings
}

fn call(tool: &str, caller: &str, text: usize) -> ToolCall {
    let arguments = json!({ "by": caller, "text": "x".repeat(text) });
    ToolCall::new(tool, arguments).scope(Scope::default().for_caller(caller))
}

fn is_small(fixture: &TestJournal, bytes: i64) -> bool {
    let database = fixture.sqlite();
    let number = |name: &str| {
        database
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    (number("page_count") - number("freelist_count")) * number("page_size") <= bytes
}

fn count(fixture: &TestJournal, condition: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM calls WHERE {condition}");
    fixture
        .sqlite()
        .query_row(&sql, [], |row| row.get(0))
        .unwrap()
}

/// Reopens the journal, which checks its size at once, and waits until it is small enough.
async fn wait_until_evicted(fixture: &TestJournal, settings: &JournalSettings) {
    let journal = fixture.journal_with(settings);
    let max_size = settings.max_size as i64;
    // Only a guard against hanging: on a busy machine, rows of a megabyte take long.
    for _ in 0..6000 {
        if is_small(fixture, max_size) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(is_small(fixture, max_size));
    journal.close().await;
}

fn is_intact(fixture: &TestJournal) -> u64 {
    let verified = fixture
        .other_reader()
        .verify(&VerifyOptions::default())
        .unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    verified.evicted
}

#[tokio::test]
async fn a_token_that_floods_the_journal_pushes_out_only_its_own_calls() {
    let fixture = TestJournal::new();
    let settings = small(8 << 20);
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo()]);
    executor.execute(call("echo", "operator", 10)).await;
    for _ in 0..40 {
        executor.execute(call("echo", "one-tool", 1_000_000)).await;
    }
    journal.flush().await;
    journal.close().await;
    wait_until_evicted(&fixture, &settings).await;
    assert_eq!(count(&fixture, "caller = 'operator'"), 1);
    let left = count(&fixture, "caller = 'one-tool'");
    assert!((1..40).contains(&left), "{left}");
    assert_eq!(is_intact(&fixture) as i64, 40 - left);
}

#[tokio::test]
async fn destructive_calls_are_evicted_last() {
    let fixture = TestJournal::new();
    let settings = small(2 << 20);
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo(), destructive()]);
    for _ in 0..5 {
        executor.execute(call("unlock", "operator", 100)).await;
    }
    for _ in 0..100 {
        executor.execute(call("echo", "operator", 50_000)).await;
    }
    journal.close().await;
    wait_until_evicted(&fixture, &settings).await;
    assert_eq!(
        count(&fixture, "tool = 'unlock'"),
        5,
        "though they are the oldest"
    );
    let others = count(&fixture, "tool = 'echo'");
    assert!(others < 60, "{others}");

    // A flood of destructive calls takes half of the file at most, and only from its own caller.
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo(), destructive()]);
    for _ in 0..100 {
        executor.execute(call("unlock", "flood", 50_000)).await;
    }
    journal.close().await;
    wait_until_evicted(&fixture, &settings).await;
    assert_eq!(
        count(&fixture, "tool = 'unlock' AND caller = 'operator'"),
        5
    );
    let others = count(&fixture, "tool = 'echo'");
    assert!(others >= 5, "{others}");
    is_intact(&fixture);
}

#[tokio::test]
async fn evicted_calls_are_counted() {
    let fixture = TestJournal::new();
    let settings = small(1 << 20);
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo()]);
    for _ in 0..100 {
        executor.execute(call("echo", "kitchen", 100_000)).await;
    }
    journal.flush().await;
    eventually("some are deleted", || journal.evicted() > 50).await;
    journal.close().await;
    is_intact(&fixture);
}

#[tokio::test]
async fn the_chain_is_trimmed_and_still_verifies() {
    let fixture = TestJournal::new();
    let settings = small(1 << 20);
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [destructive()]);
    executor.execute(call("unlock", "operator", 10)).await;
    journal.close().await;
    for _ in 0..4 {
        let journal = fixture.journal_with(&settings);
        let executor = executor_of(&journal, [echo()]);
        for _ in 0..500 {
            executor.execute(call("echo", "kitchen", 4000)).await;
        }
        journal.close().await;
        wait_until_evicted(&fixture, &settings).await;
    }
    let first: i64 = fixture
        .sqlite()
        .query_row("SELECT min(n) FROM chain", [], |row| row.get(0))
        .unwrap();
    assert!(first > 1, "old entries are gone");
    is_intact(&fixture);
    assert_eq!(count(&fixture, "tool = 'unlock'"), 1);
    // Trimming covers only what it has seen: cutting off more is found.
    let sql = "DELETE FROM chain WHERE n IN (SELECT n FROM chain ORDER BY n LIMIT 10)";
    fixture.sqlite().execute(sql, []).unwrap();
    let verified = fixture
        .other_reader()
        .verify(&VerifyOptions::default())
        .unwrap();
    assert!(
        verified.findings[0]
            .text
            .contains("nothing says that they were trimmed")
    );
}
