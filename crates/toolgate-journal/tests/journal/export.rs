//! Exporting calls as lines of JSON.

use serde_json::{Value, json};
use toolgate_core::ToolCall;
use toolgate_journal::{JournalError, JournalFilter, VerifyOptions};

use crate::support::{TestJournal, echo, executor_of, filtered};

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'));
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

async fn with_calls(count: usize) -> TestJournal {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    for n in 0..count {
        let call = ToolCall::new("echo", json!({ "n": n, "password": "hunter2" }));
        executor.execute(call).await;
    }
    executor.execute(ToolCall::new("nothing", json!({}))).await;
    journal.close().await;
    fixture
}

#[tokio::test]
async fn an_export_has_a_line_per_call_and_ends_with_the_head() {
    let fixture = with_calls(1200).await;
    let reader = fixture.other_reader();
    let mut bytes = Vec::new();
    let summary = reader
        .export(&JournalFilter::default(), &mut bytes)
        .unwrap();
    let mut lines = lines(&bytes);
    assert_eq!((lines.len(), summary.calls), (1202, 1201));
    let last = lines.pop().unwrap();
    let verified = reader.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(last["head"], verified.head);
    assert_eq!(last["head_entry"], verified.head_entry);
    let hashes: std::collections::HashSet<&str> = lines
        .iter()
        .map(|line| line["chain"]["hash"].as_str().unwrap())
        .collect();
    assert_eq!(hashes.len(), 1201);
    assert_eq!(
        lines[7]["asked"],
        json!({ "n": 7, "password": "[REDACTED]" })
    );
    // Each line is what the journal shows of that call, plus its chain entry.
    let mut first = lines[0].clone();
    first.as_object_mut().unwrap().remove("chain");
    let id = first["id"].as_str().unwrap();
    let shown = reader.call(id).unwrap().unwrap();
    assert_eq!(first, serde_json::to_value(shown).unwrap());
    // And the hash is the one that `--expect` finds.
    let mut options = VerifyOptions::default();
    options.expect = lines[600]["chain"]["hash"].as_str().map(str::to_owned);
    assert!(reader.verify(&options).unwrap().is_intact());
}

#[tokio::test]
async fn an_export_is_filtered_and_ends_if_writing_fails() {
    let fixture = with_calls(5).await;
    let reader = fixture.other_reader();
    let mut bytes = Vec::new();
    let unknown = filtered(|filter| filter.outcome = Some("not_found".to_owned()));
    reader.export(&unknown, &mut bytes).unwrap();
    let lines = lines(&bytes);
    assert_eq!((lines.len(), &lines[0]["tool"]), (2, &json!("nothing")));

    let mut full = [0; 100];
    let mut full = &mut full[..];
    let failed = reader.export(&JournalFilter::default(), &mut full);
    assert!(matches!(failed, Err(JournalError::Export(_))));
}
