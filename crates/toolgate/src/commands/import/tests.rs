use std::path::Path;

use super::*;

fn take(name: &str, entry: &Value) -> Result<(String, Value, Vec<String>), String> {
    let source = sources::sources(Path::new("/house/.vscode/mcp.json"), &|_| None).unwrap();
    match evaluate(name, entry, &source[0]) {
        ImportVerdict::Take {
            name,
            entry,
            dropped,
        } => Ok((name, entry, dropped)),
        ImportVerdict::Skip(reason) => Err(reason),
    }
}

#[test]
fn an_entry_is_made_to_fit_our_file() {
    for (name, entry, expected) in [
        (
            "a",
            json!({ "command": "npx", "args": ["${workspaceFolder}/x", "${userHome}"], "env": { "K": "${env:K}" } }),
            (
                "a",
                json!({ "command": "npx", "args": ["/house/x", "${HOME}"], "env": { "K": "${env:K}" }, "sandbox": "default" }),
                &[][..],
            ),
        ),
        (
            "b",
            json!({ "command": "./run", "cwd": "sub", "timeout": 60, "autoApprove": ["x"], "envFile": ".env" }),
            (
                "b",
                json!({ "command": "/house/./run", "cwd": "/house/sub", "timeout": "60s", "sandbox": "default" }),
                &["autoApprove", "envFile"],
            ),
        ),
        (
            "owner/server",
            json!({ "type": "http", "url": "https://h/mcp", "timeout": 90000, "headers": null }),
            (
                "server",
                json!({ "type": "http", "url": "https://h/mcp", "timeout": "90s" }),
                &[],
            ),
        ),
        (
            "c",
            json!({ "command": ["bin/x", "y"], "url": null }),
            (
                "c",
                json!({ "command": ["/house/bin/x", "y"], "sandbox": "default" }),
                &[],
            ),
        ),
        (
            "engine",
            json!({ "command": "docker", "args": ["run", "-i", "--rm", "image"] }),
            (
                "engine",
                json!({ "command": "docker", "args": ["run", "-i", "--rm", "image"], "sandbox": "off" }),
                &[],
            ),
        ),
        (
            "ours",
            json!({ "command": "x", "sandbox": "strict" }),
            ("ours", json!({ "command": "x", "sandbox": "strict" }), &[]),
        ),
        (
            "d",
            json!({ "url": "${BASE}/mcp" }),
            ("d", json!({ "url": "${BASE}/mcp" }), &[]),
        ),
    ] {
        let (new, made, dropped) = take(name, &entry).unwrap();
        assert_eq!((new.as_str(), made), (expected.0, expected.1), "{entry}");
        assert_eq!(dropped, expected.2);
    }
}

#[test]
fn unusable_entries_are_skipped_with_a_reason() {
    for (entry, expected) in [
        (json!("x"), "it is not an object"),
        (
            json!({ "url": "unix:///x" }),
            "url: must begin with http:// or https://",
        ),
        (
            json!({ "url": "https://h/", "headers": { "A": "Bearer ${input:token}" } }),
            "headers.A: ${input:…} makes VS Code ask for a value; write ${VAR} and set the variable",
        ),
        (
            json!({ "type": "builtin" }),
            "it needs a 'command' or a 'url'",
        ),
    ] {
        assert_eq!(take("s", &entry).unwrap_err(), expected, "{entry}");
    }
}
