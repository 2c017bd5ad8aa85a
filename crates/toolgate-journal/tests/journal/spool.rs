//! Spooled rows that are not in the database yet survive `kill -9` and are taken over once.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{CallSummary, Journal, JournalHealth, JournalPosition, JournalSettings};

use crate::support::{
    JournalLog, TestJournal, echo, eventually, executor_of, journal_from_env, never_answers,
    no_filter, spawn_test,
};

const CALLS: usize = 20;

/// Waits for a line, makes some calls, leaves one open, and says so.
#[test]
#[ignore = "run by others as a process of its own"]
fn make_calls_on_command() {
    let say = |text: &str| {
        let line = format!("\n{text}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let journal = journal_from_env();
        say("open");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let executor = executor_of(&journal, [echo(), never_answers()]);
        let open = executor.clone();
        tokio::spawn(async move { open.execute(ToolCall::new("hang", json!({}))).await });
        tokio::task::yield_now().await;
        for n in 0..CALLS {
            let call = ToolCall::new("echo", json!({ "n": n, "text": "ü".repeat(n * 20) }));
            assert!(executor.execute(call).await.is_success());
        }
        assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
        say("done");
        std::future::pending::<()>().await;
    });
}

/// Leaves the files of a process that was killed before any row was in the database.
fn leave_spool(fixture: &TestJournal) {
    let mut child = spawn_test("spool::make_calls_on_command", &fixture.file());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "open" {}
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    child.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
    while lines.next().unwrap().unwrap() != "done" {}
    child.kill().unwrap();
    child.wait().unwrap();
    let sql = "SELECT count(*) FROM calls";
    let calls: u32 = other.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(calls, 0, "all of it is in the spool");
}

/// Counts the calls that succeeded and those that were interrupted. None may be there
/// twice or still run.
fn count(calls: &[CallSummary]) -> (usize, usize) {
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len());
    let of = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    let (ended, interrupted) = (of("success"), of("interrupted"));
    assert_eq!(ended + interrupted, calls.len(), "{calls:?}");
    (ended, interrupted)
}

#[test]
fn acknowledged_calls_survive_a_kill_in_the_spool() {
    for is_reader in [false, true] {
        let fixture = TestJournal::new();
        leave_spool(&fixture);
        let _journal = (!is_reader).then(|| fixture.journal());
        let calls = fixture.reader().calls(&no_filter()).unwrap();
        assert_eq!(count(&calls), (CALLS, 1), "for a reader: {is_reader}");
        for call in &calls {
            let call = fixture.reader().call(&call.id).unwrap().unwrap();
            assert_eq!(call.run.unwrap().command, "child");
            assert!(call.result == Some(call.requested) || call.summary.tool == "hang");
        }
        assert!(fixture.spooled().is_empty());
    }
}

/// The files that a killed process left.
struct KilledRunFiles {
    fixture: TestJournal,
    lock: PathBuf,
    spool: Vec<u8>,
}

impl KilledRunFiles {
    fn new() -> Self {
        let fixture = TestJournal::new();
        leave_spool(&fixture);
        Self {
            lock: fixture.lock().file_name().unwrap().into(),
            spool: fixture.spooled(),
            fixture,
        }
    }

    /// Another folder with the same files, except for the spool.
    fn with(&self, spool: &[u8]) -> TestJournal {
        let fixture = TestJournal::new();
        fs::create_dir_all(fixture.folder().join("state/journal.db.runs")).unwrap();
        fs::copy(self.fixture.file(), fixture.file()).unwrap();
        self.leave_in(&fixture, spool);
        fixture
    }

    /// Copies the files of the run, perhaps again.
    fn leave_in(&self, fixture: &TestJournal, spool: &[u8]) {
        let lock = Path::new("state/journal.db.runs").join(&self.lock);
        let (from, to) = (
            self.fixture.folder().join(&lock),
            fixture.folder().join(&lock),
        );
        fs::copy(from, &to).unwrap();
        fs::write(to.with_extension("1"), spool).unwrap();
    }
}

#[test]
fn a_spool_that_is_cut_anywhere_loses_only_its_end() {
    let remains = KilledRunFiles::new();
    let length = remains.spool.len();
    let mut kept = (0, 0);
    for cut in (0..length).step_by(length / 40).chain([length - 1, length]) {
        let fixture = remains.with(&remains.spool[..cut]);
        let (log, guard) = JournalLog::listen();
        let journal = fixture.journal();
        drop(guard);
        let now = count(&fixture.calls());
        assert!(
            now.0 >= kept.0 && now.0 + now.1 >= kept.0 + kept.1,
            "at {cut}"
        );
        assert!(!log.text().contains("damaged"), "at {cut}: {}", log.text());
        kept = now;
        drop(journal);
    }
    assert_eq!(kept, (CALLS, 1));
}

#[test]
fn a_flipped_bit_in_a_spool_loses_one_record_with_a_warning() {
    let remains = KilledRunFiles::new();
    let length = remains.spool.len();
    for at in (0..length - 1).step_by(length / 60) {
        let mut spool = remains.spool.clone();
        spool[at] ^= 1 << (at % 8);
        let fixture = remains.with(&spool);
        let (log, guard) = JournalLog::listen();
        let journal = fixture.journal();
        drop(guard);
        let (ended, interrupted) = count(&fixture.calls());
        // A damaged line break makes two lines unreadable: the end of one call or the
        // start of the next.
        assert!(
            ended >= CALLS - 2 && ended + interrupted >= CALLS - 1,
            "at {at}: {ended} {interrupted}"
        );
        let is_whole = (ended, interrupted) == (CALLS, 1);
        assert!(is_whole || log.text().contains("are damaged and were dropped"));
        drop(journal);
    }
}

#[tokio::test]
async fn a_spool_that_is_found_again_changes_nothing() {
    let remains = KilledRunFiles::new();
    let fixture = remains.with(&remains.spool);
    let ends = async || {
        let journal = fixture.journal();
        let ended = journal
            .reader()
            .finished_after(JournalPosition::default(), &no_filter());
        journal.close().await;
        ended.unwrap()
    };
    let before = ends().await;
    assert_eq!(before.len(), CALLS + 1);
    // As if the process that took it over had been killed before it could remove the files.
    remains.leave_in(&fixture, &remains.spool);
    assert_eq!(ends().await, before);
    assert!(fixture.run_files().is_empty());
}

#[test]
fn several_processes_take_over_a_spool_once() {
    let remains = KilledRunFiles::new();
    for _ in 0..10 {
        let fixture = remains.with(&remains.spool);
        let all_at_once = Barrier::new(4);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (fixture, all_at_once) = (&fixture, &all_at_once);
                scope.spawn(move || {
                    all_at_once.wait();
                    if number < 2 {
                        drop(fixture.journal());
                    } else {
                        assert_eq!(
                            count(&fixture.other_reader().calls(&no_filter()).unwrap()),
                            (CALLS, 1)
                        );
                    }
                });
            }
        });
        assert_eq!(count(&fixture.calls()), (CALLS, 1));
        let sql = "SELECT count(DISTINCT finished) FROM calls";
        let ends: u32 = fixture
            .sqlite()
            .query_row(sql, [], |row| row.get(0))
            .unwrap();
        assert_eq!(ends as usize, CALLS + 1, "each ended once");
    }
}

#[tokio::test]
async fn without_a_spool_calls_wait_for_the_database() {
    let fixture = TestJournal::new();
    let (log, _guard) = JournalLog::listen();
    let journal = fixture.journal();
    let lock = fixture.lock();
    for number in ["0", "1"] {
        fs::create_dir(lock.with_extension(number)).unwrap();
    }
    let executor = executor_of(&journal, [echo()]);
    for n in 0..10 {
        let call = ToolCall::new("echo", json!({ "n": n }));
        let id = call.id().to_string();
        assert!(executor.execute(call).await.is_success());
        let call = fixture.other_reader().call(&id).unwrap().unwrap();
        assert_eq!(call.summary.outcome, "success");
    }
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    let said = log.text();
    assert_eq!(said.matches("spool can't be written").count(), 1, "{said}");
}

#[tokio::test]
async fn more_calls_than_memory_has_room_for_are_read_back_from_the_spool() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo(), never_answers()]);
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..3000 {
        let call = ToolCall::new("echo", json!({ "n": n }));
        assert!(executor.execute(call).await.is_success());
    }
    let hung = tokio::spawn(async move {
        let call = ToolCall::new("hang", json!({}));
        executor.execute(call).await
    });
    tokio::task::yield_now().await;
    other.execute_batch("ROLLBACK").unwrap();
    journal.flush().await;
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    journal.close().await;
    let count = |outcome: &str| -> u32 {
        let sql = "SELECT count(*) FROM calls WHERE outcome = ?";
        let database = fixture.sqlite();
        database
            .query_row(sql, [outcome], |row| row.get(0))
            .unwrap()
    };
    assert_eq!((count("success"), count("interrupted")), (3000, 1));
    hung.abort();
}

#[tokio::test]
async fn unwritten_rows_are_left_for_the_next_start() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::remove_file(fixture.file().with_file_name(name)).unwrap();
    }
    fs::create_dir(fixture.file()).unwrap();
    // Long enough for the writer to notice the replaced file.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for n in 0..CALLS {
        let call = ToolCall::new("echo", json!({ "n": n }));
        assert!(executor.execute(call).await.is_success());
    }
    journal.close().await;
    fs::remove_dir(fixture.file()).unwrap();
    let next = Journal::open(
        &fixture.file(),
        &JournalSettings::default(),
        Redactor::default(),
        "next",
    );
    let calls = next.unwrap().reader().calls(&no_filter()).unwrap();
    assert_eq!(count(&calls), (CALLS, 0));
    let call = fixture.other_reader().call(&calls[0].id).unwrap().unwrap();
    assert_eq!(call.run.unwrap().command, "test");
}

#[tokio::test]
async fn a_run_recreates_its_deleted_files() {
    let fixture = TestJournal::new();
    let (log, _guard) = JournalLog::listen();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo(), never_answers()]);
    let hung = executor.clone();
    let hung = tokio::spawn(async move { hung.execute(ToolCall::new("hang", json!({}))).await });
    eventually("it runs", || fixture.calls().len() == 1).await;
    let lock = fixture.lock();
    fs::remove_dir_all(lock.parent().unwrap()).unwrap();
    let outcome = || {
        fixture.other_reader().calls(&no_filter()).unwrap()[0]
            .outcome
            .clone()
    };
    assert_eq!(outcome(), "running");
    let newcomer = fixture.journal();
    newcomer.close().await;
    assert_eq!(outcome(), "running", "nobody marked it");
    eventually("there is a new lock", || lock.exists()).await;
    for n in 0..CALLS {
        let call = ToolCall::new("echo", json!({ "n": n }));
        assert!(executor.execute(call).await.is_success());
    }
    eventually("rows are spooled again", || fixture.run_files().len() > 1).await;
    hung.abort();
    drop(hung.await);
    journal.close().await;
    let calls = fixture.other_reader().calls(&no_filter()).unwrap();
    let of = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
    assert_eq!((of("success"), of("cancelled")), (CALLS, 1));
    assert!(fixture.run_files().is_empty());
    assert!(!log.text().contains("interrupted"), "{}", log.text());
}

#[tokio::test]
async fn a_deleted_folder_is_recreated() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor
        .execute(ToolCall::new("echo", json!({ "n": 0 })))
        .await;
    journal.flush().await;
    // The journal may create a file in the meantime.
    let folder = fixture.file().parent().unwrap().to_owned();
    eventually("it is deleted", || fs::remove_dir_all(&folder).is_ok()).await;
    eventually("there is a new lock", || {
        fixture.file().with_file_name("journal.db.runs").exists()
    })
    .await;
    let call = ToolCall::new("echo", json!({ "n": 1 }));
    assert!(executor.execute(call).await.is_success());
    eventually("it is recorded", || {
        fixture.file().exists() && fixture.calls().len() == 1
    })
    .await;
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
}
