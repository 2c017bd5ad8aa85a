use std::time::SystemTime;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolgate_core::{
    CallContext, FunctionTool, Origin, ToolCall, ToolError, ToolExecutor, ToolManager,
};

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn settings(address: &str) -> TelemetrySettings {
    TelemetrySettings {
        otlp: format!("http://{address}"),
    }
}

fn gate(traces: &Traces) -> ToolExecutor {
    let broken = async |_: Nothing, _: CallContext| {
        Err::<String, _>(ToolError::failed("broken, password hunter2"))
    };
    let manager = ToolManager::new();
    manager.add(FunctionTool::new("broken", "Does not work", broken).unwrap());
    ToolExecutor::builder(Arc::new(manager))
        .observer(traces.clone())
        .traced()
        .build()
}

/// Answers one request and gives back what it was.
async fn collector(listener: TcpListener) -> Vec<u8> {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = socket.read(&mut part).await.unwrap();
        request.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if request.len() >= head.len() + 4 + length {
            break;
        }
    }
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    socket.write_all(answer).await.unwrap();
    request
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_call_reaches_the_collector_as_a_child_of_its_caller() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let redactor = Redactor::new(["hunter2".to_owned()]);
    let traces = Traces::start(&settings(&address), redactor)
        .unwrap()
        .unwrap();
    let collected = tokio::spawn(collector(listener));
    let call = ToolCall::new("broken", json!({}))
        .origin(Origin::Http)
        .trace_parent(CALLER);
    gate(&traces).execute(call).await;
    traces.flush().await;

    let request = collected.await.unwrap();
    assert!(request.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
    let trace = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    let parent = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();
    for part in [
        &trace[..],
        &parent,
        b"execute_tool broken",
        b"gen_ai.tool.name",
        b"error.type",
        b"tool_error",
        b"service.name",
    ] {
        assert!(
            contains(&request, part),
            "{}",
            String::from_utf8_lossy(part)
        );
    }
    assert!(!contains(&request, b"hunter2"));
}

#[tokio::test]
async fn a_collector_that_is_away_costs_no_call_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let traces = Traces::start(&settings(&address), Redactor::default())
        .unwrap()
        .unwrap();
    let executor = gate(&traces);
    let begun = SystemTime::now();
    for _ in 0..2 * WAITING {
        executor.execute(ToolCall::new("broken", json!({}))).await;
    }
    traces.flush().await;
    assert!(begun.elapsed().unwrap() < Duration::from_secs(50));
}

#[tokio::test]
async fn without_an_address_there_are_no_traces_and_a_bad_one_is_told() {
    let none = Traces::start(&TelemetrySettings::default(), Redactor::default());
    assert!(none.unwrap().is_none());
    let problem = Traces::start(&settings("not an address"), Redactor::default());
    assert!(problem.err().unwrap().starts_with("telemetry.otlp: "));
}
