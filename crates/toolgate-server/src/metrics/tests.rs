use serde_json::json;
use toolgate_core::{FunctionTool, Scope, ToolCall, ToolError, ToolExecutor, ToolManager};

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn now(tools: usize) -> MetricsSnapshot {
    MetricsSnapshot {
        tools,
        ..MetricsSnapshot::default()
    }
}

#[test]
fn queue_and_process_metrics_exist_before_any_call() {
    let page = Metrics::default().render(&now(0));
    let queue = r#"toolgate_call_queue_seconds_count{server="local"} 0"#;
    assert!(page.lines().any(|line| line == queue), "{page}");
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            "process_virtual_memory_bytes ",
            "process_threads ",
            "process_start_time_seconds ",
            "process_open_fds ",
            "process_max_fds ",
        ] {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            let number: f64 = line
                .unwrap_or_else(|| panic!("{name}{page}"))
                .parse()
                .unwrap();
            assert!(number > 0.0 || name.contains("cpu"), "{name}{number}");
        }
    }
}

#[tokio::test]
async fn callers_beyond_a_limit_share_a_label() {
    let (metrics, manager) = (Metrics::default(), ToolManager::new());
    let fine = async |_: Nothing, _: toolgate_core::CallContext| Ok::<_, ToolError>("fine");
    manager.add(FunctionTool::new("fine", "Works", fine).unwrap());
    let executor = ToolExecutor::builder(Arc::new(manager))
        .observer(metrics.clone())
        .build();
    for number in 0..MAX_CALLERS + 10 {
        let scope = Scope::default().for_caller(format!("token-{number}"));
        let call = ToolCall::new("fine", json!({})).origin(Origin::Http);
        executor.execute(call.scope(scope)).await;
    }
    let page = metrics.render(&now(1));
    let of = |caller: &str, count: usize| {
        let labels = format!(r#"tool="fine",server="custom",origin="http",caller="{caller}""#);
        let line = format!("toolgate_calls_total{{{labels}}} {count}");
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    };
    of("token-0", 1);
    of("token-63", 1);
    of("other", 10);
    assert!(!page.contains("token-64"), "{page}");
}

#[tokio::test]
async fn long_tool_names_get_short_unique_labels() {
    let (metrics, manager) = (Metrics::default(), ToolManager::new());
    let names = ["a", "b"].map(|last| "long ".repeat(1000) + last);
    for name in &names {
        let fine = async |_: Nothing, _: toolgate_core::CallContext| Ok::<_, ToolError>("fine");
        manager.add(FunctionTool::new(name, "Works", fine).unwrap());
    }
    let executor = ToolExecutor::builder(Arc::new(manager));
    let executor = executor.observer(metrics.clone()).build();
    for name in &names {
        executor.execute(ToolCall::new(name, json!({}))).await;
    }
    let page = metrics.render(&now(2));
    let counted = |line: &&str| line.starts_with("toolgate_calls_total{");
    let lines: Vec<&str> = page.lines().filter(counted).collect();
    assert_eq!(lines.len(), 2, "{page}");
    assert!(
        lines[0] != lines[1] && lines.iter().all(|line| line.len() < 400),
        "{lines:?}"
    );
}

#[test]
fn journal_metrics_exist_only_with_a_journal() {
    let page = Metrics::default().render(&now(0));
    assert!(!page.contains("journal"), "{page}");
    for is_up in [true, false] {
        let journal = Some(JournalSnapshot {
            is_up,
            lost: 7,
            evicted: 40,
        });
        let page = Metrics::default().render(&MetricsSnapshot { journal, ..now(0) });
        let up = format!("toolgate_journal_up {}", i32::from(is_up));
        for line in [
            up.as_str(),
            "toolgate_journal_lost_rows_total 7",
            "toolgate_journal_evicted_calls_total 40",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}

#[tokio::test]
async fn calls_failures_and_unknown_tools_are_counted_apart() {
    let metrics = Metrics::default();
    let manager = ToolManager::new();
    let fine = async |_: Nothing, _: toolgate_core::CallContext| Ok::<_, ToolError>("fine");
    let broken = async |_: Nothing, _: toolgate_core::CallContext| {
        Err::<String, _>(ToolError::failed("broken"))
    };
    manager.add(FunctionTool::new("fine", "Works", fine).unwrap());
    manager.add(FunctionTool::new("broken", "Does not", broken).unwrap());
    let executor = ToolExecutor::builder(Arc::new(manager))
        .observer(metrics.clone())
        .build();
    for name in ["fine", "fine", "broken", "evil\"name\n"] {
        let call = ToolCall::new(name, json!({})).origin(Origin::Http);
        executor.execute(call).await;
    }
    let page = metrics.render(&now(2));
    for line in [
        r#"toolgate_calls_total{tool="fine",server="custom",origin="http",caller=""} 2"#,
        r#"toolgate_calls_total{tool="broken",server="custom",origin="http",caller=""} 1"#,
        r#"toolgate_failures_total{tool="broken",server="custom",kind="tool_error"} 1"#,
        r#"toolgate_call_duration_seconds_count{tool="fine",server="custom"} 2"#,
        "toolgate_unknown_tool_calls_total 1",
        "toolgate_calls_in_flight 0",
        "toolgate_tools 2",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    assert!(!page.contains("evil"));
}

#[tokio::test(start_paused = true)]
async fn only_real_waits_for_a_slot_are_counted() {
    let (metrics, manager) = (Metrics::default(), ToolManager::new());
    let slow = async |_: Nothing, _: toolgate_core::CallContext| {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        Ok::<_, ToolError>("done")
    };
    manager.add(FunctionTool::new("slow", "Takes its time", slow).unwrap());
    let mut limits = toolgate_core::Limits::default();
    limits.concurrency = 1;
    let executor = ToolExecutor::builder(Arc::new(manager))
        .limits(limits)
        .observer(metrics.clone())
        .build();
    let call = || executor.execute(ToolCall::new("slow", json!({})));
    let (..) = tokio::join!(call(), call());
    let page = metrics.render(&now(1));
    for line in [
        r#"toolgate_call_queue_seconds_count{server="local"} 1"#,
        r#"toolgate_call_queue_seconds_sum{server="local"} 3.0"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
}

struct FailingTool(toolgate_core::ToolDefinition);

impl toolgate_core::Tool for FailingTool {
    fn definition(&self) -> &toolgate_core::ToolDefinition {
        &self.0
    }

    fn invoke<'a>(
        &'a self,
        _: toolgate_core::ValidArguments,
        _: &'a toolgate_core::CallContext,
    ) -> toolgate_core::ToolFuture<'a> {
        Box::pin(async { Ok(toolgate_core::ToolOutput::text("on")) })
    }
}

#[tokio::test]
async fn a_name_that_moves_to_another_server_is_counted_there() {
    let (metrics, stats) = (Metrics::default(), crate::Stats::default());
    for server in ["old", "new"] {
        let source = ToolSource::Mcp(server.to_owned());
        let tool =
            toolgate_core::ToolDefinition::builder("lamp", "Lamp", json!({ "type": "object" }));
        let manager = ToolManager::new();
        manager.add(FailingTool(tool.source(source).build().unwrap()));
        let executor = ToolExecutor::builder(Arc::new(manager))
            .observer(metrics.clone())
            .observer(stats.clone())
            .build();
        executor.execute(ToolCall::new("lamp", json!({}))).await;
    }
    let page = metrics.render(&now(1));
    let report = json!(stats.snapshot(None, |_, _| true));
    let mut servers = Vec::new();
    for (index, server) in ["old", "new"].into_iter().enumerate() {
        let line = format!(
            r#"toolgate_calls_total{{tool="lamp",server="{server}",origin="library",caller=""}} 1"#
        );
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        servers.push(report["tools"][index]["server"].as_str());
    }
    assert_eq!(servers, [Some("old"), Some("new")], "{report}");
}
