//! No secret reaches the disk.

use serde_json::json;
use toolgate_core::{Content, Redactor, ToolCall, ToolError, ToolOutput};
use toolgate_journal::{Journal, JournalSettings};

use crate::support::{House, all, answering, any, executor_of, scripted};

const SENTINEL: &str = "s3ntinel-4711-value";

#[tokio::test]
async fn a_secret_is_nowhere_in_the_files_however_it_came() {
    let house = House::new();
    let redactor = Redactor::new([SENTINEL.to_owned()]);
    let command = format!("serve --token {SENTINEL}");
    let journal = Journal::open(
        &house.file(),
        &JournalSettings::default(),
        redactor.clone(),
        &command,
    )
    .unwrap();
    // What is in the spool stays there for a while.
    let other = house.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut blocks = ToolOutput::json(json!({ "a": [SENTINEL] }));
    blocks.content = vec![Content::from(json!({ "type": "audio", "data": SENTINEL }))];
    let failed =
        ToolError::failed(format!("no {SENTINEL} here")).with_details(format!("at {SENTINEL}"));
    let executor = executor_of(
        &journal,
        [
            answering("blocks", Ok(blocks)),
            answering("text", Ok(ToolOutput::text(format!("x{SENTINEL}y")))),
            answering("failed", Err(failed)),
            scripted(any("bomb"), |_, _| async { panic!("{SENTINEL}") }),
        ],
    );
    let hostile = json!({ SENTINEL: { "deep": [SENTINEL, { "password": "hunter2-hunter2" }] } });
    for name in ["blocks", "text", "failed", "bomb", "nope", SENTINEL] {
        executor.execute(ToolCall::new(name, hostile.clone())).await;
    }
    let raw = format!("{{\"key\": \"hunter2-hunter2\", \"x\": {SENTINEL}");
    executor
        .execute(ToolCall::from_json("text", raw.as_bytes()))
        .await;
    // Learnt later, and known all the same.
    redactor.learn(["learnt-later-secret".to_owned()]);
    executor
        .execute(ToolCall::new("text", json!({ "a": "learnt-later-secret" })))
        .await;
    let spool = house.spooled();
    other.execute_batch("ROLLBACK").unwrap();
    journal.flush().await;

    let calls = house.other_reader().calls(&all()).unwrap();
    assert_eq!(calls.len(), 8);
    assert!(
        calls
            .iter()
            .all(|call| serde_json::to_string(call).unwrap().contains("[REDACTED]"))
    );
    let mut read = 0;
    let file = |name| std::fs::read(house.file().with_file_name(name)).unwrap();
    for (name, bytes) in [
        ("journal.db", file("journal.db")),
        ("journal.db-wal", file("journal.db-wal")),
        ("spool", spool),
    ] {
        for secret in [SENTINEL, "hunter2-hunter2", "learnt-later-secret"] {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in {name}");
        }
        assert!(name == "journal.db" || bytes.len() > 2000, "{name}");
        read += bytes.len();
    }
    assert!(read > 10_000);
}
