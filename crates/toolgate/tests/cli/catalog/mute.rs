//! A server that never answers, listed first: long-running commands don't wait for it.

use std::time::Duration;

use fakellm::Answer;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::CatalogFolder;
use crate::gateway::RunningServe;
use crate::llm::{ScriptedLlm, alone};

/// Every wait for a server is longer than this; the mute server has ten minutes to start.
const SHORT: Duration = Duration::from_secs(4);

impl CatalogFolder {
    /// The mute server has such a long timeout that a wait for it would be noticed.
    fn with_mute_server_first(servers: &[(&str, &[&str])]) -> Self {
        let home = Self::new(servers);
        home.run(&["list"]);
        let file = home.path("house.json");
        let config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mute =
            json!({ "command": fakemcp::program(), "args": ["mute"], "startTimeout": "10m" });
        let mut servers = serde_json::Map::from_iter([("mute".to_owned(), mute)]);
        servers.extend(config["mcpServers"].as_object().unwrap().clone());
        let config = json!({ "mcpServers": servers, "retry": config["retry"] });
        std::fs::write(file, config.to_string()).unwrap();
        home
    }
}

#[test]
fn mc5_in_serve_a_mute_server_listed_first_delays_nothing() {
    let home = CatalogFolder::with_mute_server_first(&[]);
    let tools = home.tools("tools", &["alpha"]);
    let file = home.path("house.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    // The second one's tools are unknown too, so a caller of its tool has to be woken.
    config["mcpServers"]["good"] =
        json!({ "command": fakemcp::program(), "args": [tools, "wait=500"] });
    std::fs::write(file, config.to_string()).unwrap();
    let gateway = RunningServe::start(home.command(&["serve"]));
    for tool in ["echo", "alpha", "good__alpha", "datetime"] {
        let begin = Instant::now();
        let answer = gateway.call(tool, "{}");
        assert_eq!(answer["success"], true, "{tool} {answer}");
        assert!(begin.elapsed() < SHORT, "{tool} {:?}", begin.elapsed());
    }
    let begin = Instant::now();
    let (_, listed) = gateway.get("/api/tools");
    assert!(listed.contains(r#""name":"alpha""#), "{listed}");
    assert!(begin.elapsed() < SHORT, "{:?}", begin.elapsed());
    let (_, servers) = gateway.get("/api/servers");
    let servers: Value = serde_json::from_str(&servers).unwrap();
    assert_eq!(
        (&servers[0]["name"], &servers[0]["state"]),
        (&json!("mute"), &json!("starting")),
        "it was mute all the time"
    );
}

#[test]
fn mc5_in_chat_a_mute_server_listed_first_delays_nothing() {
    let tools = |home: &CatalogFolder| home.tools("tools", &["alpha"]);
    let plain = CatalogFolder::new(&[]);
    plain.configure(&[("good", &[&tools(&plain)])]);
    plain.run(&["list"]);
    let folder = CatalogFolder::new(&[]);
    let listed = tools(&folder);
    let with_mute = CatalogFolder::with_mute_server_first(&[("good", &[&listed])]);
    let chat = |home: &CatalogFolder| {
        let llm = ScriptedLlm::new([
            Answer::call("call_1", "alpha", &json!({})),
            Answer::text("It is done."),
        ]);
        let run = home.command(&["chat", "-p", "ollama"]).stdin("do it\n");
        let begin = Instant::now();
        let done = llm.known_to(run, "ollama").done();
        assert_eq!(done.stdout, "It is done.\n", "{done:?}");
        let told = llm.requests()[1].json()["messages"].to_string();
        assert!(told.contains(r#"\"tool\":\"alpha\""#), "{told}");
        begin.elapsed()
    };
    let without_model = |home: &CatalogFolder| {
        let run = home.command(&["chat"]).stdin("what is 17 percent of 340\n");
        let begin = Instant::now();
        let done = alone(run).done();
        assert!(done.stdout.contains("57.8"), "{done:?}");
        begin.elapsed()
    };
    // Starting programs takes time; only what the mute server adds counts.
    let (usual, took) = (chat(&plain), chat(&with_mute));
    assert!(took < usual + SHORT, "{took:?}, without it {usual:?}");
    let (usual, took) = (without_model(&plain), without_model(&with_mute));
    assert!(took < usual + SHORT, "{took:?}, without it {usual:?}");
}
