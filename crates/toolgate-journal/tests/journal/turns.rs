//! Voice turns: stored beside the calls, found again, and deleted when too old.

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::{Redactor, ToolCall};
use toolgate_journal::{
    Journal, JournalHealth, JournalSettings, TurnOutcome, TurnStages, VoiceTurn,
};

use crate::support::{FIRST_FORM, TestJournal, echo, eventually, executor_of, json_of};

fn id(n: usize) -> String {
    format!("{n:032x}")
}

fn turn(n: usize) -> VoiceTurn {
    VoiceTurn {
        id: id(n),
        started_at: "2026-11-16T08:00:00.25Z".parse().unwrap(),
        source: "satellite".to_owned(),
        room: Some("kitchen".to_owned()),
        wake_word: Some("ok nabu".to_owned()),
        heard: format!("turn on switch {n}"),
        answer: "Switch one is on.".to_owned(),
        outcome: TurnOutcome::Answered,
        error: None,
        model: "intents en".to_owned(),
        stages: TurnStages {
            speech_ended_ms: Some(1200.5),
            transcribed_ms: Some(1650.0),
            first_token_ms: Some(1651.25),
            first_audio_ms: Some(1900.0),
            ended_ms: Some(3100.0),
        },
        calls: vec![id(7), id(8)],
    }
}

fn ids(turns: &[VoiceTurn]) -> Vec<&str> {
    turns.iter().map(|turn| turn.id.as_str()).collect()
}

#[tokio::test]
async fn a_turn_reads_back_unchanged_in_another_process() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let mut bare = turn(2);
    bare.room = None;
    bare.wake_word = None;
    bare.outcome = TurnOutcome::Failed;
    bare.error = Some("no speech service answers".to_owned());
    bare.stages = TurnStages::default();
    bare.calls = Vec::new();
    let mut broken_off = turn(3);
    broken_off.outcome = TurnOutcome::Interrupted;
    let all = [turn(1), bare, broken_off];
    for turn in &all {
        journal.record_turn(turn);
        // Recorded twice, it is still one turn.
        journal.record_turn(turn);
    }
    journal.flush().await;
    let reader = fixture.reader();
    for turn in &all {
        assert_eq!(reader.turn(&turn.id).unwrap().as_ref(), Some(turn));
    }
    assert_eq!(reader.turn(&id(4)).unwrap(), None);
    let [first, second, third] = all;
    assert_eq!(reader.turns(10, None).unwrap(), [third, second, first]);
}

#[tokio::test]
async fn turns_are_paged_and_followed_in_the_order_in_which_they_ended() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    // Turns of several rooms may end in a different order than they began.
    for n in [5, 1, 4, 2, 3] {
        journal.record_turn(&turn(n));
    }
    journal.flush().await;
    let reader = fixture.reader();
    let before = |n| reader.turns(2, Some(&id(n))).unwrap();
    let after = |n| reader.turns_after(2, &id(n)).unwrap();
    assert_eq!(ids(&reader.turns(2, None).unwrap()), [id(3), id(2)]);
    assert_eq!(ids(&before(2)), [id(4), id(1)]);
    assert_eq!(ids(&before(1)), [id(5)]);
    assert!(before(5).is_empty() && before(99).is_empty());
    assert!(after(3).is_empty());
    assert_eq!(ids(&after(4)), [id(3), id(2)]);
    assert_eq!(
        ids(&after(5)),
        [id(3), id(2)],
        "only the newest, if there are many"
    );
    assert_eq!(ids(&after(99)), [id(3), id(2)], "where it left off is gone");
}

#[tokio::test]
async fn turns_are_redacted_and_cut() {
    let fixture = TestJournal::new();
    let settings = JournalSettings::default();
    let redactor = Redactor::new(["s3ntinel-4711-value".to_owned()]);
    let journal = Journal::open(&fixture.file(), &settings, redactor, "test").unwrap();
    let secret = "it is s3ntinel-4711-value, really";
    let mut said = turn(1);
    said.source = secret.to_owned();
    said.room = Some(secret.to_owned());
    said.wake_word = Some(secret.to_owned());
    said.heard = secret.to_owned();
    said.answer = secret.to_owned();
    said.error = Some(secret.to_owned());
    said.model = secret.to_owned();
    said.calls = vec![secret.to_owned()];
    journal.record_turn(&said);
    let mut long = turn(2);
    long.heard = "é".repeat(1 << 20);
    long.answer = "x".repeat(1 << 20);
    long.model = "m".repeat(1 << 20);
    long.room = Some("r\n".repeat(1 << 20));
    long.calls = (0..10_000).map(id).collect();
    journal.record_turn(&long);
    journal.flush().await;

    let kept = json_of(&fixture.reader().turns(10, None).unwrap());
    assert_eq!(kept[1].to_string().matches("[REDACTED]").count(), 8);
    assert_eq!(kept[1]["heard"], "it is [REDACTED], really");
    let answer = kept[0]["answer"].as_str().unwrap();
    assert!(
        answer.ends_with("x… (1032192 more bytes)"),
        "{}",
        answer.len()
    );
    assert_eq!(kept[0]["calls"].as_array().unwrap().len(), 100);
    assert!(kept[0].to_string().len() < 50_000);
    let bytes = std::fs::read(fixture.file().with_file_name("journal.db-wal")).unwrap();
    assert!(!bytes.windows(19).any(|part| part == b"s3ntinel-4711-value"));
}

#[tokio::test]
async fn an_unrecordable_turn_is_counted() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    journal.close().await;
    journal.record_turn(&turn(1));
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 1 });
    assert!(fixture.reader().turns(10, None).unwrap().is_empty());
}

#[tokio::test]
async fn an_old_file_gets_a_turns_table_at_its_first_write() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    executor.execute(ToolCall::new("echo", json!({}))).await;
    journal.close().await;
    fixture.sqlite().execute_batch(FIRST_FORM).unwrap();

    let reader = fixture.reader();
    assert!(reader.turns(10, None).unwrap().is_empty());
    assert_eq!(reader.turn(&id(1)).unwrap(), None);
    let journals = [fixture.journal(), fixture.journal()];
    for (n, journal) in journals.iter().enumerate() {
        journal.record_turn(&turn(n));
        journal.flush().await;
    }
    assert_eq!(ids(&reader.turns(10, None).unwrap()), [id(1), id(0)]);
    assert_eq!(fixture.calls().len(), 1);
    assert!(fixture.files_with_suffix(".broken-").is_empty());
}

#[tokio::test]
async fn turns_of_a_damaged_file_are_kept_with_its_calls() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    journal.record_turn(&turn(1));
    for n in 0..200 {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(1000) }));
        executor.execute(call).await;
    }
    journal.record_turn(&turn(2));
    journal.close().await;
    fixture
        .sqlite()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let mut bytes = std::fs::read(fixture.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0x5a);
    std::fs::write(fixture.file(), bytes).unwrap();

    let journal = fixture.journal();
    assert_eq!(fixture.files_with_suffix(".broken-").len(), 1);
    assert_eq!(
        ids(&fixture.reader().turns(10, None).unwrap()),
        [id(2), id(1)]
    );
    assert!((100..200).contains(&fixture.calls().len()));
    journal.record_turn(&turn(3));
    journal.flush().await;
    assert_eq!(ids(&fixture.reader().turns(1, None).unwrap()), [id(3)]);
}

#[tokio::test]
async fn the_calls_of_a_turn_are_found_unless_they_are_gone() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    let mut ids = Vec::new();
    for tool in ["echo", "nope", "echo"] {
        let call = ToolCall::new(tool, json!({}));
        ids.push(call.id().to_string());
        executor.execute(call).await;
    }
    let asked = [&ids[1], &id(0), &"no id".to_owned(), &ids[0]].map(Clone::clone);
    let found = fixture.reader().calls_by_id(&asked).unwrap();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|call| (call.id.as_str(), call.outcome.as_str()))
        .collect();
    assert_eq!(
        found,
        [(ids[1].as_str(), "not_found"), (ids[0].as_str(), "success")]
    );
}

/// Makes a turn look this many days old.
fn age(fixture: &TestJournal, n: usize, days: i64) {
    let micros = Timestamp::now().as_microsecond() - days * 86_400_000_000;
    let sql = "UPDATE turns SET seq = ? WHERE id = ?";
    let rows = fixture.sqlite().execute(sql, (micros, id(n))).unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn turns_older_than_the_days_are_deleted() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    for n in [1, 2] {
        journal.record_turn(&turn(n));
    }
    journal.close().await;
    age(&fixture, 1, 31);
    age(&fixture, 2, 29);
    let journal = fixture.journal();
    let turns = || fixture.reader().turns(10, None).unwrap();
    eventually("one is deleted", || turns().len() == 1).await;
    assert_eq!(ids(&turns()), [id(2)]);
    journal.close().await;
}

#[tokio::test]
async fn the_larger_share_of_calls_or_turns_is_evicted() {
    let fixture = TestJournal::new();
    let mut settings = JournalSettings::default();
    settings.max_size = 2 << 20;
    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo()]);
    for n in 0..200 {
        let mut long = turn(n);
        long.answer = "x".repeat(16_000);
        journal.record_turn(&long);
    }
    journal.flush().await;
    executor
        .execute(ToolCall::new("echo", json!({ "first": true })))
        .await;
    journal.close().await;
    let journal = fixture.journal_with(&settings);
    let turns = || fixture.reader().turns(1000, None).unwrap();
    eventually("old turns are deleted", || turns().len() < 130).await;
    assert!(turns().len() > 80, "{}", turns().len());
    assert_eq!(turns()[0].id, id(199));
    assert_eq!(fixture.calls().len(), 1, "calls take less");
    journal.close().await;

    let journal = fixture.journal_with(&settings);
    let executor = executor_of(&journal, [echo()]);
    for n in 0..150 {
        let call = ToolCall::new("echo", json!({ "n": n, "text": "x".repeat(20_000) }));
        executor.execute(call).await;
    }
    journal.record_turn(&turn(200));
    journal.close().await;
    let journal = fixture.journal_with(&settings);
    let are_few = || fixture.calls().len() < 60 && turns().len() < 100;
    eventually("both take half", are_few).await;
    assert!(fixture.calls().len() > 10, "{}", fixture.calls().len());
    assert!(turns().len() >= 30, "{}", turns().len());
    assert_eq!(turns()[0].id, id(200));
    journal.close().await;
}
