//! Connecting: from the first attempt to the slow retries.

use super::*;

const FAIL: ScriptedStart = ScriptedStart::Fail(NOW, "boom\nKeyError: 'MQTT'");

#[tokio::test(start_paused = true)]
async fn mc3_a_server_that_works_is_connected_at_once() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Connect(NOW)])]);
    house.servers.start_all().await;
    assert_eq!((house.now(), house.starts("a")), (0.0, vec![0.0]));
    let status = house.status("a");
    assert_eq!(
        (status.state, status.tools, status.attempts),
        (ServerState::Connected, 1, 1)
    );
    assert_eq!(
        (status.pid, status.stray_line_count, status.error),
        (Some(7), 2, None)
    );
    assert!(house.has("a_tool"));
    assert!(!house.log.text().contains("succeeded on attempt"));
}

#[tokio::test(start_paused = true)]
async fn mc3_attempts_come_after_0_2_and_4_seconds_and_each_is_logged() {
    let house = SupervisionTest::started(&[("a", &[FAIL, FAIL, ScriptedStart::Connect(NOW)])]);
    house.servers.start_all().await;
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
    let house = SupervisionTest::started(&[("a", &[FAIL, ScriptedStart::Connect(NOW)])]);
    house.servers.start_all().await;
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
    let house = SupervisionTest::with(&[("zwave", &[FAIL])], options);
    house.apply([server("zwave")]);
    house.servers.start_all().await;
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
    // Slow retries continue and log nothing more at INFO.
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
    let house = SupervisionTest::new(&[("zwave", &[FAIL])]);
    let log = SupervisionLog::default();
    let writer = log.clone();
    let json = tracing_subscriber::fmt().json().flatten_event(true);
    let json = json.with_writer(move || writer.clone()).finish();
    let _logging = tracing::subscriber::set_default(json);
    house.apply([server("zwave")]);
    house.servers.start_all().await;
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
    let up: &[ScriptedStart] = &[ScriptedStart::Connect(NOW)];
    let house = SupervisionTest::started(&[
        ("b", up),
        ("bad", &[FAIL]),
        ("slow", &[ScriptedStart::Hang]),
        ("bad2", &[FAIL]),
    ]);
    house.at(7.0).await;
    let log = house.log.text();
    let last = "⚠️ Continuing without 'bad': local tools (datetime, volume) and servers: b, slow\n";
    assert!(log.contains(last), "{log}");
    let last =
        "⚠️ Continuing without 'bad2': local tools (datetime, volume) and servers: b, slow\n";
    assert!(log.contains(last), "{log}");
}

#[tokio::test(start_paused = true)]
async fn mc4_a_failed_server_is_retried_slowly_until_it_is_back() {
    let house = SupervisionTest::started(&[(
        "a",
        &[FAIL, FAIL, FAIL, FAIL, FAIL, ScriptedStart::Connect(NOW)],
    )]);
    house.servers.start_all().await;
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
    // Early attempts have a shorter timeout.
    let patience = house.stage.patience.lock().clone();
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
    let house = SupervisionTest::started(&[("a", &[FAIL])]);
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
async fn permanent_failures_are_retried_rarely() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Hopeless])]);
    house.servers.start_all().await;
    assert_eq!((house.now(), house.starts("a").len()), (0.0, 1));
    assert!(house.log.text().contains(
        "MCP connection failed after 1 attempt: the server requires a login (HTTP 401)\n"
    ));
    house.at(600.0).await;
    let starts = house.starts("a");
    let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.into_iter().all(|gap| gap >= 47.9), "{starts:?}");
    assert!(starts.len() > 8, "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn mc5_failing_and_mute_servers_do_not_affect_other_tools() {
    let house = SupervisionTest::started(&[
        ("failing", &[FAIL]),
        ("mute", &[ScriptedStart::Hang]),
        (
            "good",
            &[ScriptedStart::Connect(Duration::from_millis(300))],
        ),
        ("panicking", &[ScriptedStart::Panic]),
        ("late", &[ScriptedStart::Connect(seconds(5))]),
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
async fn mc5_a_hundred_mute_servers_delay_nobody() {
    let names: Vec<String> = (0..100).map(|n| format!("mute{n}")).collect();
    let mut scripts: Vec<(&str, &[ScriptedStart])> = names
        .iter()
        .map(|name| (name.as_str(), &[ScriptedStart::Hang] as _))
        .collect();
    let soon = [ScriptedStart::Connect(Duration::from_millis(300))];
    scripts.push(("good", &soon));
    let house = SupervisionTest::started(&scripts);
    // The name names no server and isn't remembered, so any of the hundred could have it.
    house.servers.wait_for_tool("good_tool").await;
    assert!(house.has("good_tool"));
    assert_eq!(house.now(), 0.3);
}

#[tokio::test(start_paused = true)]
async fn an_overdue_attempt_is_ended() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Connect(seconds(100_000))])]);
    house.servers.start_all().await;
    assert_eq!(house.now(), 3.0 * 20.0 + 6.0);
    assert!(house.status("a").error.unwrap().contains("'startTimeout'"));
}

fn runner(name: &str) -> ServerSettings {
    let program = ServerProgram {
        command: "npx".to_owned(),
        args: vec!["-y".to_owned(), name.to_owned()],
        ..ServerProgram::default()
    };
    ServerSettings::new(name, ServerConnection::Stdio(program))
}

#[tokio::test(start_paused = true)]
async fn a_first_package_start_has_five_minutes() {
    let house = SupervisionTest::new(&[
        ("slow", &[ScriptedStart::Connect(seconds(280))]),
        ("quick", &[ScriptedStart::Connect(seconds(1))]),
    ]);
    house.apply([runner("slow"), server("quick")]);
    house.at(1.1).await;
    assert!(house.has("quick_tool") && house.has("volume"));
    house.at(279.0).await;
    assert_eq!(house.state("slow"), ServerState::Starting);
    assert_eq!(house.starts("slow"), [0.0]);
    house.at(281.0).await;
    assert_eq!(house.state("slow"), ServerState::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_start_timeout_in_the_file_wins_over_the_five_minutes() {
    let house = SupervisionTest::new(&[("slow", &[ScriptedStart::Hang])]);
    let mut settings = runner("slow");
    settings.start_timeout = Some(seconds(20));
    house.apply([settings]);
    house.servers.start_all().await;
    assert_eq!(*house.stage.patience.lock(), [seconds(20); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_known_package_runner_has_the_usual_timeout() {
    let house = SupervisionTest::new(&[(
        "a",
        &[
            ScriptedStart::Die(seconds(100)),
            ScriptedStart::Connect(NOW),
        ],
    )]);
    house.apply([runner("a")]);
    house.at(110.0).await;
    assert_eq!(house.state("a"), ServerState::Connected);
    assert_eq!(*house.stage.patience.lock(), [seconds(300), seconds(10)]);
}

#[tokio::test(start_paused = true)]
async fn a_package_that_was_deleted_after_a_failure_has_five_minutes_again() {
    let cache = tempfile::tempdir().unwrap();
    let mut settings = runner("firecrawl-mcp");
    let ServerConnection::Stdio(program) = &mut settings.connection else {
        unreachable!()
    };
    let folder = cache.path().display().to_string();
    program.env.insert("npm_config_cache".to_owned(), folder);
    let package = cache.path().join("_npx/12b05d58670d8359");
    std::fs::create_dir_all(&package).unwrap();
    let script: &[ScriptedStart] = &[
        ScriptedStart::Die(seconds(100)),
        FAIL,
        FAIL,
        ScriptedStart::Connect(NOW),
    ];
    let house = SupervisionTest::new(&[("firecrawl-mcp", script)]);
    house.apply([settings]);
    house.at(101.0).await;
    std::fs::remove_dir_all(&package).unwrap();
    house.at(200.0).await;
    assert_eq!(house.state("firecrawl-mcp"), ServerState::Connected);
    let patience = house.stage.patience.lock().clone();
    assert_eq!(patience, [300, 10, 300, 300].map(seconds));
}

#[tokio::test(start_paused = true)]
async fn package_installations_are_serialized() {
    let folder = tempfile::tempdir().unwrap();
    let options = ServersOptions {
        catalog: ToolCatalog::new(folder.path().join("catalogue")),
        ..ServersOptions::default()
    };
    let named = |name: &str| ServerSettings {
        name: name.to_owned(),
        ..runner("the-package")
    };
    let scripts: &[(&str, &[ScriptedStart])] = &[
        // Its process takes a while to end, and a second attempt needs the lock again.
        (
            "one",
            &[
                ScriptedStart::Fail(seconds(5), ""),
                ScriptedStart::Connect(seconds(5)),
            ],
        ),
        ("two", &[ScriptedStart::Connect(seconds(5))]),
        ("other", &[ScriptedStart::Connect(seconds(5))]),
    ];
    let house = SupervisionTest::with(scripts, options);
    *house.stage.clearing.lock() = seconds(1);
    house.apply([named("one"), named("two"), runner("other")]);
    house.servers.start_all().await;
    assert_eq!(house.starts("other"), [1.0]);
    let (one, two) = (house.starts("one"), house.starts("two"));
    assert_eq!(one[0], 1.0);
    // The lock is polled.
    let freed = one[0] + 5.0 + 1.0;
    assert!((freed..freed + 0.5).contains(&two[0]), "{two:?}");
    assert!(one[1] >= two[0] + 5.0, "{one:?} {two:?}");
    assert_eq!(
        house.log.count("another start installs the same package"),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_longer_only_for_downloads() {
    for (settings, takes, expected) in [
        (runner("a"), 40, 41.0),
        (runner("a"), 400, 61.0),
        (server("a"), 40, 11.0),
    ] {
        let house = SupervisionTest::new(&[("a", &[ScriptedStart::Hang])]);
        house.apply([settings]);
        house.at(1.0).await;
        *house.stage.clearing.lock() = seconds(takes);
        house.servers.stop().await;
        assert_eq!(house.now(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unstartable_program_delays_only_its_own_lookups() {
    let options = || ServersOptions {
        on_demand: true,
        ..ServersOptions::default()
    };
    for (name, at) in [("nothing", 0.0), ("missing__tool", 6.0)] {
        let house = SupervisionTest::with(&[("missing", &[ScriptedStart::Missing])], options());
        house.apply([server("missing")]);
        house.servers.start_servers_without_tools();
        house.servers.wait_for_known_tools().await;
        assert_eq!(house.now(), 0.0);
        house.servers.wait_for_tool(name).await;
        assert_eq!(house.now(), at, "{name}");
        assert_eq!(house.starts("missing")[0], 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_cannot_be_started_is_reported_at_the_first_attempt() {
    let house = SupervisionTest::started(&[("a", &[ScriptedStart::Missing])]);
    house.at(0.1).await;
    assert_eq!(
        house
            .log
            .count(" WARN MCP server can't be started: command 'a' was not found"),
        1
    );
    house.servers.start_all().await;
    assert_eq!(house.starts("a"), [0.0, 2.0, 6.0]);
    assert_eq!(house.log.count(" WARN MCP server can't be started"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_retry_policy_holds_from_the_next_attempt_on() {
    let house =
        SupervisionTest::started(&[("a", &[FAIL, FAIL, FAIL, ScriptedStart::Connect(NOW)])]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let retry = RetryPolicy {
        attempts: 5,
        base_delay: Duration::from_secs(1),
        ..RetryPolicy::default()
    };
    house.servers.set_retry(retry);
    house.servers.start_all().await;
    // The current wait is unchanged; then 2 and 4 seconds, without giving up after the third
    // attempt.
    assert_eq!(house.starts("a"), [0.0, 2.0, 4.0, 8.0]);
    assert_eq!(house.state("a"), ServerState::Connected);
    assert!(!house.log.text().contains("ERROR"), "{}", house.log.text());
}
