use std::path::Path;

use serde_json::{Value, json};

use crate::{ConfigPaths, ServerSettings};

fn read(entry: &Value) -> ServerSettings {
    let places = ConfigPaths {
        folder: Path::new("/"),
        home: None,
    };
    ServerSettings::read("s", entry, places).0.unwrap()
}

#[test]
fn mc2_secrets_are_known_by_their_names_and_shapes() {
    for (entry, expected) in [
        (
            json!({ "command": "x", "env": { "TOKEN": "abcdef-123" } }),
            &["abcdef-123"][..],
        ),
        (
            json!({ "command": "x", "env": { "MQTT_PASSWORD": "1234" } }),
            &["1234"],
        ),
        (
            json!({ "command": "x", "env": { "DATABASE_URL": "postgres://ada:s3cret%21word@host/db?sslmode=require" } }),
            &["s3cret%21word", "s3cret!word"],
        ),
        (
            json!({ "command": "x", "env": { "CONN": "Server=db;User Id=sa;Password=pa55word;" } }),
            &["pa55word"],
        ),
        (
            json!({ "command": "x", "env": { "SETTING": "ghp_16C7e42F292c6912E77" } }),
            &["ghp_16C7e42F292c6912E77"],
        ),
        (
            json!({ "command": "x", "env": { "DSN": "https://0123456789abcdef@o1.example.org/7" } }),
            &["0123456789abcdef"],
        ),
        (
            json!({ "command": "x", "env": { "OPENAPI_MCP_HEADERS": "{\"Authorization\":\"Bearer ntn_abcdefghijklmnop\",\"Notion-Version\":\"2022-06-28\"}" } }),
            &["Bearer ntn_abcdefghijklmnop", "ntn_abcdefghijklmnop"],
        ),
        (
            json!({ "command": "x", "args": ["--api-key", "k-12345", "--token=t-12345", "--verbose", "folder"] }),
            &["k-12345", "t-12345"],
        ),
        (
            json!({ "command": "npx", "args": ["mcp-remote", "https://h/", "--header", "Authorization: Bearer short-tok-1"] }),
            &["Bearer short-tok-1", "short-tok-1"],
        ),
        (
            json!({ "command": "npx", "args": ["--header", "Authorization:Bearer short-tok-2", "X-Api-Key: abc123"] }),
            &["Bearer short-tok-2", "short-tok-2", "abc123"],
        ),
        (
            json!({ "command": "x", "env": { "HEADERS": "X-Api-Key: abcd-1, X-Client: house\nX-Token: efgh-2" } }),
            &["abcd-1", "efgh-2"],
        ),
        (
            json!({ "command": "x", "env": { "API_KEYS": "a-long,b-long", "PASSWORD": "one,two, and a longer part" } }),
            &[
                "a-long,b-long",
                "a-long",
                "b-long",
                "one,two, and a longer part",
                "and a longer part",
            ],
        ),
        (
            json!({ "command": "x", "env": { "SETTINGS": "{\"apiKeys\": [\"a-long\", \"b-long\"]}" } }),
            &["a-long", "b-long"],
        ),
        (
            json!({ "command": "x", "env": { "VAULT_SECRET_ID": "abcd-efgh" } }),
            &["abcd-efgh"],
        ),
        (
            json!({ "command": "x", "env": { "DB_PASSWORD": "/hunter2/", "AWS_SECRET_ACCESS_KEY": "/wJalrXUtn3FEMI/K7MDENG9/bPxRfiCY" } }),
            &["/wJalrXUtn3FEMI/K7MDENG9/bPxRfiCY", "/hunter2/"],
        ),
        (
            json!({ "command": "x", "env": { "PRIVATE_KEY": "-----BEGIN PRIVATE KEY-----\nMIIabcdef\n-----END PRIVATE KEY-----" } }),
            &[
                "-----BEGIN PRIVATE KEY-----\nMIIabcdef\n-----END PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY-----",
                "MIIabcdef",
                "-----END PRIVATE KEY-----",
            ],
        ),
        (
            json!({ "url": "https://ada:s3cret-word@h/mcp?apiKey=k-123456&v=1", "headers": { "Authorization": "Bearer tok-12345", "X-Client": "house" } }),
            &["Bearer tok-12345", "tok-12345", "s3cret-word", "k-123456"],
        ),
        (
            json!({ "url": "https://h/", "headers": { "Authorization": "Basic YWRhOnMzY3JldA==" } }),
            &["Basic YWRhOnMzY3JldA==", "YWRhOnMzY3JldA==", "s3cret"],
        ),
    ] {
        assert_eq!(read(&entry).secrets(), expected, "{entry}");
    }
}

#[test]
fn mc2_ordinary_values_stay_readable() {
    let env = json!({
        "NODE_ENV": "production", "LOG_LEVEL": "debug", "MQTT_BROKER_URL": "mqtt://ada@localhost:1883/house",
        "MAX_TOKENS": "200000", "TOKENIZERS_PARALLELISM": "false", "REQUIRE_AUTH": "true", "API_KEY_FILE": "/run/secrets/key",
        "PATH": "/usr/local/bin:/usr/bin", "TENANT": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "EMPTY_TOKEN": "",
        "GOOGLE_APPLICATION_CREDENTIALS": "/x/sa.json", "TLS_KEY": "/etc/k.pem", "SSH_KEYS": "~/.ssh/id_ed25519,~/.ssh/id_rsa",
        "CLIENT_KEY": "certs/client.key", "AUTH_PROVIDER": "github", "TIMES": "lunch: 12:30, tea: 16:00",
        "SITES": "https://example.org/a/long/path/to/a/page?lang=en", "MODEL": "claude-sonnet-4-20250514",
    });
    let entry = json!({ "command": "npx", "args": ["-y", "@scope/server", "--port", "8080", "/data", "--key", "/etc/k.pem", "--no-auth", "/srv/files", "--image", "my-secret:latest"], "env": env });
    assert_eq!(read(&entry).secrets(), [""; 0]);
    let entry = json!({ "url": "https://example.org/mcp?v=1", "headers": { "Accept-Language": "en", "X-Client": "toolgate-house" } });
    assert_eq!(read(&entry).secrets(), [""; 0]);
}

#[test]
fn settings_do_not_show_them() {
    let settings = read(&json!({ "url": "https://h/", "headers": { "X-Key": "tok-12345" } }));
    assert!(!format!("{settings:?}").contains("tok-12345"));
}
