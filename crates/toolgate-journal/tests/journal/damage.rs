//! With a truncated file or flipped bits a start still succeeds, keeps what can be read,
//! and logs the damage.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_journal::{JournalHealth, JournalSettings};

use crate::support::{JournalLog, TestJournal, echo, eventually, executor_of, filtered, no_filter};

const CALLS: usize = 60;

/// The parts of a journal, as a killed process leaves them.
struct JournalFiles {
    database: Vec<u8>,
    log: Vec<u8>,
    ids: Vec<String>,
}

impl JournalFiles {
    /// With `is_closed`, everything is in the database and there is no log.
    async fn new(is_closed: bool) -> Self {
        let fixture = TestJournal::new();
        let journal = fixture.journal();
        let executor = executor_of(&journal, [echo()]);
        for n in 0..CALLS {
            let text = "x".repeat(n * 131 % 6000);
            executor
                .execute(ToolCall::new("echo", json!({ "n": n, "text": text })))
                .await;
        }
        let ids = fixture
            .calls()
            .into_iter()
            .map(|call| call.id)
            .rev()
            .collect();
        if is_closed {
            journal.close().await;
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            fixture.sqlite().execute_batch(checkpoint).unwrap();
        }
        let log = fixture.file().with_file_name("journal.db-wal");
        Self {
            database: fs::read(fixture.file()).unwrap(),
            log: fs::read(log).unwrap_or_default(),
            ids,
        }
    }

    fn put(&self, fixture: &TestJournal, database: &[u8], log: &[u8]) {
        fs::create_dir(fixture.file().parent().unwrap()).unwrap();
        fs::write(fixture.file(), database).unwrap();
        if !log.is_empty() {
            fs::write(fixture.file().with_file_name("journal.db-wal"), log).unwrap();
        }
    }
}

/// The result of a start with damaged files: which calls are left, whether the file was set
/// aside, and the log.
struct StartReport {
    ids: Vec<String>,
    is_set_aside: bool,
    log: String,
}

/// Starts, makes a call, and reports.
async fn start(fixture: &TestJournal) -> StartReport {
    let (log, guard) = JournalLog::listen();
    let journal = fixture.journal();
    let call = ToolCall::new("echo", json!({ "new": true }));
    let id = call.id().to_string();
    assert!(
        executor_of(&journal, [echo()])
            .execute(call)
            .await
            .is_success()
    );
    journal.flush().await;
    drop(guard);
    let new = fixture.reader().call(&id).unwrap().unwrap();
    assert_eq!(
        (new.summary.outcome.as_str(), new.result),
        ("success", Some(json!({ "new": true })))
    );
    let ids = fixture
        .calls()
        .into_iter()
        .map(|call| call.id)
        .rev()
        .filter(|other| *other != id);
    StartReport {
        ids: ids.collect(),
        is_set_aside: !fixture.files_with_suffix(".broken-").is_empty(),
        log: log.text(),
    }
}

#[tokio::test]
async fn a_log_that_is_cut_anywhere_loses_only_its_end() {
    let parts = JournalFiles::new(false).await;
    let frame = 4096 + 24;
    let frames = (parts.log.len() - 32) / frame;
    let edges = (0..=frames).flat_map(|n| [32 + n * frame, 32 + n * frame + 1, 31 + n * frame]);
    let mut cuts: Vec<usize> = (0..parts.log.len())
        .step_by(parts.log.len() / 40)
        .chain(edges.step_by(7).filter(|cut| *cut < parts.log.len()))
        .chain([1, parts.log.len()])
        .filter(|cut| *cut <= parts.log.len())
        .collect();
    cuts.sort_unstable();
    let mut kept = 0;
    for cut in cuts {
        let fixture = TestJournal::new();
        parts.put(&fixture, &parts.database, &parts.log[..cut]);
        let start = start(&fixture).await;
        assert!(
            parts.ids.starts_with(&start.ids),
            "at {cut}: only the end is missing"
        );
        assert!(
            start.ids.len() >= kept,
            "at {cut}: what was complete is there"
        );
        kept = start.ids.len();
        let is_within_a_frame = cut > 0 && (cut < 32 || (cut - 32) % frame != 0);
        assert!(
            !is_within_a_frame || start.log.contains("is incomplete or damaged"),
            "at {cut}: {}",
            start.log
        );
        assert!(!start.is_set_aside);
    }
    assert_eq!(kept, CALLS);
}

#[tokio::test]
async fn a_log_with_a_flipped_bit_loses_only_what_follows() {
    let parts = JournalFiles::new(false).await;
    for at in (0..parts.log.len()).step_by(parts.log.len() / 60) {
        let fixture = TestJournal::new();
        let mut log = parts.log.clone();
        log[at] ^= 1 << (at % 8);
        parts.put(&fixture, &parts.database, &log);
        let start = start(&fixture).await;
        assert!(parts.ids.starts_with(&start.ids), "at {at}");
        let whole = start.ids.len() == CALLS;
        assert!(
            whole || start.log.contains("is incomplete or damaged"),
            "at {at}: {}",
            start.log
        );
    }
}

#[tokio::test]
async fn a_truncated_database_is_set_aside_and_salvaged() {
    let parts = JournalFiles::new(true).await;
    let length = parts.database.len();
    let mut most = 0;
    for cut in (1..length)
        .step_by(length / 60)
        .chain([length - 1, length - 4096])
    {
        let fixture = TestJournal::new();
        parts.put(&fixture, &parts.database[..cut], &[]);
        let start = start(&fixture).await;
        assert!(
            start.is_set_aside
                && start
                    .log
                    .contains("was set aside, and a new one was started"),
            "at {cut}: {}",
            start.log
        );
        assert!(is_subset(&start.ids, &parts.ids), "at {cut}");
        most = most.max(start.ids.len());
        let broken = &fixture.files_with_suffix(".broken-")[0];
        assert_eq!(
            fs::read(broken).unwrap()[..16.min(cut)],
            parts.database[..16.min(cut)],
            "nothing is thrown away"
        );
    }
    assert!(most >= CALLS / 2, "{most}");
}

#[tokio::test]
async fn a_database_with_a_flipped_bit_is_used_or_set_aside() {
    /// The bytes that name the program and version. A file of another program is left alone.
    const NAMES: std::ops::Range<usize> = 60..72;
    let parts = JournalFiles::new(true).await;
    let head = (0..200).filter(|at| !NAMES.contains(at));
    let mut set_aside = 0;
    for at in head.chain((200..parts.database.len()).step_by(parts.database.len() / 150)) {
        let fixture = TestJournal::new();
        let mut database = parts.database.clone();
        database[at] ^= 1 << (at % 8);
        parts.put(&fixture, &database, &[]);
        let start = start(&fixture).await;
        let intact = start.ids.len() == CALLS;
        assert!(
            intact || start.is_set_aside,
            "at {at}: {} left",
            start.ids.len()
        );
        assert_eq!(
            start.is_set_aside,
            start.log.contains("was set aside"),
            "at {at}: {}",
            start.log
        );
        set_aside += usize::from(start.is_set_aside);
    }
    assert!(set_aside > 10, "{set_aside}");
}

#[tokio::test]
async fn damage_found_while_writing_is_handled() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..20 {
        executor
            .execute(ToolCall::new("echo", json!({ "n": n })))
            .await;
    }
    overwrite(&fixture.file().with_file_name("journal.db-wal"));
    overwrite(&fixture.file());
    let mut last = Vec::new();
    for n in 0..2000 {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "y".repeat(3000) }));
        if n >= 1500 {
            last.push(call.id().to_string());
        }
        assert!(executor.execute(call).await.is_success());
    }
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    journal.close().await;
    drop((journal, executor));
    let start = start(&fixture).await;
    assert!(
        start.ids.ends_with(&last),
        "once it is seen, all is well again"
    );
}

/// A journal too large to be checked at the start, closed in good order, with
/// garbage in the middle.
async fn large_and_damaged() -> TestJournal {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..300 {
        let text = "x".repeat(10_000);
        let call = ToolCall::new("echo", json!({ "n": n, "text": text }));
        executor.execute(call).await;
    }
    journal.close().await;
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    fixture.sqlite().execute_batch(checkpoint).unwrap();
    assert!(fs::metadata(fixture.file()).unwrap().len() > 5 << 20);
    overwrite(&fixture.file());
    fixture
}

#[tokio::test]
async fn upkeep_recovers_from_damage() {
    let fixture = large_and_damaged().await;
    let mut settings = JournalSettings::default();
    settings.max_size = 2 << 20;
    let journal = fixture.journal_with(&settings);
    let is_set_aside = || !fixture.files_with_suffix(".broken-").is_empty();
    eventually("it is set aside", is_set_aside).await;
    let is_kept = || matches!(journal.reader().calls(&no_filter()), Ok(calls) if !calls.is_empty());
    eventually("what could be read is kept", is_kept).await;
    let has_room = || {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size = fixture
            .sqlite()
            .query_row(sql, [], |row| row.get::<_, i64>(0));
        size.unwrap() <= 2 << 20
    };
    eventually("the oldest are deleted", has_room).await;
    assert!(is_kept());
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
}

#[tokio::test]
async fn damage_found_by_a_reader_is_handled() {
    let fixture = large_and_damaged().await;
    let journal = fixture.journal();
    let search = filtered(|filter| filter.search = Some("nowhere".to_owned()));
    let error = journal.reader().calls(&search).unwrap_err();
    assert!(error.to_string().contains("malformed"), "{error}");
    let is_read = || journal.reader().calls(&search).is_ok();
    eventually("it can be read", is_read).await;
    assert_eq!(fixture.files_with_suffix(".broken-").len(), 1);
    assert!(!fixture.calls().is_empty(), "what could be read is kept");
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
}

/// Overwrites the middle of a file.
fn overwrite(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let length = bytes.len();
    bytes[length / 3..length / 2].fill(0x5a);
    // In place: the process that has it open must see it.
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
}

fn is_subset(some: &[String], all: &[String]) -> bool {
    let mut all = all.iter();
    some.iter().all(|id| all.any(|other| other == id))
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_set_aside() {
    let fixture = TestJournal::new();
    fs::create_dir(fixture.file().parent().unwrap()).unwrap();
    fs::write(fixture.file(), "my notes\n".repeat(1000)).unwrap();
    let start = start(&fixture).await;
    assert!(start.is_set_aside && start.ids.is_empty());
    let kept = fs::read_to_string(&fixture.files_with_suffix(".broken-")[0]).unwrap();
    assert!(kept.starts_with("my notes"));
}
