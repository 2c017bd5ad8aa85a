//! Signing in with a token, and out again.

use super::*;

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:7460");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn sign_in(guard: &RequestGuard, token: &str) -> String {
    let reply = ask(
        guard,
        "POST",
        "/login",
        &[OWN, FORM],
        &format!("token={token}"),
    )
    .await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (303, Some("/")),
        "{reply:?}"
    );
    let cookie = reply.header("set-cookie").unwrap();
    assert!(
        cookie.contains("; HttpOnly")
            && cookie.contains("; SameSite=Strict")
            && cookie.contains("; Path=/"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn anonymous_visitors_get_only_the_sign_in_page() {
    let guard = guard(settings_with_tokens());
    let reply = ask(&guard, "GET", "/", &[("accept", "text/html")], "").await;
    assert_eq!(reply.status, 401);
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(
        reply
            .text
            .contains("<form method=\"post\" action=\"/login\">")
            && !reply.text.contains("{{"),
        "{}",
        reply.text
    );
    assert!(!reply.text.contains("<script") && !reply.text.contains("<p role=\"alert\""));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(
        policy.contains("style-src 'sha256-")
            && !policy.contains("unsafe")
            && !policy.contains("script-src"),
        "{policy}"
    );
    assert_eq!(
        ask(&guard, "GET", "/assets/css/signin.css", &[], "")
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn a_token_signs_in_until_signed_out() {
    let guard = guard(settings_with_tokens());
    let session = sign_in(&guard, TOKEN).await;
    let cookie = ("cookie", session.as_str());
    assert_eq!(ask(&guard, "GET", "/", &[cookie], "").await.status, 200);
    assert_eq!(
        ask(&guard, "GET", "/api/tools", &[cookie], "").await.status,
        200
    );
    let path = "/api/tools/switch_light/call";
    assert_eq!(
        ask(&guard, "POST", path, &[cookie, OWN], "{}").await.status,
        200
    );
    let out = ask(&guard, "POST", "/logout", &[cookie, OWN], "").await;
    assert_eq!(out.status, 303);
    assert!(
        out.header("set-cookie")
            .is_some_and(|cookie| cookie.contains("Max-Age=0"))
    );
    assert_eq!(
        ask(&guard, "GET", "/api/tools", &[cookie], "").await.status,
        401
    );
}

#[tokio::test]
async fn a_cookie_permits_changes_only_from_our_own_page() {
    let guard = guard(settings_with_tokens());
    let session = sign_in(&guard, TOKEN).await;
    let cookie = ("cookie", session.as_str());
    let path = "/api/tools/switch_light/call";
    let table: [(&[(&str, &str)], u16); 5] = [
        (&[cookie, OWN], 200),
        (&[cookie], 401),
        (&[cookie, ("origin", "https://app.example.org")], 401),
        (&[cookie, ("origin", "https://evil.test")], 403),
        (
            &[cookie, OWN, ("authorization", "Bearer wrong-wrong-wrong")],
            401,
        ),
    ];
    for (headers, status) in table {
        let reply = ask(&guard, "POST", path, headers, "{}").await;
        assert_eq!(reply.status.as_u16(), status, "{headers:?}");
    }
    let listed = [cookie, ("origin", "https://app.example.org")];
    assert_eq!(
        ask(&guard, "GET", "/api/tools", &listed, "").await.status,
        401
    );
}

#[tokio::test]
async fn a_session_has_the_tools_of_its_token() {
    let guard = guard(settings_with_tokens());
    let session = sign_in(&guard, LIGHTS).await;
    let headers = [("cookie", session.as_str()), OWN];
    let hidden = ask(
        &guard,
        "POST",
        "/api/tools/nap/call",
        &headers,
        r#"{"ms":1}"#,
    )
    .await;
    assert_eq!(hidden.json()["error"], "Tool 'nap' not found");
}

/// Wrong tokens from an address, as a bearer and at the sign-in page.
async fn send_wrong_tokens(guard: &RequestGuard, peer: [u8; 4]) -> [GuardReply; 2] {
    let bearer = ("authorization", "Bearer wrong-wrong-wrong-wrong");
    let host = ("host", BIND);
    let form = "token=wrong-wrong";
    let requests = [
        bare("GET", "/api/tools", &[host, bearer], ""),
        bare("POST", "/login", &[host, OWN, FORM], form),
    ];
    let [call, page] = requests.map(|request| send_from(peer.into(), guard, request));
    [call.await, page.await]
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_delayed_after_ten() {
    let guard = guard(settings_with_tokens());
    for _ in 0..5 {
        let [call, page] = send_wrong_tokens(&guard, [127, 0, 0, 1]).await;
        assert_eq!((call.status.as_u16(), page.status.as_u16()), (401, 401));
        let message = "role=\"alert\">That is not a token";
        assert!(page.text.contains(message), "{}", page.text);
    }
    let before = tokio::time::Instant::now();
    for reply in send_wrong_tokens(&guard, [127, 0, 0, 1]).await {
        assert_eq!(reply.status, 429, "{reply:?}");
        let seconds: u32 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((4..=6).contains(&seconds), "{seconds}");
    }
    assert_eq!(before.elapsed(), Duration::from_secs(2), "one second each");
    let right = format!("Bearer {TOKEN}");
    let right = ask(
        &guard,
        "GET",
        "/api/tools",
        &[("authorization", &right)],
        "",
    )
    .await;
    assert_eq!(right.status, 200);
    sign_in(&guard, TOKEN).await;
    assert_eq!(before.elapsed(), Duration::from_secs(2), "at once");
    tokio::time::advance(Duration::from_secs(60)).await;
    let [call, page] = send_wrong_tokens(&guard, [127, 0, 0, 1]).await;
    assert_eq!((call.status.as_u16(), page.status.as_u16()), (401, 401));
    // A request without a token is not a guess.
    for _ in 0..20 {
        assert_eq!(ask(&guard, "GET", "/api/tools", &[], "").await.status, 401);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_logged_once_a_minute_as_a_count() {
    let log = TestLog::listen();
    let guard = guard(settings_with_tokens());
    let peer = [10, 9, 8, 7];
    for _ in 0..3 {
        send_wrong_tokens(&guard, peer).await;
    }
    let logged = || log.lines("from=10.9.8.7");
    assert!(
        logged().len() == 1 && logged()[0].contains("count=1"),
        "{:?}",
        logged()
    );
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(
        logged().len() == 2 && logged()[1].contains("count=5"),
        "{:?}",
        logged()
    );
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(
        logged().len(),
        2,
        "a client that has stopped is not reported"
    );
    send_wrong_tokens(&guard, peer).await;
    assert_eq!(logged().len(), 3);
    assert!(log.lines("wrong-wrong").is_empty());
}

#[tokio::test]
async fn a_token_comes_as_a_form_or_as_json_and_from_no_other_page() {
    let guard = guard(settings_with_tokens());
    let json = format!(r#"{{"token":"{TOKEN}"}}"#);
    let form = format!("token={TOKEN}");
    let evil = ("origin", "https://evil.test");
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, u16);
    let table: [Row<'_>; 7] = [
        (&[("content-type", "application/json")], &json, 303),
        (&[FORM, ("sec-fetch-site", "same-origin")], &form, 303),
        (&[FORM, evil], &form, 403),
        (&[FORM, ("sec-fetch-site", "cross-site")], &form, 403),
        (&[("content-type", "text/plain")], &form, 415),
        (&[], &form, 415),
        (&[("content-type", "application/json")], "{", 400),
    ];
    for (headers, body, status) in table {
        let reply = ask(&guard, "POST", "/login", headers, body).await;
        assert_eq!(reply.status.as_u16(), status, "{headers:?}: {reply:?}");
        assert_eq!(reply.headers.contains_key("set-cookie"), status == 303);
    }
    let open = super::guard(json!({}));
    assert_eq!(
        ask(&open, "POST", "/login", &[FORM], "token=x")
            .await
            .status,
        303
    );
}

#[tokio::test]
async fn a_removed_token_is_refused_and_its_streams_end() {
    let guard = guard(settings_with_tokens());
    let bearer = |token: &str| format!("Bearer {token}");
    let (all, lights) = (bearer(TOKEN), bearer(LIGHTS));
    let status = async |token: &str| {
        let headers = [("authorization", token)];
        let reply = ask(&guard, "GET", "/api/tools", &headers, "").await;
        reply.status.as_u16()
    };
    let cookie = sign_in(&guard, LIGHTS).await;
    let headers = [("host", BIND), ("authorization", lights.as_str())];
    let request = bare("GET", "/api/events", &headers, "");
    let stream = guard
        .handle(loopback_addresses(), &ConnectionWatch::for_test(), request)
        .await;
    assert_eq!(stream.status(), 200);
    let settings = serde_json::from_value(json!({ "token": TOKEN })).unwrap();
    assert!(guard.gateway.set_tokens(&settings));
    assert_eq!((status(&all).await, status(&lights).await), (200, 401));
    let reply = ask(&guard, "GET", "/api/tools", &[("cookie", &cookie)], "").await;
    assert_eq!(reply.status, 401);
    let rest = tokio::time::timeout(Duration::from_secs(60), read(stream)).await;
    assert!(rest.is_ok(), "a hang guard: the stream goes on");
    // Whether a token is needed at all is decided at the start.
    let settings = serde_json::from_value(json!({})).unwrap();
    assert!(!guard.gateway.set_tokens(&settings));
    assert_eq!((status(&all).await, status("").await), (200, 401));
}

#[tokio::test]
async fn a_wrong_token_is_distinguished_from_a_missing_one() {
    let guard = guard(settings_with_tokens());
    let missing = ask(&guard, "GET", "/api/tools", &[], "").await;
    let wrong = [("authorization", "Bearer not-the-token-at-all")];
    let wrong = ask(&guard, "GET", "/api/tools", &wrong, "").await;
    for (reply, expected) in [
        (missing, "this gateway needs a token"),
        (wrong, "this gateway does not know the token that was sent"),
    ] {
        assert_eq!(reply.status, 401);
        assert!(reply.text.contains(expected), "{}", reply.text);
    }
}
