//! The resources and prompts that the suite expects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, ContentMethod, FunctionTool, ResourceUpdates, SourceContent, ToolError,
    ToolManager, ToolRank, ToolSource, UpdateListener, UpdateSubscription,
};

use super::asking::ask_for_context;
use super::{Failure, PNG};

const WATCHED: &str = "test://watched-resource";

pub(super) fn offer_content(manager: &ToolManager) -> Result<(), Failure> {
    let source = ToolSource::Custom;
    let define = |method: ContentMethod| method.definition(source.clone());
    let mut content = SourceContent::default();
    content.resources = vec![
        json!({ "uri": "test://static-text", "name": "Static text", "mimeType": "text/plain" }),
        json!({ "uri": "test://static-binary", "name": "Static image", "mimeType": "image/png" }),
        json!({ "uri": WATCHED, "name": "Watched", "mimeType": "text/plain" }),
    ];
    content.templates = vec![
        json!({ "uriTemplate": "test://template/{id}/data", "name": "Template", "mimeType": "application/json" }),
    ];
    let argument = |name: &str| json!({ "name": name, "required": true });
    content.prompts = vec![
        json!({ "name": "test_simple_prompt", "description": "Has no arguments" }),
        json!({ "name": "test_prompt_with_arguments", "description": "Repeats its arguments", "arguments": [argument("arg1"), argument("arg2")] }),
        json!({ "name": "test_prompt_with_embedded_resource", "description": "Embeds a resource", "arguments": [argument("resourceUri")] }),
        json!({ "name": "test_input_required_result_prompt", "description": "Asks for its context" }),
        json!({ "name": "test_prompt_with_image", "description": "Shows an image" }),
    ];
    let read = async |arguments: Value, _: CallContext| read(&arguments["uri"]);
    let read = FunctionTool::with_definition(define(ContentMethod::ReadResource), read)?;
    let prompt = async |arguments: Value, context: CallContext| match &arguments["name"] {
        name if name == "test_input_required_result_prompt" => {
            let answer = ask_for_context(&context).await?;
            let content = json!({ "type": "text", "text": answer.to_string() });
            Ok(json!({ "messages": [{ "role": "user", "content": content }] }))
        }
        _ => prompt(&arguments),
    };
    let prompt = FunctionTool::with_definition(define(ContentMethod::GetPrompt), prompt)?;
    let complete = FunctionTool::mock(
        define(ContentMethod::Complete).build()?,
        json!({ "completion": { "values": ["test"], "total": 1, "hasMore": false } }),
    );
    content.access.read_resource = Some(Arc::new(read));
    content.access.get_prompt = Some(Arc::new(prompt));
    content.access.complete = Some(Arc::new(complete));
    content.access.updates = Some(Arc::new(EverySecond));
    manager.replace_content(&source, ToolRank::Local, Some(Arc::new(content)));
    Ok(())
}

fn read(uri: &Value) -> Result<Value, ToolError> {
    let uri = uri.as_str().unwrap_or_default();
    let contents = match uri {
        "test://static-text" => {
            json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "mimeType": "image/png", "blob": PNG }),
        WATCHED => json!({ "mimeType": "text/plain", "text": "Watched resource content" }),
        _ => {
            let id = uri
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| {
                ToolError::content_not_found(
                    format!("Resource not found: {uri}"),
                    json!({ "uri": uri }),
                )
            })?;
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "mimeType": "application/json", "text": text.to_string() })
        }
    };
    let mut contents = contents;
    contents["uri"] = json!(uri);
    Ok(json!({ "contents": [contents] }))
}

fn prompt(request: &Value) -> Result<Value, ToolError> {
    let said = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: String| said(json!({ "type": "text", "text": text }));
    let arguments = &request["arguments"];
    let argument = |name: &str| {
        let value = arguments[name].as_str();
        value.ok_or_else(|| ToolError::invalid(name, "is missing"))
    };
    let messages = match request["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.".to_owned())]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            json!([text(format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            json!([
                said(json!({ "type": "resource", "resource": resource })),
                text("Please process the embedded resource above.".to_owned()),
            ])
        }
        _ => json!([
            said(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
            text("Please analyze the image above.".to_owned()),
        ]),
    };
    Ok(json!({ "messages": messages }))
}

/// Calls every listener each second.
struct EverySecond;

impl ResourceUpdates for EverySecond {
    fn subscribe(&self, _uri: &str, listener: UpdateListener) -> UpdateSubscription {
        let updates = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                listener("", None);
            }
        });
        Box::new(tokio_util::task::AbortOnDropHandle::new(updates))
    }
}
