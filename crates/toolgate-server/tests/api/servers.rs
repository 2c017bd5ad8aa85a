//! MCP servers: listed, connected anew, added.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_mcp::{Connection, Headers, ServerSettings};
use toolgate_server::{NotKept, ServeSettings, Workshop};

use crate::home::{Home, Plan};

fn away(name: &str) -> ServerSettings {
    let nowhere = Connection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: Headers::default(),
    };
    ServerSettings::new(name, nowhere)
}

#[tokio::test]
async fn servers_are_listed_as_they_are_and_connected_anew() {
    let home = Home::usual().await;
    assert_eq!(home.get("/api/servers").await.json(), json!([]));
    let mut off = away("off");
    off.disabled = true;
    home.servers.apply(vec![away("a/b %"), off]);
    home.servers.settled().await;
    let list = home.get("/api/servers").await.json();
    let expected = serde_json::to_value(home.servers.status()).unwrap();
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
    let again = home
        .post("/api/servers/a%2Fb%20%25/reconnect", &json!({}))
        .await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["name"]),
        (200, &json!("a/b %"))
    );
    assert_eq!(
        home.post("/api/servers/off/reconnect", &json!({}))
            .await
            .status,
        409
    );
    for name in ["of", "nope", "%00", ".."] {
        let unknown = home
            .post(&format!("/api/servers/{name}/reconnect"), &json!({}))
            .await;
        assert_eq!(unknown.status, 404, "{name}");
        unknown.problem();
    }
}

/// Remembers what it was given.
#[derive(Default)]
struct Kept(Mutex<Vec<(String, String)>>);

impl Workshop for Kept {
    fn add_tool(&self, _: &Value) -> Result<String, NotKept> {
        Err(NotKept::Refused("only servers here".to_owned()))
    }

    fn add_server(&self, name: &str, url: &str) -> Result<String, NotKept> {
        self.0.lock().push((name.to_owned(), url.to_owned()));
        Ok("in a file".to_owned())
    }
}

#[tokio::test]
async fn g3_servers_are_added_by_url_only_and_only_where_that_is_on() {
    let kept = Arc::new(Kept::default());
    for (add_servers, url_status) in [(false, 403), (true, 201)] {
        let mut settings = ServeSettings::default();
        settings.add_servers = add_servers;
        let workshop: Arc<dyn Workshop> = Arc::clone(&kept) as _;
        let home = Home::of(Plan {
            settings,
            workshop: Some(workshop),
            ..Plan::default()
        })
        .await;
        home.servers.apply(vec![away("there")]);
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
            let reply = home.post("/api/servers", &body).await;
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
