//! Whatever a model, its provider and the person at Ctrl-C do: history is in order, and no tool runs more often than asked.

use proptest::prelude::*;
use std::collections::HashMap;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Words,
    Nothing,
    Thinking,
    Cut,
    CutCall,
    CutBehindCalls(Vec<Asks>),
    Refusal,
    Pause,
    Calls(Vec<Asks>),
    Fail,
    TooLong,
    Late,
    Never,
}

#[derive(Debug, Clone)]
struct Asks {
    id: u8,
    tool: &'static str,
    argument: u8,
}

fn asks() -> impl Strategy<Value = Vec<Asks>> {
    let tools = prop::sample::select(vec!["quick", "slow", "fail", "hang", "nope", "long"]);
    let one = (0..6u8, tools, 0..3u8);
    prop::collection::vec(
        one.prop_map(|(id, tool, argument)| Asks { id, tool, argument }),
        1..5,
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Words),
        1 => Just(Step::Nothing),
        1 => Just(Step::Thinking),
        1 => Just(Step::Cut),
        1 => Just(Step::CutCall),
        1 => asks().prop_map(Step::CutBehindCalls),
        1 => Just(Step::Refusal),
        1 => Just(Step::Pause),
        8 => asks().prop_map(Step::Calls),
        1 => Just(Step::Fail),
        1 => Just(Step::TooLong),
        1 => Just(Step::Late),
        1 => Just(Step::Never),
    ]
}

fn parts(asks: &[Asks]) -> Vec<Part> {
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

fn answer(step: &Step) -> Answer {
    match step {
        Step::Words => words("words").into(),
        Step::Nothing => reply(Stop::End, vec![]).into(),
        Step::Thinking => reply(Stop::End, vec![thought("hm")]).into(),
        Step::Cut => reply(Stop::Length, vec![]).into(),
        Step::CutCall => reply(Stop::CutCall, vec![thought("hm"), text_part("so")]).into(),
        Step::CutBehindCalls(asks) => reply(Stop::Length, parts(asks)).into(),
        Step::Refusal => reply(Stop::Refusal, vec![]).into(),
        Step::Pause => reply(Stop::Pause, vec![text_part("so far")]).into(),
        Step::Calls(asks) => calls(parts(asks)).into(),
        Step::Fail => failure().into(),
        Step::TooLong => Answer::Fail(ModelError::TooLong {
            model: "script".to_owned(),
            reason: "too long".to_owned(),
        }),
        Step::Late => Answer::Late(Duration::from_secs(70), words("late")),
        Step::Never => Answer::Never,
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

async fn live(turns: &[(Vec<Step>, Option<u64>)]) {
    let runs = Runs::default();
    let mut asked: HashMap<(String, u64), usize> = HashMap::new();
    let script = Script::with_window(10_000, Vec::<Answer>::new());
    let mut conversation = conversation_with(&script, tools(&runs), |settings| {
        settings.timeout = Duration::from_secs(100);
        settings.max_tool_rounds = 5;
        settings.max_result = 5000;
    });
    for (steps, stop_after) in turns {
        *script.answers.lock() = steps.iter().map(answer).collect();
        for step in steps {
            if let Step::Calls(asks) | Step::CutBehindCalls(asks) = step {
                for asks in asks {
                    let key = (asks.tool.to_owned(), u64::from(asks.argument));
                    *asked.entry(key).or_default() += 1;
                }
            }
        }
        let mut heard = Heard::default();
        let patience = Duration::from_secs(stop_after.unwrap_or(10_000));
        // A turn that was dropped, one that failed, one that went well: all the same.
        let ended = tokio::time::timeout(patience, conversation.turn("words", &mut heard)).await;
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
        let calling = heard
            .0
            .iter()
            .filter(|event| event.starts_with("calling"))
            .count();
        let called = heard
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
    Saved::read(conversation.save().to_json().as_bytes()).unwrap();
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
