//! Journals that somebody prepared so that they forget calls.

use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{Journal, JournalError, JournalReader, JournalSettings};

use crate::support::{TestJournal, echo, executor_of};

#[tokio::test]
async fn a_journal_with_foreign_triggers_views_or_indexes_is_refused() {
    for (attack, what) in [
        (
            "CREATE TRIGGER forget AFTER INSERT ON calls BEGIN DELETE FROM calls; END",
            "the trigger 'forget'",
        ),
        (
            "ALTER TABLE calls RENAME TO kept; CREATE VIEW calls AS SELECT * FROM kept WHERE 0",
            "the view 'calls'",
        ),
        (
            "CREATE UNIQUE INDEX first ON calls (tool)",
            "the index 'first'",
        ),
        ("CREATE UNIQUE INDEX none ON calls (1)", "the index 'none'"),
        (
            "CREATE TABLE other (a TEXT NOT NULL /**/ ON /**/ CONFLICT IGNORE)",
            "the table 'other'",
        ),
        (
            "CREATE /**/ VIRTUAL TABLE other USING fts5(a)",
            "the table 'other'",
        ),
    ] {
        let fixture = TestJournal::new();
        let journal = fixture.journal();
        let executor = executor_of(&journal, [echo()]);
        executor.execute(ToolCall::new("echo", json!({}))).await;
        journal.close().await;
        fixture.sqlite().execute_batch(attack).unwrap();
        let settings = JournalSettings::default();
        let opened = Journal::open(&fixture.file(), &settings, Redactor::default(), "test");
        let read = JournalReader::open(&fixture.file()).map(drop);
        for result in [opened.map(drop), read] {
            let error = result.unwrap_err();
            assert!(matches!(error, JournalError::Tampered { .. }), "{error:?}");
            assert!(error.to_string().contains(what), "{attack}: {error}");
        }
    }
}
