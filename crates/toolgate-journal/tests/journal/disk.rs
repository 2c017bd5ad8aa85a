//! A full disk: rows wait in memory, calls don't wait, and one warning is logged.

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_journal::JournalHealth;

use crate::support::{JournalLog, TestJournal, destructive, echo, executor_of, journal_from_env};

/// Limits the size of files, which to SQLite is a full disk.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes,
            maximum,
        },
    )
    .unwrap();
}

#[test]
#[ignore = "run by others as a process of its own"]
fn make_calls_while_the_disk_is_full() {
    let log = JournalLog::for_all_threads();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let journal = journal_from_env();
        let executor = executor_of(&journal, [echo(), destructive()]);
        let call = async |n: usize, size: usize| {
            let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(size) }));
            assert!(executor.execute(call).await.is_success());
        };
        for n in 0..10 {
            call(n, 10).await;
        }
        limit_files(Some(256 << 10));
        for n in 10..300 {
            call(n, 5000).await;
        }
        journal.flush().await;
        let JournalHealth::Failing { lost: 0, error, .. } = journal.health() else {
            panic!("{:?}", journal.health());
        };
        assert!(error.contains("journal.db"), "{error}");
        let unlock = ToolCall::new("unlock", json!({ "text": "x".repeat(6000) }));
        let refused = executor.execute(unlock).await.error().unwrap();
        assert!(refused.contains("can't be recorded"), "{refused}");
        // More than is kept in memory: the rest is lost, and counted.
        for n in 300..3000 {
            call(n, 5000).await;
        }
        journal.flush().await;
        let JournalHealth::Failing { lost, .. } = journal.health() else {
            panic!("{:?}", journal.health());
        };
        assert!(lost > 0, "{lost}");
        limit_files(None);
        journal.flush().await;
        assert_eq!(journal.health(), JournalHealth::Ok { lost });
        call(3000, 10).await;
        journal.close().await;
        let said = log.text();
        assert_eq!(
            said.matches(
                "calls can't be recorded; calls of destructive tools are refused, the others"
            )
            .count(),
            1,
            "{said}"
        );
        assert_eq!(
            said.matches("calls are recorded again").count(),
            1,
            "{said}"
        );
        std::io::stdout()
            .lock()
            .write_all(format!("\nlost {lost}\n").as_bytes())
            .unwrap();
    });
}

#[test]
fn a_full_disk_loses_no_call_and_recording_resumes() {
    let fixture = TestJournal::new();
    // The signal that comes with the limit is ignored: a full disk sends none.
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "disk::make_calls_while_the_disk_is_full",
            "--ignored",
            "--nocapture",
        ])
        .env("JOURNAL_FILE", fixture.file())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lost: usize = stdout
        .lines()
        .find_map(|line| line.strip_prefix("lost "))
        .unwrap()
        .parse()
        .unwrap();

    let database = fixture.sqlite();
    let count = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap() as usize
    };
    let (calls, open) = (
        count("SELECT count(*) FROM calls"),
        count("SELECT count(*) FROM calls WHERE finished IS NULL"),
    );
    // A call that lost both its rows is missing, one that lost its end is interrupted.
    let interrupted = count("SELECT count(*) FROM calls WHERE outcome = 'interrupted'");
    assert_eq!(open, 0);
    assert!(
        calls < 3002 && 2 * (3002 - calls) + interrupted >= lost && calls > 1000,
        "{calls} {interrupted} {lost}"
    );
    assert_eq!(
        count("SELECT count(*) FROM calls WHERE outcome = 'success' AND result IS NULL"),
        0
    );
}
