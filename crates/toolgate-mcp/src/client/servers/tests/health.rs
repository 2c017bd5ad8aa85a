//! Servers that are connected and can't do their work.

use std::sync::atomic::AtomicUsize;

use serde_json::Value;
use toolgate_core::{Annotations, Limits, Policy, ToolPattern};

use super::super::super::health_check::HealthState;
use super::*;
use crate::HealthToolChoice;

/// A health tool's answer, and how often it was called. `Null`: the server has none.
#[derive(Default)]
pub(super) struct HealthAnswers {
    answer: Mutex<Value>,
    asked: AtomicUsize,
    /// The annotations `readOnlyHint` and `destructiveHint`.
    read_only: Mutex<Option<bool>>,
    destructive: Mutex<Option<bool>>,
}

impl HealthAnswers {
    fn new(answer: Value) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(answer),
            asked: AtomicUsize::new(0),
            read_only: Mutex::new(Some(true)),
            destructive: Mutex::default(),
        })
    }

    fn set(&self, answer: Value) {
        *self.answer.lock() = answer;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// `check_zwave_health`, unless the server has no health tool. `"hang"` never answers,
    /// `"fail"` is an error.
    pub(super) fn tool(self: &Arc<Self>, server: &str) -> Option<Arc<dyn Tool>> {
        if self.answer.lock().is_null() {
            return None;
        }
        let mut annotations = Annotations::default();
        annotations.read_only = *self.read_only.lock();
        annotations.destructive = *self.destructive.lock();
        let schema = json!({ "type": "object" });
        let definition = ToolDefinition::builder("check_zwave_health", "Checks", schema)
            .annotations(annotations)
            .source(ToolSource::Mcp(server.to_owned()));
        let answers = Arc::clone(self);
        let run = move |_: Value, _| {
            let answers = Arc::clone(&answers);
            async move {
                answers.asked.fetch_add(1, Ordering::SeqCst);
                let answer = answers.answer.lock().clone();
                match answer.as_str() {
                    Some("hang") => std::future::pending().await,
                    Some("fail") => Err(ToolError::failed("No gateway answers.")),
                    _ => Ok(answer),
                }
            }
        };
        Some(Arc::new(
            FunctionTool::with_definition(definition, run).unwrap(),
        ))
    }
}

const BROKER: &str = "The MQTT broker can't be reached: connection refused.";

fn down() -> Value {
    json!({ "healthy": false, "problem": BROKER, "message": "The Z-Wave system is not available" })
}

/// A `zwave-mcp-server` whose health tool gives these answers.
fn zwave(health: &Arc<HealthAnswers>) -> (SupervisionTest, ServerSettings) {
    let house = SupervisionTest::new(&[
        ("house", &[ScriptedStart::Connect(NOW)]),
        ("other", &[ScriptedStart::Hang]),
    ]);
    let mut all = house.stage.health.lock();
    all.insert("house".to_owned(), Arc::clone(health));
    drop(all);
    let mut settings = server("house");
    settings.connection = ServerConnection::Stdio(ServerProgram {
        command: "/usr/bin/toolgate".to_owned(),
        args: vec!["zwave-mcp-server".to_owned()],
        ..ServerProgram::default()
    });
    (house, settings)
}

impl SupervisionTest {
    fn watch_health(&self) {
        let executor = ToolExecutor::builder(Arc::clone(&self.manager)).without_observers();
        self.servers.watch_health(executor.build());
    }

    fn degraded(&self) -> Option<String> {
        self.status("house").degraded().map(str::to_owned)
    }
}

#[tokio::test(start_paused = true)]
async fn degraded_servers_and_their_recovery_are_reported() {
    let health = HealthAnswers::new(down());
    let (house, settings) = zwave(&health);
    house.apply([settings]);
    house.watch_health();
    house.servers.wait_for_health_checks().await;
    // Problems within the first seconds are checked again before they are reported.
    assert_eq!(house.now(), 3.0);
    assert_eq!(house.state("house"), ServerState::Connected);
    assert_eq!(house.degraded().as_deref(), Some(BROKER));
    let told = "MCP server is connected, but can't do its work";
    assert_eq!(house.log.count(told), 1);
    house.at(60.0).await;
    assert_eq!(house.log.count(told), 1, "what is known is not told again");
    assert!(house.log.text().contains(BROKER));
    health.set(json!({ "healthy": true }));
    house.at(71.0).await;
    assert_eq!(house.degraded(), None);
    assert_eq!(house.log.count("MCP server can do its work again"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_needs_a_moment_after_its_start_is_not_called_degraded() {
    let health = HealthAnswers::new(down());
    let (house, settings) = zwave(&health);
    house.apply([settings]);
    house.watch_health();
    house.at(1.0).await;
    assert_eq!(house.status("house").health, None);
    health.set(json!({ "healthy": true }));
    house.servers.wait_for_health_checks().await;
    assert_eq!(house.degraded(), None);
    assert_eq!(house.log.count("can't do its work"), 0);
    // Checks stay cheap: a few per hour, and nothing in the log.
    let lines = house.log.text().lines().count();
    house.at(3600.0).await;
    assert!((100..=125).contains(&health.asked()), "{}", health.asked());
    assert_eq!(house.log.text().lines().count(), lines);
}

#[tokio::test(start_paused = true)]
async fn a_health_tool_may_fail_hang_or_answer_in_text() {
    for (answer, expected) in [
        (json!("fail"), Some("No gateway answers.")),
        (
            json!("hang"),
            Some("Tool 'house__check_zwave_health' timed out after 10 s"),
        ),
        (json!(down().to_string()), Some(BROKER)),
        (
            json!({ "healthy": false }),
            Some("its health tool says so, without a reason"),
        ),
        (
            json!({ "healthy": false, "message": "Later." }),
            Some("Later."),
        ),
        (json!("All is well."), None),
        (json!({ "devices": 3 }), None),
    ] {
        let health = HealthAnswers::new(answer.clone());
        let (house, settings) = zwave(&health);
        // A hanging neighbor delays no health check.
        house.apply([server("other"), settings]);
        house.watch_health();
        house.at(15.0).await;
        assert_eq!(house.degraded().as_deref(), expected, "{answer}");
        assert!(house.status("house").health.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn only_read_only_or_configured_tools_are_called() {
    let named = HealthToolChoice::Named("check_zwave_health".to_owned());
    for (command, read_only, setting, is_asked) in [
        ("zwave-mcp-server", Some(true), HealthToolChoice::Auto, true),
        ("zwave-mcp-server", None, HealthToolChoice::Auto, false),
        ("zwave-mcp-server", Some(true), HealthToolChoice::Off, false),
        ("something-else", Some(true), HealthToolChoice::Auto, false),
        ("something-else", None, named, true),
    ] {
        let health = HealthAnswers::new(json!({ "healthy": true }));
        *health.read_only.lock() = read_only;
        let (house, mut settings) = zwave(&health);
        settings.connection = ServerConnection::Stdio(ServerProgram {
            command: command.to_owned(),
            ..ServerProgram::default()
        });
        settings.health = setting.clone();
        house.apply([settings]);
        house.watch_health();
        house.servers.wait_for_health_checks().await;
        assert_eq!(
            health.asked() > 0,
            is_asked,
            "{command} {read_only:?} {setting:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_health_tool_that_is_not_read_only_is_never_called() {
    for (read_only, destructive) in [(Some(false), None), (None, Some(true))] {
        let health = HealthAnswers::new(json!({ "healthy": true }));
        *health.read_only.lock() = read_only;
        *health.destructive.lock() = destructive;
        let (house, mut settings) = zwave(&health);
        settings.health = HealthToolChoice::Named("check_zwave_health".to_owned());
        house.apply([settings]);
        house.watch_health();
        house.servers.wait_for_health_checks().await;
        house.at(100.0).await;
        let report = house.status("house").health.unwrap();
        assert_eq!((report.state, health.asked()), (HealthState::Unknown, 0));
        let problem =
            "the tool 'check_zwave_health' says that it isn't read-only, so it isn't called";
        assert_eq!(report.problem.as_deref(), Some(problem));
        assert_eq!(house.degraded(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn health_tools_are_asked_under_the_policy_that_holds_now() {
    let health = HealthAnswers::new(json!({ "healthy": true }));
    let (house, settings) = zwave(&health);
    house.apply([settings]);
    house.watch_health();
    house.servers.wait_for_health_checks().await;
    assert_eq!(health.asked(), 1);
    let mut policy = Policy::default();
    policy.deny = vec![ToolPattern::new("check_zwave_health")];
    house.servers.set_health_rules(Limits::default(), policy);
    house.at(100.0).await;
    let report = house.status("house").health.unwrap();
    assert_eq!((report.state, health.asked()), (HealthState::Unknown, 1));
}

#[tokio::test(start_paused = true)]
async fn only_connected_servers_are_checked_once_enabled() {
    let health = HealthAnswers::new(json!({ "healthy": true }));
    let (house, settings) = zwave(&health);
    house.apply([settings]);
    house.at(100.0).await;
    assert_eq!(health.asked(), 0);
    house.watch_health();
    house.servers.wait_for_health_checks().await;
    assert_eq!(health.asked(), 1);
    house.stage.peer("house").die(exit("exit status 1"));
    let asked = health.asked();
    house.at(100.5).await;
    assert_eq!(
        house.state("house"),
        ServerState::Connected,
        "it is back at once"
    );
    assert_eq!(health.asked(), asked + 1, "and asked again");
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_denied_health_tool_is_unknown() {
    let health = HealthAnswers::new(json!({ "healthy": true }));
    let (house, mut settings) = zwave(&health);
    settings.health = HealthToolChoice::Named("check_health".to_owned());
    house.apply([settings]);
    house.watch_health();
    house.servers.wait_for_health_checks().await;
    let report = house.status("house").health.unwrap();
    assert_eq!(report.state, HealthState::Unknown);
    let problem = "the server offers no tool 'check_health' here";
    assert_eq!(report.problem.as_deref(), Some(problem));
    assert_eq!(house.degraded(), None);

    let (house, settings) = zwave(&health);
    let mut policy = Policy::default();
    policy.ask = vec![ToolPattern::new("check_zwave_health")];
    let executor = ToolExecutor::builder(Arc::clone(&house.manager))
        .limits(Limits::default())
        .policy(policy)
        .without_observers();
    house.apply([settings]);
    house.servers.watch_health(executor.build());
    house.servers.wait_for_health_checks().await;
    let report = house.status("house").health.unwrap();
    assert_eq!((report.state, health.asked()), (HealthState::Unknown, 0));
}
