//! The OpenAPI document names all routes, and its examples match its schemas.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::client::problems;
use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, long};

#[tokio::test]
async fn every_path_is_a_route_and_takes_exactly_the_methods_that_are_named() {
    let gateway = ApiTestGateway::start().await;
    let paths = gateway.document()["paths"].as_object().unwrap();
    assert!(paths.len() > 20);
    for (template, item) in paths {
        let path = template.replace("{name}", "x").replace("{id}", "x");
        let refused = gateway.ask(Method::PATCH, &path, "").await;
        assert_eq!(refused.status, 405, "{template}");
        refused.problem();
        let allowed: BTreeSet<&str> = refused
            .header("allow")
            .split(',')
            .map(str::trim)
            .filter(|it| *it != "HEAD")
            .collect();
        let named: Vec<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|it| it.to_uppercase())
            .collect();
        let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
        assert_eq!(allowed, named, "{template}");
    }
}

#[tokio::test]
async fn unknown_paths_are_problems() {
    let gateway = ApiTestGateway::start().await;
    for path in [
        "/api",
        "/api/",
        "/api/nope",
        "/api/calls/a/b",
        "/API/tools",
        "/api/tools/a/b",
        "/healthz/",
        "//api/tools",
        "/api/../api/tools",
    ] {
        let reply = gateway.get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.problem().contains("/openapi.json"), "{path}");
    }
}

#[tokio::test]
async fn every_operation_is_fully_described() {
    let gateway = ApiTestGateway::start().await;
    let document = gateway.document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{at}");
            assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{at}");
            for status in ["403", "429", "500", "503"] {
                assert!(operation["responses"][status].is_object(), "{at} {status}");
            }
            let forbidden = operation["responses"]["403"]["description"].as_str();
            assert!(
                forbidden.is_some_and(
                    |text| text.ends_with("The Host or the Origin is not one of this gateway")
                ),
                "{at}: {forbidden:?}"
            );
            let is_operators =
                path == "/metrics" || path.ends_with("/reconnect") || path.ends_with("/trust");
            assert!(
                !is_operators || forbidden.is_some_and(|text| text.starts_with("The caller")),
                "{at}: {forbidden:?}"
            );
            let health = path == "/healthz" || path == "/readyz";
            let is_open = health || path == "/login";
            let needs = operation.get("security");
            assert_eq!(needs, is_open.then_some(&json!([])), "{at}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let content = response["content"].as_object();
                for (kind, content) in content.into_iter().flatten() {
                    let schema = &content["schema"]["$ref"];
                    let is_problem = schema.as_str().is_some_and(|it| it.ends_with("/Problem"));
                    assert_eq!(
                        is_problem,
                        kind == "application/problem+json",
                        "{at} {status}"
                    );
                }
            }
            assert_eq!(operation["responses"]["401"].is_null(), health, "{at}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(
                    parameter["description"].is_string(),
                    "{at} {}",
                    parameter["name"]
                );
            }
        }
    }
    let mut left = vec![document];
    while let Some(value) = left.pop() {
        if let Some(reference) = value["$ref"].as_str() {
            assert!(
                document
                    .pointer(reference.strip_prefix('#').unwrap())
                    .is_some(),
                "{reference}"
            );
        }
        match value {
            Value::Array(array) => left.extend(array),
            Value::Object(object) => left.extend(object.values()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn examples_match_their_schemas() {
    let gateway = ApiTestGateway::start().await;
    let document = gateway.document();
    let mut examples = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let parts = schema["allOf"].as_array().cloned().unwrap_or_default();
        for part in parts.iter().chain([schema]) {
            for (property, schema) in part["properties"].as_object().into_iter().flatten() {
                if let Some(example) = schema.get("example") {
                    let problems = problems(document, schema, example);
                    assert!(problems.is_empty(), "{name}.{property}: {problems:?}");
                    examples += 1;
                }
            }
        }
    }
    assert!(examples > 60, "{examples}");
}

#[tokio::test]
async fn security_schemes_are_described() {
    let open = ApiTestGateway::start().await;
    let mut plan = TestGatewayOptions::default();
    plan.settings.token = long("full");
    let locked = ApiTestGateway::start_with(plan).await;
    for (gateway, keys) in [
        (&open, json!([{}, { "bearer": [] }, { "cookie": [] }])),
        (&locked, json!([{ "bearer": [] }, { "cookie": [] }])),
    ] {
        let document = gateway.document();
        assert_eq!(document["security"], keys);
        let schemes = &document["components"]["securitySchemes"];
        let (bearer, cookie) = (&schemes["bearer"], &schemes["cookie"]);
        assert_eq!(
            (&bearer["type"], &bearer["scheme"]),
            (&json!("http"), &json!("bearer"))
        );
        assert_eq!(
            (&cookie["in"], &cookie["name"]),
            (&json!("cookie"), &json!("toolgate_session"))
        );
    }
}
