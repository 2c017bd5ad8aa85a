//! Limits on size, number and time.

use axum::response::IntoResponse;
use axum::routing::get;
use futures::future::join;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;

const NAP: &str = "/api/tools/nap/call";

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_are_refused_at_once() {
    let guard = guard(json!({ "concurrency": 1 }));
    let first = ask(&guard, "POST", NAP, &[], r#"{"ms":1000}"#);
    let second = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let started = tokio::time::Instant::now();
        let call = ask(&guard, "POST", NAP, &[], r#"{"ms":1}"#).await;
        let chat = ask(&guard, "POST", "/api/chat", &[], "{}").await;
        assert_eq!(started.elapsed(), Duration::ZERO, "nobody waits");
        (call, chat)
    };
    let (first, (call, chat)) = join(first, second).await;
    assert_eq!(first.status, 200);
    assert_eq!(
        (call.status.as_u16(), call.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        call.json()["tool_name"],
        "nap",
        "a call ends in an envelope"
    );
    assert_eq!(call.json()["error_kind"], "unavailable");
    assert_eq!(
        (chat.status.as_u16(), chat.header("retry-after")),
        (503, Some("1"))
    );
    assert!(chat.detail().contains("1 requests are already running"));
    let again = ask(&guard, "POST", NAP, &[], r#"{"ms":1}"#).await;
    assert_eq!(again.status, 200, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_work_while_calls_fill_the_gateway() {
    let guard = guard(json!({ "concurrency": 1 }));
    guard.gateway.accept_sign_in_key("key");
    let sign_in = ask(&guard, "GET", "/?key=key", &[], "").await;
    let cookie = sign_in.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let origin = format!("http://{BIND}");
    let browser = [("cookie", cookie), ("origin", &origin)];
    let call = ask(&guard, "POST", NAP, &[], r#"{"ms":1000}"#);
    let operator = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        for path in [
            "/",
            "/assets/js/main.js",
            "/metrics",
            "/openapi.json",
            "/healthz",
            "/api/status",
            "/api/stats",
            "/api/tools",
            "/api/servers",
            "/api/calls",
            "/api/approvals",
        ] {
            let look = ask(&guard, "GET", path, &browser, "").await;
            assert_eq!(look.status, 200, "{path}: {}", look.text);
        }
        let events = bare("GET", "/api/events", &[("host", BIND)], "");
        let events = guard
            .handle(loopback_addresses(), &ConnectionWatch::for_test(), events)
            .await;
        assert_eq!(events.status(), 200);
        for path in ["/api/approvals/1", "/api/servers/1/reconnect"] {
            let nothing = ask(&guard, "POST", path, &browser, r#"{"approve":true}"#).await;
            assert_eq!(nothing.status, 404, "{path}: {}", nothing.text);
        }
        ask(&guard, "GET", "/readyz", &[], "").await
    };
    let (_, ready) = join(call, operator).await;
    assert_eq!(ready.json()["status"], "degraded", "{}", ready.text);
    let reason = ready.json()["reasons"][0].to_string();
    assert!(reason.contains("serve.concurrency: 1"), "{reason}");
    let ready = ask(&guard, "GET", "/readyz", &[], "").await;
    assert_eq!(ready.json()["status"], "ready", "{}", ready.text);
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_returned_when_its_caller_disconnects() {
    let guard = guard(json!({ "concurrency": 1 }));
    let gone = ask(&guard, "POST", NAP, &[], r#"{"ms":10000}"#);
    drop(tokio::time::timeout(Duration::from_millis(1), gone).await);
    assert_eq!(guard.running_requests(), 0);
    let next = ask(&guard, "POST", NAP, &[], r#"{"ms":1}"#).await;
    assert_eq!(next.status, 200);
}

#[tokio::test(start_paused = true)]
async fn each_token_has_a_rate_limit() {
    let mut settings = settings_with_tokens();
    settings["rate"] = json!(2);
    let guard = guard(settings);
    let call = async |token: &str| {
        let bearer = format!("Bearer {token}");
        ask(
            &guard,
            "POST",
            "/api/tools/switch_light/call",
            &[("authorization", &bearer)],
            "{}",
        )
        .await
    };
    assert_eq!(
        (
            call(TOKEN).await.status.as_u16(),
            call(TOKEN).await.status.as_u16()
        ),
        (200, 200)
    );
    let over = call(TOKEN).await;
    assert_eq!(
        (over.status.as_u16(), over.header("retry-after")),
        (429, Some("1"))
    );
    assert_eq!(over.json()["tool_name"], "switch_light");
    assert_eq!(call(LIGHTS).await.status, 200, "another has its own");
    let bearer = format!("Bearer {TOKEN}");
    let look = ask(
        &guard,
        "GET",
        "/api/tools",
        &[("authorization", &bearer)],
        "",
    )
    .await;
    assert_eq!(look.status, 200, "reading is not a call");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(call(TOKEN).await.status, 200);
}

fn with_stream(settings: Value) -> RequestGuard {
    let endless = || async {
        let frames = stream::iter([Ok::<_, std::convert::Infallible>("data: 1\n\n")])
            .chain(stream::pending());
        (
            [("content-type", "text/event-stream")],
            axum::body::Body::from_stream(frames),
        )
            .into_response()
    };
    guard_with(settings, |routes| {
        routes.route("/endless", get(endless).post(endless))
    })
}

async fn open(guard: &RequestGuard, method: &str) -> http::Response<ResponseBody> {
    open_as(guard, method, TOKEN).await
}

async fn open_as(guard: &RequestGuard, method: &str, token: &str) -> http::Response<ResponseBody> {
    let bearer = format!("Bearer {token}");
    let headers = [("host", BIND), ("authorization", &bearer)];
    let request = bare(method, "/endless", &headers, "");
    guard
        .handle(loopback_addresses(), &ConnectionWatch::for_test(), request)
        .await
}

#[tokio::test]
async fn streams_have_their_own_limit_with_a_share_for_the_operator() {
    let mut settings = settings_with_tokens();
    settings["concurrency"] = json!(1);
    let guard = with_stream(settings);
    let mut streams = Vec::new();
    // Two tokens share 256: 64 for each, 128 for both, of which the last 32 are the operator's.
    for (token, most) in [(LIGHTS, 64 + 96), (TOKEN, 64 + 32)] {
        for _ in 0..most {
            let stream = open_as(&guard, "GET", token).await;
            assert_eq!(stream.status(), 200, "{token}");
            streams.push(stream);
        }
        let over = open_as(&guard, "GET", token).await;
        assert_eq!(over.status(), 503, "{token}");
    }
    assert_eq!(guard.running_requests(), 0, "none of them is running");
    let over = open(&guard, "GET").await;
    assert_eq!(
        (
            over.status().as_u16(),
            over.headers()["retry-after"].as_bytes()
        ),
        (503, &b"5"[..])
    );
    streams.pop();
    assert_eq!(open(&guard, "GET").await.status(), 200);
    drop(streams);
    assert_eq!(guard.streams.taken(), 0);
}

#[tokio::test]
async fn the_last_quarter_of_the_permits_is_the_operators() {
    let mut settings = settings_with_tokens();
    settings["concurrency"] = json!(4);
    let guard = with_stream(settings);
    let mut held = Vec::new();
    for (token, status) in [
        (LIGHTS, 200),
        (LIGHTS, 200),
        (LIGHTS, 200),
        (LIGHTS, 503),
        (TOKEN, 200),
        (TOKEN, 503),
    ] {
        let works = open_as(&guard, "POST", token).await;
        assert_eq!(works.status(), status, "{token}, {} held", held.len());
        held.push(works);
    }
}

#[tokio::test]
async fn a_working_stream_counts_as_running_until_it_ends() {
    let guard = with_stream(json!({ "concurrency": 1 }));
    let works = open(&guard, "POST").await;
    assert_eq!((guard.running_requests(), guard.streams.taken()), (1, 0));
    assert_eq!(open(&guard, "POST").await.status(), 503);
    drop(works);
    assert_eq!(guard.running_requests(), 0);
    assert_eq!(open(&guard, "POST").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn event_streams_end_with_the_gateway_and_call_streams_with_their_calls() {
    let guard = with_stream(json!({}));
    let (watches, works) = (open(&guard, "GET").await, open(&guard, "POST").await);
    guard.gateway.stopping.cancel();
    assert_eq!(read(watches).await.text, "data: 1\n\n");
    let mut works = works.into_body();
    assert!(works.frame().await.is_some());
    let patient = tokio::time::timeout(Duration::from_secs(5), works.frame()).await;
    assert!(patient.is_err(), "it may still work");
    guard.gateway.calls.cancel();
    assert!(works.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stopping_gateway_refuses_new_calls() {
    let guard = guard(json!({}));
    let running = ask(&guard, "POST", NAP, &[], r#"{"ms":3000}"#);
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        guard.gateway.stopping.cancel();
        let call = ask(&guard, "POST", NAP, &[], r#"{"ms":1}"#).await;
        let list = ask(&guard, "GET", "/api/tools", &[], "").await;
        (call, list, ask(&guard, "GET", "/healthz", &[], "").await)
    };
    let (running, (call, list, health)) = join(running, stopping).await;
    assert_eq!(running.json()["success"], true, "what runs may finish");
    assert_eq!(
        (
            call.status.as_u16(),
            list.status.as_u16(),
            health.status.as_u16()
        ),
        (503, 503, 200)
    );
    assert!(
        call.json()["error"]
            .as_str()
            .unwrap()
            .ends_with("the gateway is stopping")
    );
    assert_eq!(list.detail(), "the gateway is stopping");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_by_itself_ends_in_an_envelope() {
    let guard = guard(json!({}));
    let running = ask(&guard, "POST", NAP, &[], r#"{"ms":20000}"#);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        guard.gateway.calls.cancel();
    };
    let started = tokio::time::Instant::now();
    let (running, ()) = join(running, cancel).await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(
        (&running.json()["success"], &running.json()["tool_name"]),
        (&json!(false), &json!("nap"))
    );
}

#[tokio::test]
async fn a_body_is_limited_by_its_declared_and_its_real_size() {
    let guard = guard(json!({}));
    let table = [("/login", 64 << 10), (NAP, 1 << 20)];
    for (path, limit) in table {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        for (size, status) in [(limit - 10, None), (limit + 1, Some(413))] {
            let text = format!("token={}", "x".repeat(size - 6));
            let by_word = ask(&guard, "POST", path, &form, &text).await;
            let pieces = text
                .as_bytes()
                .chunks(10_000)
                .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))));
            let body = StreamBody::new(stream::iter(
                pieces.collect::<Vec<Result<_, std::convert::Infallible>>>(),
            ));
            let request = Request::builder()
                .method("POST")
                .uri(path)
                .header("host", BIND)
                .header(form[0].0, form[0].1);
            let response = guard
                .handle(
                    loopback_addresses(),
                    &ConnectionWatch::for_test(),
                    request.body(body).unwrap(),
                )
                .await;
            let by_bytes = read(response).await;
            for reply in [by_word, by_bytes] {
                assert_eq!(
                    reply.status == 413,
                    status.is_some(),
                    "{path} {size}: {reply:?}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_times_out() {
    let guard = guard(json!({}));
    let piece = stream::iter([Ok::<_, std::convert::Infallible>(Frame::data(
        Bytes::from_static(b"{"),
    ))]);
    let body = StreamBody::new(piece.chain(stream::pending()));
    let request = Request::builder()
        .method("POST")
        .uri(NAP)
        .header("host", BIND)
        .body(body)
        .unwrap();
    let started = tokio::time::Instant::now();
    let reply = read(
        guard
            .handle(loopback_addresses(), &ConnectionWatch::for_test(), request)
            .await,
    )
    .await;
    assert_eq!(
        (reply.status.as_u16(), started.elapsed().as_secs()),
        (408, 30)
    );
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(guard.running_requests(), 0);
}

#[tokio::test]
async fn j5_a_route_that_panics_is_a_problem_and_the_next_request_is_served() {
    async fn at_once() -> &'static str {
        panic!("a bug at {}", 7)
    }
    async fn later() -> &'static str {
        tokio::task::yield_now().await;
        panic!("a bug")
    }
    let guard = guard_with(json!({}), |routes| {
        routes
            .route("/at-once", get(at_once))
            .route("/later", get(later))
            .route("/well", get(async || "well"))
    });
    for (path, status) in [("/at-once", 500), ("/later", 500), ("/well", 200)] {
        let reply = ask(&guard, "GET", path, &[], "").await;
        assert_eq!(reply.status, status, "{path}");
        assert!(!reply.text.contains("bug"), "{}", reply.text);
        assert_eq!(reply.text.contains("\"status\":500"), status == 500);
    }
}

#[tokio::test(start_paused = true)]
async fn f29_one_clients_anonymous_streams_block_nobody_else() {
    let guard = guard(json!({}));
    let open = async || {
        let request = bare("GET", "/api/events", &[("host", BIND)], "");
        let response = guard
            .handle(loopback_addresses(), &ConnectionWatch::for_test(), request)
            .await;
        assert_eq!(response.status(), 200);
        response.into_body()
    };
    let mut streams = Vec::new();
    for _ in 0..256 {
        streams.push(open().await);
    }
    let mut dashboard = open().await;
    assert!(dashboard.frame().await.is_some(), "it is told something");
    assert_eq!(guard.streams.taken(), 256);
    // The oldest one was closed.
    let oldest = streams.remove(0);
    let ended = tokio::time::timeout(Duration::from_secs(1), oldest.collect()).await;
    assert!(ended.is_ok());
    drop((streams, dashboard));
    assert_eq!(guard.streams.taken(), 0);
}
