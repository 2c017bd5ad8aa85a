//! A file that can't be opened when the program starts, such as on a late mount or a full disk.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{Journal, JournalError, JournalHealth, JournalSettings, OpenRetry};

use crate::support::{TestJournal, echo, eventually, executor_of};

/// A test folder with a file where the journal's folder should be.
fn blocked() -> (TestJournal, PathBuf) {
    let fixture = TestJournal::new();
    let state = fixture.file().parent().unwrap().to_owned();
    fs::write(&state, "in the way").unwrap();
    (fixture, state)
}

fn open(fixture: &TestJournal, patience: OpenRetry) -> Result<Journal, JournalError> {
    let mut settings = JournalSettings::default();
    settings.open_retry = patience;
    Journal::open(&fixture.file(), &settings, Redactor::default(), "test")
}

#[tokio::test]
async fn opening_is_retried_and_no_call_is_lost() {
    let (fixture, state) = blocked();
    assert!(open(&fixture, OpenRetry::Never).is_err());
    let journal = open(&fixture, OpenRetry::Endless).unwrap();
    let JournalHealth::Failing { error, .. } = journal.health() else {
        panic!("{:?}", journal.health());
    };
    assert!(error.contains("journal.db"), "{error}");
    let executor = executor_of(&journal, [echo()]);
    for n in 0..3 {
        let call = ToolCall::new("echo", json!({ "n": n }));
        assert!(executor.execute(call).await.is_success());
    }
    journal.flush().await;
    fs::remove_file(state).unwrap();
    let well = JournalHealth::Ok { lost: 0 };
    eventually("it is open", || journal.health() == well).await;
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.flush().await;
    let calls = fixture.calls();
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert!(calls.iter().all(|call| call.outcome == "success"));
}

#[tokio::test]
async fn a_program_that_exits_first_counts_its_lost_calls() {
    let (fixture, _state) = blocked();
    let journal = open(&fixture, OpenRetry::Endless).unwrap();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    let health = journal.health();
    assert!(
        matches!(health, JournalHealth::Failing { lost: 2, .. }),
        "{health:?}"
    );
}
