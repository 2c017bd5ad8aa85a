//! Every route rejects unauthorized callers.

use std::collections::BTreeSet;

use axum::routing::get;

use super::*;
use crate::guard::Caller;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The paths of a router, read from its `Debug` output, so that new routes are included.
fn paths(routes: &Router) -> BTreeSet<String> {
    let shown = format!("{routes:?}");
    let quoted = shown.split('"').skip(1).step_by(2);
    quoted
        .filter(|text| text.starts_with('/'))
        .map(ToOwned::to_owned)
        .collect()
}

/// A request for every path, and for some that are not routes.
fn targets(routes: &Router) -> Vec<String> {
    let mut targets = Vec::new();
    for path in paths(routes) {
        let concrete: Vec<&str> = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect();
        let concrete = concrete.join("/");
        targets.push(format!("{}/", concrete.trim_end_matches('/')));
        targets.push(concrete);
    }
    let others = [
        "/nope",
        "/..%2f..%2fetc/passwd",
        "//",
        "/mcp",
        "/metrics",
        "/readyz",
        "*",
        "/api",
    ];
    targets.extend(others.map(ToOwned::to_owned));
    targets
}

fn is_open(method: &str, path: &str) -> bool {
    matches!(
        (method, path),
        (_, "/healthz" | "/readyz") | ("POST", "/login")
    )
}

#[test]
fn the_walk_sees_every_route_of_the_document_and_those_beside_it() {
    let routes = router::build(gateway(json!({})));
    let paths = paths(&routes);
    for known in [
        "/",
        "/assets/{*path}",
        "/openapi.json",
        "/healthz",
        "/login",
        "/logout",
        "/api/tools/{name}/call",
    ] {
        assert!(paths.contains(known), "{known} is not among {paths:?}");
    }
}

#[tokio::test]
async fn g1_every_route_refuses_foreign_and_unknown_callers() {
    let add = |routes: Router| {
        let late = Router::new().route("/deep", get(|| async { "secret" }));
        routes
            .route("/added-later", get(|| async { "secret" }))
            .nest("/nested-later", late)
    };
    let routes = add(router::build(gateway(settings_with_tokens())));
    let targets = targets(&routes);
    assert!(
        targets.contains(&"/added-later".to_owned())
            && targets.contains(&"/nested-later/deep".to_owned())
    );
    let guard = guard_with(settings_with_tokens(), add);
    let good = format!("Bearer {TOKEN}");
    let token = ("authorization", good.as_str());
    let host = ("host", BIND);
    let refused: &[(&[(&str, &str)], u16)] = &[
        (&[token], 400),
        (&[token, host, host], 400),
        (&[token, ("host", "evil.test")], 403),
        (&[token, ("host", "evil.test:7460")], 403),
        (&[token, ("host", "localhost:1")], 403),
        (&[token, ("host", "")], 403),
        (&[token, host, ("origin", "https://evil.test")], 403),
        (&[token, host, ("origin", "null")], 403),
        (&[token, host, ("origin", "http://localhost:3000")], 403),
        (
            &[
                token,
                host,
                ("origin", "http://127.0.0.1:7460"),
                ("origin", "https://evil.test"),
            ],
            403,
        ),
        (&[token, host, ("sec-fetch-site", "cross-site")], 403),
        (&[host, ("origin", "https://evil.test")], 403),
    ];
    let unknown: &[&[(&str, &str)]] = &[
        &[host],
        &[host, ("authorization", "Bearer 0123456789abcdef-al")],
        &[host, ("authorization", "Bearer ")],
        &[host, ("authorization", "Basic dDp0")],
        &[host, ("authorization", TOKEN)],
        &[host, token, token],
        &[host, ("cookie", "toolgate_session_7460=0")],
        &[("host", "[::1]:7460"), ("x-forwarded-for", "127.0.0.1")],
    ];
    let mut peer = 0_u32;
    for path in &targets {
        for method in METHODS {
            let is_health = matches!(path.as_str(), "/healthz" | "/readyz");
            for (headers, status) in refused.iter().filter(|_| !is_health) {
                let reply = send(&guard, bare(method, path, headers, "")).await;
                assert_eq!(
                    reply.status.as_u16(),
                    *status,
                    "{method} {path} {headers:?}"
                );
                has_the_usual_headers(&reply);
            }
            for headers in unknown.iter().filter(|_| !is_open(method, path)) {
                // Each from its own address, because many wrong tokens from one
                // address are answered differently.
                peer += 1;
                let reply = send_from(
                    peer.to_be_bytes().into(),
                    &guard,
                    bare(method, path, headers, ""),
                )
                .await;
                assert_eq!(reply.status.as_u16(), 401, "{method} {path} {headers:?}");
                assert!(!reply.text.contains("secret"));
                has_the_usual_headers(&reply);
            }
        }
    }
}

/// Kubernetes and load balancers ask by the address of a machine, or by none.
#[tokio::test]
async fn only_health_is_served_to_any_host() {
    let open = guard(json!({}));
    open.gateway
        .set_configuration_state(crate::ConfigurationState {
            problem: Some("t.json:1: secret".to_owned()),
            restart_needed: Vec::new(),
        });
    for headers in [
        &[][..],
        &[("host", "10.1.2.3:7481")],
        &[("host", "evil.test")],
        &[("host", BIND), ("origin", "https://evil.test")],
    ] {
        let reply = send(&open, bare("GET", "/healthz", headers, "")).await;
        assert_eq!(reply.status, 200, "{headers:?}");
        let reply = send(&open, bare("GET", "/readyz", headers, "")).await;
        assert_eq!(reply.status, 200, "{headers:?}");
        let told = "the configuration is broken; the previous configuration stays in force";
        assert_eq!(reply.json()["reasons"], json!([told]), "{headers:?}");
        has_the_usual_headers(&reply);
    }
    let reply = ask(&open, "GET", "/readyz", &[], "").await;
    assert!(reply.text.contains("t.json:1: secret"), "{}", reply.text);
}

fn has_the_usual_headers(reply: &GuardReply) {
    let expected = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        (
            "permissions-policy",
            "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
        ),
        ("cache-control", "no-store"),
    ];
    for (name, value) in expected {
        assert_eq!(reply.header(name), Some(value), "{name} of {reply:?}");
    }
    assert!(
        reply
            .header("x-request-id")
            .is_some_and(|id| !id.is_empty())
    );
    assert!(
        reply
            .header("content-security-policy")
            .is_some_and(|policy| policy.starts_with("default-src 'none'"))
    );
    let cors = reply
        .headers
        .keys()
        .find(|name| name.as_str().starts_with("access-control"));
    assert_eq!(cors, None, "nobody else is told that it may read this");
}

#[tokio::test]
async fn valid_tokens_are_admitted_and_without_tokens_everybody_local() {
    let bearer = format!("bEaReR  {TOKEN} ");
    let (open, guarded) = (guard(json!({})), guard(settings_with_tokens()));
    for host in [BIND, "localhost:7460", "localhost", "[::1]:7460"] {
        let reply = send(
            &guarded,
            bare(
                "GET",
                "/api/tools",
                &[("host", host), ("authorization", &bearer)],
                "",
            ),
        )
        .await;
        assert_eq!(reply.status, 200, "{host}: {reply:?}");
        let reply = send(&open, bare("GET", "/api/tools", &[("host", host)], "")).await;
        assert_eq!(reply.status, 200, "{host}: {reply:?}");
    }
    let health = ask(&guarded, "GET", "/healthz", &[], "").await;
    assert_eq!(health.status, 200);
}

#[tokio::test]
async fn a_host_in_the_request_line_counts_too() {
    let guard = guard(json!({}));
    let ours = ask(&guard, "GET", "http://localhost:7460/api/tools", &[], "").await;
    let foreign = ask(&guard, "GET", "http://evil.test/api/tools", &[], "").await;
    assert_eq!((ours.status.as_u16(), foreign.status.as_u16()), (200, 403));
    assert!(foreign.detail().contains("'evil.test'") && foreign.detail().contains("serve.hosts"));
}

#[tokio::test]
async fn a_token_sees_and_calls_only_its_own_tools() {
    let guard = guard(settings_with_tokens());
    let lights = format!("Bearer {LIGHTS}");
    let lights = [("authorization", lights.as_str())];
    let listed = ask(&guard, "GET", "/api/tools", &lights, "").await.json();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["switch_light"]);
    let called = ask(
        &guard,
        "POST",
        "/api/tools/switch_light/call",
        &lights,
        "{}",
    )
    .await
    .json();
    assert_eq!(called["success"], true);
    for name in ["nap", "nope"] {
        let hidden = ask(
            &guard,
            "POST",
            &format!("/api/tools/{name}/call"),
            &lights,
            r#"{"ms":1}"#,
        )
        .await
        .json();
        assert_eq!(hidden["error"], format!("Tool '{name}' not found"));
    }
    assert_eq!(
        ask(&guard, "GET", "/api/tools/nap", &lights, "")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn the_guard_answers_unknown_routes_with_problems() {
    let guard = guard(json!({}));
    let table = [
        ("GET", "/nope", 404),
        ("PUT", "/api/tools", 405),
        ("GET", "/api/tools/", 404),
        ("GET", "/..%2f..%2fetc/passwd", 404),
    ];
    for (method, path, status) in table {
        let reply = ask(&guard, method, path, &[], "").await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("content-type")),
            (status, Some("application/problem+json")),
            "{path}"
        );
        assert_eq!(reply.json()["status"], status, "{path}");
        assert!(!reply.detail().is_empty(), "{path}");
    }
    let wrong = ask(&guard, "PUT", "/api/tools", &[], "").await;
    assert_eq!(wrong.header("allow"), Some("GET,HEAD"));
    let path = "/api/tools/nap/call?timeout=1s&timeout=2s";
    let query = ask(&guard, "POST", path, &[], "{}").await;
    assert_eq!(query.status, 400);
    assert_eq!(
        query.json()["tool_name"],
        "nap",
        "a call is answered as one"
    );
}

#[tokio::test]
async fn health_is_public_but_its_reasons_are_not() {
    let tell = |caller: Caller| async move { format!("{}", caller.scope.is_unrestricted()) };
    let guard = guard_with(settings_with_tokens(), |_| {
        Router::new().route("/readyz", get(tell))
    });
    let (all, lights) = (format!("Bearer {TOKEN}"), format!("Bearer {LIGHTS}"));
    let table: [(&[(&str, &str)], &str); 4] = [
        (&[], "false"),
        (&[("authorization", "Bearer wrong-wrong-wrong")], "false"),
        (&[("authorization", &lights)], "false"),
        (&[("authorization", &all)], "true"),
    ];
    for (headers, told) in table {
        let reply = ask(&guard, "GET", "/readyz", headers, "").await;
        assert_eq!(
            (reply.status.as_u16(), reply.text.as_str()),
            (200, told),
            "{headers:?}"
        );
    }
}
