//! Everything that was promised survives `kill -9`.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use toolgate_core::{ToolCall, ToolOutput};
use toolgate_journal::VerifyOptions;

use crate::support::{
    TestJournal, any_arguments, eventually, executor_of, filtered, journal_from_env, no_filter,
    scripted, spawn_test,
};

/// How often a process is killed; more with `SOAK_KILLS`.
fn rounds() -> u64 {
    std::env::var("SOAK_KILLS").map_or(30, |rounds| rounds.parse().unwrap())
}

fn say(line: &str) {
    // One write per line, so that a killed process leaves only the last one incomplete.
    std::io::stdout()
        .lock()
        .write_all(format!("\n{line}\n").as_bytes())
        .unwrap();
}

/// Leaves one call open, and makes calls endlessly from several tasks. Prints a line when a tool
/// runs, by when its start is written, and when an answer comes.
#[test]
#[ignore = "run by others as a process of its own"]
fn make_calls_endlessly() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let journal = journal_from_env();
        let tool = scripted(any_arguments("busy"), |arguments, context| async move {
            say(&format!("started {}", context.id()));
            if arguments
                .get("n")
                .and_then(serde_json::Value::as_u64)
                .unwrap()
                % 7
                == 3
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(ToolOutput::json(arguments.as_value().clone()))
        });
        let begun = Arc::new(Notify::new());
        let begins = Arc::clone(&begun);
        let hang = scripted(any_arguments("hang"), move |_, context| {
            say(&format!("started {}", context.id()));
            begins.notify_one();
            std::future::pending()
        });
        let executor = executor_of(&journal, [tool, hang]);
        let open = executor.clone();
        tokio::spawn(async move { open.execute(ToolCall::new("hang", json!({}))).await });
        begun.notified().await;
        let callers = (0..6_u64).map(|task| {
            let executor = executor.clone();
            tokio::spawn(async move {
                for n in task.. {
                    let call = ToolCall::new(
                        "busy",
                        json!({ "n": n, "text": "x".repeat((n as usize * 37) % 5000) }),
                    );
                    let id = call.id();
                    assert!(executor.execute(call).await.is_success());
                    say(&format!("done {id}"));
                }
            })
        });
        futures::future::join_all(callers.collect::<Vec<_>>()).await;
    });
}

#[test]
fn a_kill_keeps_finished_calls_and_interrupts_open_ones() {
    let fixture = TestJournal::new();
    let (mut started, mut done) = (HashSet::new(), HashSet::new());
    for round in 0..rounds() {
        let mut child = spawn_test("kill::make_calls_endlessly", &fixture.file());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // At another moment each time: after a different number of lines.
        let until = 1 + round * 13 % 200;
        let mut seen = 0;
        let mut note = |line: String| {
            // Skips lines of the test harness. The last line may be incomplete.
            match line.split_once(' ') {
                Some(("started", id)) if id.len() == 32 => drop(started.insert(id.to_owned())),
                Some(("done", id)) if id.len() == 32 => {
                    assert!(done.insert(id.to_owned()));
                    seen += 1;
                }
                _ => {}
            }
            seen
        };
        while note(lines.next().unwrap().unwrap()) < until {}
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            note(line.unwrap());
        }
    }

    let journal = fixture.journal();
    let reader = journal.reader();
    let mut calls = Vec::new();
    let mut filter = no_filter();
    loop {
        let page = reader.calls(&filter).unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id.clone());
        calls.extend(page);
    }
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "none is there twice");
    let succeeded: HashSet<&str> = calls
        .iter()
        .filter(|call| call.success == Some(true))
        .map(|call| call.id.as_str())
        .collect();
    for id in &done {
        assert!(succeeded.contains(id.as_str()), "{id} was answered");
    }
    for id in &started {
        assert!(ids.contains(id.as_str()), "{id} ran");
    }
    let interrupted: Vec<_> = calls.iter().filter(|call| call.success.is_none()).collect();
    assert!(
        interrupted.len() >= rounds() as usize,
        "{}",
        interrupted.len()
    );
    for call in &interrupted {
        assert_eq!(
            (call.outcome.as_str(), call.error.as_deref()),
            ("interrupted", Some("interrupted, outcome unknown"))
        );
        assert!(!done.contains(&call.id));
    }
    let running = reader
        .calls(&filtered(|filter| {
            filter.outcome = Some("running".to_owned());
        }))
        .unwrap();
    assert!(running.is_empty());
    assert_eq!(fixture.run_files().len(), 1, "only our own lock is left");
    let verified = reader.verify(&VerifyOptions::default()).unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!(verified.calls, calls.len() as u64);
    println!(
        "figures: {} kills of a process with a journal: {} calls answered, {} in the journal, {} of them interrupted",
        rounds(),
        done.len(),
        calls.len(),
        interrupted.len()
    );
}

#[tokio::test]
async fn a_reader_sees_interrupted_calls_before_they_are_marked() {
    let fixture = TestJournal::new();
    let mut child = spawn_test("sharing::make_a_hundred_calls", &fixture.file());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "ready" {}
    let of = |outcome: &str| {
        let filter = filtered(|filter| filter.outcome = Some(outcome.to_owned()));
        fixture.other_reader().calls(&filter).unwrap().len()
    };
    eventually("nothing is left to take over", || {
        of("success") == 100 && of("running") == 1 && fixture.spooled().is_empty()
    })
    .await;
    assert_eq!(of("interrupted"), 0, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((of("running"), of("interrupted")), (0, 1));
    let sql = "SELECT count(*) FROM calls WHERE finished IS NULL";
    let unmarked: u32 = fixture
        .sqlite()
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    assert_eq!(unmarked, 1, "nothing was written for that");
}
