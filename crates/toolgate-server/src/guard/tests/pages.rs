//! Responses to pages of other sites.

use super::*;

const APP: &str = "https://app.example.org";

#[tokio::test]
async fn a_listed_page_is_allowed_by_name_to_read_the_response() {
    let guard = guard(settings_with_tokens());
    let bearer = format!("Bearer {TOKEN}");
    let reply = ask(
        &guard,
        "GET",
        "/api/tools",
        &[("origin", APP), ("authorization", &bearer)],
        "",
    )
    .await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("access-control-allow-origin"), Some(APP));
    assert_eq!(reply.header("vary"), Some("Origin"));
    assert_eq!(
        reply.header("access-control-allow-credentials"),
        None,
        "a cookie is for our own page"
    );
    let refused = ask(&guard, "GET", "/api/tools", &[("origin", APP)], "").await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.header("access-control-allow-origin")
        ),
        (401, Some(APP))
    );
}

#[tokio::test]
async fn only_a_listed_page_passes_a_preflight_without_a_token() {
    let guard = guard(settings_with_tokens());
    let asks = [
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization,mcp-session-id",
        ),
    ];
    let listed = [&asks[..], &[("origin", APP)]].concat();
    let reply = ask(&guard, "OPTIONS", "/mcp", &listed, "").await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some(APP));
    assert_eq!(
        reply.header("access-control-allow-headers"),
        Some("authorization,mcp-session-id")
    );
    assert_eq!(
        reply.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    let foreign = [&asks[..], &[("origin", "https://evil.test")]].concat();
    let reply = ask(&guard, "OPTIONS", "/mcp", &foreign, "").await;
    assert_eq!(
        (
            reply.status.as_u16(),
            reply.header("access-control-allow-methods")
        ),
        (403, None)
    );
    let ours = [&asks[..], &[("origin", "http://127.0.0.1:7460")]].concat();
    assert_eq!(ask(&guard, "OPTIONS", "/mcp", &ours, "").await.status, 401);
}

#[tokio::test]
async fn g5_a_form_of_another_site_calls_nothing() {
    let guard = guard(json!({}));
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        for origin in ["https://evil.test", "null", "http://localhost:3000"] {
            let headers = [("content-type", kind), ("origin", origin)];
            let reply = ask(
                &guard,
                "POST",
                "/api/tools/switch_light/call",
                &headers,
                "{}",
            )
            .await;
            assert_eq!(reply.status, 403, "{kind} of {origin}");
        }
    }
    let own = [
        ("content-type", "application/json"),
        ("origin", "http://127.0.0.1:7460"),
    ];
    let reply = ask(&guard, "POST", "/api/tools/switch_light/call", &own, "{}").await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_response_carries_the_clients_request_id() {
    let guard = guard(json!({}));
    let reply = ask(&guard, "GET", "/healthz", &[("x-request-id", "mine-1")], "").await;
    assert_eq!(reply.header("x-request-id"), Some("mine-1"));
    let reply = ask(
        &guard,
        "GET",
        "/nope",
        &[("x-request-id", "\"><script>")],
        "",
    )
    .await;
    assert!(
        reply
            .header("x-request-id")
            .is_some_and(|id| !id.contains('<'))
    );
}
