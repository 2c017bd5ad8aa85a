//! Notifications of what waits, sent to a webhook.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolgate_core::Limits;
use toolgate_server::{Notifications, NotifySettings, ServeSettings, Webhook};

use crate::questions::asking_server;
use crate::test_gateway::{ApiTestGateway, SECRET, TestGatewayOptions, long, token, token_with};

/// A receiver of webhooks on this machine.
struct Receiver {
    listener: TcpListener,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.listener.local_addr().unwrap())
    }

    /// The next request's head and JSON, answered with `status`.
    async fn next(&self, status: &str) -> (String, Value) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let (head, body) = read_request(&mut stream).await;
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    }
}

async fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        assert!(count > 0, "the request broke off");
        read.extend_from_slice(&part[..count]);
        let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(read[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        if read.len() >= end + 4 + length {
            return (head, read.split_off(end + 4));
        }
    }
}

async fn gateway(receiver: &Receiver, approval_timeout: Duration) -> ApiTestGateway {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("kitchen", &["lock", "elicit"]),
        token_with("warden", &["*"], &["approve"]),
    ];
    let notify = json!({
        "webhook": receiver.url(),
        "headers": { "Authorization": "Bearer hook-word" },
        "dashboard": "https://tools.example.org/",
    });
    let notify: NotifySettings = serde_json::from_value(notify).unwrap();
    let mut limits = Limits::default();
    limits.approval_timeout = approval_timeout;
    ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        limits,
        notifications: Notifications {
            channels: vec![Arc::new(Webhook::new(&notify).unwrap().unwrap())],
            dashboard: notify.dashboard,
        },
        mcp_servers: vec![asking_server("house")],
        ..TestGatewayOptions::default()
    })
    .await
}

#[tokio::test]
async fn a_waiting_call_is_announced_once_and_the_link_grants_nothing() {
    let receiver = Receiver::start().await;
    let gateway = gateway(&receiver, Duration::from_secs(120)).await;
    let arguments = json!({ "door": "front", "why": SECRET, "long": "x".repeat(5000) });
    let approved = async {
        // A failed delivery is tried again.
        let first = receiver.next("503 Busy").await;
        let (head, notification) = receiver.next("204 No Content").await;
        assert_eq!(first.1, notification);
        assert!(head.starts_with("post /hook http/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: bearer hook-word"), "{head}");
        assert_eq!(
            (
                &notification["event"],
                &notification["tool"],
                &notification["caller"]
            ),
            (&json!("approval"), &json!("lock"), &json!("kitchen"))
        );
        assert_eq!(notification["link"], "https://tools.example.org/#/calls");
        let text = notification["text"].as_str().unwrap();
        assert_eq!(
            text,
            "A call of 'lock' waits for approval. The policy requires approval."
        );
        let shown = notification["arguments"].to_string();
        assert!(shown.contains("front") && shown.len() < 4000, "{shown}");
        assert!(!notification.to_string().contains(SECRET), "{notification}");
        // What is in the notification approves nothing without a sign-in.
        let id = notification["id"].as_str().unwrap();
        let path = format!("/api/approvals/{id}");
        let approve = json!({ "approve": true });
        assert_eq!(gateway.post(&path, &approve).await.status, 401);
        assert_eq!(gateway.post_as("warden", &path, &approve).await.status, 204);
    };
    let call = gateway.post_as("kitchen", "/api/tools/lock/call", &arguments);
    let (reply, ()) = tokio::join!(call, approved);
    assert_eq!(reply.json()["success"], true);
}

#[tokio::test]
async fn a_call_that_nobody_was_told_of_is_denied_without_waiting() {
    let receiver = Receiver::start().await;
    let gateway = gateway(&receiver, Duration::from_secs(120)).await;
    let arguments = json!({});
    // Not found is not worth another attempt, and a redirect is never followed.
    for status in [
        "404 Not Found",
        "307 Elsewhere\r\nlocation: http://127.0.0.1:1/",
    ] {
        let (reply, _) = tokio::join!(
            gateway.post_as("kitchen", "/api/tools/lock/call", &arguments),
            receiver.next(status)
        );
        assert_eq!(reply.json()["error"], "Tool 'lock' needs approval");
    }
}

#[tokio::test]
async fn a_call_that_was_announced_waits_for_its_time() {
    let receiver = Receiver::start().await;
    let gateway = gateway(&receiver, Duration::from_millis(300)).await;
    let arguments = json!({});
    let (reply, _) = tokio::join!(
        gateway.post_as("kitchen", "/api/tools/lock/call", &arguments),
        receiver.next("200 OK")
    );
    let expected = "Tool 'lock' needs approval, and nobody answered in time";
    assert_eq!(reply.json()["error"], expected);
}

#[tokio::test]
async fn a_servers_question_is_announced_and_answered_over_the_link() {
    let receiver = Receiver::start().await;
    let gateway = gateway(&receiver, Duration::from_secs(120)).await;
    gateway.servers.start_all().await;
    let answered = async {
        let (_, notification) = receiver.next("200 OK").await;
        assert_eq!(
            (
                &notification["event"],
                &notification["server"],
                &notification["question"]
            ),
            (&json!("question"), &json!("house"), &json!("Who?"))
        );
        let path = format!("/api/questions/{}", notification["id"].as_str().unwrap());
        let accept = json!({ "action": "accept", "content": { "who": "Ada" } });
        assert_eq!(gateway.post(&path, &accept).await.status, 401);
        assert_eq!(gateway.post_as("warden", &path, &accept).await.status, 204);
    };
    let arguments = json!({});
    let call = gateway.post_as("kitchen", "/api/tools/elicit/call", &arguments);
    let (reply, ()) = tokio::join!(call, answered);
    assert!(reply.text.contains("Ada"), "{}", reply.text);
}
