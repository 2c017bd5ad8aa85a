//! `mock-ai-api` fails the way other people have seen providers fail.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fakellm::Api;
use parking_lot::Mutex;
use serde_json::json;
use toolgate_core::ToolOutput;
use toolgate_models::{ModelError, ModelEvent, TurnRecord};

use super::ThirdPartyProgram;
use crate::recorded_tools::RecordedTools;

struct MockTurn {
    turn: Result<TurnRecord, ModelError>,
    recorded: RecordedTools,
    retries: usize,
}

fn start(api: Api) -> Option<ThirdPartyProgram> {
    let folder = fakellm::third_parties()?;
    let mut command = Command::new(folder.join("python/bin/python"));
    let app = match api {
        Api::Anthropic => "app.anthropic_app:app",
        _ => "app.openai_app:app",
    };
    command.args(["-m", "uvicorn", app, "--host", "127.0.0.1", "--port", "0"]);
    Some(ThirdPartyProgram::start(&mut command))
}

async fn ask(program: &ThirdPartyProgram, api: Api, mode: &str) -> MockTurn {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" }, "contents": { "type": "string" } } });
    let recorded =
        RecordedTools::empty().with("Write", schema, |_| Ok(ToolOutput::text("written")));
    let retries = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&retries);
    let mut conversation = program.conversation(api, &recorded, |settings| {
        let model = if api == Api::Anthropic {
            "claude-sonnet-4-20250514"
        } else {
            "gpt-4.1"
        };
        settings.name = format!("{model}:{mode}");
        settings.max_tool_rounds = 2;
        settings.timeout = Duration::from_secs(60);
    });
    let mut listener = move |event: ModelEvent<'_>| {
        if let ModelEvent::Retrying { .. } = event {
            *counter.lock() += 1;
        }
    };
    let turn = conversation.turn("go", &mut listener).await;
    let retries = *retries.lock();
    MockTurn {
        turn,
        recorded,
        retries,
    }
}

#[tokio::test]
async fn failures_are_distinguished() {
    for api in [Api::Anthropic, Api::OpenAi] {
        let Some(program) = start(api) else {
            return;
        };
        for (mode, retries) in [
            ("mock-429", 2),
            ("mock-500", 2),
            ("mock-503", 2),
            ("mock-401", 0),
            ("mock-400", 0),
        ] {
            let said = ask(&program, api, mode).await;
            let error = said.turn.unwrap_err();
            assert_eq!(said.retries, retries, "{api:?} {mode}: {error}");
            let expected = match mode {
                "mock-429" => matches!(error, ModelError::Limited { .. }),
                "mock-401" => matches!(error, ModelError::Key { .. }),
                "mock-400" => matches!(error, ModelError::Refused { .. }),
                _ => matches!(error, ModelError::Failed { .. }),
            };
            assert!(expected, "{api:?} {mode}: {error:?}");
        }
        let said = ask(&program, api, "mock-text").await;
        assert!(!said.turn.unwrap().answer.is_empty(), "{api:?}");
    }
}

/// None of its broken calls is streamed.
#[tokio::test]
async fn its_calls_are_run() {
    let modes = [
        (Api::Anthropic, "mock-tool-use"),
        (Api::Anthropic, "mock-tool-stream"),
        (Api::OpenAi, "mock-tool-stream"),
    ];
    for (api, mode) in modes {
        let Some(program) = start(api) else {
            return;
        };
        // It calls its tool forever; the limit ends that.
        let said = ask(&program, api, mode).await;
        let calls = said.recorded.calls();
        let expected = json!({ "path": "tmp/mock-file.txt", "contents": "mock output" });
        assert_eq!(
            calls.first(),
            Some(&("Write".to_owned(), expected)),
            "{api:?} {mode}: {:?}",
            said.turn
        );
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_not_an_answer() {
    let Some(program) = start(Api::Anthropic) else {
        return;
    };
    let said = ask(&program, Api::Anthropic, "mock-stream-error").await;
    assert!(said.turn.is_err(), "{:?}", said.turn);
}
