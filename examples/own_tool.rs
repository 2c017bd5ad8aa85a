//! A tool made from a struct for its arguments and a function, called through an executor.
//!
//!     cargo run --example own_tool

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{FunctionTool, ToolCall, ToolError, ToolExecutor, ToolManager};

/// The doc comments become the descriptions a model reads, the types become the schema.
#[derive(Deserialize, JsonSchema)]
struct ConvertArguments {
    /// Degrees Celsius.
    celsius: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let convert = FunctionTool::new(
        "to_fahrenheit",
        "Converts Celsius to Fahrenheit",
        |arguments: ConvertArguments, _| async move {
            match arguments.celsius {
                celsius if celsius < -273.15 => {
                    Err(ToolError::failed("Nothing is colder than -273.15 °C"))
                }
                celsius => Ok(json!({ "fahrenheit": celsius * 1.8 + 32.0 })),
            }
        },
    )?;
    let manager = Arc::new(ToolManager::new());
    manager.add(convert);
    let executor = ToolExecutor::new(manager);

    for arguments in [
        json!({ "celsius": 21 }),
        json!({ "celsius": -300 }),
        json!({ "celsius": "warm" }),
    ] {
        let outcome = executor
            .execute(ToolCall::new("to_fahrenheit", arguments))
            .await;
        print(&outcome.to_envelope().to_string());
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows its results")]
fn print(line: &str) {
    println!("{line}");
}
