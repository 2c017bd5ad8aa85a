//! Clients that try to bring the gateway down.

use super::*;

#[tokio::test]
async fn g6_malformed_requests_are_refused_and_others_served() {
    let served = TestListener::start(json!({})).await;
    let long_header = format!(
        "GET / HTTP/1.1\r\nhost: HOST\r\nx: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let many_headers = format!(
        "GET / HTTP/1.1\r\nhost: HOST\r\n{}\r\n",
        "x: y\r\n".repeat(200)
    );
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: HOST\r\n\r\n", "x".repeat(20_000));
    let chunked = "POST /login HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n";
    let table = [
        (long_header.as_str(), "431"),
        (&many_headers, "431"),
        (&long_path, "431"),
        (chunked, "400"),
        (
            "POST / HTTP/1.1\r\nhost: HOST\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nhost: HOST\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: gzip\r\n\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\nhost: evil.test\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", "400"),
        ("GET / HTTP/1.0\r\n\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\n\r\n",
            "403",
        ),
        (
            "GET /..%2f..%2fetc/passwd HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
            "404",
        ),
        (
            "GET /../../etc/passwd HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
            "404",
        ),
        (
            "GET /assets/../../Cargo.toml HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
            "404",
        ),
        (
            "GET /assets/..%2f..%2fCargo.toml HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
            "404",
        ),
        (
            "CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test:443\r\nconnection: close\r\n\r\n",
            "403",
        ),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost : HOST\r\n\r\n", "400"),
        // F30
        (
            "POST /login HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "POST /login HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "GET /healthz HTTP/1.1\r\nhost: HOST\r\nexpect: foo\r\n\r\n",
            "417",
        ),
        ("GET /healthz HTTP/1.1\nhost: HOST\n\n", "400"),
        (
            "GET /healthz HTTP/1.1\r\nhost: HOST\nconnection: close\r\n\r\n",
            "400",
        ),
    ];
    for (request, status) in table {
        let answer = served.exchange(request).await;
        let head: String = request.chars().take(120).collect();
        assert!(
            answer.get(8..12) == Some(&format!(" {status}")),
            "{head:?}: {answer:?}"
        );
        assert!(!answer.contains("root:"), "{answer}");
        assert!(served.is_well().await, "after {head:?}");
    }
    let second_protocol = served.exchange("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!second_protocol.contains(" 200 "), "{second_protocol:?}");
    served.ended().await;
}

#[tokio::test]
async fn f20_incomplete_requests_make_room_for_complete_ones() {
    let served = TestListener::start(json!({ "connections": 128 })).await;
    let mut half = Vec::new();
    for _ in 0..200 {
        let mut stream = served.connect().await;
        drop(stream.write_all(b"GET / HTTP/1.1\r\nhost: ").await);
        half.push(stream);
        if half.len() % 50 == 0 {
            assert!(served.is_well().await, "after {}", half.len());
        }
    }
    // The oldest ones are closed without a response; the newest ones stay.
    assert_eq!(rest(&mut half[0]).await, "");
    let mut last = half.pop().unwrap();
    let end = format!("{}\r\nconnection: close\r\n\r\n", served.at);
    last.write_all(end.as_bytes()).await.unwrap();
    assert!(rest(&mut last).await.starts_with("HTTP/1.1 200"));
    served.ended().await;
}

#[tokio::test]
async fn f20_authenticated_clients_keep_their_connections() {
    let served = TestListener::start(json!({ "connections": 128 })).await;
    let ask = format!("GET /api/status HTTP/1.1\r\nhost: {}\r\n\r\n", served.at);
    let mut known = served.connect().await;
    let mut answer = [0; 12];
    known.write_all(ask.as_bytes()).await.unwrap();
    known.read_exact(&mut answer).await.unwrap();
    let mut half = Vec::new();
    for _ in 0..200 {
        half.push(served.connect().await);
    }
    assert!(served.is_well().await);
    let ask = ask.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    known.write_all(ask.as_bytes()).await.unwrap();
    let answers = rest(&mut known).await;
    assert!(answers.contains("HTTP/1.1 200"), "{answers}");
    served.ended().await;
}

#[tokio::test]
async fn f21_slow_sign_ins_keep_nobody_from_signing_in() {
    let token = crate::guard::tests::TOKEN;
    let served = TestListener::start(json!({ "token": token })).await;
    let at = served.at;
    let sign_in = |body: &str, length: usize| {
        format!(
            "POST /login HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = served.connect().await;
        let half = sign_in("token=", 40);
        stream.write_all(half.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let body = format!("token={token}");
    let answer = served.exchange(&sign_in(&body, body.len())).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let evicted = rest(&mut slow[0]).await;
    assert!(evicted.starts_with("HTTP/1.1 503"), "{evicted}");
    served.ended().await;
}

#[tokio::test]
async fn g6_a_body_of_100_mb_is_refused_unread_with_the_reason() {
    let served = TestListener::start(json!({})).await;
    for path in ["/login", "/api/tools/nap/call"] {
        let mut stream = served.connect().await;
        let length = 100_000_000;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            served.at
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        let sending = async {
            let piece = vec![b' '; 1 << 16];
            let mut sent = 0;
            while sent < length && to.write_all(&piece).await.is_ok() {
                sent += piece.len();
            }
        };
        let mut answer = vec![0; 12];
        let reading = timeout(HANG, from.read_exact(&mut answer));
        tokio::select! {
            answered = reading => { answered.expect("it hangs").unwrap(); }
            () = sending => panic!("all of it was read"),
        }
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413", "{path}");
        assert!(served.is_well().await);
    }
    served.ended().await;
}

#[tokio::test]
async fn expect_continue_for_a_large_body_is_rejected() {
    let served = TestListener::start(json!({})).await;
    let head = "POST /login HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 100000000\r\n\r\n";
    let answer = served.exchange(head).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    served.ended().await;
}

#[tokio::test]
async fn g6_two_thousand_idle_sockets_leave_others_served() {
    let served = TestListener::start(json!({})).await;
    let mut idle = Vec::new();
    for _ in 0..2000 {
        match TcpStream::connect(served.at).await {
            Ok(stream) => idle.push(stream),
            // The machine ran out of file descriptors: keep half of them, and leave the rest to
            // others.
            Err(_) => {
                idle.truncate(idle.len() / 2);
                break;
            }
        }
    }
    assert!(idle.len() > 100, "{}", idle.len());
    assert!(served.is_well().await);
    served.ended().await;
}

#[tokio::test]
async fn g6_vanished_callers_leave_nothing_behind() {
    let gateway = gateway(json!({}));
    let endless = || async {
        let frames =
            futures::stream::repeat_with(|| Ok::<_, std::convert::Infallible>("data: 1\n\n"));
        (
            [("content-type", "text/event-stream")],
            axum::body::Body::from_stream(frames),
        )
    };
    let guard = crate::guard::tests::guard_with(json!({ "connections": 128 }), |routes| {
        routes.route("/endless", axum::routing::get(endless))
    });
    let mut manager = ConnectionManager::new(gateway, guard);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    for round in 0..1000 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        manager.accept(accepted, peer);
        stream
            .write_all(b"GET /endless HTTP/1.1\r\nhost: localhost:7460\r\n\r\n")
            .await
            .unwrap();
        if round % 2 == 0 {
            let mut some = [0; 64];
            stream.read_exact(&mut some).await.unwrap();
            assert!(
                some.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&some)
            );
        }
        drop(stream);
        until(|| manager.reaper.count() < 64).await;
    }
    until(|| {
        manager.reaper.count() == 0
            && manager.guard.streaming() == 0
            && manager.guard.running_requests() == 0
    })
    .await;
}

#[tokio::test]
async fn a_full_listener_closes_idle_connections_and_keeps_busy_ones() {
    let gateway = gateway(json!({ "connections": 3 }));
    let guard = RequestGuard::new(gateway.clone(), ([127, 0, 0, 1], 7460).into());
    let mut manager = ConnectionManager::new(gateway, guard);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let mut connect = async || {
        let stream = TcpStream::connect(at).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        manager.accept(accepted, peer);
        stream
    };
    let mut busy = connect().await;
    let call = call("nap", r#"{"ms":60000}"#).replace("HOST", "localhost:7460");
    busy.write_all(call.as_bytes()).await.unwrap();
    let (mut idle, mut slow) = (connect().await, connect().await);
    slow.write_all(b"GET / HT").await.unwrap();
    let mut refused = connect().await;
    let answer = rest(&mut refused).await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"),
        "who has only just come stays: {answer}"
    );
    drop(refused);
    let (reaper, guard) = (Arc::clone(&manager.reaper), Arc::clone(&manager.guard));
    until(|| guard.running_requests() == 1).await;
    reaper.tick();
    let mut connect = async || {
        let stream = TcpStream::connect(at).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        manager.accept(accepted, peer);
        stream
    };
    for waiting in [&mut idle, &mut slow] {
        let mut healthy = connect().await;
        let ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
        healthy.write_all(ask).await.unwrap();
        let mut answer = [0; 12];
        healthy.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        drop((waiting, healthy));
        reaper.tick();
    }
    assert_eq!(guard.running_requests(), 1, "the call goes on");
}

#[tokio::test(start_paused = true)]
async fn running_out_of_file_descriptors_pauses_accepting() {
    let gateway = gateway(json!({}));
    let guard = RequestGuard::new(gateway.clone(), ([127, 0, 0, 1], 7460).into());
    let mut manager = ConnectionManager::new(gateway, guard);
    let too_many = io::Error::from_raw_os_error(24);
    let started = Instant::now();
    manager.handle_accept_error(&too_many).await;
    let first = manager.reported_at;
    manager.handle_accept_error(&too_many).await;
    assert_eq!(started.elapsed(), ACCEPT_BACKOFF * 2, "no busy loop");
    assert_eq!((first, manager.reported_at), (Some(started), Some(started)));
    let broken = io::Error::from(io::ErrorKind::ConnectionAborted);
    manager.handle_accept_error(&broken).await;
    assert_eq!(
        started.elapsed(),
        ACCEPT_BACKOFF * 2,
        "one that broke is no reason to rest"
    );
    tokio::time::advance(REPORT_INTERVAL).await;
    manager.handle_accept_error(&too_many).await;
    assert_ne!(
        manager.reported_at, first,
        "it is reported again after a while"
    );
}

#[tokio::test]
async fn g6_a_request_with_two_lengths_is_refused_wherever_it_stands() {
    let served = TestListener::start(json!({})).await;
    let both = "POST /login HTTP/1.1\r\nhost: HOST\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let ask = "GET /healthz HTTP/1.1\r\nhost: HOST\r\n\r\n";
    let nap = call("nap", r#"{"ms":1}"#);
    let chunks = "POST /api/tools/nap/call HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{\"ms\":1}\r\n0\r\n\r\n";
    for (before, is_answered) in [
        (String::new(), false),
        ("\r\n\r\n".to_owned(), false),
        (ask.to_owned(), false),
        (format!("{nap}{ask}"), false),
        (chunks.to_owned(), true),
    ] {
        let answers = served.exchange(&format!("{before}{both}")).await;
        assert_eq!(
            answers.contains(r#""success":true"#),
            is_answered,
            "{before:?}: {answers}"
        );
        // After a chunked body the connection ends; otherwise everything is refused with one
        // response.
        let refused = answers.matches("HTTP/1.1 400").count();
        assert_eq!(refused, usize::from(!is_answered), "{before:?}: {answers}");
        assert_eq!(
            answers.matches("HTTP/1.1").count(),
            1,
            "{before:?}: {answers}"
        );
        assert!(answers.contains("connection: close"), "{answers}");
    }
    served.ended().await;
}

#[tokio::test]
async fn a_panic_in_a_response_body_is_logged() {
    let log = crate::guard::tests::TestLog::listen();
    let guard = crate::guard::tests::guard_with(json!({}), |routes| {
        let breaks = || async {
            let first =
                futures::stream::once(async { Ok::<_, std::convert::Infallible>("so far") });
            let rest = futures::stream::poll_fn(|_| panic!("torn-body-77"));
            axum::body::Body::from_stream(futures::StreamExt::chain(first, rest))
        };
        routes.route("/breaks", axum::routing::get(breaks))
    });
    let mut manager = ConnectionManager::new(gateway(json!({})), guard);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (accepted, peer) = listener.accept().await.unwrap();
    manager.accept(accepted, peer);
    let request = b"GET /breaks HTTP/1.1\r\nhost: localhost:7460\r\n\r\n";
    stream.write_all(request).await.unwrap();
    rest(&mut stream).await;
    assert!(manager.wait_until_closed(HANG).await);
    let told = log.lines("torn-body-77");
    let is_logged =
        |line: &&String| line.contains("ERROR") && line.contains("connection task panicked");
    assert_eq!(told.iter().filter(is_logged).count(), 1, "{told:?}");
}
