//! Reading lists and single calls, and following calls as they end.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use toolgate_core::{Origin, Scope, ToolCall, ToolError, ToolOutput, ToolSource};
use toolgate_journal::{JournalError, JournalFilter, JournalPosition};

use crate::support::{
    TestJournal, always_answers, any_arguments, echo, executor_of, filtered, never_answers,
    no_filter, scripted,
};

async fn filled(fixture: &TestJournal) -> Vec<String> {
    let journal = fixture.journal();
    let remote = any_arguments("zwave__light").source(ToolSource::Mcp("zwave".to_owned()));
    let executor = executor_of(
        &journal,
        [
            echo(),
            never_answers(),
            always_answers(
                "broken",
                Err(ToolError::failed("The 100% \"Lamp\" is off_line")),
            ),
            scripted(remote, |_, _| async { Ok(ToolOutput::text("on")) }),
        ],
    );
    let mut ids = Vec::new();
    for call in [
        ToolCall::new("echo", json!({ "text": "Hällo \"World\"" })).origin(Origin::CommandLine),
        ToolCall::new("broken", json!({})).origin(Origin::Chat),
        ToolCall::new("nope", json!({ "percent": "50%" })).origin(Origin::Chat),
        ToolCall::new("zwave__light", json!({ "room": "Kitchen" })).origin(Origin::Mcp),
    ] {
        ids.push(call.id().to_string());
        executor.execute(call).await;
    }
    let call = ToolCall::new("hang", json!({})).origin(Origin::Voice);
    ids.push(call.id().to_string());
    let running = tokio::spawn(async move { executor.execute(call).await });
    while fixture.calls().len() < 5 {
        tokio::task::yield_now().await;
    }
    std::mem::forget((running, journal)); // It goes on running.
    ids
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered() {
    let fixture = TestJournal::new();
    let ids = filled(&fixture).await;
    let reader = fixture.reader();
    let of = |text: &str| Some(text.to_owned());
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    for (filter, expected) in [
        (no_filter(), vec![4, 3, 2, 1, 0]),
        (filtered(|f| f.limit = 2), vec![4, 3]),
        (filtered(|f| f.limit = 0), vec![]),
        (filtered(|f| f.tool = of("echo")), vec![0]),
        (filtered(|f| f.server = of("zwave")), vec![3]),
        (filtered(|f| f.origin = of("chat")), vec![2, 1]),
        (filtered(|f| f.outcome = of("success")), vec![3, 0]),
        (filtered(|f| f.outcome = of("failed")), vec![2, 1]),
        (filtered(|f| f.outcome = of("tool_error")), vec![1]),
        (filtered(|f| f.outcome = of("running")), vec![4]),
        (filtered(|f| f.outcome = of("interrupted")), vec![]),
        (filtered(|f| f.outcome = of("unheard of")), vec![]),
        (filtered(|f| f.search = of("ECHO")), vec![0]),
        (filtered(|f| f.search = of("llo \"wor")), vec![0]),
        (filtered(|f| f.search = of("%")), vec![2, 1]),
        (filtered(|f| f.search = of("off_l")), vec![1]),
        (filtered(|f| f.search = of("e_ho")), vec![]),
        (filtered(|f| f.search = of("kitchen")), vec![3]),
        (filtered(|f| f.search = of(&"x".repeat(100_000))), vec![]),
        (filtered(|f| f.before = of(&ids[2])), vec![1, 0]),
        (filtered(|f| f.after = of(&ids[2])), vec![4, 3]),
        (filtered(|f| f.before = of("no id")), vec![]),
        (
            filtered(|f| f.since = Some(now - hour)),
            vec![4, 3, 2, 1, 0],
        ),
        (filtered(|f| f.since = Some(now + hour)), vec![]),
        (filtered(|f| f.until = Some(now - hour)), vec![]),
        (
            filtered(|f| (f.since, f.until) = (Some(now - hour), Some(now + hour))),
            vec![4, 3, 2, 1, 0],
        ),
        (
            filtered(|f| (f.origin, f.outcome) = (of("chat"), of("not_found"))),
            vec![2],
        ),
    ] {
        let found: Vec<String> = reader
            .calls(&filter)
            .unwrap()
            .into_iter()
            .map(|call| call.id)
            .collect();
        let expected: Vec<&String> = expected.into_iter().map(|n: usize| &ids[n]).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }
}

#[tokio::test]
async fn times_divide_exactly() {
    let fixture = TestJournal::new();
    filled(&fixture).await;
    let calls = fixture.calls();
    let at = calls[1].started_at;
    let since = fixture
        .reader()
        .calls(&filtered(|f| f.since = Some(at)))
        .unwrap();
    let until = fixture
        .reader()
        .calls(&filtered(|f| f.until = Some(at)))
        .unwrap();
    assert_eq!((since.len(), until.len()), (2, 3));
}

#[tokio::test]
async fn a_call_is_found_by_the_beginning_of_its_id() {
    let fixture = TestJournal::new();
    let ids = filled(&fixture).await;
    let reader = fixture.reader();
    let found = |id: &str| reader.call(id).map(|call| call.map(|call| call.summary.id));
    assert_eq!(found(&ids[1]).unwrap(), Some(ids[1].clone()));
    assert_eq!(found(&ids[1].to_uppercase()).unwrap(), Some(ids[1].clone()));
    assert_eq!(found(&"0".repeat(32)).unwrap(), None);
    assert_eq!(found("fff").unwrap(), None);
    // Ids made by one process at the same moment have a common prefix.
    let common = (0..32).find(|n| ids[0][..*n] != ids[4][..*n]).unwrap_or(32) - 1;
    let error = found(&ids[0][..common]).unwrap_err();
    assert!(matches!(error, JournalError::Ambiguous(_)), "{error}");
    for wrong in ["", "xyz", "%", "0'--", &"0".repeat(33), "ü"] {
        let error = found(wrong).unwrap_err();
        assert!(matches!(error, JournalError::InvalidId(_)), "{error}");
    }
}

#[tokio::test]
async fn calls_are_followed_in_the_order_in_which_they_end() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    let reader = journal.reader();
    assert_eq!(reader.position().unwrap(), JournalPosition::default());
    executor
        .execute(ToolCall::new("echo", json!({ "n": 0 })))
        .await;
    let start = reader.position().unwrap();
    for n in 1..=250 {
        executor
            .execute(ToolCall::new("echo", json!({ "n": n })))
            .await;
    }
    executor.execute(ToolCall::new("nope", json!({}))).await;
    let mut position = start;
    let mut seen = Vec::new();
    loop {
        let filter = filtered(|filter| (filter.tool, filter.limit) = (Some("echo".to_owned()), 7));
        let next = reader.finished_after(position, &filter).unwrap();
        let Some(last) = next.last() else { break };
        position = last.0;
        seen.extend(
            next.into_iter()
                .map(|(_, call)| call.arguments["n"].as_u64().unwrap()),
        );
    }
    assert!(seen.into_iter().eq(1..=250));
    assert!(position < reader.position().unwrap());
}

#[test]
fn a_reader_reports_a_missing_journal_and_creates_nothing() {
    let fixture = TestJournal::new();
    let error = toolgate_journal::JournalReader::open(&fixture.file()).unwrap_err();
    assert!(matches!(error, JournalError::Missing(_)));
    assert_eq!(std::fs::read_dir(fixture.folder()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_journal_in_a_read_only_folder_is_readable() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    executor_of(&journal, [echo()])
        .execute(ToolCall::new("echo", json!({})))
        .await;
    journal.close().await;
    drop(journal);
    let state = fixture.folder().join("state");
    std::fs::set_permissions(fixture.file(), PermissionsExt::from_mode(0o400)).unwrap();
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o500)).unwrap();
    let calls = fixture.reader().calls(&JournalFilter::default());
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(calls.unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_of_visible_calls_is_full_despite_hidden_ones() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(
        &journal,
        [echo(), always_answers("other", Ok(ToolOutput::text("x")))],
    );
    for _ in 0..3 {
        executor.execute(ToolCall::new("echo", json!({}))).await;
    }
    executor.execute(ToolCall::new("other", json!({}))).await;
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO calls (seq, id, run, tool, origin, started_at, finished, outcome, is_as_asked, asked)
        SELECT max + i, printf('%032x', i), 1, 'other', 'library', 1, finished + i, 'success', 1, '{}'
        FROM n, (SELECT max(seq) AS max, max(finished) AS finished FROM calls)";
    fixture.sqlite().execute_batch(many).unwrap();
    let reader = fixture.reader();
    let shown = |limit| {
        let filter = filtered(|filter| filter.limit = limit);
        reader.visible_calls(&filter, |tool, server| tool == "echo" && server.is_none())
    };
    for (limit, found) in [(2, 2), (1000, 3)] {
        let calls = shown(limit).unwrap();
        assert_eq!(calls.len(), found);
        assert!(calls.iter().all(|call| call.tool == "echo"));
        assert!(calls.is_sorted_by(|newer, older| newer.id > older.id));
    }
}

#[tokio::test]
async fn calls_are_found_by_who_made_them() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    let call = || ToolCall::new("echo", json!({}));
    let kitchen = call().scope(Scope::default().for_caller("kitchen"));
    let (by_token, by_command) = (kitchen.id().to_string(), call());
    let without = by_command.id().to_string();
    executor.execute(kitchen).await;
    executor.execute(by_command).await;
    let command = fixture.calls()[0].command.clone().unwrap();
    let short = command.strip_prefix("toolgate ").unwrap_or(&command);
    for (caller, expected) in [
        ("kitchen", vec![&by_token]),
        (&*command, vec![&without]),
        (short, vec![&without]),
        ("bath", vec![]),
    ] {
        let found = filtered(|filter| filter.caller = Some(caller.to_owned()));
        let found = fixture.reader().calls(&found).unwrap();
        let found: Vec<&String> = found.iter().map(|call| &call.id).collect();
        assert_eq!(found, expected, "{caller}");
    }
    journal.close().await;
}

#[tokio::test]
async fn distinct_digits_tell_a_call_from_all_others() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    // Made at once, so that some share their millisecond.
    let calls: Vec<ToolCall> = (0..50).map(|_| ToolCall::new("echo", json!({}))).collect();
    let ids: Vec<String> = calls.iter().map(|call| call.id().to_string()).collect();
    for call in calls {
        executor.execute(call).await;
    }
    let reader = fixture.reader();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    // A single listed id also differs from the ids that aren't listed.
    for (id, digits) in ids.iter().zip(reader.distinct_digits(&ids).unwrap()) {
        assert_eq!(reader.distinct_digits(&[id]).unwrap(), [digits]);
        assert!(digits <= 17, "{id}: {digits}");
        let found = reader.call(&id[..digits.max(12)]).unwrap().unwrap();
        assert_eq!(found.summary.id, *id);
    }
    journal.close().await;
}
