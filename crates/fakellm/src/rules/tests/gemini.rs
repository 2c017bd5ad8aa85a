//! What the Gemini API accepts.

use super::*;

fn gemini() -> Value {
    json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "tools": [{ "functionDeclarations": [
            { "name": "weather", "description": "Weather", "parametersJsonSchema": schema() },
        ] }],
        "toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
        "generationConfig": { "maxOutputTokens": 100, "thinkingConfig": { "includeThoughts": true } },
        "contents": [
            { "role": "user", "parts": [{ "text": "Oslo and Rome?" }] },
            { "role": "model", "parts": [
                { "text": "I look." },
                { "functionCall": { "id": "a", "name": "weather", "args": { "city": "Oslo" } }, "thoughtSignature": "sig" },
                { "functionCall": { "id": "b", "name": "weather", "args": { "city": "Rome" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "a", "name": "weather", "response": { "output": "3" } } },
                { "functionResponse": { "id": "b", "name": "weather", "response": { "error": "gone" } } },
                { "text": "And?" },
            ] },
        ],
    })
}

#[test]
fn gemini_requests_are_checked_as_the_provider_does() {
    let declaration = "/tools/0/functionDeclarations/0";
    let at = |rest: &str| format!("{declaration}{rest}");
    let property = at("/parametersJsonSchema/properties/city");
    let first = "/contents/1/parts/1";
    let stray = json!({ "functionResponse": { "id": "x", "name": "weather", "response": {} } });
    assert_each_is_refused(
        Api::Gemini,
        &gemini(),
        &[
            ("/messages", json!([]), "Unknown name \"messages\""),
            ("/contents", json!([]), "contents is not specified"),
            (
                "/contents/0",
                json!(null),
                "alternate between user and model",
            ),
            ("/contents/2", json!(null), "must have the role 'user'"),
            ("/contents/0/role", json!("assistant"), "unknown role"),
            ("/contents/0/parts", json!([]), "must not be empty"),
            ("/contents/0/parts/0/text", json!(" "), "must not be empty"),
            (
                "/contents/0/parts/-",
                stray.clone(),
                "does not match a function call",
            ),
            (
                "/contents/2/parts/-",
                stray,
                "does not match a function call",
            ),
            (
                "/contents/2/parts/1",
                json!(null),
                "number of function response parts",
            ),
            (
                "/contents/2/parts/0/functionResponse/name",
                json!("clock"),
                "does not match a function call",
            ),
            (
                "/contents/2/parts/0/functionResponse/response",
                json!("3"),
                "must be an object",
            ),
            (
                &format!("{first}/thoughtSignature"),
                json!(null),
                "missing a thought_signature",
            ),
            (
                &format!("{first}/thoughtSignature"),
                json!("forged"),
                "Corrupted thought signature",
            ),
            (
                &format!("{first}/functionCall/args"),
                json!("{}"),
                "must be an object",
            ),
            (
                &format!("{first}/functionCall/id"),
                json!("b"),
                "must be unique",
            ),
            (
                "/generationConfig/maxTokens",
                json!(5),
                "Unknown name \"maxTokens\"",
            ),
            (
                "/generationConfig/maxOutputTokens",
                json!(0),
                "positive integer",
            ),
            (
                "/generationConfig/thinkingConfig/budget",
                json!(0),
                "Unknown name \"budget\"",
            ),
            (
                "/toolConfig/functionCallingConfig/mode",
                json!("none"),
                "unknown mode 'none'",
            ),
            ("/tools", json!(null), "without function_declarations"),
            (&at("/name"), json!("3d"), "must match ^[A-Za-z_]"),
            (&at("/name"), json!("home.weather"), "must match"),
            (&at("/parameters"), schema(), "Unknown name \"parameters\""),
            (
                &at("/parametersJsonSchema/type"),
                json!("string"),
                "must be 'object'",
            ),
            (&at("/parametersJsonSchema/anyOf"), json!([{}]), "top level"),
            (&property, json!({ "const": 1 }), "const: extra inputs"),
            (&property, json!({ "$ref": "#/x" }), "$ref"),
            (
                &property,
                json!({ "type": "array" }),
                "items: missing field",
            ),
        ],
    );
}

#[test]
fn an_empty_key_is_refused() {
    let json = ("content-type", "application/json");
    assert_eq!(problem_with(Api::Gemini, &[json], &gemini()), "");
    let empty = [json, ("x-goog-api-key", "")];
    let found = problem_with(Api::Gemini, &empty, &gemini());
    assert!(found.contains("API key not valid"), "{found}");
}
