//! The tools of the suite whose calls become tasks.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{CallContext, FunctionTool, ServerFailure, ToolError, ToolManager};

use super::asking::{MISSING_CAPABILITY, ask, confirmation, define, name_question};
use super::{Failure, MODERN_CLIENT};

/// Calls that take longer become tasks.
pub(super) const AFTER: Duration = Duration::from_millis(300);
// Long enough that a call is a task for certain.
const LATER: Duration = Duration::from_secs(1);
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub(super) fn offer_slow_tools(manager: &ToolManager) -> Result<(), Failure> {
    let greet = async |arguments: Value, _: CallContext| {
        let name = arguments["name"].as_str().unwrap_or_default();
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    };
    let properties = json!({ "name": { "type": "string" } });
    manager.add(FunctionTool::with_definition(
        define("greet", &properties),
        greet,
    )?);
    let compute = async |arguments: Value, _: CallContext| {
        let seconds = arguments["seconds"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok::<_, ToolError>(format!("Computed for {seconds} s"))
    };
    let properties = json!({ "seconds": { "type": "integer" }, "label": { "type": "string" } });
    manager.add(FunctionTool::with_definition(
        define("slow_compute", &properties),
        compute,
    )?);
    offer_failing_tools(manager)?;
    offer_asking_tools(manager)
}

fn offer_failing_tools(manager: &ToolManager) -> Result<(), Failure> {
    let failing = async |_: Value, context: CallContext| {
        require_tasks(&context)?;
        tokio::time::sleep(LATER).await;
        Err::<String, _>(ToolError::failed("The job has failed"))
    };
    manager.add(FunctionTool::with_definition(
        define("failing_job", &json!({})),
        failing,
    )?);
    let broken = async |_: Value, _: CallContext| {
        tokio::time::sleep(LATER).await;
        Err::<String, _>(missing("something that no client has"))
    };
    manager.add(FunctionTool::with_definition(
        define("protocol_error_job", &json!({})),
        broken,
    )?);
    Ok(())
}

fn offer_asking_tools(manager: &ToolManager) -> Result<(), Failure> {
    let confirm = async |_: Value, context: CallContext| {
        tokio::time::sleep(LATER).await;
        Ok::<_, ToolError>(format!(
            "Said {}",
            ask(&context, vec![confirmation()]).await?
        ))
    };
    let properties = json!({ "filename": { "type": "string" } });
    manager.add(FunctionTool::with_definition(
        define("confirm_delete", &properties),
        confirm,
    )?);
    let several = async |_: Value, context: CallContext| {
        tokio::time::sleep(LATER).await;
        let answers = ask(&context, vec![name_question(), confirmation()]).await?;
        Ok::<_, ToolError>(format!("Said {answers}"))
    };
    manager.add(FunctionTool::with_definition(
        define("multi_input", &json!({})),
        several,
    )?);
    let both = async |_: Value, context: CallContext| {
        let answer = ask(&context, vec![name_question()]).await?;
        tokio::time::sleep(LATER).await;
        Ok::<_, ToolError>(format!("Said {answer}"))
    };
    manager.add(FunctionTool::with_definition(
        define("test_tool_with_task", &json!({})),
        both,
    )?);
    Ok(())
}

/// Fails for clients of 2026-07-28 that would have to wait for the result. Older ones
/// can't declare the extension.
fn require_tasks(context: &CallContext) -> Result<(), ToolError> {
    let client = context.questions().map(|client| client.capabilities());
    let knows_tasks = client.is_some_and(|client| client["extensions"][EXTENSION].is_object());
    match knows_tasks || context.scope().caller() != Some(MODERN_CLIENT) {
        true => Ok(()),
        false => Err(missing("This takes too long to wait for it")),
    }
}

fn missing(text: &str) -> ToolError {
    let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    let failure = ServerFailure::Rpc {
        code: MISSING_CAPABILITY,
        data: Some(data),
    };
    ToolError::failed_with(text, failure)
}
