//! Destructive calls don't run unrecorded. Everything else does.

use std::fs;

use serde_json::json;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager, ToolOutcome, ToolOutput};
use toolgate_journal::{
    JournalHealth, JournalSettings, RecordRequirement, SyncMode, UnavailableJournal,
};

use crate::scripted::{ScriptedTool, echo, scripted};
use crate::support::{TestJournal, destructive, executor_of, with_destructive_hint};

/// A tool that is destructive, one that is not, and one that doesn't say.
fn tools() -> [ScriptedTool; 3] {
    [
        destructive(),
        echo(with_destructive_hint("dim", Some(false))),
        echo(with_destructive_hint("unsaid", None)),
    ]
}

async fn call(executor: &ToolExecutor, tool: &str) -> ToolOutcome {
    executor.execute(ToolCall::new(tool, json!({}))).await
}

async fn expect_only_unlock_refused(executor: &ToolExecutor, details: &str) {
    for name in ["dim", "unsaid"] {
        assert!(call(executor, name).await.is_success(), "{name}");
    }
    let refused = call(executor, "unlock").await.to_envelope();
    let text = refused["error"].as_str().unwrap_or_default();
    assert!(
        text.starts_with("The unlock service is currently unavailable: ")
            && text.contains("the call can't be recorded, so it was not made")
            && text.contains("toolgate doctor"),
        "{refused}"
    );
    assert_eq!(refused["error_kind"], "unavailable");
    let told = refused["details"].as_str().unwrap_or_default();
    assert!(told.contains(details), "{refused}");
}

fn settings(sync: SyncMode) -> JournalSettings {
    let mut settings = JournalSettings::default();
    settings.sync = sync;
    settings
}

#[tokio::test]
async fn a_destructive_call_is_recorded_once_like_any_other() {
    for sync in [SyncMode::Relaxed, SyncMode::Normal, SyncMode::Full] {
        let fixture = TestJournal::new();
        let journal = fixture.journal_with(&settings(sync));
        let executor = executor_of(&journal, tools());
        assert!(call(&executor, "unlock").await.is_success());
        assert_eq!(fixture.only_call().summary.outcome, "success");
        assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    }
}

#[tokio::test]
async fn a_destructive_start_is_recorded_before_it_runs() {
    for sync in [SyncMode::Relaxed, SyncMode::Normal, SyncMode::Full] {
        let fixture = TestJournal::new();
        let journal = fixture.journal_with(&settings(sync));
        let reader = journal.reader();
        let tool = scripted(
            with_destructive_hint("unlock", Some(true)),
            move |_, context| {
                let id = context.id().to_string();
                let seen = reader.call(&id).unwrap().unwrap();
                async move { Ok(ToolOutput::text(seen.summary.outcome)) }
            },
        );
        let outcome = call(&executor_of(&journal, [tool]), "unlock").await;
        assert_eq!(outcome.to_envelope()["result"], "running");
    }
}

#[tokio::test(start_paused = true)]
async fn a_locked_database_refuses_nothing_while_the_spool_works() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, tools());
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for name in ["unlock", "dim", "unsaid"] {
        assert!(call(&executor, name).await.is_success(), "{name}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(fixture.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn destructive_calls_are_refused_while_unrecordable() {
    for sync in [SyncMode::Relaxed, SyncMode::Normal, SyncMode::Full] {
        let fixture = TestJournal::new();
        let journal = fixture.journal_with(&settings(sync));
        let executor = executor_of(&journal, tools());
        let lock = fixture.lock();
        for number in ["0", "1"] {
            fs::create_dir(lock.with_extension(number)).unwrap();
        }
        let other = fixture.sqlite();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        expect_only_unlock_refused(&executor, "the disk is slow").await;
        // From here on real time is needed, because it waits for a disk.
        tokio::time::resume();
        other.execute_batch("ROLLBACK").unwrap();
        journal.flush().await;
        assert!(call(&executor, "unlock").await.is_success(), "it is over");
        let mut outcomes: Vec<_> = fixture
            .calls()
            .into_iter()
            .map(|call| call.outcome)
            .collect();
        outcomes.sort_unstable();
        let expected = ["success", "success", "success", "unavailable"];
        assert_eq!(outcomes, expected, "{sync:?}");
        tokio::time::pause();
    }
}

#[tokio::test]
async fn a_closed_journal_records_nothing_any_more() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, tools());
    journal.close().await;
    expect_only_unlock_refused(&executor, "").await;
}

#[tokio::test]
async fn an_unavailable_journal_refuses_destructive_calls() {
    let refusing = |settings: &JournalSettings| {
        let manager = ToolManager::new();
        for tool in tools() {
            manager.add(tool);
        }
        let none = UnavailableJournal::new(settings, "no place for it");
        ToolExecutor::builder(manager.into()).observer(none).build()
    };
    let mut settings = JournalSettings::default();
    expect_only_unlock_refused(&refusing(&settings), "no place for it").await;
    settings.require = RecordRequirement::Nothing;
    assert!(call(&refusing(&settings), "unlock").await.is_success());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_refused_where_nothing_is_required() {
    let fixture = TestJournal::new();
    let mut settings = settings(SyncMode::Full);
    settings.require = RecordRequirement::Nothing;
    let journal = fixture.journal_with(&settings);
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let executor = executor_of(&journal, tools());
    assert!(call(&executor, "unlock").await.is_success());
    other.execute_batch("ROLLBACK").unwrap();
}
