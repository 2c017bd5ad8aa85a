//! The client for the official conformance suite: `conformance_client URL`, with the
//! scenario in `MCP_CONFORMANCE_SCENARIO`. It connects, runs the scenario and exits, with
//! 1 if something failed.

use std::process::ExitCode;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolgate_core::{Scope, ToolCall, ToolDefinition, ToolExecutor, ToolManager, ToolSet};
use toolgate_mcp::skills::verify_skill_file;
use toolgate_mcp::{
    Elicitation, ElicitationAnswer, ElicitationHandler, SecretHeaders, ServerConnection,
    ServerSettings, Servers, ServersOptions,
};

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let Some(url) = std::env::args().next_back() else {
        return ExitCode::from(2);
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let manager = Arc::new(ToolManager::new());
    let mut options = ServersOptions::new();
    options.retry.attempts = 1;
    options.elicitation_handler = Some(Arc::new(DefaultsHandler));
    let servers = Servers::new(Arc::clone(&manager), options);
    let headers = SecretHeaders::default();
    servers.apply(vec![ServerSettings::new(
        "conformance",
        ServerConnection::Http { url, headers },
    )]);
    servers.start_all().await;
    let executor = ToolExecutor::new(manager);
    let worked = match scenario.as_str() {
        // A person who looks at the list has loaded nothing.
        "sep-2640-client-no-prefetch" => true,
        skills if skills.starts_with("sep-2640-client") => load_skills(&executor).await,
        _ => calls(&scenario, &executor).await,
    };
    servers.stop().await;
    match worked {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The calls of a scenario, one after the other: those that the suite gives, or one of each tool.
async fn calls(scenario: &str, executor: &ToolExecutor) -> bool {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let given = context["toolCalls"].as_array();
    let tools = executor.manager().tools();
    let calls: Vec<(String, Value)> = match given {
        Some(given) => given.iter().map(given_call).collect(),
        None => tools
            .iter()
            .map(|tool| call_of(tool.definition(), &tools))
            .collect(),
    };
    let needs_no_tools = ["initialize", "request-metadata"].contains(&scenario);
    let mut worked = needs_no_tools || !calls.is_empty();
    for (name, arguments) in calls {
        let call = ToolCall::new(name, arguments);
        worked &= executor.execute(call).await.is_success();
    }
    worked
}

/// Reads the files of each skill, until one is not what the skill promises.
async fn load_skills(executor: &ToolExecutor) -> bool {
    let (content, rules) = (executor.manager().content(), executor.rules());
    let scope = Scope::default();
    for skill in content.offered_skills(&rules, &scope) {
        let files = skill.entry["resources"].as_array();
        for uri in files
            .into_iter()
            .flatten()
            .filter_map(|it| it["uri"].as_str())
        {
            let request = executor.find_resource(uri, &scope);
            let mut outcome = executor.execute(request.to_call()).await;
            request.finish(&mut outcome);
            let result = outcome.result.ok().and_then(|output| output.structured);
            let result = result.unwrap_or_default();
            if verify_skill_file(&skill.entry, uri, &result).is_err() {
                return false;
            }
        }
    }
    true
}

/// The suite gives null for what is to be left out; the schemas of its tools don't allow it.
fn given_call(call: &Value) -> (String, Value) {
    let name = call["name"].as_str().unwrap_or_default().to_owned();
    let mut arguments = call["arguments"].clone();
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.retain(|_, value| !value.is_null());
    }
    (name, arguments)
}

fn call_of(definition: &ToolDefinition, tools: &ToolSet) -> (String, Value) {
    let arguments = match definition.name() {
        "add_numbers" => json!({ "a": 5, "b": 3 }),
        "json_schema_2020_12_tool" => json!({ "email": "ada@example.org" }),
        // The suite compares the schema of the other tool with the one it sent.
        "json_schema_echo" => {
            let other = tools.find("json_schema_2020_12_tool");
            json!({ "schema": other.map(|tool| tool.definition().parameters()) })
        }
        "valid_tool" => json!({ "region": "us-west1" }),
        _ => json!({}),
    };
    (definition.name().to_owned(), arguments)
}

/// A person who accepts every default.
struct DefaultsHandler;

impl ElicitationHandler for DefaultsHandler {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Accept(question.defaults()) })
    }
}
