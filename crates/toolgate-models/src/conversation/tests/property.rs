//! Whatever a model, its provider and a person at Ctrl-C do, history stays in order and no tool
//! runs more often than asked.

use proptest::prelude::*;
use std::collections::HashMap;

use super::*;

#[derive(Debug, Clone)]
enum ScriptStep {
    Words,
    Nothing,
    Thinking,
    Truncated,
    TruncatedCall,
    CutBehindCalls(Vec<RequestedCall>),
    Refusal,
    Pause,
    Calls(Vec<RequestedCall>),
    Fail,
    TooLong,
    Late,
    Never,
}

#[derive(Debug, Clone)]
struct RequestedCall {
    id: u8,
    tool: &'static str,
    argument: u8,
}

fn asks() -> impl Strategy<Value = Vec<RequestedCall>> {
    let tools = prop::sample::select(vec!["quick", "slow", "fail", "hang", "nope", "long"]);
    let one = (0..6u8, tools, 0..3u8);
    prop::collection::vec(
        one.prop_map(|(id, tool, argument)| RequestedCall { id, tool, argument }),
        1..5,
    )
}

fn step() -> impl Strategy<Value = ScriptStep> {
    prop_oneof![
        2 => Just(ScriptStep::Words),
        1 => Just(ScriptStep::Nothing),
        1 => Just(ScriptStep::Thinking),
        1 => Just(ScriptStep::Truncated),
        1 => Just(ScriptStep::TruncatedCall),
        1 => asks().prop_map(ScriptStep::CutBehindCalls),
        1 => Just(ScriptStep::Refusal),
        1 => Just(ScriptStep::Pause),
        8 => asks().prop_map(ScriptStep::Calls),
        1 => Just(ScriptStep::Fail),
        1 => Just(ScriptStep::TooLong),
        1 => Just(ScriptStep::Late),
        1 => Just(ScriptStep::Never),
    ]
}

fn parts(asks: &[RequestedCall]) -> Vec<MessagePart> {
    let calls = asks.iter().map(|asks| {
        let id = if asks.id == 0 {
            String::new()
        } else {
            format!("id{}", asks.id)
        };
        call(&id, asks.tool, json!({ "n": asks.argument }))
    });
    calls.collect()
}

fn answer(step: &ScriptStep) -> ModelScriptStep {
    match step {
        ScriptStep::Words => words("words").into(),
        ScriptStep::Nothing => reply(StopReason::End, vec![]).into(),
        ScriptStep::Thinking => reply(StopReason::End, vec![thought("hm")]).into(),
        ScriptStep::Truncated => reply(StopReason::Length, vec![]).into(),
        ScriptStep::TruncatedCall => reply(
            StopReason::TruncatedCall,
            vec![thought("hm"), text_part("so")],
        )
        .into(),
        ScriptStep::CutBehindCalls(asks) => reply(StopReason::Length, parts(asks)).into(),
        ScriptStep::Refusal => reply(StopReason::Refusal, vec![]).into(),
        ScriptStep::Pause => reply(StopReason::Pause, vec![text_part("so far")]).into(),
        ScriptStep::Calls(asks) => calls(parts(asks)).into(),
        ScriptStep::Fail => failure().into(),
        ScriptStep::TooLong => ModelScriptStep::Fail(ModelError::TooLong {
            model: "script".to_owned(),
            reason: "too long".to_owned(),
        }),
        ScriptStep::Late => ModelScriptStep::Late(Duration::from_secs(70), words("late")),
        ScriptStep::Never => ModelScriptStep::Never,
    }
}

type Runs = Arc<Mutex<HashMap<(String, u64), usize>>>;

fn counted(
    name: &'static str,
    runs: &Runs,
    work: fn() -> BoxFuture<'static, Result<ToolOutput, ToolError>>,
) -> Arc<dyn Tool> {
    let runs = Arc::clone(runs);
    tool(name, move |arguments| {
        let key = (name.to_owned(), arguments["n"].as_u64().unwrap());
        *runs.lock().entry(key).or_default() += 1;
        work()
    })
}

fn tools(runs: &Runs) -> [Arc<dyn Tool>; 5] {
    [
        counted("quick", runs, || {
            Box::pin(async { Ok(ToolOutput::text("quick")) })
        }),
        counted("slow", runs, || {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(7)).await;
                Ok(ToolOutput::text("slow"))
            })
        }),
        counted("fail", runs, || {
            Box::pin(async { Err(ToolError::failed("failed")) })
        }),
        counted("hang", runs, || Box::pin(std::future::pending())),
        counted("long", runs, || {
            Box::pin(async { Ok(ToolOutput::text("long ".repeat(2000))) })
        }),
    ]
}

async fn live(turns: &[(Vec<ScriptStep>, Option<u64>)]) {
    let runs = Runs::default();
    let mut asked: HashMap<(String, u64), usize> = HashMap::new();
    let script = ModelScript::with_window(10_000, Vec::<ModelScriptStep>::new());
    let mut conversation = conversation_with(&script, tools(&runs), |settings| {
        settings.timeout = Duration::from_secs(100);
        settings.max_tool_rounds = 5;
        settings.max_result = 5000;
    });
    for (steps, stop_after) in turns {
        *script.answers.lock() = steps.iter().map(answer).collect();
        for step in steps {
            if let ScriptStep::Calls(asks) | ScriptStep::CutBehindCalls(asks) = step {
                for asks in asks {
                    let key = (asks.tool.to_owned(), u64::from(asks.argument));
                    *asked.entry(key).or_default() += 1;
                }
            }
        }
        let mut reported = ModelEventLog::default();
        let patience = Duration::from_secs(stop_after.unwrap_or(10_000));
        // No matter whether the turn was dropped, failed or succeeded.
        let ended = tokio::time::timeout(patience, conversation.turn("words", &mut reported)).await;
        expect_in_order(conversation.history(), false);
        if let Ok(Ok(turn)) = ended {
            assert!(!turn.answer.is_empty());
            assert!(turn.rounds.len() <= 5 + 1 + 10 + 2);
            assert!(turn.took_ms <= 102_000.0, "{}", turn.took_ms);
            assert_eq!(
                turn.rounds
                    .iter()
                    .map(|round| round.usage.input)
                    .sum::<u64>(),
                turn.usage.input
            );
        }
        let calling = reported
            .0
            .iter()
            .filter(|event| event.starts_with("calling"))
            .count();
        let called = reported
            .0
            .iter()
            .filter(|event| event.starts_with("called"))
            .count();
        assert!(called == calling || stop_after.is_some());
    }
    let runs = runs.lock();
    for (call, times) in &*runs {
        assert!(
            times <= asked.get(call).unwrap_or(&0),
            "{call:?} ran {times} times"
        );
    }
    SavedConversation::parse(conversation.save().to_json().as_bytes()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn history_is_always_in_order(
        turns in prop::collection::vec((prop::collection::vec(step(), 0..8), prop::option::of(0..60u64)), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(live(&turns));
    }
}
