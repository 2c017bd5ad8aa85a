//! The tools with which the suite changes what is offered.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, ContentMethod, FunctionTool, SourceContent, Tool, ToolDefinition, ToolError,
    ToolManager, ToolRank, ToolSource,
};

use super::Failure;

const COMING_AND_GOING: &str = "test_coming_and_going";
/// Has nothing else.
const SOURCE: ToolSource = ToolSource::Mock;

type Change = fn(&ToolManager) -> Result<(), Failure>;

pub(super) fn offer_changing_tools(manager: &Arc<ToolManager>) -> Result<(), Failure> {
    let changes: [(&str, Change); 2] = [
        ("test_trigger_tool_change", change_tools),
        ("test_trigger_prompt_change", change_prompts),
    ];
    for (name, change) in changes {
        // Weak, because the manager owns the tools.
        let weak = Arc::downgrade(manager);
        let run = move |_: Value, _: CallContext| {
            let changed = match weak.upgrade() {
                Some(manager) => change(&manager),
                None => Err("the server is ending".into()),
            };
            let changed = changed.map_err(|error| ToolError::failed(error.to_string()));
            async { changed.map(|()| "Changed.") }
        };
        let schema = json!({ "type": "object", "properties": {} });
        let definition = ToolDefinition::builder(name, format!("Tests: {name}"), schema);
        manager.add(FunctionTool::with_definition(definition, run)?);
    }
    Ok(())
}

fn change_tools(manager: &ToolManager) -> Result<(), Failure> {
    let is_there = manager.find(COMING_AND_GOING).is_some();
    let schema = json!({ "type": "object" });
    let definition = ToolDefinition::builder(COMING_AND_GOING, "Tests: changes", schema);
    let definition = definition.source(SOURCE).build()?;
    let tool: Arc<dyn Tool> = Arc::new(FunctionTool::mock(definition, json!("Here.")));
    let tools = if is_there { Vec::new() } else { vec![tool] };
    manager.replace(&SOURCE, ToolRank::Local, tools);
    Ok(())
}

fn change_prompts(manager: &ToolManager) -> Result<(), Failure> {
    let is_there = manager.content().source(&SOURCE).is_some();
    let definition = ContentMethod::GetPrompt.definition(SOURCE).build()?;
    let prompt = FunctionTool::mock(definition, json!({ "messages": [] }));
    let mut content = SourceContent::default();
    content.prompts = vec![json!({ "name": COMING_AND_GOING, "description": "Comes and goes" })];
    content.access.get_prompt = Some(Arc::new(prompt));
    let content = (!is_there).then(|| Arc::new(content));
    manager.replace_content(&SOURCE, ToolRank::Local, content);
    Ok(())
}
