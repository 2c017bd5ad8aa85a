//! The queries in docs/journal.md.

use rusqlite::types::Value as Cell;
use serde_json::json;
use toolgate_core::ToolCall;

use crate::scripted;
use crate::support::{TestJournal, any_arguments, executor_of};

const PAGE: &str = include_str!("../../../../docs/journal.md");

#[tokio::test]
async fn every_documented_query_works() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [scripted::echo(any_arguments("control_lock"))]);
    let arguments = json!({ "deviceName": "Front Door", "action": "unlock" });
    executor
        .execute(ToolCall::new("control_lock", arguments))
        .await;
    fixture.reader();
    let block = PAGE.split("```sql\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let questions: Vec<&str> = block.split_terminator(";\n").collect();
    assert!(questions.len() >= 5);
    let connection = fixture.sqlite();
    for question in questions {
        let mut statement = connection
            .prepare(question)
            .unwrap_or_else(|error| panic!("{error}: {question}"));
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut last = None;
        while let Some(row) = rows.next().unwrap() {
            last = Some(row.get::<_, Cell>(columns - 1).unwrap());
        }
        if question.contains("control_lock") {
            assert_eq!(last, Some(Cell::Text("unlock".to_owned())), "{question}");
        }
    }
}
