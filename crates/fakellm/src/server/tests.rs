use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::rules::Api;
use crate::{Answer, FakeLlm, FakeModel, Script};

const HANG: Duration = Duration::from_secs(20);

/// Sends a request and reads until the connection ends.
async fn post(fake: &FakeLlm, path: &str, body: &Value) -> String {
    let mut stream = connect(fake, path, body).await;
    let mut all = Vec::new();
    timeout(HANG, stream.read_to_end(&mut all))
        .await
        .unwrap()
        .ok();
    String::from_utf8_lossy(&all).into_owned()
}

async fn connect(fake: &FakeLlm, path: &str, body: &Value) -> TcpStream {
    let address = fake.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    stream
}

fn question() -> Value {
    json!({ "model": "fake", "options": { "num_ctx": 4096 }, "messages": [{ "role": "user", "content": "hi" }] })
}

#[tokio::test]
async fn an_invalid_request_is_refused_and_recorded() {
    let fake = FakeLlm::start(Script::new([Answer::text("never")])).await;
    let mut body = question();
    body["options"] = json!({});
    let mut stream = connect(&fake, "/api/chat", &body).await;
    let mut answer = vec![0; 4096];
    let read = timeout(HANG, stream.read(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    fake.wait_for_requests(1).await;
    assert_eq!(
        fake.refusals(),
        ["options.num_ctx: must be a positive integer"]
    );
    assert_eq!(fake.requests()[0].json(), body);
}

#[tokio::test]
async fn answers_can_be_cut_or_reset_and_scripts_end() {
    let cut = Answer::text("hello there").cut_in(Api::Ollama, "hello");
    let fake = FakeLlm::start(Script::new([cut, Answer::text("x").reset_after(5)])).await;
    let answer = timeout(HANG, post(&fake, "/api/chat", &question()))
        .await
        .unwrap();
    assert!(answer.ends_with("\"content\":\"he\r\n"), "{answer}");
    let answer = post(&fake, "/api/chat", &question()).await;
    assert!(!answer.contains("done"), "{answer}");
    let mut stream = connect(&fake, "/api/chat", &question()).await;
    let mut last = vec![0; 4096];
    let read = timeout(HANG, stream.read(&mut last))
        .await
        .unwrap()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&last[..read]).contains("400"),
        "a third answer is not in the script"
    );
}

#[tokio::test]
async fn a_client_that_disconnects_is_counted() {
    let stalled = Answer::text("hello").stall_after(10);
    let fake = FakeLlm::start(Script::new([Answer::black_hole(), stalled])).await;
    for count in 1..=2 {
        let stream = connect(&fake, "/api/chat", &question()).await;
        timeout(HANG, fake.wait_for_requests(count)).await.unwrap();
        drop(stream);
        timeout(HANG, fake.wait_for_disconnects(count))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn ollama_reports_its_models_and_their_capabilities() {
    let mut model = FakeModel::new("qwen3:4b");
    model
        .capabilities
        .retain(|capability| capability != "tools");
    let fake = FakeLlm::with_model(Script::always(Answer::text("hi").cut_after(9999)), model).await;
    let mut body = question();
    assert!(read_some(&fake, "/api/chat", &body).await.contains("404"));
    body["model"] = json!("qwen3:4b");
    assert!(
        read_some(&fake, "/api/show", &body)
            .await
            .contains("context_length")
    );
    let parameters = json!({ "type": "object", "properties": {} });
    let function = json!({ "name": "clock", "description": "", "parameters": parameters });
    body["tools"] = json!([{ "type": "function", "function": function }]);
    let answer = read_some(&fake, "/api/chat", &body).await;
    assert!(answer.contains("does not support tools"), "{answer}");
}

async fn read_some(fake: &FakeLlm, path: &str, body: &Value) -> String {
    let mut stream = connect(fake, path, body).await;
    let mut all = String::new();
    let mut buffer = [0; 4096];
    // Up to the chunk that ends a body.
    while !all.ends_with("0\r\n\r\n") {
        let read = timeout(HANG, stream.read(&mut buffer))
            .await
            .unwrap()
            .unwrap();
        if read == 0 {
            break;
        }
        all += &String::from_utf8_lossy(&buffer[..read]);
    }
    all
}
