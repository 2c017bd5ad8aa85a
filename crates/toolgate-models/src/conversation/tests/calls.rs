//! Every call has one result, in the order of the calls, and runs at most once.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolgate_core::{CallRecord, Observer, Origin};

use super::*;

#[tokio::test(start_paused = true)]
async fn calls_run_in_parallel_and_results_keep_their_order() {
    let sleep = tool("sleep", async |arguments| {
        let seconds = arguments["s"].as_u64().unwrap();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(ToolOutput::json(seconds))
    });
    let asked: Vec<MessagePart> = [5, 3, 4, 1]
        .map(|s| call(&format!("s{s}"), "sleep", json!({ "s": s })))
        .into();
    let script = ModelScript::new([calls(asked)]);
    let mut conversation = conversation(&script, [sleep]);
    let mut reported = ModelEventLog::default();
    let turn = conversation.turn("?", &mut reported).await.unwrap();
    assert!((5000.0..6000.0).contains(&turn.took_ms), "{}", turn.took_ms);
    let results = last_results(&conversation);
    let told: Vec<_> = results
        .iter()
        .map(|result| (result.id.as_str(), result.text.as_str()))
        .collect();
    assert_eq!(told, [("s5", "5"), ("s3", "3"), ("s4", "4"), ("s1", "1")]);
    let done: Vec<_> = reported
        .0
        .iter()
        .filter(|event| event.starts_with("called"))
        .collect();
    assert_eq!(
        done,
        [
            "called s1 true",
            "called s3 true",
            "called s4 true",
            "called s5 true"
        ]
    );
    let used: Vec<_> = turn.rounds[0]
        .calls
        .iter()
        .map(|used| used.id.as_str())
        .collect();
    assert_eq!(used, ["s5", "s3", "s4", "s1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_on_several_threads() {
    // Each waits for the other while it blocks its thread.
    let arrived = Arc::new((Mutex::new(0), parking_lot::Condvar::new()));
    let meet = tool("meet", move |_| {
        let arrived = Arc::clone(&arrived);
        async move {
            let (count, changed) = &*arrived;
            let mut count = count.lock();
            *count += 1;
            changed.notify_all();
            let patience = Duration::from_secs(10);
            let waited = changed.wait_while_for(&mut count, |count| *count < 2, patience);
            Ok(ToolOutput::text(if waited.timed_out() {
                "alone"
            } else {
                "met"
            }))
        }
    });
    let script = ModelScript::new([calls([
        call("a", "meet", json!({ "n": 1 })),
        call("b", "meet", json!({ "n": 2 })),
    ])]);
    // The turn is on a third thread, that of the test.
    let mut conversation = conversation(&script, [meet]);
    say(&mut conversation, "?").await;
    assert!(
        last_results(&conversation)
            .iter()
            .all(|result| result.text == "met")
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_does_not_affect_others() {
    let fail = tool("fail", async |_| Err(ToolError::failed("Out of paper")));
    let panics = tool("panics", async |_| panic!("ouch"));
    let script = ModelScript::new([calls([
        call("a", "echo", json!({ "n": 1 })),
        call("b", "fail", json!({})),
        call("c", "panics", json!({})),
        call("d", "nope", json!({})),
        call("e", "", json!({})),
        call("f", "echo", json!({ "n": 2 })),
    ])]);
    let mut conversation = conversation(&script, [echo(), fail, panics]);
    let turn = say(&mut conversation, "?").await;
    assert_eq!(turn.end, TurnEnd::Answered);
    let results = last_results(&conversation);
    let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, true, true, true, true, false]);
    assert_eq!(results[1].text, "Out of paper");
    assert!(
        results[3].text.starts_with("Unknown tool: 'nope'"),
        "{}",
        results[3].text
    );
    assert!(
        results[4].text.starts_with("Unknown tool: ''"),
        "{}",
        results[4].text
    );
}

#[tokio::test(start_paused = true)]
async fn non_object_arguments_are_an_error_the_model_can_fix() {
    let strict = ToolDefinition::builder(
        "add",
        "Adds",
        json!({ "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] }),
    );
    let add = || {
        defined(strict.clone(), async |arguments| {
            Ok(ToolOutput::json(arguments["a"].clone()))
        })
    };
    for (written, expected) in [
        (r#"{"a": "#, "arguments"),
        ("[1]", "arguments"),
        ("", "Required parameters: 'a' (number)"),
        (r#"{"a": "5"}"#, "must be number"),
        (r#"{"a": 1, "a": 2}"#, "twice"),
    ] {
        let part = MessagePart::Call(ModelCall {
            id: "x".to_owned(),
            name: "add".to_owned(),
            arguments: CallArguments::parse(written),
        });
        let script = ModelScript::new([calls([part])]);
        let mut conversation = conversation(&script, [add()]);
        say(&mut conversation, "?").await;
        let result = &last_results(&conversation)[0];
        assert!(
            result.is_error && result.text.contains(expected),
            "{written}: {}",
            result.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn e3_each_of_200_calls_gets_its_result() {
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let work = {
        let (most, now) = (Arc::clone(&most), Arc::clone(&now));
        tool("work", move |_| {
            let (most, now) = (Arc::clone(&most), Arc::clone(&now));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(ToolOutput::text("done"))
            }
        })
    };
    let asked: Vec<MessagePart> = (0..200)
        .map(|n| call(&format!("id{n}"), "work", json!({ "n": n })))
        .collect();
    let script = ModelScript::new([calls(asked)]);
    let mut conversation = conversation(&script, [work]);
    let limit = conversation.toolbox.executor().rules().limits.concurrency;
    say(&mut conversation, "?").await;
    let results = last_results(&conversation);
    assert_eq!(results.len(), 200);
    assert!(results[..128].iter().all(|result| result.text == "done"));
    assert!(
        results[128..]
            .iter()
            .all(|result| result.is_error && result.text.contains("128 calls"))
    );
    assert!(most.load(Ordering::SeqCst) <= limit);
    expect_in_order(conversation.history(), false);
}

fn counting(runs: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let runs = Arc::clone(runs);
    tool("count", move |_| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolOutput::json(run)) }
    })
}

#[tokio::test(start_paused = true)]
async fn e2_a_duplicated_call_runs_once() {
    let runs = Arc::default();
    let twice = call("a", "count", json!({}));
    let script = ModelScript::new([calls([twice.clone(), twice])]);
    let mut conversation = conversation(&script, [counting(&runs)]);
    say(&mut conversation, "?").await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(last_results(&conversation).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e2_different_calls_with_one_id_stay_separate() {
    let script = ModelScript::new([
        calls([
            call("a", "echo", json!({ "n": 1 })),
            call("a", "echo", json!({ "n": 2 })),
            call("", "echo", json!({ "n": 3 })),
        ]),
        calls([call("a", "echo", json!({ "n": 4 }))]),
    ]);
    let mut conversation = conversation(&script, [echo()]);
    let turn = say(&mut conversation, "?").await;
    // The script itself checks that ids are unique.
    let used = turn.rounds.iter().flat_map(|round| &round.calls);
    let results: Vec<_> = used.map(|used| used.outcome.to_model_text()).collect();
    assert_eq!(
        results,
        [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#]
    );
}

#[tokio::test(start_paused = true)]
async fn e2_a_repeated_reply_runs_nothing_twice() {
    let runs = Arc::default();
    let same = || calls([call("toolu_1", "count", json!({}))]);
    let script = ModelScript::new([same(), same(), words("Once.")]);
    let mut conversation = conversation(&script, [counting(&runs)]);
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), runs.load(Ordering::SeqCst)),
        ("Once.", 1)
    );
    let second = &last_results(&conversation)[0];
    assert!(
        second.is_error && second.text.contains("already called with this id"),
        "{}",
        second.text
    );
}

#[tokio::test(start_paused = true)]
async fn e2_tools_are_not_rerun_after_a_model_failure() {
    let runs = Arc::default();
    let script = ModelScript::new([
        calls([call("a", "count", json!({}))]).into(),
        ModelScriptStep::Fail(failure()),
        words("It was 0.").into(),
    ]);
    let mut conversation = conversation(&script, [counting(&runs)]);
    let turn = say(&mut conversation, "Count.").await;
    assert_eq!(turn.end, TurnEnd::Failed);
    assert_eq!(turn.error.as_deref(), Some("openai failed: on fire"));
    assert_eq!(
        turn.answer,
        "There is no answer: the model used tools, and asking for one failed: openai failed: on fire."
    );
    let ran = &turn.rounds[0].calls[0];
    assert_eq!(ran.outcome.to_model_text(), "0", "what ran is on record");
    expect_in_order(conversation.history(), false);
    let turn = say(&mut conversation, "And?").await;
    assert_eq!(
        (turn.answer.as_str(), runs.load(Ordering::SeqCst)),
        ("It was 0.", 1)
    );
    let asked = &script.last_asked().messages;
    assert!(matches!(&asked[2], Message::Tool { results } if results[0].text == "0"));
}

#[derive(Default, Clone)]
struct RecordedLog(Arc<Mutex<Vec<(String, String)>>>);

impl Observer for RecordedLog {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let kind = match &record.outcome.result {
            Ok(_) => "ok",
            Err(error) => error.kind().as_str(),
        };
        let origin = record.origin.to_string();
        self.0.lock().push((origin, kind.to_owned()));
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_turn_stops_its_calls_and_keeps_finished_ones() {
    let records = RecordedLog::default();
    let executor = ToolExecutor::builder(manager([echo(), hang()]))
        .observer(records.clone())
        .build();
    let script = ModelScript::new([
        calls([
            call("a", "hang", json!({})),
            call("b", "echo", json!({ "n": 1 })),
        ]),
        words("I see."),
    ]);
    let settings = ModelSettings::default();
    let mut conversation = Conversation::new(script.clone(), Toolbox::new(executor), settings);
    let stopped = tokio::time::timeout(Duration::from_secs(1), say(&mut conversation, "Go.")).await;
    assert!(stopped.is_err());
    expect_in_order(conversation.history(), false);
    let results = last_results(&conversation);
    assert!(
        results[0].is_error && results[0].text.starts_with("interrupted: "),
        "{}",
        results[0].text
    );
    assert!(results[0].text.contains("outcome is unknown"));
    assert_eq!(results[1].text, r#"{"n":1}"#);

    assert_eq!(
        say(&mut conversation, "What happened?").await.answer,
        "I see."
    );
    tokio::task::yield_now().await;
    let records = records.0.lock().clone();
    let expected = [("chat", "ok"), ("chat", "cancelled")];
    assert_eq!(
        records,
        expected.map(|(origin, kind)| (origin.to_owned(), kind.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_calls_are_journaled_with_their_origin() {
    let records = RecordedLog::default();
    let executor = ToolExecutor::builder(manager([echo()]))
        .observer(records.clone())
        .build();
    let same = |n: usize| call(&format!("id{n}"), "echo", json!({}));
    let script = ModelScript::new([calls([same(1), same(2), call("x", "nope", json!({}))])]);
    let settings = ModelSettings {
        max_same_calls: 1,
        ..ModelSettings::default()
    };
    let toolbox = Toolbox::new(executor).with_origin(Origin::Voice);
    let mut conversation = Conversation::new(script, toolbox, settings);
    say(&mut conversation, "?").await;
    let mut records = records.0.lock().clone();
    records.sort();
    let expected = ["denied", "not_found", "ok"];
    assert_eq!(
        records,
        expected.map(|kind| ("voice".to_owned(), kind.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn progress_extends_a_tools_own_limit_within_the_turn() {
    struct BlockingTool(ToolDefinition);
    impl Tool for BlockingTool {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
            Box::pin(async move {
                for step in 0..5 {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    context.report(&toolgate_core::Progress {
                        done: f64::from(step),
                        ..toolgate_core::Progress::default()
                    });
                }
                Ok(ToolOutput::text("arrived"))
            })
        }
    }
    let definition = ToolDefinition::builder("slow", "Walks", json!({ "type": "object" }));
    let slow: Arc<dyn Tool> = Arc::new(BlockingTool(definition.build().unwrap()));
    let script = ModelScript::new([calls([call("a", "slow", json!({}))])]);
    let mut conversation = conversation(&script, [slow]);
    say(&mut conversation, "?").await;
    assert_eq!(last_results(&conversation)[0].text, "arrived");
}

#[tokio::test(start_paused = true)]
async fn every_call_joins_the_callers_trace() {
    struct TraceTool(ToolDefinition);
    impl Tool for TraceTool {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
            let parent = context.trace_parent().unwrap_or_default();
            let trace = parent.split('-').nth(1).unwrap_or("none").to_owned();
            let state = context.trace_state().unwrap_or("none").to_owned();
            Box::pin(async move { Ok(ToolOutput::text(format!("{trace} {state}"))) })
        }
    }
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let definition = ToolDefinition::builder("traced", "Tells", json!({ "type": "object" }));
    let traced: Arc<dyn Tool> = Arc::new(TraceTool(definition.build().unwrap()));
    let script = ModelScript::new((0..6).map(|n| match n % 2 {
        0 => calls([call(&format!("id{n}"), "traced", json!({}))]),
        _ => words("done"),
    }));
    let mut conversation = conversation(&script, [traced]);
    let parent = || Some(format!("00-{TRACE}-b7ad6b7169203331-01"));
    let mut told = Vec::new();
    for (parent, state) in [
        (parent(), Some("a=1,b=2".to_owned())),
        (parent(), None),
        (None, Some("a=1".to_owned())),
    ] {
        conversation.set_trace(parent, state);
        say(&mut conversation, "?").await;
        told.push(last_results(&conversation)[0].text.clone());
    }
    let expected = [
        format!("{TRACE} a=1,b=2"),
        format!("{TRACE} none"),
        "none none".to_owned(),
    ];
    assert_eq!(told, expected);
}
