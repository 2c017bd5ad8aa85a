//! The tools of the suite that ask their caller.

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, FunctionTool, Question, ServerFailure, ToolDefinition, ToolError, ToolManager,
};

use super::Failure;

pub(super) const MISSING_CAPABILITY: i64 = -32021;

pub(super) fn offer_asking_tools(manager: &ToolManager) -> Result<(), Failure> {
    let plain = [
        (
            "test_input_required_result_elicitation",
            vec![name_question()],
        ),
        (
            "test_input_required_result_sampling",
            vec![sampling(
                "capital_question",
                "What is the capital of France?",
            )],
        ),
        (
            "test_input_required_result_list_roots",
            vec![question("client_roots", "roots/list", json!({}))],
        ),
        (
            "test_input_required_result_request_state",
            vec![confirmation()],
        ),
        (
            "test_input_required_result_tampered_state",
            vec![confirmation()],
        ),
        (
            "test_input_required_result_multiple_inputs",
            vec![
                name_question(),
                sampling("greeting", "Generate a greeting"),
                question("client_roots", "roots/list", json!({})),
            ],
        ),
        (
            "test_input_required_result_capabilities",
            vec![name_question(), sampling("greeting", "Generate a greeting")],
        ),
        ("test_streaming_elicitation", vec![name_question()]),
        (
            "test_elicitation_sep1034_defaults",
            vec![form("defaults", "All kinds of defaults", &defaults())],
        ),
        (
            "test_elicitation_sep1330_enums",
            vec![form("choices", "All kinds of choices", &choices())],
        ),
    ];
    for (name, questions) in plain {
        let run = move |_: Value, context: CallContext| {
            let questions = questions.clone();
            async move { Ok::<_, ToolError>(format!("state-ok: {}", ask(&context, questions).await?)) }
        };
        manager.add(FunctionTool::with_definition(
            define(name, &json!({})),
            run,
        )?);
    }
    let rounds = async |_: Value, context: CallContext| {
        let name = text_question("step1", "Step 1: What is your name?", "name");
        let color = text_question("step2", "Step 2: What is your favorite color?", "color");
        let first = ask(&context, vec![name]).await?;
        let second = ask(&context, vec![color]).await?;
        Ok::<_, ToolError>(format!("{first} {second}"))
    };
    manager.add(FunctionTool::with_definition(
        define("test_input_required_result_multi_round", &json!({})),
        rounds,
    )?);
    let sampled = async |arguments: Value, context: CallContext| {
        let prompt = arguments["prompt"].as_str().unwrap_or_default();
        let answer = ask(&context, vec![sampling("prompt", prompt)]).await?;
        Ok::<_, ToolError>(format!("LLM response: {answer}"))
    };
    manager.add(FunctionTool::with_definition(
        define("test_sampling", &json!({ "prompt": { "type": "string" } })),
        sampled,
    )?);
    let elicited = async |arguments: Value, context: CallContext| {
        let schema = json!({
            "type": "object",
            "properties": {
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            },
            "required": ["username", "email"],
        });
        let message = arguments["message"].as_str().unwrap_or_default();
        let answer = ask(&context, vec![form("user", message, &schema)]).await?;
        Ok::<_, ToolError>(format!("User response: {answer}"))
    };
    manager.add(FunctionTool::with_definition(
        define(
            "test_elicitation",
            &json!({ "message": { "type": "string" } }),
        ),
        elicited,
    )?);
    let needs_sampling = async |_: Value, context: CallContext| {
        let answer = ask(&context, vec![sampling("prompt", "Say something")]).await;
        answer.map_err(|_| {
            let data = json!({ "requiredCapabilities": { "sampling": {} } });
            ToolError::failed_with(
                "Sampling is required",
                ServerFailure::Rpc {
                    code: MISSING_CAPABILITY,
                    data: Some(data),
                },
            )
        })
    };
    manager.add(FunctionTool::with_definition(
        define("test_missing_capability", &json!({})),
        needs_sampling,
    )?);
    Ok(())
}

/// What the prompt of the suite asks before it is filled in.
pub(super) async fn ask_for_context(context: &CallContext) -> Result<Value, ToolError> {
    let text = "What context should the prompt use?";
    ask(
        context,
        vec![text_question("user_context", text, "context")],
    )
    .await
}

/// Asks what the caller can answer, and fails if that is nothing.
pub(super) async fn ask(
    context: &CallContext,
    questions: Vec<Question>,
) -> Result<Value, ToolError> {
    let handler = context.questions();
    let handler = handler.ok_or_else(|| ToolError::failed("The client can't be asked"))?;
    let supported = |question: &Question| question.is_supported_by(handler.capabilities());
    let questions: Vec<Question> = questions.into_iter().filter(supported).collect();
    if questions.is_empty() {
        return Err(ToolError::failed("The client can't answer this"));
    }
    let _paused = context.pause_clock();
    let answers = handler.ask(questions).await;
    Ok(json!(
        answers.map_err(|error| ToolError::failed(error.to_string()))?
    ))
}

pub(super) fn define(name: &str, properties: &Value) -> toolgate_core::DefinitionBuilder {
    let schema = json!({ "type": "object", "properties": properties });
    ToolDefinition::builder(name, format!("Tests: {name}"), schema)
}

fn question(key: &str, method: &str, params: Value) -> Question {
    Question {
        key: key.to_owned(),
        server: "conformance".to_owned(),
        method: method.to_owned(),
        params,
    }
}

fn form(key: &str, message: &str, schema: &Value) -> Question {
    question(
        key,
        "elicitation/create",
        json!({ "message": message, "requestedSchema": schema }),
    )
}

fn text_question(key: &str, message: &str, field: &str) -> Question {
    let properties = json!({ field: { "type": "string" } });
    form(
        key,
        message,
        &json!({ "type": "object", "properties": properties, "required": [field] }),
    )
}

pub(super) fn name_question() -> Question {
    text_question("user_name", "What is your name?", "name")
}

pub(super) fn confirmation() -> Question {
    let properties = json!({ "ok": { "type": "boolean" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["ok"] });
    form("confirm", "Please confirm", &schema)
}

fn sampling(key: &str, text: &str) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    question(
        key,
        "sampling/createMessage",
        json!({ "messages": [message], "maxTokens": 100 }),
    )
}

fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

fn choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    } })
}
