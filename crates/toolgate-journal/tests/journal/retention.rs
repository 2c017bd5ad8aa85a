//! Deletes what is too old or too much, oldest first.

use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_journal::JournalSettings;

use crate::support::{TestJournal, echo, eventually, executor_of};

#[tokio::test]
async fn calls_older_than_the_days_are_deleted_with_their_runs() {
    let fixture = TestJournal::new();
    fixture.journal().close().await;
    let now = jiff::Timestamp::now().as_millisecond();
    let database = fixture.sqlite();
    for (run, days) in [(101, 40), (102, 31), (103, 29), (104, 1)] {
        let start = now - days * 86_400_000;
        database.execute("INSERT INTO runs (seq, id, command, pid, version, started_at, ended_at) VALUES (?1, ?1, 'old', 1, '0', ?2, ?2 + 1000000)", [run, start * 1000]).unwrap();
        for n in 0..250 {
            database
                .execute(
                    "INSERT INTO calls (seq, id, run, tool, origin, started_at, finished, outcome, is_as_asked, asked)
                     VALUES (?1, printf('%012x%020x', ?2, ?3), ?4, 'old', 'cli', ?2 * 1000, ?2 * 1000 + ?3, 'success', 1, '{}')",
                    [start << 20 | n, start, n, run],
                )
                .unwrap();
        }
    }
    let journal = fixture.journal();
    eventually("750 calls are deleted", || fixture.calls().len() == 500).await;
    let count = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        count("SELECT count(*) FROM calls WHERE run IN (103, 104)"),
        500
    );
    eventually("their runs too", || {
        count("SELECT count(*) FROM runs WHERE seq IN (101, 102)") == 0
    })
    .await;
    assert_eq!(
        count("SELECT count(*) FROM runs WHERE seq IN (103, 104)"),
        2
    );
    journal.close().await;
}

#[tokio::test]
async fn the_oldest_calls_make_room_for_the_newest() {
    let fixture = TestJournal::new();
    let mut settings = JournalSettings::default();
    settings.max_size = 2 << 20;
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo()]);
    for n in 0..150 {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(100_000) }));
        assert!(executor.execute(call).await.is_success());
    }
    journal.close().await;
    let journal = fixture.journal_with(&settings);
    let pages = |name: &str| {
        fixture
            .sqlite()
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let is_small = || pages("page_count") * pages("page_size") <= 2 << 20;
    eventually("it is small", is_small).await;
    let calls = fixture.calls();
    assert!(calls.len() >= 4, "{}", calls.len());
    for (n, call) in calls.iter().enumerate() {
        let shown = call.arguments.as_str().unwrap();
        assert!(
            shown.starts_with(&format!("{{\"n\":{}", 149 - n)),
            "the newest are kept: {}",
            &shown[..20]
        );
    }
    journal.close().await;
    // A short log is left to the next process, and the file shrinks only after a checkpoint.
    let worked_off = fixture
        .sqlite()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    assert_eq!(worked_off, Ok(0), "nobody else has it");
    let size = std::fs::metadata(fixture.file()).unwrap().len();
    assert!(size <= 2 << 20, "{size}");
}
