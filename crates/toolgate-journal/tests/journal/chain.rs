//! Changes, deletions and additions made behind the journal's back are found and named.

use std::fs;

use rusqlite::params;
use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_journal::{HashChainProblem, JournalSettings, VerifyOptions, VerifyReport};

use crate::support::{
    FIRST_FORM, JournalLog, TestJournal, destructive, echo, executor_of, never_answers,
};

/// A journal with ten calls that is closed.
async fn ten_calls(settings: &JournalSettings) -> TestJournal {
    let fixture = TestJournal::new();
    let journal = fixture.journal_with(settings);
    let executor = executor_of(&journal, [echo(), destructive()]);
    for n in 0..10 {
        let tool = if n % 3 == 0 { "unlock" } else { "echo" };
        executor
            .execute(ToolCall::new(tool, json!({ "n": n })))
            .await;
        // Some begin in one batch and end in another.
        if n % 4 == 0 {
            journal.flush().await;
        }
    }
    journal.close().await;
    fixture
}

fn verify(fixture: &TestJournal) -> VerifyReport {
    let reader = fixture.other_reader();
    reader.verify(&VerifyOptions::default()).unwrap()
}

fn expecting(fixture: &TestJournal, hash: &str) -> VerifyReport {
    let mut options = VerifyOptions::default();
    options.expect = Some(hash.to_owned());
    fixture.other_reader().verify(&options).unwrap()
}

fn problems(verified: &VerifyReport) -> Vec<HashChainProblem> {
    let findings = verified.findings.iter();
    findings.map(|finding| finding.problem).collect()
}

/// The place and the id of the call `offset` calls after the first.
fn call_at(fixture: &TestJournal, offset: i64) -> (i64, String) {
    let sql = "SELECT seq, id FROM calls ORDER BY seq LIMIT 1 OFFSET ?";
    fixture
        .sqlite()
        .query_row(sql, [offset], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
}

#[tokio::test]
async fn an_untouched_journal_is_intact() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let verified = verify(&fixture);
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.uncovered), (10, 0));
    assert_eq!(verified.head.len(), 64);
    assert!(!verified.is_keyed && !verified.is_partial);
    assert!(verified.notes.is_empty(), "{:?}", verified.notes);
}

#[tokio::test]
async fn a_call_that_runs_and_one_that_was_interrupted_are_in_the_chain() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [never_answers()]);
    let open =
        tokio::spawn(async move { executor.execute(ToolCall::new("hang", json!({}))).await });
    crate::support::eventually("it runs", || fixture.calls().len() == 1).await;
    let verified = verify(&fixture);
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!(verified.calls, 1);
    journal.close().await;
    assert_eq!(fixture.only_call().summary.outcome, "interrupted");
    let verified = verify(&fixture);
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!(verified.calls, 1);
    open.abort();
}

#[tokio::test]
async fn a_change_in_any_column_is_found() {
    let columns: Vec<String> = {
        let fixture = ten_calls(&JournalSettings::default()).await;
        let database = fixture.sqlite();
        let mut statement = database
            .prepare("SELECT name FROM pragma_table_info('calls')")
            .unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    };
    assert!(columns.len() > 30);
    let fixture = ten_calls(&JournalSettings::default()).await;
    let (seq, id) = call_at(&fixture, 4);
    for column in columns {
        let database = fixture.sqlite();
        let value = |sql: &str| {
            let found =
                database.query_row(sql, [seq], |row| row.get::<_, rusqlite::types::Value>(0));
            found.unwrap()
        };
        let before = value(&format!("SELECT {column} FROM calls WHERE seq = ?"));
        let change = format!("UPDATE calls SET {column} = 4711 WHERE seq = ?");
        database.execute(&change, [seq]).unwrap();
        let verified = verify(&fixture);
        assert!(!verified.is_intact(), "{column}");
        if column == "seq" {
            let sql = "UPDATE calls SET seq = ? WHERE seq = 4711";
            database.execute(sql, [seq]).unwrap();
            continue;
        }
        if !matches!(column.as_str(), "id" | "chained") {
            assert_eq!(problems(&verified), [HashChainProblem::Changed], "{column}");
            assert_eq!(verified.findings[0].call.as_ref(), Some(&id), "{column}");
            let text = &verified.findings[0].text;
            assert!(text.contains(&format!("call {id} was changed")), "{text}");
        }
        let back = format!("UPDATE calls SET {column} = ? WHERE seq = ?");
        database.execute(&back, params![before, seq]).unwrap();
        assert!(verify(&fixture).is_intact(), "{column}");
    }
}

#[tokio::test]
async fn a_changed_run_of_a_call_is_found() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let sql = "UPDATE runs SET command = 'toolgate chat'";
    fixture.sqlite().execute(sql, []).unwrap();
    let verified = verify(&fixture);
    assert_eq!(verified.problems, 10);
}

#[tokio::test]
async fn a_call_deleted_in_the_middle_is_missed() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let (seq, _) = call_at(&fixture, 4);
    let delete = "DELETE FROM calls WHERE seq = ?";
    fixture.sqlite().execute(delete, [seq]).unwrap();
    let verified = verify(&fixture);
    assert_eq!(problems(&verified), [HashChainProblem::Missing]);
    assert!(verified.findings[0].text.ends_with("is missing"));
    // Deleted together with its entries, the entries are missing instead.
    let delete = "DELETE FROM chain WHERE row = ?";
    fixture.sqlite().execute(delete, [seq]).unwrap();
    let verified = verify(&fixture);
    assert_eq!(verified.findings[0].problem, HashChainProblem::Missing);
    let text = &verified.findings[0].text;
    assert!(text.starts_with("entr") && text.contains('#'), "{text}");
}

#[tokio::test]
async fn a_call_deleted_at_the_end_is_missed_even_with_its_entries() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let noted = verify(&fixture).head;
    let (seq, _) = call_at(&fixture, 9);
    let database = fixture.sqlite();
    database
        .execute("DELETE FROM calls WHERE seq = ?", [seq])
        .unwrap();
    database
        .execute("DELETE FROM chain WHERE row = ?", [seq])
        .unwrap();
    let verified = verify(&fixture);
    assert_eq!(problems(&verified), [HashChainProblem::Missing]);
    let text = &verified.findings[0].text;
    assert!(text.contains("at the end are missing"), "{text}");
    assert!(!expecting(&fixture, &noted).is_intact());

    // The next process reports it, and its own entries don't hide it.
    let (log, _guard) = JournalLog::listen();
    let journal = fixture.journal();
    assert!(
        log.text().contains("the newest calls may be missing"),
        "{}",
        log.text()
    );
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    let verified = verify(&fixture);
    assert_eq!(problems(&verified), [HashChainProblem::Missing]);
    let text = &verified.findings[0].text;
    assert!(text.contains("the newest calls were deleted"), "{text}");
}

#[tokio::test]
async fn a_head_that_was_deleted_is_missed() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    fs::remove_file(fixture.file().with_file_name("journal.db.head")).unwrap();
    let verified = verify(&fixture);
    assert_eq!(problems(&verified), [HashChainProblem::Missing]);
}

#[tokio::test]
async fn an_inserted_call_is_foreign() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let (seq, id) = call_at(&fixture, 4);
    let forged = format!("{}ffff", &id[..28]);
    let database = fixture.sqlite();
    let columns = "run, tool, origin, started_at, finished, outcome, is_as_asked, asked";
    for chained in ["NULL", "chained"] {
        let sql = format!(
            "INSERT INTO calls (seq, id, chained, {columns}) SELECT (SELECT max(seq) + 1 FROM calls), ?, {chained}, {columns} FROM calls WHERE seq = ?"
        );
        database.execute(&sql, params![forged, seq]).unwrap();
        let verified = verify(&fixture);
        assert_eq!(
            problems(&verified),
            [HashChainProblem::Foreign],
            "{chained}"
        );
        assert_eq!(verified.findings[0].call.as_ref(), Some(&forged));
        let refused = fixture.other_reader().verify_call(&forged).unwrap();
        assert!(refused.is_some(), "{chained}");
        let sql = "DELETE FROM calls WHERE id = ?";
        database.execute(sql, [&forged]).unwrap();
    }
    assert!(verify(&fixture).is_intact());
}

#[tokio::test]
async fn swapped_calls_and_entries_are_found() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let database = fixture.sqlite();
    let swap = |table: &str, column: &str, one: i64, other: i64| {
        let sql = format!("UPDATE {table} SET {column} = ? WHERE {column} = ?");
        for (to, from) in [(-1, one), (one, other), (other, -1)] {
            database.execute(&sql, [to, from]).unwrap();
        }
    };
    let ((one, _), (other, _)) = (call_at(&fixture, 4), call_at(&fixture, 5));
    swap("calls", "seq", one, other);
    let verified = verify(&fixture);
    assert_eq!(
        problems(&verified)[0],
        HashChainProblem::Changed,
        "{verified:?}"
    );
    assert!(verified.problems >= 2);
    swap("calls", "seq", one, other);
    assert!(verify(&fixture).is_intact());

    let last = verify(&fixture).head_entry;
    swap("chain", "n", last - 3, last - 2);
    let verified = verify(&fixture);
    let found = problems(&verified);
    assert!(
        found.contains(&HashChainProblem::OutOfOrder),
        "{verified:?}"
    );
    assert!(
        verified.findings[0]
            .text
            .contains("was moved: another one was written there")
    );
}

#[tokio::test]
async fn a_rebuilt_chain_does_not_contain_a_noted_head() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let noted = verify(&fixture).head;
    assert!(expecting(&fixture, &noted).is_intact());
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    let later = expecting(&fixture, &noted);
    assert!(later.is_intact(), "{:?}", later.findings);
    assert!(
        later.notes[0].contains("entries were added since"),
        "{:?}",
        later.notes
    );
    assert!(!expecting(&fixture, &"0".repeat(64)).is_intact());
    assert!(!expecting(&fixture, "abc").is_intact());

    // An attacker deletes everything, even the head, and writes another journal.
    for name in [
        "journal.db",
        "journal.db-wal",
        "journal.db-shm",
        "journal.db.head",
    ] {
        fs::remove_file(fixture.file().with_file_name(name)).ok();
    }
    fixture.journal().close().await;
    assert!(verify(&fixture).is_intact(), "by itself it can't be told");
    let forged = expecting(&fixture, &noted);
    assert_eq!(problems(&forged), [HashChainProblem::Missing]);
}

#[tokio::test]
async fn a_deleted_journal_is_reported_by_the_next() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let head = verify(&fixture).head;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::remove_file(fixture.file().with_file_name(name)).ok();
    }
    fixture.journal().close().await;
    let verified = verify(&fixture);
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert!(verified.notes[0].ends_with(&head), "{:?}", verified.notes);
}

#[tokio::test]
async fn without_the_key_no_forged_entry_verifies() {
    let mut settings = JournalSettings::default();
    settings.key = true;
    let fixture = ten_calls(&settings).await;
    let verified = verify(&fixture);
    assert!(verified.is_intact() && verified.is_keyed, "{verified:?}");
    let key = fixture.file().with_file_name("journal.db.key");
    let secret = fs::read(&key).unwrap();

    // An attacker with all files but the key continues without a key.
    fs::remove_file(&key).unwrap();
    let forger = fixture.journal();
    let executor = executor_of(&forger, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    forger.close().await;
    fs::write(&key, &secret).unwrap();
    let verified = verify(&fixture);
    assert!(
        problems(&verified).contains(&HashChainProblem::Foreign),
        "{verified:?}"
    );

    // Another key doesn't help either.
    fs::write(&key, "f".repeat(64)).unwrap();
    assert!(!verify(&fixture).is_intact());
}

#[tokio::test]
async fn an_old_journal_gets_a_chain_at_its_first_write() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    fixture.sqlite().execute_batch(FIRST_FORM).unwrap();
    fs::remove_file(fixture.file().with_file_name("journal.db.head")).unwrap();
    let verified = verify(&fixture);
    assert!(
        verified.notes[0].contains("has no hash chain"),
        "{:?}",
        verified.notes
    );
    let (log, _guard) = JournalLog::listen();
    let journal = fixture.journal();
    let told = "the journal's hash chain starts now";
    assert!(log.text().contains(told), "{}", log.text());
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    let verified = verify(&fixture);
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.uncovered), (1, 10));
    let (old, new) = (call_at(&fixture, 4).1, call_at(&fixture, 10).1);
    let refused = fixture.other_reader().verify_call(&old).unwrap().unwrap();
    assert!(
        refused.contains("older than the journal's hash chain"),
        "{refused}"
    );
    assert_eq!(fixture.other_reader().verify_call(&new).unwrap(), None);

    // For older calls only the number is known.
    let (seq, _) = call_at(&fixture, 4);
    let delete = "DELETE FROM calls WHERE seq = ?";
    fixture.sqlite().execute(delete, [seq]).unwrap();
    assert_eq!(problems(&verify(&fixture)), [HashChainProblem::Missing]);
}

#[tokio::test]
async fn a_single_call_is_checked_by_itself() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let (seq, id) = call_at(&fixture, 4);
    let reader = fixture.other_reader();
    assert_eq!(reader.verify_call(&id).unwrap(), None);
    let database = fixture.sqlite();
    let forge = r#"UPDATE calls SET asked = '{"n":666}' WHERE seq = ?"#;
    database.execute(forge, [seq]).unwrap();
    let refused = reader.verify_call(&id).unwrap().unwrap();
    assert_eq!(refused, "its row was changed since");
}

#[tokio::test]
async fn the_newest_entries_can_be_checked_alone() {
    let fixture = ten_calls(&JournalSettings::default()).await;
    let mut options = VerifyOptions::default();
    options.newest = Some(5);
    let reader = fixture.other_reader();
    let verified = reader.verify(&options).unwrap();
    assert!(verified.is_intact() && verified.is_partial, "{verified:?}");
    assert_eq!(verified.entries, 6);
    let (newest, _) = call_at(&fixture, 9);
    let forge = "UPDATE calls SET outcome = 'denied' WHERE seq = ?";
    fixture.sqlite().execute(forge, [newest]).unwrap();
    assert!(!reader.verify(&options).unwrap().is_intact());
}
