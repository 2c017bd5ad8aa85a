//! Several processes that share one file.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{
    Journal, JournalHealth, JournalPosition, JournalSettings, SyncMode, VerifyOptions,
};

use crate::support::{
    TestJournal, echo, eventually, executor_of, filtered, journal_from_env, never_answers,
    no_filter, spawn_test,
};

/// Makes a hundred calls, leaves one open, and waits until its stdin is closed.
#[test]
#[ignore = "run by others as a process of its own"]
fn make_a_hundred_calls() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let journal = journal_from_env();
        let executor = executor_of(&journal, [echo(), never_answers()]);
        let open = executor.clone();
        tokio::spawn(async move { open.execute(ToolCall::new("hang", json!({}))).await });
        for n in 0..100 {
            executor
                .execute(ToolCall::new("echo", json!({ "n": n })))
                .await;
        }
        assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
        std::io::stdout().lock().write_all(b"\nready\n").unwrap();
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        end.await.unwrap().unwrap();
        journal.close().await;
    });
    std::process::exit(0); // The call that hangs would be waited for.
}

#[tokio::test]
async fn only_calls_of_dead_processes_are_interrupted() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let mut children: Vec<_> = (0..3)
        .map(|_| spawn_test("sharing::make_a_hundred_calls", &fixture.file()))
        .collect();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..100 {
        executor
            .execute(ToolCall::new("echo", json!({ "n": n })))
            .await;
    }
    for child in &mut children {
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        while lines.next().unwrap().unwrap() != "ready" {}
    }
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    let count = |outcome: &str| {
        fixture
            .reader()
            .calls(&filtered(|filter| {
                filter.outcome = Some(outcome.to_owned());
            }))
            .unwrap()
            .len()
    };
    eventually("what others recorded is seen", || {
        (count("success"), count("running")) == (400, 3)
    })
    .await;
    assert_eq!(count("interrupted"), 0);

    // One process is killed, one ends in good order, one lives on.
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    drop(children[1].stdin.take());
    assert!(children[1].wait().unwrap().success());
    assert_eq!((count("running"), count("interrupted")), (1, 2));
    let newcomer = fixture.journal();
    assert_eq!(
        (count("running"), count("interrupted")),
        (1, 2),
        "marked or not, it is the same"
    );
    newcomer.close().await;
    drop(children[2].stdin.take());
    assert!(children[2].wait().unwrap().success());
    assert_eq!((count("running"), count("interrupted")), (0, 3));

    let followed = fixture
        .reader()
        .finished_after(JournalPosition::default(), &no_filter())
        .unwrap();
    assert_eq!(followed.len(), 403);
    assert!(
        followed.is_sorted_by(|one, next| one.0 < next.0),
        "one order over all processes"
    );
    let commands: i64 = fixture
        .sqlite()
        .query_row("SELECT count(DISTINCT pid) FROM runs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(commands, 4);
    let verified = fixture.reader().verify(&VerifyOptions::default()).unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!(verified.calls, 403, "one chain over all processes");
}

#[tokio::test]
async fn a_locked_file_is_a_warning_and_loses_no_call() {
    for sync in [SyncMode::Normal, SyncMode::Full] {
        let fixture = TestJournal::new();
        let mut settings = JournalSettings::default();
        settings.sync = sync;
        let journal = fixture.journal_with(&settings);
        let executor = executor_of(&journal, [echo()]);
        let other = fixture.sqlite();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let begin = tokio::time::Instant::now();
        for n in 0..20 {
            let outcome = executor
                .execute(ToolCall::new("echo", json!({ "n": n })))
                .await;
            assert!(outcome.is_success());
        }
        // No call waits for the database, except perhaps the first one for two seconds.
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            begin.elapsed()
        );
        let is_failing = matches!(journal.health(), JournalHealth::Failing { lost: 0, .. });
        assert_eq!(is_failing, sync == SyncMode::Full, "{:?}", journal.health());
        other.execute_batch("ROLLBACK").unwrap();
        journal.flush().await;
        assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
        assert_eq!(fixture.calls().len(), 20, "nothing is lost");
        assert!(fixture.calls().iter().all(|call| call.outcome == "success"));
    }
}

#[tokio::test]
async fn a_deleted_or_moved_file_is_recreated() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor
        .execute(ToolCall::new("echo", json!({ "n": 1 })))
        .await;
    journal.flush().await;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        std::fs::remove_file(fixture.file().with_file_name(name)).unwrap();
    }
    let call = ToolCall::new("echo", json!({ "n": 2 }));
    executor.execute(call).await;
    assert_eq!(fixture.only_call().requested, json!({ "n": 2 }));
    assert_eq!(fixture.only_call().run.unwrap().command, "test");
}

#[test]
fn foreign_and_newer_files_are_left_alone() {
    for (sql, problem) in [
        (
            "CREATE TABLE notes (text TEXT)",
            "is a database, but not a journal; set journal.file to another file",
        ),
        (
            "PRAGMA application_id = 0x54476a6f; PRAGMA user_version = 99; CREATE TABLE t (a)",
            "was written by a newer version (format 99; this program knows up to 8); upgrade, or set journal.file to another file",
        ),
    ] {
        let fixture = TestJournal::new();
        std::fs::create_dir(fixture.folder().join("state")).unwrap();
        fixture.sqlite().execute_batch(sql).unwrap();
        let before = std::fs::read(fixture.file()).unwrap();
        let opened = Journal::open(
            &fixture.file(),
            &JournalSettings::default(),
            Redactor::default(),
            "test",
        );
        let error = opened.err().unwrap().to_string();
        assert!(error.ends_with(problem), "{error}");
        assert_eq!(std::fs::read(fixture.file()).unwrap(), before);
        assert!(fixture.files_with_suffix(".broken").is_empty());
        assert!(toolgate_journal::JournalReader::open(&fixture.file()).is_err());
    }
}
