//! A file that can not be opened when the program starts: a mount that comes late, a disk that is full at boot.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{Journal, JournalError, JournalHealth, JournalSettings, Patience};

use crate::support::{House, echo, eventually, executor_of};

/// A house with a file where the journal's folder should be.
fn blocked() -> (House, PathBuf) {
    let house = House::new();
    let state = house.file().parent().unwrap().to_owned();
    fs::write(&state, "in the way").unwrap();
    (house, state)
}

fn open(house: &House, patience: Patience) -> Result<Journal, JournalError> {
    let mut settings = JournalSettings::default();
    settings.patience = patience;
    Journal::open(&house.file(), &settings, Redactor::default(), "test")
}

#[tokio::test]
async fn it_is_tried_again_and_no_call_is_lost() {
    let (house, state) = blocked();
    assert!(open(&house, Patience::None).is_err());
    let journal = open(&house, Patience::Endless).unwrap();
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
    let calls = house.calls();
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert!(calls.iter().all(|call| call.outcome == "success"));
}

#[tokio::test]
async fn a_program_that_ends_before_does_not_wait_and_counts_what_is_lost() {
    let (house, _state) = blocked();
    let journal = open(&house, Patience::Endless).unwrap();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    let health = journal.health();
    assert!(
        matches!(health, JournalHealth::Failing { lost: 2, .. }),
        "{health:?}"
    );
}
