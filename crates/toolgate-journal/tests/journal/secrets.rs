//! No secret reaches the disk.

use serde_json::json;
use toolgate_core::{Redactor, ToolCall, ToolContent, ToolError, ToolOutput};
use toolgate_journal::{Journal, JournalSettings};

use crate::support::{
    TestJournal, always_answers, any_arguments, executor_of, no_filter, scripted,
};

const SENTINEL: &str = "s3ntinel-4711-value";

#[tokio::test]
async fn a_secret_is_nowhere_in_the_files_however_it_came() {
    let fixture = TestJournal::new();
    let redactor = Redactor::new([SENTINEL.to_owned()]);
    let command = format!("serve --token {SENTINEL}");
    let journal = Journal::open(
        &fixture.file(),
        &JournalSettings::default(),
        redactor.clone(),
        &command,
    )
    .unwrap();
    // Holding the lock keeps rows in the spool for a while.
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut blocks = ToolOutput::json(json!({ "a": [SENTINEL] }));
    blocks.content = vec![ToolContent::from(
        json!({ "type": "audio", "data": SENTINEL }),
    )];
    let failed =
        ToolError::failed(format!("no {SENTINEL} here")).with_details(format!("at {SENTINEL}"));
    let executor = executor_of(
        &journal,
        [
            always_answers("blocks", Ok(blocks)),
            always_answers("text", Ok(ToolOutput::text(format!("x{SENTINEL}y")))),
            always_answers("failed", Err(failed)),
            scripted(any_arguments("bomb"), |_, _| async { panic!("{SENTINEL}") }),
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
    // A secret learned later is redacted too.
    redactor.add_secrets(["learnt-later-secret".to_owned()]);
    executor
        .execute(ToolCall::new("text", json!({ "a": "learnt-later-secret" })))
        .await;
    let spool = fixture.spooled();
    other.execute_batch("ROLLBACK").unwrap();
    journal.flush().await;

    let calls = fixture.other_reader().calls(&no_filter()).unwrap();
    assert_eq!(calls.len(), 8);
    assert!(
        calls
            .iter()
            .all(|call| serde_json::to_string(call).unwrap().contains("[REDACTED]"))
    );
    let mut read = 0;
    let file = |name| std::fs::read(fixture.file().with_file_name(name)).unwrap();
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
