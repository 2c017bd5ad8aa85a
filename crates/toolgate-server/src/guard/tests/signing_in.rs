//! From the token to the cookie, and out again.

use super::*;

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:7460");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn signed_in(guard: &Guard, token: &str) -> String {
    let back = ask(
        guard,
        "POST",
        "/login",
        &[OWN, FORM],
        &format!("token={token}"),
    )
    .await;
    assert_eq!(
        (back.status.as_u16(), back.header("location")),
        (303, Some("/")),
        "{back:?}"
    );
    let cookie = back.header("set-cookie").unwrap();
    assert!(
        cookie.contains("; HttpOnly")
            && cookie.contains("; SameSite=Strict")
            && cookie.contains("; Path=/"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn who_is_not_signed_in_gets_the_sign_in_page_and_nothing_else() {
    let guard = guard(locked());
    let back = ask(&guard, "GET", "/", &[("accept", "text/html")], "").await;
    assert_eq!(back.status, 401);
    assert_eq!(
        back.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(
        back.text
            .contains("<form method=\"post\" action=\"/login\">")
            && !back.text.contains("{{"),
        "{}",
        back.text
    );
    assert!(!back.text.contains("<script") && !back.text.contains("<p role=\"alert\""));
    let policy = back.header("content-security-policy").unwrap();
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
    let guard = guard(locked());
    let session = signed_in(&guard, TOKEN).await;
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
async fn a_cookie_changes_something_only_for_our_own_page() {
    let guard = guard(locked());
    let session = signed_in(&guard, TOKEN).await;
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
        let back = ask(&guard, "POST", path, headers, "{}").await;
        assert_eq!(back.status.as_u16(), status, "{headers:?}");
    }
    let listed = [cookie, ("origin", "https://app.example.org")];
    assert_eq!(
        ask(&guard, "GET", "/api/tools", &listed, "").await.status,
        401
    );
}

#[tokio::test]
async fn a_session_has_the_tools_of_its_token() {
    let guard = guard(locked());
    let session = signed_in(&guard, LIGHTS).await;
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

#[tokio::test(start_paused = true)]
async fn after_ten_attempts_one_has_to_wait() {
    let guard = guard(locked());
    for _ in 0..10 {
        let back = ask(&guard, "POST", "/login", &[OWN, FORM], "token=wrong").await;
        assert_eq!(back.status, 401);
        assert!(
            back.text.contains("role=\"alert\">That is not a token"),
            "{}",
            back.text
        );
    }
    let back = ask(
        &guard,
        "POST",
        "/login",
        &[OWN, FORM],
        &format!("token={TOKEN}"),
    )
    .await;
    assert_eq!(
        (back.status.as_u16(), back.header("retry-after")),
        (429, Some("6"))
    );
    tokio::time::advance(Duration::from_secs(6)).await;
    signed_in(&guard, TOKEN).await;
}

#[tokio::test]
async fn a_token_comes_as_a_form_or_as_json_and_from_no_other_page() {
    let guard = guard(locked());
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
        let back = ask(&guard, "POST", "/login", headers, body).await;
        assert_eq!(back.status.as_u16(), status, "{headers:?}: {back:?}");
        assert_eq!(back.headers.contains_key("set-cookie"), status == 303);
    }
    let open = super::guard(json!({}));
    assert_eq!(
        ask(&open, "POST", "/login", &[FORM], "token=x")
            .await
            .status,
        303
    );
}
