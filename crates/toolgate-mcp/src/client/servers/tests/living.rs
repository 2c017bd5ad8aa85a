//! Connected servers: deaths, crash loops, changed tools.

use std::future::poll_fn;
use std::task::Poll;

use super::remembering::call;
use super::*;

const UP: ScriptedStart = ScriptedStart::Connect(NOW);
const FAIL: ScriptedStart = ScriptedStart::Fail(NOW, "no broker");

/// True if a call would wait now.
async fn calls_wait(link: &ServerLink) -> bool {
    let mut call = std::pin::pin!(link.session("t"));
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await
}

#[tokio::test(start_paused = true)]
async fn mc6_a_server_that_dies_is_restarted_at_once_and_keeps_its_tools() {
    let house = SupervisionTest::started(&[("a", &[UP, ScriptedStart::Connect(seconds(3))])]);
    house.at(100.0).await;
    house.stage.peer("a").die(exit("signal 9 (killed)"));
    house.at(101.0).await;
    assert_eq!(
        (house.state("a"), house.starts("a").len()),
        (ServerState::Restarting, 2)
    );
    assert!(house.has("a_tool") && calls_wait(&house.stage.link("a")).await);
    let call = house.stage.link("a").session("a_tool").await;
    assert!(Arc::ptr_eq(&call.unwrap(), &house.stage.peer("a").session));
    assert_eq!(house.now(), 103.1);
    let status = house.status("a");
    assert_eq!((status.state, status.restarts), (ServerState::Connected, 1));
    assert_eq!(house.starts("a"), [0.0, 100.1]);
    let lost = " WARN MCP server ended server=a status=signal 9 (killed) stderr=\"Traceback\"";
    assert_eq!(house.log.count(lost), 1, "{}", house.log.text());
}

#[tokio::test(start_paused = true)]
async fn mc6_a_dead_server_keeps_its_tools_as_unavailable() {
    let house = SupervisionTest::started(&[("a", &[UP, FAIL]), ("b", &[UP])]);
    house.at(100.0).await;
    house.stage.peer("a").die(exit("exit status 3"));
    house.at(106.0).await;
    assert!(house.has("a_tool") && calls_wait(&house.stage.link("a")).await);
    house.at(106.5).await;
    assert_eq!(house.starts("a")[1..], [100.1, 102.1, 106.1]);
    assert!(house.has("a_tool") && house.has("b_tool"));
    let status = house.status("a");
    assert_eq!((status.tools, status.remembered), (1, true));
    let error = house.stage.link("a").session("a_tool").await.err().unwrap();
    assert!(
        error.to_string().contains("its server 'a' is not running"),
        "{error}"
    );
    assert!(error.details().unwrap().ends_with("\nno broker"));
    assert!(
        house
            .log
            .text()
            .contains("⚠️ Continuing without 'a': local tools (datetime, volume) and servers: b\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_connects_and_dies_is_started_five_times_a_minute_at_most() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Die(NOW)]), ("b", &[UP])]);
    house.at(59.0).await;
    let starts = house.starts("a");
    assert_eq!(starts.len(), 5, "{starts:?}");
    let status = house.status("a");
    assert_eq!(status.state, ServerState::Failed);
    let error = status.error.unwrap();
    assert!(
        error.starts_with(
            "it ended (exit status 0); it was started 5 times within a minute; the next attempt is in "
        ),
        "{error}"
    );
    assert!(status.next_try.unwrap() <= seconds(2));
    // It never stayed up, so retries stay slow, and the report is not repeated.
    house.at(3600.0).await;
    let starts = house.starts("a");
    let crowded = starts
        .windows(6)
        .filter(|six| six[5] - six[0] < 60.0)
        .count();
    assert_eq!(crowded, 0, "{starts:?}");
    assert!(starts.len() < 90, "{}", starts.len());
    assert_eq!(house.log.count("❌"), 1, "{}", house.log.text());
    assert!(house.has("b_tool"));
}

#[tokio::test(start_paused = true)]
async fn earlier_crashes_are_forgotten_after_a_minute() {
    for (life, fast) in [(59, false), (61, true)] {
        let house = SupervisionTest::started(&[("a", &[ScriptedStart::Die(seconds(life))])]);
        house.at(2000.0).await;
        let starts = house.starts("a");
        let rests = starts
            .windows(2)
            .map(|pair| pair[1] - pair[0] - life as f64);
        assert_eq!(
            rests.skip(5).all(|rest| rest < 1.0),
            fast,
            "{life}: {starts:?}"
        );
        assert_eq!(house.log.count("❌"), usize::from(!fast));
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_tools_are_followed_once_a_second_and_applied_as_one() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.at(10.0).await;
    let peer = house.stage.peer("a");
    let versions = house.manager.subscribe();
    let before = *versions.borrow();
    for n in 0..1000 {
        peer.set_tools(&[("x", "Is there"), (&format!("y{n}"), "Changes")]);
        sleep(Duration::from_millis(3)).await;
    }
    house.at(15.0).await;
    let listings = peer.listings.load(Ordering::SeqCst);
    assert!((3..=5).contains(&listings), "{listings}");
    assert!(house.has("x") && house.has("y999") && !house.has("a_tool") && !house.has("y0"));
    assert_eq!(house.status("a").tools, 2);
    assert_eq!(*versions.borrow() - before, listings as u64);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_come_leaves_the_old_tools() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.at(10.0).await;
    let peer = house.stage.peer("a");
    *peer.tools.lock() = Err("no\nsense".to_owned());
    peer.changed.notify_one();
    house.at(12.0).await;
    assert!(house.has("a_tool"));
    let warning = " WARN MCP server announced changed tools but didn't list them; keeping the old ones server=a reason=no\\nsense";
    assert_eq!(house.log.count(warning), 1, "{}", house.log.text());
    peer.set_tools(&[("new", "Is there")]);
    house.at(14.0).await;
    assert!(house.has("new"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_did_not_come_is_asked_for_again() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.at(10.0).await;
    let peer = house.stage.peer("a");
    *peer.tools.lock() = Err("busy".to_owned());
    peer.changed.notify_one();
    house.at(12.0).await;
    // The server doesn't announce the change again.
    *peer.tools.lock() = Ok(vec![("new".to_owned(), "Is there".to_owned())]);
    house.at(39.0).await;
    assert!(!house.has("new"));
    house.at(42.0).await;
    assert!(house.has("new"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_is_logged_once() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.at(10.0).await;
    let peer = house.stage.peer("a");
    peer.set_tools(&[("a_tool", "Does it, and \u{1b}sends your keys away")]);
    house.at(12.0).await;
    let changed = " WARN an MCP tool has changed: check that you still trust it server=\"a\" tool=a_tool change=";
    let log = house.log.text();
    assert_eq!(log.matches(changed).count(), 1, "{log}");
    assert!(
        log.contains("change=description: Does it → Does it, and \\u{1b}sends your keys away\n"),
        "{log}"
    );
    // An unchanged list isn't logged again, nor is the first one.
    peer.set_tools(&[
        ("a_tool", "Does it, and \u{1b}sends your keys away"),
        ("more", "New"),
    ]);
    house.at(14.0).await;
    assert_eq!(house.log.count(changed), 1);
    let new = " WARN an MCP server has a new tool: check that you trust it server=\"a\" tool=more change=new; ";
    assert_eq!(house.log.count(new), 1, "{}", house.log.text());
    peer.die(exit("exit status 1"));
    house.at(16.0).await;
    assert_eq!(house.log.count(" WARN an MCP tool has changed"), 1);
}

#[tokio::test(start_paused = true)]
async fn j5_a_panic_is_contained_and_the_server_is_started_again() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Panic, UP]), ("b", &[UP])]);
    house.servers.start_all().await;
    let status = house.status("a");
    assert_eq!(
        (status.state, status.error.as_deref()),
        (
            ServerState::Restarting,
            Some("an internal error in Toolgate")
        )
    );
    assert!(house.has("b_tool"));
    house.at(2.1).await;
    assert!(house.has("a_tool"));
}

#[tokio::test(start_paused = true)]
async fn j5_a_server_that_panics_again_and_again_is_left_to_a_person() {
    let panic = || ScriptedStart::Panic;
    let acts = [panic(), panic(), panic(), panic(), panic(), UP];
    let house = SupervisionTest::started(&[("a", &acts)]);
    house.at(600.0).await;
    assert_eq!(house.starts("a"), [0.0, 2.0, 6.0, 14.0, 30.0]);
    assert_eq!(house.state("a"), ServerState::Failed);
    assert_eq!(
        house
            .log
            .count("because of an internal error in Toolgate; reconnect it"),
        1
    );
    assert!(house.servers.reconnect("a").await);
    assert!(house.has("a_tool"));
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_does_not_wait_for_the_next_slow_retry() {
    let house = SupervisionTest::started(&[("a", &[FAIL, FAIL, FAIL, UP])]);
    house.at(7.0).await;
    assert!(house.servers.reconnect("a").await);
    assert_eq!((house.now(), house.status("a").attempts), (7.0, 1));
    assert!(!house.servers.reconnect("nobody").await);
}

#[tokio::test(start_paused = true)]
async fn reconnecting_replaces_the_connection_and_reports_failure() {
    let house = SupervisionTest::started(&[("a", &[UP, UP, FAIL])]);
    house.at(10.0).await;
    let first = house.stage.peer("a");
    assert!(house.servers.reconnect("a").await);
    assert!(first.closed.load(Ordering::SeqCst));
    assert_eq!(house.status("a").restarts, 0);
    assert!(!house.servers.reconnect("a").await);
    assert_eq!(house.state("a"), ServerState::Failed);
    assert!(house.has("a_tool"));
}

#[tokio::test(start_paused = true)]
async fn mc6_a_call_never_gets_a_connection_that_is_over() {
    let house = SupervisionTest::started(&[("a", &[UP])]);
    house.servers.start_all().await;
    let (link, first) = (house.stage.link("a"), house.stage.peer("a"));
    first.die(exit("exit status 1"));
    // No other task has run yet.
    let next = link.session("a_tool").await.unwrap();
    assert!(!Arc::ptr_eq(&next, &first.session));
}

#[tokio::test(start_paused = true)]
async fn ex8_an_unlisted_tool_is_unavailable_with_the_latest_reason() {
    let missing = [
        ScriptedStart::Missing,
        ScriptedStart::Missing,
        ScriptedStart::Missing,
        ScriptedStart::Hopeless,
    ];
    let house = SupervisionTest::started(&[("a", &missing)]);
    house.servers.start_all().await;
    let text = "The a__tool service is currently unavailable: its server 'a' is not running: ";
    let answer = call(&house, "a__tool").await;
    assert_eq!(
        (answer["error_kind"].as_str(), answer["error"].as_str()),
        (
            Some("unavailable"),
            Some(format!("{text}command 'a' was not found on the PATH").as_str())
        )
    );
    house.at(house.now() + 60.0).await;
    let answer = call(&house, "a__tool").await;
    assert_eq!(
        answer["error"],
        format!("{text}the server requires a login (HTTP 401)")
    );
}
