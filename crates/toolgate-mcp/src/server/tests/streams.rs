use super::*;

#[tokio::test(start_paused = true)]
async fn quick_answers_still_come_when_the_client_has_closed_its_end() {
    let mut client = LineClient::legacy(&manager()).await;
    for (id, name) in [(10, "echo"), (11, "sleep")] {
        let params = json!({ "name": name });
        client
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    let started = tokio::time::Instant::now();
    let (rest, end) = client.close().await;
    assert_eq!(rest[0]["id"], 10);
    assert_eq!(rest[0]["result"]["isError"], false);
    // The slow one is cancelled rather than waited for.
    assert_eq!(rest[1]["result"]["isError"], true);
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(end.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_server_ends_at_once_when_stopped() {
    let mut client = LineClient::legacy(&manager()).await;
    let params = json!({ "name": "sleep" });
    client
        .send(json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params }))
        .await;
    client.ask("ping", json!({})).await;
    let started = tokio::time::Instant::now();
    client.stop.cancel();
    assert!(client.serving.await.unwrap().is_ok());
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_client_that_left_without_a_word_ends_the_server() {
    let server = server(&manager());
    let (ours, theirs) = tokio::io::duplex(64);
    let (reader, _) = tokio::io::split(theirs);
    let (_, broken) = tokio::io::duplex(64);
    let (_, mut writer) = tokio::io::split(ours);
    let serving =
        tokio::spawn(async move { server.serve(reader, broken, CancellationToken::new()).await });
    writer
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .await
        .unwrap();
    // The broken pipe that results is not an error.
    assert!(serving.await.unwrap().is_ok());
}

#[tokio::test]
async fn garbage_is_answered_and_nothing_stops() {
    let mut client = LineClient::legacy(&manager()).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}1{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    for (line, code) in [
        ("hello", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        (&deep, -32700),
        ("[1]", -32600),
        ("null", -32600),
        (r#"{"level":"info"}"#, -32600),
    ] {
        client.raw(line).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &json!(null)),
            "{line:.80}"
        );
    }
    client.raw("").await;
    client.raw(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#).await;
    client
        .raw(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#)
        .await;
    client.writer.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(client.next().await["error"]["code"], -32700);
    assert_eq!(client.call("number", json!({})).await["isError"], false);
}

#[tokio::test]
async fn a_request_that_is_too_long_is_refused_under_its_id() {
    let mut client = LineClient::legacy(&manager()).await;
    let filler = "x".repeat(17 * 1024 * 1024);
    let mut writer = client.writer;
    let line = format!(
        r#"{{"method":"tools/call","params":{{"name":"{filler}"}},"jsonrpc":"2.0","id":"late"}}"#
    );
    let writing = tokio::spawn(async move {
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        writer
    });
    let line = client.lines.next_line().await.unwrap().unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let expected =
        json!({ "code": -32600, "message": "the request is longer than 16777216 bytes" });
    assert_eq!(
        (&answer["id"], &answer["error"]),
        (&json!("late"), &expected)
    );
    client.writer = writing.await.unwrap();
    assert_eq!(client.call("number", json!({})).await["isError"], false);
}
