use serde_json::{Map, Value, json};

use super::*;
use crate::{FunctionTool, Policy, SourceContent, ToolManager, ToolPattern, ToolRank};

/// An executor with a server that offers `notes:1` and the prompt `review`, and another one that
/// offers `notes:2`. Each answers with the parameters it received.
fn executor() -> ToolExecutor {
    let manager = ToolManager::new();
    for (rank, (server, uri)) in [("a", "notes:1"), ("b", "notes:2")].into_iter().enumerate() {
        let source = ToolSource::Mcp(server.to_owned());
        let tool = |method: ContentMethod| -> Arc<dyn Tool> {
            let tool = FunctionTool::with_definition(
                method.definition(source.clone()),
                async |arguments: Map<String, Value>, _| {
                    let uri = arguments.get("uri").cloned().unwrap_or_default();
                    let answer = json!({ "contents": [{ "uri": uri }], "received": arguments });
                    Ok::<_, ToolError>(answer)
                },
            );
            Arc::new(tool.unwrap())
        };
        let mut content = SourceContent {
            resources: vec![json!({ "uri": uri, "title": "N\u{200b}ote" })],
            prompts: vec![json!({ "name": "review" })],
            ..SourceContent::default()
        };
        content.access.read_resource = Some(tool(ContentMethod::ReadResource));
        content.access.get_prompt = Some(tool(ContentMethod::GetPrompt));
        manager.replace_content(&source, ToolRank::Server(rank), Some(Arc::new(content)));
    }
    ToolExecutor::new(Arc::new(manager))
}

async fn run(executor: &ToolExecutor, request: &ContentRequest) -> Result<Value, String> {
    let mut outcome = executor.execute(request.to_call()).await;
    request.finish(&mut outcome);
    outcome
        .result
        .map(|output| output.to_result())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn servers_and_callers_each_see_their_own_uri() {
    let executor = executor();
    for (asked, own) in [
        ("notes:1", "notes:1"),
        ("notes:7", "notes:7"),
        ("toolgate://a/notes:1", "notes:1"),
        ("toolgate://b/notes:2", "notes:2"),
    ] {
        let request = executor.find_resource(asked, &Scope::default());
        let result = run(&executor, &request).await.unwrap();
        assert_eq!(result["received"], json!({ "uri": own }), "{asked}");
        assert_eq!(result["contents"][0]["uri"], asked);
    }
}

#[tokio::test]
async fn prompts_are_found_by_their_listed_names() {
    let executor = executor();
    for (asked, owner) in [("review", "a"), ("b__review", "b")] {
        let arguments = Map::from_iter([("style".to_owned(), json!("short"))]);
        let request = executor.find_prompt(asked, arguments, &Scope::default());
        let source = &request.owner().unwrap().source;
        assert_eq!(*source, ToolSource::Mcp(owner.to_owned()), "{asked}");
        assert_eq!(
            run(&executor, &request).await.unwrap()["received"],
            json!({ "name": "review", "arguments": { "style": "short" } })
        );
    }
}

#[tokio::test]
async fn forbidden_content_looks_like_missing_content() {
    let executor = executor();
    let only_b = Scope::only(vec![ToolPattern::new("b/resources/read")]);
    for (asked, scope) in [
        ("other:1", &Scope::default()),
        ("no uri", &Scope::default()),
        ("notes:1", &only_b),
        ("toolgate://c/x:1", &only_b),
    ] {
        let request = executor.find_resource(asked, scope);
        assert!(request.owner().is_none(), "{asked}");
        let expected = format!("No server offers the resource '{asked}'");
        assert_eq!(run(&executor, &request).await, Err(expected));
    }
    let request = executor.find_resource("notes:11", &Scope::default());
    assert_eq!(request.nearest(), ["notes:1"]);
    let request = executor.find_resource("notes:11", &only_b);
    assert_eq!(request.nearest(), [] as [&str; 0]);
    let request = executor.find_resource("toolgate://b/notes:2", &only_b);
    assert!(run(&executor, &request).await.is_ok());
    let policy: Policy = serde_json::from_value(json!({ "deny": ["a/prompts/get"] })).unwrap();
    executor.set_rules(executor.rules().limits.clone(), policy);
    let request = executor.find_prompt("review", Map::new(), &Scope::default());
    let expected = "No server offers the prompt 'review'".to_owned();
    assert_eq!(run(&executor, &request).await, Err(expected));
}

#[test]
fn lists_contain_only_what_the_caller_may_use() {
    let executor = executor();
    let (content, rules) = (executor.manager().content(), executor.rules());
    let uris = |scope: &Scope| -> Vec<String> {
        let offered = content.offered_resources(&rules, scope);
        offered
            .map(|it| format!("{} {}", it.source, it.entry["uri"].as_str().unwrap()))
            .collect()
    };
    let all = Scope::default();
    assert_eq!(uris(&all), ["mcp:a notes:1", "mcp:b toolgate://b/notes:2"]);
    let only_b = Scope::only(vec![ToolPattern::new("b/*")]);
    assert_eq!(uris(&only_b), ["mcp:b toolgate://b/notes:2"]);
    let first = content.offered_resources(&rules, &all).next().unwrap();
    assert_eq!(first.entry["title"], "Note", "no invisible characters");
    let prompts = content.offered_prompts(&rules, &all);
    let names: Vec<Value> = prompts.map(|mut it| it.entry["name"].take()).collect();
    assert_eq!(names, ["review", "b__review"]);
}

#[test]
fn invalid_parameters_find_nothing() {
    let executor = executor();
    for (method, params) in [
        (ContentMethod::ReadResource, json!({ "uri": 1 })),
        (ContentMethod::GetPrompt, json!({})),
        (
            ContentMethod::Complete,
            json!({ "ref": { "type": "ref/prompt", "name": "review" } }),
        ),
    ] {
        let params = params.as_object().unwrap();
        let found = executor.find_content(method, params, &Scope::default());
        assert!(found.is_none(), "{params:?}");
    }
}
