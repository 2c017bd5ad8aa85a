//! Remembered tools: names, lookups and calls before a server is connected, or without it.

use tempfile::TempDir;
use toolgate_core::{ToolCall, ToolExecutor};

use super::*;
use crate::client::content::ListedContent;

const UP: ScriptedStart = ScriptedStart::Connect(NOW);
const FAIL: ScriptedStart = ScriptedStart::Fail(NOW, "no broker");

/// A configured server: the same one in every run.
pub(super) fn known(name: &str) -> ServerSettings {
    let entry = json!({ "command": format!("{name}-command") });
    server(name).with_identity(&entry, std::path::Path::new("/house"))
}

pub(super) fn memory() -> (ToolCatalog, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (ToolCatalog::new(folder.path().join("catalogue")), folder)
}

pub(super) fn options(catalog: &ToolCatalog) -> ServersOptions {
    ServersOptions {
        catalog: catalog.clone(),
        ..ServersOptions::default()
    }
}

pub(super) fn on_demand(catalog: &ToolCatalog) -> ServersOptions {
    ServersOptions {
        on_demand: true,
        ..options(catalog)
    }
}

/// Stores the list of an earlier run.
fn seen(catalog: &ToolCatalog, server: &str, tools: &[&str]) {
    let listed: Vec<_> = tools
        .iter()
        .map(|name| definition(&((*name).to_owned(), "Does it".to_owned())))
        .collect();
    catalog.remember(&known(server), &listed, &ListedContent::default());
}

pub(super) fn names(house: &SupervisionTest) -> Vec<String> {
    let tools = house.manager.tools();
    let names = tools.iter().map(|tool| tool.definition().name().to_owned());
    names.collect()
}

pub(super) async fn call(house: &SupervisionTest, tool: &str) -> serde_json::Value {
    let executor = ToolExecutor::new(Arc::clone(&house.manager));
    let outcome = executor.execute(ToolCall::new(tool, json!({}))).await;
    outcome.to_envelope()
}

#[tokio::test(start_paused = true)]
async fn tm8_local_and_remembered_tools_exist_before_any_contact() {
    let (catalog, _folder) = memory();
    seen(&catalog, "b", &["b_tool", "volume"]);
    let house = SupervisionTest::with(&[("a", &[UP]), ("b", &[UP])], options(&catalog));
    house.apply([known("a"), known("b")]);
    // No server task has run yet.
    assert!(house.stage.starts.lock().is_empty());
    let expected = ["volume", "datetime", "b_tool", "b__volume"];
    assert_eq!(names(&house), expected);
    assert_eq!(
        house.manager.find("volume").unwrap().definition().source(),
        &ToolSource::Builtin
    );
    house.servers.start_all().await;
    assert_eq!(names(&house)[..3], ["volume", "datetime", "a_tool"]);
}

#[tokio::test(start_paused = true)]
async fn lists_and_removals_are_remembered() {
    let (catalog, _folder) = memory();
    let house = SupervisionTest::with(&[("a", &[UP])], options(&catalog));
    house.apply([known("a")]);
    house.servers.start_all().await;
    house.servers.stop().await;
    let tools = |catalog: &ToolCatalog| {
        let remembered = catalog.recall(&known("a")).unwrap();
        let names = remembered.tools.iter();
        let names = names.map(|tool| tool.definition["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(tools(&catalog), ["a_tool"]);

    let house = SupervisionTest::with(&[("a", &[UP])], options(&catalog));
    house.apply([known("a")]);
    assert!(house.has("a_tool") && house.status("a").remembered);
    house.servers.start_all().await;
    assert!(!house.status("a").remembered);
    house.at(5.0).await;
    house.stage.peer("a").set_tools(&[("other", "Does it")]);
    house.at(10.0).await;
    assert!(!house.has("a_tool") && house.has("other"));
    house.servers.stop().await;
    assert_eq!(tools(&catalog), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn mc5_a_call_waits_only_for_its_own_server() {
    let (catalog, _folder) = memory();
    seen(&catalog, "good", &["good_tool"]);
    let house = SupervisionTest::with(
        &[
            ("mute", &[ScriptedStart::Hang]),
            ("bad", &[FAIL]),
            ("good", &[ScriptedStart::Connect(seconds(2))]),
        ],
        options(&catalog),
    );
    house.apply([known("mute"), known("bad"), known("good")]);
    house.servers.wait_for_tool("good_tool").await;
    assert_eq!(house.now(), 0.0);
    let link = house.stage_link("good").await;
    link.session("good_tool").await.unwrap();
    assert_eq!(house.now(), 2.0);
    // Listing waits only for servers that were never seen.
    house.servers.wait_for_known_tools().await;
    assert_eq!(house.now(), 3.0 * 10.0 + 6.0);
}

#[tokio::test(start_paused = true)]
async fn mc5_an_early_caller_of_a_new_name_is_woken_the_moment_it_is_there() {
    let house = SupervisionTest::started(&[
        ("mute", &[ScriptedStart::Hang]),
        ("bad", &[FAIL]),
        (
            "good",
            &[ScriptedStart::Connect(Duration::from_millis(1700))],
        ),
        ("late", &[ScriptedStart::Connect(seconds(9))]),
    ]);
    house.servers.wait_for_tool("good_tool").await;
    assert_eq!(house.now(), 1.7);
    assert!(house.has("good_tool"));
}

#[tokio::test(start_paused = true)]
async fn tm7_a_name_stays_with_a_starting_or_failed_server() {
    let (catalog, _folder) = memory();
    seen(&catalog, "bank", &["send_money"]);
    seen(&catalog, "evil", &["send_money"]);
    let house = SupervisionTest::with(&[("bank", &[FAIL]), ("evil", &[UP])], options(&catalog));
    house.apply([known("bank"), known("evil")]);
    let owner = || {
        let tool = house.manager.find("send_money").unwrap();
        tool.definition().source().to_string()
    };
    assert_eq!(owner(), "mcp:bank");
    house.at(0.5).await;
    house
        .stage
        .peer("evil")
        .set_tools(&[("send_money", "Mine")]);
    house.at(3.0).await;
    assert_eq!(owner(), "mcp:bank", "while it starts");
    house.servers.start_all().await;
    assert_eq!(house.state("bank"), ServerState::Failed);
    assert_eq!(owner(), "mcp:bank", "after it failed");
    let answer = call(&house, "send_money").await;
    assert_eq!(
        (answer["error_kind"].as_str(), answer["error"].as_str()),
        (
            Some("unavailable"),
            Some(
                "The send_money service is currently unavailable: its server 'bank' is not running"
            )
        )
    );
    // Only removing the server from the configuration frees its names.
    house.apply([known("evil")]);
    assert_eq!(owner(), "mcp:evil");
}

#[tokio::test(start_paused = true)]
async fn tm7_a_lost_server_keeps_its_names_without_a_catalog() {
    let house = SupervisionTest::new(&[("bank", &[UP, FAIL]), ("evil", &[UP])]);
    house.apply([server("bank"), server("evil")]);
    house.servers.start_all().await;
    for name in ["bank", "evil"] {
        house.stage.peer(name).set_tools(&[("send_money", "Pays")]);
    }
    house.at(10.0).await;
    house.stage.peer("bank").die(exit("exit status 3"));
    house.at(100.0).await;
    assert_eq!(house.state("bank"), ServerState::Failed);
    let tool = house.manager.find("send_money").unwrap();
    assert_eq!(tool.definition().source().to_string(), "mcp:bank");
    let call = house.stage.link("bank").session("send_money").await;
    assert!(call.is_err());
}

#[tokio::test(start_paused = true)]
async fn only_a_changed_program_is_a_new_server() {
    let (catalog, _folder) = memory();
    seen(&catalog, "a", &["a_tool"]);
    let house = SupervisionTest::with(&[("a", &[ScriptedStart::Hang])], options(&catalog));
    house.apply([known("a")]);
    assert!(house.has("a_tool"));
    let mut slower = known("a");
    slower.timeout = Some(seconds(99));
    house.apply([slower]);
    assert!(house.has("a_tool"));
    house.at(1.0).await;
    assert!(
        house.has("a_tool"),
        "the end of the old one takes nothing away"
    );
    let other =
        server("a").with_identity(&json!({ "command": "other" }), std::path::Path::new("/"));
    house.apply([other]);
    assert!(!house.has("a_tool"));
    let mut off = known("a");
    off.disabled = true;
    house.apply([known("a")]);
    assert!(house.has("a_tool"));
    house.apply([off]);
    assert!(!house.has("a_tool"));
}

#[tokio::test(start_paused = true)]
async fn on_demand_only_the_server_of_a_called_tool_is_started() {
    let (catalog, _folder) = memory();
    for name in ["one", "two", "three"] {
        seen(&catalog, name, &[&format!("{name}_tool")]);
    }
    let scripts: &[(&str, &[ScriptedStart])] =
        &[("one", &[FAIL]), ("two", &[UP]), ("three", &[UP])];
    let house = SupervisionTest::with(scripts, on_demand(&catalog));
    house.apply(["one", "two", "three"].map(known));
    house.servers.wait_for_known_tools().await;
    house.servers.wait_for_tool("two_tool").await;
    house.at(100.0).await;
    assert!(house.stage.starts.lock().is_empty());
    assert_eq!(house.state("two"), ServerState::Idle);
    // The server dies as soon as it is connected, so the call ends.
    let answer = call(&house, "one_tool").await;
    assert_eq!(answer["error_kind"], "unavailable", "{answer}");
    let starts = ["one", "two", "three"].map(|name| house.starts(name).len());
    assert_eq!(starts, [3, 0, 0]);
    assert!(house.servers.reconnect("three").await);
    house.servers.start_all().await;
    assert_eq!(house.starts("two").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_needed_is_stopped_without_having_been_started() {
    let (catalog, _folder) = memory();
    seen(&catalog, "a", &["a_tool"]);
    let house = SupervisionTest::with(&[("a", &[UP])], on_demand(&catalog));
    house.apply([known("a")]);
    house.servers.stop().await;
    assert_eq!((house.state("a"), house.now()), (ServerState::Stopped, 0.0));
    let answer = call(&house, "a_tool").await;
    assert_eq!(answer["error_kind"], "unavailable", "{answer}");
    assert!(house.stage.starts.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn unknown_names_start_new_servers_then_all() {
    let scripts: &[(&str, &[ScriptedStart])] = &[
        ("old", &[ScriptedStart::Connect(seconds(3))]),
        ("mute", &[ScriptedStart::Hang]),
        ("new", &[ScriptedStart::Connect(seconds(1))]),
    ];
    for (name, at, started) in [
        ("datetime", 0.0, [0, 0, 0]),
        ("old_tool_before", 0.0, [0, 0, 0]),
        ("old__nothing", 3.0, [1, 0, 0]),
        ("new_tool", 1.0, [0, 0, 1]),
        // It has a new tool since its last list; the hanging server isn't waited for.
        ("old_tool", 4.0, [1, 1, 1]),
        ("nothing", 11.0, [1, 1, 1]),
    ] {
        let (catalog, _folder) = memory();
        seen(&catalog, "old", &["old_tool_before"]);
        seen(&catalog, "mute", &["mute_tool"]);
        let house = SupervisionTest::with(scripts, on_demand(&catalog));
        house.apply(["old", "mute", "new"].map(known));
        house.servers.wait_for_tool(name).await;
        let starts = ["old", "mute", "new"].map(|name| usize::from(!house.starts(name).is_empty()));
        assert_eq!((house.now(), starts), (at, started), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn local_tools_wait_for_servers_that_may_override() {
    for (before, at) in [(None, 2.0), (Some("taking_tool"), 0.0)] {
        let (catalog, _folder) = memory();
        if let Some(before) = before {
            seen(&catalog, "taking", &[before]);
        }
        let house = SupervisionTest::with(
            &[("taking", &[ScriptedStart::Connect(seconds(2))])],
            on_demand(&catalog),
        );
        let mut taking = known("taking");
        taking.overrides = true;
        house.apply([taking]);
        house.servers.wait_for_tool("datetime").await;
        assert_eq!(house.now(), at, "{before:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn recently_failed_servers_delay_no_listing() {
    let (catalog, _folder) = memory();
    let scripts: &[(&str, &[ScriptedStart])] = &[
        ("mute", &[ScriptedStart::Hang]),
        ("good", &[ScriptedStart::Connect(seconds(1))]),
    ];
    let first = SupervisionTest::with(scripts, options(&catalog));
    first.apply([known("mute"), known("good")]);
    first.at(10.5).await;
    first.servers.stop().await;
    let failure = catalog.last_failure(&known("mute")).unwrap();
    assert_eq!(failure.reason, "no answer to the handshake");
    let next = SupervisionTest::with(scripts, on_demand(&catalog));
    next.apply([known("mute"), known("good")]);
    next.servers.start_servers_without_tools();
    next.servers.wait_for_known_tools().await;
    assert_eq!(next.now(), 0.0);
    assert!(next.has("good_tool") && next.stage.starts.lock().is_empty());
    assert_eq!(next.servers.last_failure("mute"), Some(failure));
    // Nor does a misspelled tool name, beyond the time a new tool may take to appear.
    next.servers.wait_for_tool("nothing").await;
    assert_eq!(next.now(), 10.0);
}

#[tokio::test(start_paused = true)]
async fn vo1_a_server_that_failed_in_the_last_run_is_waited_for_while_it_starts() {
    let (catalog, _folder) = memory();
    catalog.remember_failure(&known("back"), "no broker");
    let house = SupervisionTest::with(
        &[("back", &[ScriptedStart::Connect(seconds(2))])],
        options(&catalog),
    );
    house.apply([known("back")]);
    house.servers.wait_for_known_tools().await;
    assert_eq!(house.now(), 0.0, "a list is not held up");
    house.servers.wait_for_first_listings().await;
    assert_eq!(house.now(), 2.0);
    assert!(house.has("back_tool"));
}

#[tokio::test(start_paused = true)]
async fn tm7_a_server_that_cannot_be_started_as_configured_keeps_its_names() {
    let (catalog, _folder) = memory();
    seen(&catalog, "bank", &["send_money"]);
    seen(&catalog, "evil", &["send_money"]);
    let house = SupervisionTest::with(&[("evil", &[UP])], options(&catalog));
    let mut bank = known("bank");
    bank.blocked = Some("the variable BANK_KEY is not set".to_owned());
    house.apply([bank.clone(), known("evil")]);
    house.servers.start_all().await;
    let answer = call(&house, "send_money").await;
    assert_eq!(
        answer["error"],
        "The send_money service is currently unavailable: its server 'bank' can't be started: the variable BANK_KEY is not set"
    );
    assert_eq!(house.state("bank"), ServerState::Failed);
    // Applying the same settings again changes nothing.
    house.apply([bank, known("evil")]);
    assert_eq!(house.state("bank"), ServerState::Failed);
}

#[tokio::test(start_paused = true)]
async fn late_servers_are_not_waited_for_twice() {
    let (catalog, _folder) = memory();
    let house = SupervisionTest::with(&[("mute", &[ScriptedStart::Hang])], on_demand(&catalog));
    house.apply([known("mute")]);
    house.servers.start_installed_servers_without_tools();
    house.at(5.0).await;
    house.servers.give_up_on_late_servers();
    let next = SupervisionTest::with(&[("mute", &[ScriptedStart::Hang])], on_demand(&catalog));
    next.apply([known("mute")]);
    next.servers.start_installed_servers_without_tools();
    next.servers.wait_for_known_tools().await;
    assert_eq!(next.now(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn changes_since_the_last_run_are_logged() {
    let (catalog, _folder) = memory();
    let was = definition(&("a_tool".to_owned(), "Reads".to_owned()));
    catalog.remember(&known("a"), &[was], &ListedContent::default());
    let house = SupervisionTest::with(&[("a", &[UP])], options(&catalog));
    house.apply([known("a")]);
    house.servers.start_all().await;
    let told = "an MCP tool has changed: check that you still trust it server=\"a\" tool=a_tool change=description: Reads → Does it\n";
    assert_eq!(house.log.count(told), 1, "{}", house.log.text());
}

impl SupervisionTest {
    async fn stage_link(&self, name: &str) -> ServerLink {
        while !self.stage.links.lock().contains_key(name) {
            tokio::task::yield_now().await;
        }
        self.stage.link(name)
    }
}
