//! Requests in the first seconds, while tool servers are still starting.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolgate_core::{Annotations, FunctionTool, Tool, ToolDefinition, ToolError};
use toolgate_intents::{Pack, SentenceInterpreter};
use toolgate_journal::{TurnOutcome, VoiceTurn};
use toolgate_models::SentenceRouter;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestGateway, TestPlan, utterance};

const MOMENT: &str = "One moment, I'm still starting up.";

/// `list_zwave_devices`, which knows one switch.
fn devices() -> Arc<dyn Tool> {
    let parameters = json!({ "type": "object" });
    let definition = ToolDefinition::builder("list_zwave_devices", "Lists", parameters);
    let run = async |_: Value, _| {
        let device = json!({ "name": "Switch One", "location": "Kitchen", "type": "switch" });
        Ok::<_, ToolError>(json!({ "devices": [device] }))
    };
    let definition = definition.annotations(Annotations::READ_ONLY);
    Arc::new(FunctionTool::with_definition(definition, run).unwrap())
}

/// The tools of the Z-Wave server, as far as they are needed here.
fn zwave(work: &FakeTool) -> [Arc<dyn Tool>; 2] {
    let takes = Duration::from_millis(100);
    let control = work.tool("control_zwave_device", takes, Annotations::default());
    [devices(), control]
}

fn clock() -> Arc<dyn Tool> {
    FakeTool::default().tool("datetime", Duration::ZERO, Annotations::READ_ONLY)
}

/// Submits an utterance; the server connects after this time.
async fn turn_with(gateway: &TestGateway, after: Duration, tools: [Arc<dyn Tool>; 2]) -> VoiceTurn {
    let starting_server = Arc::clone(gateway.starting_server.as_ref().unwrap());
    let arriving = async move {
        sleep(after).await;
        starting_server.arrive(tools);
    };
    tokio::join!(gateway.turn(), arriving).0
}

/// From the end of speech to the first word or call.
fn thought_ms(turn: &VoiceTurn) -> f64 {
    turn.stages.first_token_ms.unwrap() - turn.stages.transcribed_ms.unwrap()
}

#[tokio::test(start_paused = true)]
async fn vo1_sentence_waits_for_the_tool_it_needs() {
    let work = FakeTool::default();
    let gateway = TestPlan::new(
        [FakeTranscript::Is("turn on switch one")],
        [ModelStep::Never],
    )
    .starting()
    .by_sentences([clock()]);
    let turn = turn_with(&gateway, Duration::from_millis(2200), zwave(&work)).await;
    assert_eq!((turn.outcome, work.done()), (TurnOutcome::Answered, 1));
    assert!(thought_ms(&turn) >= 2200.0, "{turn:?}");
    // The filler explains the wait and is not part of the answer.
    assert!(gateway.spoken().starts_with(MOMENT), "{}", gateway.spoken());
    assert!(!turn.answer.contains("moment"), "{}", turn.answer);
}

#[tokio::test(start_paused = true)]
async fn vo1_half_of_a_request_that_needs_a_tool_waits_too() {
    let work = FakeTool::default();
    let text = FakeTranscript::Is("what time is it and turn on switch one");
    let gateway = TestPlan::new([text], [ModelStep::Never])
        .starting()
        .by_sentences([clock()]);
    let turn = turn_with(&gateway, Duration::from_secs(2), zwave(&work)).await;
    assert_eq!((turn.outcome, work.done()), (TurnOutcome::Answered, 1));
}

#[tokio::test(start_paused = true)]
async fn vo1_unresponsive_server_does_not_delay_local_tools() {
    let texts = ["what time is it", "sing a song for the bear"].map(FakeTranscript::Is);
    let gateway = TestPlan::new(texts.clone(), [ModelStep::Never])
        .starting()
        .by_sentences([clock()]);
    for _ in &texts {
        let turn = gateway.turn().await;
        assert!(thought_ms(&turn) < 100.0, "{turn:?}");
    }
    assert!(!gateway.spoken().contains(MOMENT));

    // The same with a model behind the sentences.
    let mut plan =
        TestPlan::new([FakeTranscript::Is("what time is it")], [ModelStep::Never]).starting();
    plan.client = |toolbox, model| {
        let sentences = SentenceInterpreter::new(toolbox.clone(), Pack::english()).unwrap();
        SentenceRouter::from(model).sentences_first(Arc::new(sentences))
    };
    let gateway = plan.with([clock()]).build();
    let turn = gateway.turn().await;
    assert!(thought_ms(&turn) < 100.0, "{turn:?}");
}

#[tokio::test(start_paused = true)]
async fn vo1_model_is_asked_once_all_tools_are_ready() {
    let work = FakeTool::default();
    let says = [
        ModelStep::Call("", "control_zwave_device"),
        ModelStep::Words("It is on."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("make it bright in here")], says)
        .starting()
        .with([clock()])
        .build();
    let began = Instant::now();
    let turn = turn_with(&gateway, Duration::from_secs(3), zwave(&work)).await;
    assert_eq!((turn.answer.as_str(), work.done()), ("It is on.", 1));
    let (tools, asked) = gateway.model.offered()[0];
    assert_eq!((tools, (asked - began).as_secs()), (3, 3));
    assert_eq!(gateway.spoken(), format!("{MOMENT} It is on."));
}

#[tokio::test(start_paused = true)]
async fn vo1_wait_before_asking_a_model_is_bounded_and_not_repeated() {
    let gateway = TestPlan::new(
        [FakeTranscript::Is("sing a song")],
        [ModelStep::Words("La la.")],
    )
    .starting()
    .with([clock()])
    .build();
    let waited = thought_ms(&gateway.turn().await);
    assert!((5000.0..5100.0).contains(&waited), "{waited}");
    let waited = thought_ms(&gateway.turn().await);
    assert!(waited < 100.0, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn vo1_model_waits_again_after_a_server_change() {
    let gateway = TestPlan::new(
        [FakeTranscript::Is("sing a song")],
        [ModelStep::Words("La la.")],
    )
    .starting()
    .with([clock()])
    .build();
    let starting_server = gateway.starting_server.as_ref().unwrap();
    for (starting, waits) in [
        (&["mute", "slow"][..], true),
        (&["mute", "slow"], false),
        (&["mute"], true),
        (&["mute"], false),
        (&["mute", "new"], true),
    ] {
        *starting_server.starting.lock() = starting.iter().map(|name| (*name).to_owned()).collect();
        let waited = thought_ms(&gateway.turn().await);
        assert_eq!(waited >= 5000.0, waits, "{starting:?}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn vo1_call_of_a_missing_tool_waits_for_it() {
    // The list of tools was not complete in time, but the model knows the tool anyway.
    let work = FakeTool::default();
    let says = [
        ModelStep::Call("", "control_zwave_device"),
        ModelStep::Words("It is on."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("make it bright in here")], says)
        .starting()
        .with([clock()])
        .build();
    let turn = turn_with(&gateway, Duration::from_secs(9), zwave(&work)).await;
    assert_eq!((turn.answer.as_str(), work.done()), ("It is on.", 1));
    assert_eq!(gateway.model.offered()[0].0, 1);
    let told = format!("{:?}", gateway.model.asked()[1]);
    assert!(!told.contains("Unknown tool"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn vo1_wait_for_an_unresponsive_server_is_bounded() {
    let gateway = TestPlan::new(
        [FakeTranscript::Is("turn on switch one")],
        [ModelStep::Never],
    )
    .starting()
    .by_sentences([clock()]);
    let turn = gateway.turn().await;
    let waited = thought_ms(&turn);
    assert!((15_000.0..15_200.0).contains(&waited), "{waited}");
    assert!(
        turn.answer.contains("no tool for it is connected"),
        "{}",
        turn.answer
    );
}

#[tokio::test(start_paused = true)]
async fn interrupted_wait_calls_no_tool_later() {
    let work = FakeTool::default();
    let gateway = TestPlan::new(
        [FakeTranscript::Is("turn on switch one")],
        [ModelStep::Never],
    )
    .starting()
    .by_sentences([clock()]);
    gateway.transcriber.submit(utterance()).unwrap();
    sleep(Duration::from_secs(2)).await;
    gateway.transcriber.interrupt();
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(turn.outcome, TurnOutcome::Interrupted);
    gateway
        .starting_server
        .as_ref()
        .unwrap()
        .arrive(zwave(&work));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(work.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn running_tool_that_arrived_late_is_not_interrupted() {
    let work = FakeTool::default();
    let lock = work.tool("lock", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("", "lock"),
        ModelStep::Words("It is locked."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("do it")], says)
        .starting()
        .build();
    gateway.transcriber.submit(utterance()).unwrap();
    // The model is asked after five seconds, and its call waits.
    sleep(Duration::from_secs(8)).await;
    gateway.starting_server.as_ref().unwrap().arrive([lock]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((work.begun(), work.done()), (1, 0));
    gateway.transcriber.interrupt();
    gateway.recorder.turn(0).await;
    assert_eq!(work.done(), 1);
}
