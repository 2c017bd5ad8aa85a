//! An executor of your own: other limits, a policy, an approver, an observer that counts.
//!
//!     cargo run --example own_executor

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, CallRecord, FunctionTool,
    Limits, Observer, Policy, ToolCall, ToolError, ToolExecutor, ToolManager, ToolPattern,
};

/// Counts calls by how they ended.
#[derive(Default)]
struct Count {
    good: AtomicU64,
    bad: AtomicU64,
}

struct Counter(Arc<Count>);

impl Observer for Counter {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let counter = if record.outcome.is_success() {
            &self.0.good
        } else {
            &self.0.bad
        };
        counter.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Says yes by day.
struct ByDay;

impl Approver for ByDay {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let by = ApprovalActor::new(ApprovalChannel::Program).with_name("the clock");
            if request.arguments["hour"].as_u64() < Some(22) {
                Approval::Granted(by)
            } else {
                Approval::Refused(by)
            }
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Open {
    /// Hour of the day.
    hour: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let manager = Arc::new(ToolManager::new());
    manager.add(FunctionTool::new(
        "open_garage",
        "Opens the garage",
        |open: Open, _| async move { Ok::<_, ToolError>(format!("open since {}", open.hour)) },
    )?);
    manager.add(FunctionTool::new("nap", "Sleeps", |_: Open, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>("rested")
    })?);

    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(100);
    let mut policy = Policy::default();
    policy.ask = vec![ToolPattern::new("open_*")];
    let count = Arc::new(Count::default());
    let executor = ToolExecutor::builder(manager)
        .limits(limits)
        .policy(policy)
        .approver(ByDay)
        .observer(Counter(Arc::clone(&count)))
        .build();

    for (tool, hour) in [("open_garage", 12), ("open_garage", 23), ("nap", 14)] {
        let outcome = executor
            .execute(ToolCall::new(tool, json!({ "hour": hour })))
            .await;
        print(&outcome.to_operator_line());
    }
    print(&format!(
        "{} good, {} bad",
        count.good.load(Ordering::Relaxed),
        count.bad.load(Ordering::Relaxed)
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows its results")]
fn print(line: &str) {
    println!("{line}");
}
