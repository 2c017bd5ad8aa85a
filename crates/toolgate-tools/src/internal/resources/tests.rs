use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_core::{
    CallRecord, ContentMethod, Observer, Policy, Scope, SourceContent, ToolCall, ToolExecutor,
    ToolManager, ToolPattern, ToolRank,
};

use super::*;

/// Collects the names of calls that have ended, with the callers.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<EndedCall>>>);

type EndedCall = (String, Option<String>);

impl Observer for Calls {
    fn finished<'a>(
        &'a self,
        record: &'a CallRecord,
    ) -> Option<futures::future::BoxFuture<'a, ()>> {
        let caller = record.caller.as_deref().map(str::to_owned);
        let mut calls = self.0.lock();
        calls.push((record.outcome.tool_name.clone(), caller));
        None
    }
}

/// Two servers with a text and a picture each.
fn executor(policy: &Value) -> (ToolExecutor, Calls) {
    let manager = ToolManager::new();
    manager.add_all(resource_tools());
    for (rank, server) in ["a", "b"].into_iter().enumerate() {
        let source = ToolSource::Mcp(server.to_owned());
        let tool = FunctionTool::with_definition(
            ContentMethod::ReadResource.definition(source.clone()),
            async |arguments: serde_json::Map<String, Value>, _| {
                Ok::<_, ToolError>(match text_field(&json!(arguments), "uri") {
                    "notes:picture" => json!({ "contents": [
                        { "uri": "notes:picture", "mimeType": "image/png", "blob": "AAAA" },
                        { "uri": "notes:data", "mimeType": "application/pdf", "blob": "AAA=" },
                    ] }),
                    uri => {
                        json!({ "contents": [{ "uri": uri, "text": format!("text of {uri}") }] })
                    }
                })
            },
        );
        let mut content = SourceContent::default();
        let name = format!("{server} today");
        content.resources = vec![
            json!({ "uri": "notes:today", "name": name, "description": "long ".repeat(200) }),
            json!({ "uri": "notes:picture", "name": "picture", "_meta": { "secret": 1 } }),
        ];
        content.templates = vec![json!({ "uriTemplate": "notes:{day}", "name": "day" })];
        content.access.read_resource = Some(Arc::new(tool.unwrap()));
        manager.replace_content(&source, ToolRank::Server(rank), Some(Arc::new(content)));
    }
    let calls = Calls::default();
    let policy: Policy = serde_json::from_value(policy.clone()).unwrap();
    let executor = ToolExecutor::builder(Arc::new(manager))
        .policy(policy)
        .without_observers()
        .observer(calls.clone())
        .build();
    (executor, calls)
}

async fn call(
    executor: &ToolExecutor,
    scope: &Scope,
    tool: &str,
    arguments: Value,
) -> Result<Value, String> {
    let call = ToolCall::new(tool, arguments).scope(scope.clone());
    let outcome = executor.execute(call).await;
    let result = outcome.result.map(|output| output.to_result());
    result.map_err(|error| error.to_string())
}

async fn uris(executor: &ToolExecutor, scope: &Scope, arguments: Value) -> Vec<String> {
    let list = call(executor, scope, LIST_RESOURCES, arguments).await;
    let list = list.unwrap();
    let of = |key: &str, uri: &str| -> Vec<String> {
        let entries = list[key].as_array().unwrap().iter();
        entries
            .map(|entry| text_field(entry, uri).to_owned())
            .collect()
    };
    [of("resources", "uri"), of("templates", "uriTemplate")].concat()
}

#[tokio::test]
async fn a_caller_sees_and_reads_what_its_scope_and_the_policy_allow() {
    let (executor, calls) = executor(&json!({ "deny": ["b/resources/read"] }));
    let all = ["notes:today", "notes:picture", "notes:{day}"];
    assert_eq!(uris(&executor, &Scope::default(), json!({})).await, all);
    let tools = ["list_resources", "read_resource", "b/*"].map(ToolPattern::new);
    let scope = Scope::only(tools.to_vec()).for_caller("kitchen");
    assert!(uris(&executor, &scope, json!({})).await.is_empty());
    for uri in ["notes:today", "toolgate://b/notes:today"] {
        let error = call(&executor, &scope, READ_RESOURCE, json!({ "uri": uri })).await;
        let expected =
            format!("No server offers the resource '{uri}'; list_resources shows what there is");
        assert_eq!(error, Err(expected));
    }
    calls.0.lock().clear();
    let tools = ["read_resource", "a/resources/read"].map(ToolPattern::new);
    let scope = Scope::only(tools.to_vec()).for_caller("kitchen");
    let read = call(
        &executor,
        &scope,
        READ_RESOURCE,
        json!({ "uri": "notes:today" }),
    )
    .await;
    assert_eq!(read, Ok(json!("text of notes:today")));
    let made = ["resources/read", READ_RESOURCE];
    let made = made.map(|name| (name.to_owned(), Some("kitchen".to_owned())));
    assert_eq!(*calls.0.lock(), made, "the read is a call of its own");
}

#[tokio::test]
async fn a_list_is_narrowed_and_bounded() {
    let (executor, _) = executor(&json!({}));
    let all = Scope::default();
    for (arguments, expected) in [
        (
            json!({ "server": "b", "query": "TODAY" }),
            &["toolgate://b/notes:today"][..],
        ),
        (
            json!({ "query": "picture" }),
            &["notes:picture", "toolgate://b/notes:picture"],
        ),
        (json!({ "query": "secret" }), &[]),
        (json!({ "server": "c" }), &[]),
    ] {
        assert_eq!(
            uris(&executor, &all, arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    let list = call(
        &executor,
        &all,
        LIST_RESOURCES,
        json!({ "query": "a today" }),
    )
    .await
    .unwrap();
    let description = text_field(&list["resources"][0], "description");
    assert_eq!(description.chars().count(), MAX_DESCRIPTION + 1);
    let source = ToolSource::Mcp("a".to_owned());
    let mut content = SourceContent::default();
    let many = |count: usize, key: &str| -> Vec<Value> {
        (0..count)
            .map(|n| json!({ key: format!("many:{n}"), "name": "n" }))
            .collect()
    };
    content.resources = many(300, "uri");
    content.templates = many(300, "uriTemplate");
    let before = executor.manager().content();
    content.access = before.source(&source).unwrap().content.access.clone();
    executor
        .manager()
        .replace_content(&source, ToolRank::Server(0), Some(Arc::new(content)));
    let list = call(&executor, &all, LIST_RESOURCES, json!({ "server": "a" }))
        .await
        .unwrap();
    let count = |key: &str| list[key].as_array().unwrap().len();
    assert_eq!((count("resources"), count("templates")), (50, 50));
    assert_eq!(
        text_field(&list, "note"),
        "500 more are left out; narrow the list with query or server"
    );
}

#[tokio::test]
async fn pictures_are_passed_on_and_other_data_is_described() {
    let (executor, _) = executor(&json!({}));
    let read = json!({ "uri": "notes:picture" });
    let read = call(&executor, &Scope::default(), READ_RESOURCE, read)
        .await
        .unwrap();
    let expected = json!([
        { "type": "text", "text": "Resource notes:picture:" },
        { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        { "type": "text", "text": "Resource notes:data:" },
        { "type": "text", "text": "(binary data: application/pdf, 2 bytes)" },
    ]);
    assert_eq!(read, expected);
    let misspelt = json!({ "uri": "note:today" });
    let error = call(&executor, &Scope::default(), READ_RESOURCE, misspelt).await;
    let expected = "No server offers the resource 'note:today'; did you mean 'notes:today'?";
    assert_eq!(error, Err(expected.to_owned()));
}
