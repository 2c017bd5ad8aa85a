//! Lists, reconnects and adds MCP servers.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_mcp::{SecretHeaders, ServerConnection, ServerSettings};
use toolgate_server::{ConfigWriteError, ConfigWriter, ServeSettings};

use crate::test_gateway::{ApiTestGateway, TestGatewayOptions};

fn away(name: &str) -> ServerSettings {
    let nowhere = ServerConnection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    ServerSettings::new(name, nowhere)
}

#[tokio::test]
async fn servers_are_listed_with_their_state_and_reconnected() {
    let gateway = ApiTestGateway::start().await;
    assert_eq!(gateway.get("/api/servers").await.json(), json!([]));
    let mut off = away("off");
    off.disabled = true;
    gateway.servers.apply(vec![away("a/b %"), off]);
    gateway.servers.start_all().await;
    let list = gateway.get("/api/servers").await.json();
    let expected = serde_json::to_value(gateway.servers.status()).unwrap();
    for (server, status) in list
        .as_array()
        .unwrap()
        .iter()
        .zip(expected.as_array().unwrap())
    {
        for (key, value) in status.as_object().unwrap() {
            assert!(
                key == "next_try_ms" || &server[key] == value,
                "{key}: {server} {status}"
            );
        }
    }
    let again = gateway
        .post("/api/servers/a%2Fb%20%25/reconnect", &json!({}))
        .await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["name"]),
        (200, &json!("a/b %"))
    );
    assert_eq!(
        gateway
            .post("/api/servers/off/reconnect", &json!({}))
            .await
            .status,
        409
    );
    for name in ["of", "nope", "%00", ".."] {
        let unknown = gateway
            .post(&format!("/api/servers/{name}/reconnect"), &json!({}))
            .await;
        assert_eq!(unknown.status, 404, "{name}");
        unknown.problem();
    }
}

#[derive(Default)]
struct RecordingConfigWriter(Mutex<Vec<(String, String)>>);

impl ConfigWriter for RecordingConfigWriter {
    fn add_tool(&self, _: &Value) -> Result<String, ConfigWriteError> {
        Err(ConfigWriteError::Refused("only servers here".to_owned()))
    }

    fn add_server(&self, name: &str, url: &str) -> Result<String, ConfigWriteError> {
        self.0.lock().push((name.to_owned(), url.to_owned()));
        Ok("in a file".to_owned())
    }
}

#[tokio::test]
async fn g3_servers_are_added_by_url_only_and_only_where_that_is_on() {
    let kept = Arc::new(RecordingConfigWriter::default());
    for (add_servers, url_status) in [(false, 403), (true, 201)] {
        let mut settings = ServeSettings::default();
        settings.add_servers = add_servers;
        let workshop: Arc<dyn ConfigWriter> = Arc::clone(&kept) as _;
        let gateway = ApiTestGateway::start_with(TestGatewayOptions {
            settings,
            workshop: Some(workshop),
            ..TestGatewayOptions::default()
        })
        .await;
        gateway.servers.apply(vec![away("there")]);
        let url = "https://example.org/mcp";
        for (body, status) in [
            (json!({ "name": "n", "command": "sh" }), 403),
            (
                json!({ "name": "n", "command": "sh", "args": ["-c", "id"], "url": url }),
                403,
            ),
            (json!({ "name": "n", "command": ["sh"] }), 403),
            (json!({ "name": "n", "url": url }), url_status),
            (json!({ "name": "n" }), if add_servers { 422 } else { 403 }),
            (
                json!({ "name": "", "url": url }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "file:///etc/passwd" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "http://169.254.169.254/latest" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "http://0xa9fea9fe/" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "http://[fe80::1]/mcp" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "http://[::ffff:169.254.1.1]/" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "http://[fd00:ec2::254]/" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "sh -c id" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "there", "url": url }),
                if add_servers { 409 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": "https://example.org/${HOME}" }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "a/b", "url": url }),
                if add_servers { 422 } else { 403 },
            ),
            (
                json!({ "name": "n", "url": url, "headers": { "a": "b" } }),
                if add_servers { 422 } else { 403 },
            ),
            (json!({ "url": url }), 422),
        ] {
            let reply = gateway.post("/api/servers", &body).await;
            assert_eq!(reply.status, status, "{body}");
            if body.get("command").is_some() {
                assert!(reply.problem().contains("toolgate add"), "{}", reply.text);
            }
        }
    }
    assert_eq!(
        *kept.0.lock(),
        [("n".to_owned(), "https://example.org/mcp".to_owned())]
    );
}
