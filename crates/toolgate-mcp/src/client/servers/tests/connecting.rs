//! From the first attempt to the slow retries.

use super::*;

const FAIL: Act = Act::Fail(NOW, "boom\nKeyError: 'MQTT'");

#[tokio::test(start_paused = true)]
async fn mc3_a_server_that_works_is_connected_at_once() {
    let house = House::started(&[("a", &[Act::Connect(NOW)])]);
    house.servers.settled().await;
    assert_eq!((house.now(), house.starts("a")), (0.0, vec![0.0]));
    let status = house.status("a");
    assert_eq!(
        (status.state, status.tools, status.attempts),
        (ServerState::Connected, 1, 1)
    );
    assert_eq!(
        (status.pid, status.polluted, status.error),
        (Some(7), 2, None)
    );
    assert!(house.has("a_tool"));
    assert!(!house.log.text().contains("succeeded on attempt"));
}

#[tokio::test(start_paused = true)]
async fn mc3_attempts_come_after_0_2_and_4_seconds_and_each_is_logged() {
    let house = House::started(&[("a", &[FAIL, FAIL, Act::Connect(NOW)])]);
    house.servers.settled().await;
    assert_eq!(house.starts("a"), [0.0, 2.0, 6.0]);
    assert_eq!(house.state("a"), ServerState::Connected);
    let log = house.log.text();
    for line in [
        " INFO MCP connection attempt 1 of 3 server=a attempt=1 delay_s=0.0",
        " INFO MCP connection attempt 2 of 3 server=a attempt=2 delay_s=2.0",
        " INFO MCP connection attempt 3 of 3 server=a attempt=3 delay_s=4.0",
        " INFO MCP connection succeeded on attempt 3 server=a ",
    ] {
        assert_eq!(house.log.count(line), 1, "{line}\n{log}");
    }
    assert!(!log.contains("ERROR"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn mc3_the_second_attempt_says_so() {
    let house = House::started(&[("a", &[FAIL, Act::Connect(NOW)])]);
    house.servers.settled().await;
    assert_eq!(house.now(), 2.0);
    assert_eq!(
        house
            .log
            .count(" INFO MCP connection succeeded on attempt 2 server=a"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn mc4_after_the_last_attempt_the_block_is_one_record() {
    let options = ServersOptions {
        file: Some("toolgate.json".into()),
        ..ServersOptions::default()
    };
    let house = House::with(&[("zwave", &[FAIL])], options);
    house.apply([server("zwave")]);
    house.servers.settled().await;
    assert_eq!(
        (house.now(), house.state("zwave")),
        (6.0, ServerState::Failed)
    );
    let expected = "\
ERROR mcp{server=zwave}: MCP connection failed after 3 attempts: it stopped during the handshake (exit status 3)
❌ Failed to initialize MCP tools after 3 attempts
   Reason: Connection to stdio server 'zwave' failed
   MCP Server stderr: boom
      KeyError: 'MQTT'
   Check: 'zwave-command' installed and on the PATH, settings of 'zwave' in toolgate.json
⚠️ Continuing with local tools only (datetime, volume)
";
    let log = house.log.text();
    assert!(log.contains(expected), "{log}");
    // Slow retries go on, without another word at INFO.
    house.at(1000.0).await;
    let log = house.log.text();
    assert_eq!(log.matches("ERROR").count(), 1, "{log}");
    let after = log.split(expected).nth(1).unwrap();
    assert!(
        after.lines().all(|line| line.starts_with("DEBUG")),
        "{after}"
    );
    assert_eq!(house.status("zwave").stderr, ["stderr of zwave"]);
}

#[tokio::test(start_paused = true)]
async fn mc4_json_logs_carry_the_block_in_one_record() {
    let house = House::new(&[("zwave", &[FAIL])]);
    let log = Log::default();
    let writer = log.clone();
    let json = tracing_subscriber::fmt().json().flatten_event(true);
    let json = json.with_writer(move || writer.clone()).finish();
    let _logging = tracing::subscriber::set_default(json);
    house.apply([server("zwave")]);
    house.servers.settled().await;
    let text = log.text();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let errors: Vec<_> = records
        .filter(|record| record["level"] == "ERROR")
        .collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_eq!(errors[0]["span"]["server"], "zwave");
    let message = errors[0]["message"].as_str().unwrap();
    assert!(message.starts_with("MCP connection failed after 3 attempts"));
    assert!(message.contains("\n❌ Failed to initialize MCP tools after 3 attempts\n   Reason: "));
    assert!(message.ends_with("\n⚠️ Continuing with local tools only (datetime, volume)"));
}

#[tokio::test(start_paused = true)]
async fn mc4_the_last_line_names_the_servers_that_are_up_or_starting() {
    let up: &[Act] = &[Act::Connect(NOW)];
    let house = House::started(&[
        ("b", up),
        ("bad", &[FAIL]),
        ("slow", &[Act::Hang]),
        ("bad2", &[FAIL]),
    ]);
    house.at(7.0).await;
    let log = house.log.text();
    let last =
        "⚠️ Continuing without 'bad': local tools (datetime, volume) and servers: b, slow, bad2\n";
    assert!(log.contains(last), "{log}");
    let last =
        "⚠️ Continuing without 'bad2': local tools (datetime, volume) and servers: b, slow\n";
    assert!(log.contains(last), "{log}");
}

#[tokio::test(start_paused = true)]
async fn mc4_a_failed_server_is_retried_slowly_and_its_tools_appear_when_it_is_back() {
    let house = House::started(&[("a", &[FAIL, FAIL, FAIL, FAIL, FAIL, Act::Connect(NOW)])]);
    house.servers.settled().await;
    let next = house.status("a").next_try;
    assert!(!house.has("a_tool"));
    house.at(6.1).await;
    let left = house.status("a").next_try.unwrap().as_secs_f64();
    assert!((6.3..=9.6).contains(&left), "{next:?} {left}");
    house.at(100.0).await;
    assert_eq!(house.state("a"), ServerState::Connected);
    assert!(house.has("a_tool"));
    let starts = house.starts("a");
    let delays: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        (6.3..=9.7).contains(&delays[2]) && (12.7..=19.3).contains(&delays[3]),
        "{starts:?}"
    );
    // The first ones are impatient; a download may be what takes so long.
    let patience = house.stage.patience.lock().unwrap().clone();
    assert_eq!(
        patience.iter().map(Duration::as_secs).collect::<Vec<_>>(),
        [10, 10, 10, 60, 60, 60]
    );
    assert_eq!(
        house
            .log
            .count(" INFO MCP connection succeeded on attempt 6"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn slow_retries_are_at_most_the_longest_delay_apart() {
    let house = House::started(&[("a", &[FAIL])]);
    house.at(3600.0).await;
    let starts = house.starts("a");
    let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        gaps.skip(6).all(|gap| (47.9..=72.1).contains(&gap)),
        "{starts:?}"
    );
    assert!((50..=85).contains(&starts.len()), "{}", starts.len());
}

#[tokio::test(start_paused = true)]
async fn what_will_not_get_better_is_not_tried_thrice_and_then_rarely() {
    let house = House::started(&[("a", &[Act::Hopeless])]);
    house.servers.settled().await;
    assert_eq!((house.now(), house.starts("a").len()), (0.0, 1));
    assert!(
        house.log.text().contains(
            "MCP connection failed after 1 attempt: the server wants a login (HTTP 401)\n"
        )
    );
    house.at(600.0).await;
    let starts = house.starts("a");
    let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.into_iter().all(|gap| gap >= 47.9), "{starts:?}");
    assert!(starts.len() > 8, "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn mc5_a_failing_and_a_mute_server_do_not_delay_or_remove_the_tools_of_others() {
    let house = House::started(&[
        ("failing", &[FAIL]),
        ("mute", &[Act::Hang]),
        ("good", &[Act::Connect(Duration::from_millis(300))]),
        ("panicking", &[Act::Panic]),
        ("late", &[Act::Connect(seconds(5))]),
    ]);
    house.at(0.4).await;
    assert!(house.has("good_tool") && house.has("datetime"));
    house.at(5.1).await;
    assert!(house.has("late_tool"));
    house.at(600.0).await;
    assert!(house.has("good_tool") && house.has("late_tool") && house.has("datetime"));
    let states =
        ["failing", "mute", "good", "panicking", "late"].map(|name| house.state(name).to_string());
    assert_eq!(
        states,
        ["failed", "failed", "connected", "failed", "connected"]
    );
}

#[tokio::test(start_paused = true)]
async fn mc5_a_hundred_mute_servers_delay_a_good_one_by_seconds_only() {
    let names: Vec<String> = (0..100).map(|n| format!("mute{n}")).collect();
    let mut scripts: Vec<(&str, &[Act])> = names
        .iter()
        .map(|name| (name.as_str(), &[Act::Hang] as _))
        .collect();
    scripts.push(("good", &[Act::Connect(NOW)]));
    let house = House::started(&scripts);
    house.servers.settled_for("good__good_tool").await;
    assert!(house.has("good_tool"));
    assert!(house.now() <= 13.0, "{}", house.now());
}

#[tokio::test(start_paused = true)]
async fn at_most_eight_are_started_at_once() {
    let names: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let act: &[Act] = &[Act::Connect(Duration::from_millis(900))];
    let scripts: Vec<(&str, &[Act])> = names.iter().map(|name| (name.as_str(), act)).collect();
    let house = House::started(&scripts);
    house.servers.settled().await;
    assert_eq!(house.stage.most_at_once.load(Ordering::SeqCst), 8);
    assert_eq!(house.now(), 6.3);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_forgets_its_patience_is_ended() {
    let house = House::started(&[("a", &[Act::Connect(seconds(100_000))])]);
    house.servers.settled().await;
    assert_eq!(house.now(), 3.0 * 20.0 + 6.0);
    assert!(house.status("a").error.unwrap().contains("'startTimeout'"));
}
