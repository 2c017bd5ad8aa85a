use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{CallContext, FunctionTool, ToolCall, ToolError, ToolExecutor, ToolManager};

use super::series::STEPS;
use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WaitArguments {
    ms: u64,
    #[serde(default)]
    fails: bool,
}

fn executor_with(stats: &Stats) -> ToolExecutor {
    let wait = async |wait: WaitArguments, _: CallContext| {
        tokio::time::sleep(Duration::from_millis(wait.ms)).await;
        match wait.fails {
            true => Err(ToolError::failed("as asked")),
            false => Ok("done"),
        }
    };
    let manager = ToolManager::new();
    manager.add(FunctionTool::new("wait", "Waits", wait).unwrap());
    ToolExecutor::builder(Arc::new(manager))
        .observer(stats.clone())
        .build()
}

async fn call(executor: &ToolExecutor, name: &str, arguments: Value) {
    executor.execute(ToolCall::new(name, arguments)).await;
}

fn shown(stats: &Stats) -> Value {
    json!(stats.snapshot(None, |_, _| true))
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_tool_and_step() {
    let stats = Stats::default();
    let executor = executor_with(&stats);
    call(&executor, "wait", json!({ "ms": 100 })).await;
    call(&executor, "wait", json!({ "ms": 100, "fails": true })).await;
    tokio::time::advance(STEP).await;
    call(&executor, "wait", json!({})).await;

    let report = shown(&stats);
    let tool = &report["tools"][0];
    assert_eq!(tool["tool"], "wait");
    assert_eq!((&tool["calls"], &tool["failures"]), (&json!(3), &json!(2)));
    assert_eq!(
        tool["errors"],
        json!({ "invalid_arguments": 1, "tool_error": 1 })
    );
    let series = tool["series"].as_array().unwrap();
    let counts: Vec<_> = series.iter().map(|step| step["calls"].as_u64()).collect();
    assert_eq!(counts, [Some(2), Some(1)]);
    let p95 = series[0]["p95_ms"].as_f64().unwrap();
    assert!((90.0..110.0).contains(&p95), "{p95}");
}

#[tokio::test(start_paused = true)]
async fn old_steps_are_dropped_but_totals_stay() {
    let stats = Stats::default();
    let executor = executor_with(&stats);
    call(&executor, "wait", json!({ "ms": 1 })).await;
    tokio::time::advance(STEP * (STEPS as u32 + 1)).await;
    let report = shown(&stats);
    let tool = &report["tools"][0];
    assert_eq!((&tool["calls"], &tool["p50_ms"]), (&json!(1), &Value::Null));
    assert_eq!(tool["series"].as_array().unwrap().len(), STEPS as usize);
    let summary = stats.summary();
    assert_eq!((summary.calls_total, summary.calls_per_minute), (1, 0));
    assert_eq!((summary.error_rate, summary.p95_ms), (None, None));
}

#[tokio::test(start_paused = true)]
async fn running_calls_are_known_until_they_end_or_their_caller_is_gone() {
    let stats = Stats::default();
    let executor = executor_with(&stats);
    let calling = call(&executor, "wait", json!({ "ms": 5000 }));
    drop(tokio::time::timeout(Duration::from_secs(1), calling).await);
    assert!(stats.running().is_empty());

    let mut calling = std::pin::pin!(call(&executor, "wait", json!({ "ms": 5000 })));
    tokio::select! {
        () = &mut calling => unreachable!(),
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!(stats.summary().in_flight, 1);
    assert_eq!(stats.running()[0].1.tool, "wait");
    calling.await;
    assert_eq!(stats.summary().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_names_are_counted_together() {
    let stats = Stats::default();
    let executor = executor_with(&stats);
    for number in 0..10 {
        call(&executor, &format!("nothing_{number}"), json!({})).await;
    }
    assert_eq!(shown(&stats)["tools"], json!([]));
    assert_eq!(stats.summary().error_rate, Some(1.0));
    assert!(stats.snapshot(None, |_, _| false).tools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_for_a_report() {
    let stats = Stats::default();
    let executor = executor_with(&stats);
    call(&executor, "wait", json!({ "ms": 1 })).await;
    let is_free = || stats.0.inner.try_lock().is_some();
    let report = stats.snapshot(None, |_, _| is_free());
    assert_eq!(report.tools.len(), 1);
}
