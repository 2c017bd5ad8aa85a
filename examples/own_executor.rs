//! An executor with its own limits and policy, an approver, and an observer that counts calls.
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

#[derive(Default)]
struct CallCounts {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// Counts calls by how they ended.
struct CallCounter(Arc<CallCounts>);

impl Observer for CallCounter {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let counter = if record.outcome.is_success() {
            &self.0.succeeded
        } else {
            &self.0.failed
        };
        counter.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Approves calls before 22:00. A real approver would ask a person.
struct DaytimeApprover;

impl Approver for DaytimeApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let by = ApprovalActor::new(ApprovalChannel::Program).with_name("daytime rule");
            if request.arguments["hour"].as_u64() < Some(22) {
                Approval::Granted(by)
            } else {
                Approval::Refused(by)
            }
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct OpenArguments {
    /// Hour of the day.
    hour: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let manager = Arc::new(ToolManager::new());
    manager.add(FunctionTool::new(
        "open_garage",
        "Opens the garage",
        |arguments: OpenArguments, _| async move {
            Ok::<_, ToolError>(format!("open since {}", arguments.hour))
        },
    )?);
    manager.add(FunctionTool::new(
        "nap",
        "Sleeps",
        |_: OpenArguments, _| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok::<_, ToolError>("rested")
        },
    )?);

    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(100);
    let mut policy = Policy::default();
    policy.ask = vec![ToolPattern::new("open_*")];
    let counts = Arc::new(CallCounts::default());
    let executor = ToolExecutor::builder(manager)
        .limits(limits)
        .policy(policy)
        .approver(DaytimeApprover)
        .observer(CallCounter(Arc::clone(&counts)))
        .build();

    // One is approved, one is refused, and one exceeds its time limit.
    for (tool, hour) in [("open_garage", 12), ("open_garage", 23), ("nap", 14)] {
        let outcome = executor
            .execute(ToolCall::new(tool, json!({ "hour": hour })))
            .await;
        print(&outcome.to_operator_line());
    }
    print(&format!(
        "{} succeeded, {} failed",
        counts.succeeded.load(Ordering::Relaxed),
        counts.failed.load(Ordering::Relaxed)
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows its results")]
fn print(line: &str) {
    println!("{line}");
}
