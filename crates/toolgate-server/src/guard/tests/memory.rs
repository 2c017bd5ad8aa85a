//! The memory budget of requests.

use futures::future::{join, join_all};

use super::*;

const LIGHT: &str = "/api/tools/switch_light/call";

/// A megabyte of tiny objects, which would take ninety once it is parsed.
fn tiny_objects() -> String {
    let objects = vec![r#"{"":0}"#; 149_000].join(",");
    format!(r#"{{"a":[{objects}]}}"#)
}

#[tokio::test(start_paused = true)]
async fn f7_a_megabyte_of_tiny_objects_is_too_large_before_it_is_parsed() {
    let guard = guard(settings_with_tokens());
    let authorization = format!("Bearer {LIGHTS}");
    let token = ("authorization", &*authorization);
    let body = tiny_objects();
    let call = ask(&guard, "POST", LIGHT, &[token], &body).await;
    assert_eq!(
        (call.status.as_u16(), call.header("connection")),
        (413, Some("close")),
        "{}",
        call.text
    );
    let envelope = call.json();
    assert_eq!(envelope["error_kind"], "too_large");
    assert_eq!(
        envelope["error"],
        "The arguments of 'switch_light' hold more than 10000 values, which is the limit"
    );
    let path = "/api/tools/switch_light/check";
    let check = ask(&guard, "POST", path, &[token], &body).await;
    assert_eq!(check.status, 413);
    assert!(check.detail().contains("10000 values"), "{}", check.text);
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"switch_light","arguments":{body}}}}}"#
    );
    let headers = [
        token,
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let mcp = ask(&guard, "POST", "/mcp", &headers, &message).await;
    assert_eq!(mcp.status, 413);
    let error = mcp.json()["error"]["message"].to_string();
    assert!(error.contains("more than 11000 values"), "{error}");
    let few = format!(r#"{{"a":[{}]}}"#, vec!["0"; 9_998].join(","));
    let fits = ask(&guard, "POST", LIGHT, &[token], &few).await;
    assert_eq!(fits.json()["success"], true, "{}", fits.text);
    assert_eq!(guard.gateway.memory.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn f7_large_requests_under_way_share_a_budget_and_small_ones_need_none() {
    let guard = guard(json!({}));
    let nap = |ms: u32, fill: usize| {
        let body = format!(r#"{{"ms":{ms},"x":"{}"}}"#, "x".repeat(fill));
        let guard = &guard;
        async move { ask(guard, "POST", "/api/tools/nap/call", &[], &body).await }
    };
    let large = join_all((0..40).map(|_| nap(1000, 1_000_000)));
    let small = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let taken = guard.gateway.memory.taken();
        assert!(taken > 60_000_000, "{taken}");
        nap(1, 10).await
    };
    let (large, small) = join(large, small).await;
    assert_eq!(small.json()["success"], true);
    let (ran, refused): (Vec<_>, Vec<_>) = large.iter().partition(|reply| reply.status == 200);
    assert_eq!((ran.len(), refused.len()), (33, 7));
    for reply in refused {
        assert_eq!(
            (reply.status.as_u16(), reply.header("retry-after")),
            (503, Some("1"))
        );
        assert_eq!(reply.json()["error_kind"], "unavailable", "{}", reply.text);
    }
    assert_eq!(guard.gateway.memory.taken(), 0);
    assert_eq!(nap(1, 1_000_000).await.status, 200, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn f7_one_token_cannot_use_all_request_memory() {
    let guard = guard(settings_with_tokens());
    let nap = |token: &'static str, tool: &'static str| {
        let body = format!(r#"{{"ms":1000,"x":"{}"}}"#, "x".repeat(1_000_000));
        let guard = &guard;
        async move {
            let authorization = format!("Bearer {token}");
            let headers = [("authorization", &*authorization)];
            let path = format!("/api/tools/{tool}/call");
            ask(guard, "POST", &path, &headers, &body).await.status
        }
    };
    let greedy = join_all((0..60).map(|_| nap(TOKEN, "nap")));
    let other = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        nap(LIGHTS, "switch_light").await
    };
    let (greedy, other) = join(greedy, other).await;
    assert!(greedy.iter().any(|status| *status == 503));
    assert_eq!(other, 200);
}
