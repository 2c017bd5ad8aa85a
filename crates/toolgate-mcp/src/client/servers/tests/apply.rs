//! Applying a configuration, waiting for servers, and stopping them.

use toolgate_core::{
    CallContext, Handler, ToolCall, ToolExecutor, ToolFuture, ToolPattern, ValidArguments,
};

use super::*;

const UP: ScriptedStart = ScriptedStart::Connect(NOW);

#[tokio::test(start_paused = true)]
async fn a_new_configuration_touches_only_what_is_different() {
    let ups: Vec<(&str, &[ScriptedStart])> = ["a", "b", "c", "d"]
        .map(|name| (name, &[UP] as &[ScriptedStart]))
        .into();
    let house = SupervisionTest::new(&ups);
    let mut off = server("d");
    off.disabled = true;
    house.apply([server("a"), server("b"), server("c"), off]);
    house.servers.start_all().await;
    assert_eq!(house.state("d"), ServerState::Disabled);
    let peers = ["a", "b", "c"].map(|name| house.stage.peer(name));

    let mut other = server("b");
    other.timeout = Some(seconds(5));
    house.apply([server("d"), other, server("a")]);
    house.servers.start_all().await;
    house.at(1.0).await;
    let names: Vec<String> = house
        .servers
        .status()
        .into_iter()
        .map(|status| status.name)
        .collect();
    assert_eq!(names, ["d", "b", "a"]);
    let starts = ["a", "b", "c", "d"].map(|name| house.starts(name).len());
    assert_eq!(starts, [1, 2, 1, 1]);
    assert_eq!(
        peers.map(|peer| peer.closed.load(Ordering::SeqCst)),
        [false, true, true]
    );
    let tools = ["a_tool", "b_tool", "c_tool", "d_tool"].map(|tool| house.has(tool));
    assert_eq!(tools, [true, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_readded_server_waits_for_its_old_task() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.servers.start_all().await;
    house.apply([]);
    house.apply([server("a"), server("a")]);
    house.servers.start_all().await;
    assert_eq!(house.servers.status().len(), 1);
    assert_eq!(house.starts("a"), [0.0, 0.1]);
    house.at(1.0).await;
    assert!(house.has("a_tool"));
    assert_eq!(house.log.count("configured twice"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_settled_as_soon_as_it_is_decided() {
    let scripts: &[(&str, &[ScriptedStart])] = &[
        ("first", &[ScriptedStart::Connect(seconds(5))]),
        ("second", &[UP]),
        ("third", &[ScriptedStart::Connect(seconds(8))]),
        ("taking", &[ScriptedStart::Connect(seconds(2))]),
    ];
    for (name, at) in [
        ("first__anything", 5.0),
        ("second__second_tool", 0.0),
        // A known name doesn't wait for other servers that could have it.
        ("second_tool", 0.0),
        // Only an overriding server could take the name.
        ("datetime", 2.0),
        // The name is settled as soon as the tool appears.
        ("first_tool", 5.0),
        ("third_tool", 8.0),
        ("nothing", 8.0),
        ("nobody__nothing", 8.0),
    ] {
        let house = SupervisionTest::new(scripts);
        let mut taking = server("taking");
        taking.overrides = true;
        house.apply([server("first"), server("second"), server("third"), taking]);
        house.servers.wait_for_tool(name).await;
        assert_eq!(house.now(), at, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_no_server_may_offer_are_unreachable() {
    let scripts: &[(&str, &[ScriptedStart])] = &[
        ("slow", &[ScriptedStart::Connect(seconds(5))]),
        ("narrow", &[ScriptedStart::Hang]),
        ("barred", &[ScriptedStart::Hang]),
    ];
    for (name, at) in [
        ("nothing", 5.0),
        ("barred__nothing", 5.0),
        ("narrow_tool", 9.0),
        ("other", 9.0),
        // The tool exists.
        ("slow_tool", 9.0),
    ] {
        let house = SupervisionTest::new(scripts);
        let mut narrow = server("narrow");
        narrow.allowed_tools = vec![ToolPattern::new("narrow_*")];
        let mut barred = server("barred");
        barred.excluded_tools = vec![ToolPattern::new("no*")];
        house.apply([server("slow"), narrow, barred]);
        let out_of_reach = house.servers.wait_until_tool_ruled_out(name);
        let _is_over = tokio::time::timeout(seconds(9), out_of_reach).await;
        assert_eq!(house.now(), at, "{name}");
    }
    let house = SupervisionTest::started(&[
        ("a", &[ScriptedStart::Connect(seconds(1))]),
        ("b", &[ScriptedStart::Hang]),
    ]);
    assert_eq!(house.servers.pending_servers(), ["a", "b"]);
    house.at(2.0).await;
    assert_eq!(house.servers.pending_servers(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn without_servers_everything_is_settled() {
    let house = SupervisionTest::new(&[]);
    house.servers.start_all().await;
    house.servers.wait_for_tool("nothing").await;
    house.servers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_see_changes_of_status() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Connect(seconds(1))])]);
    let mut changed = house.servers.subscribe();
    let mut states = vec![house.state("a")];
    while states.last() != Some(&ServerState::Connected) {
        changed.changed().await.unwrap();
        states.push(house.state("a"));
    }
    assert_eq!((states[0], house.now()), (ServerState::Starting, 1.0));
}

#[tokio::test(start_paused = true)]
async fn all_are_stopped_side_by_side_and_can_be_started_again() {
    let ups: Vec<(&str, &[ScriptedStart])> = ["a", "b", "c"]
        .map(|name| (name, &[UP] as &[ScriptedStart]))
        .into();
    let house = SupervisionTest::started(&ups);
    house.servers.start_all().await;
    house.servers.stop().await;
    assert_eq!(house.now(), 0.1);
    for name in ["a", "b", "c"] {
        assert!(house.stage.peer(name).closed.load(Ordering::SeqCst));
        assert_eq!(
            (house.state(name), house.status(name).tools),
            (ServerState::Stopped, 0)
        );
    }
    assert!(!house.has("a_tool") && house.has("datetime"));
    assert!(!house.servers.reconnect("a").await);
    house.apply([server("a")]);
    house.servers.start_all().await;
    assert!(house.has("a_tool"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_end_is_not_waited_for_beyond_ten_seconds() {
    let house = SupervisionTest::started(&[("a", &[UP]), ("b", &[UP])]);
    house.servers.start_all().await;
    *house.stage.peer("a").close_takes.lock() = seconds(1000);
    house.servers.stop().await;
    assert_eq!(house.now(), 10.0);
    assert!(!house.has("a_tool") && !house.has("b_tool"));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_plain_json() {
    let house =
        SupervisionTest::started(&[("a", &[ScriptedStart::Connect(Duration::from_millis(1500))])]);
    house.servers.start_all().await;
    let expected = json!({
        "name": "a", "transport": "stdio", "state": "connected", "era": "legacy", "protocol": null, "tools": 1,
        "remembered": false, "refused": [],
        "connected_in_ms": 1500.0, "attempts": 1, "restarts": 0, "polluted": 2, "polluted_lines": ["hello"],
        "stderr": ["stderr of a"], "error": null, "next_try_ms": null, "pid": 7, "health": null, "changes": null,
        "sampling": null,
    });
    assert_eq!(serde_json::to_value(house.status("a")).unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn when_the_last_handle_is_gone_everything_ends() {
    let house = SupervisionTest::started(&[("a", &[UP]), ("b", &[ScriptedStart::Fail(NOW, "")])]);
    house.servers.start_all().await;
    let (stage, manager) = (Arc::clone(&house.stage), Arc::clone(&house.manager));
    let starts = house.starts("b").len();
    let clone = house.servers.clone();
    drop(house);
    sleep(seconds(1)).await;
    assert!(manager.find("a_tool").is_some());
    drop(clone);
    sleep(seconds(1000)).await;
    assert!(stage.peer("a").closed.load(Ordering::SeqCst));
    assert!(manager.find("a_tool").is_none());
    assert_eq!(
        stage
            .starts
            .lock()
            .iter()
            .filter(|(name, _)| name == "b")
            .count(),
        starts
    );
}

#[tokio::test(start_paused = true)]
async fn im6_server_health_says_how_every_server_is() {
    let options = ServersOptions {
        redactor: Redactor::new(["exit status 3".to_owned()]),
        ..ServersOptions::default()
    };
    let house = SupervisionTest::with(
        &[("good", &[UP]), ("bad", &[ScriptedStart::Fail(NOW, "")])],
        options,
    );
    house.apply([server("good"), server("bad")]);
    house.servers.start_all().await;
    house.manager.add(ServerHealthTool::new(&house.servers));
    let executor = ToolExecutor::new(Arc::clone(&house.manager));
    let outcome = executor
        .execute(ToolCall::new("server_health", json!({})))
        .await;
    let expected = json!({ "servers": [
        { "name": "good", "state": "connected", "era": "legacy", "tools": 1, "restarts": 0, "polluted": 2, "error": null,
          "health": null },
        { "name": "bad", "state": "failed", "era": null, "tools": 0, "restarts": 0, "polluted": 2,
          "error": "it stopped during the handshake ([REDACTED])", "health": null },
    ] });
    assert_eq!(outcome.to_envelope()["result"], expected);
}

struct ServerHealthTool {
    definition: ToolDefinition,
    health: ServerHealthHandler,
}

impl ServerHealthTool {
    fn new(servers: &Servers) -> Self {
        let schema = json!({ "type": "object" });
        let builder = ToolDefinition::builder("server_health", "How the servers are", schema);
        Self {
            definition: builder.source(ToolSource::Internal).build().unwrap(),
            health: servers.inner.shared.options.health.clone(),
        }
    }
}

impl Tool for ServerHealthTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        self.health.call(arguments, context)
    }
}
