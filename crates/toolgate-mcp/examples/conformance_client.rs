//! The client for the official conformance suite: `conformance_client URL`, with the
//! scenario in `MCP_CONFORMANCE_SCENARIO`. It connects, runs the scenario and exits, with
//! 1 if something failed.

use std::process::ExitCode;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolgate_core::{Scope, ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::skills::verify_skill_file;
use toolgate_mcp::{
    Elicitation, ElicitationAnswer, Elicitor, SecretHeaders, ServerConnection, ServerSettings,
    Servers, ServersOptions,
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
    options.elicitor = Some(Arc::new(Defaults));
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

/// The calls of a scenario, one after the other.
async fn calls(scenario: &str, executor: &ToolExecutor) -> bool {
    let tools = executor.manager().tools();
    let mut worked = scenario == "initialize" || !tools.is_empty();
    for tool in tools.iter() {
        let name = tool.definition().name();
        let call = ToolCall::new(name, arguments(name));
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

fn arguments(tool: &str) -> Value {
    match tool {
        "add_numbers" => json!({ "a": 5, "b": 3 }),
        _ => json!({}),
    }
}

/// A person who accepts every default.
struct Defaults;

impl Elicitor for Defaults {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Accept(question.defaults()) })
    }
}
