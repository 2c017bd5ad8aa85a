//! Questions of real server processes reach the client behind the gateway, between all
//! pairs of protocol eras.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{McpServer, ServeOptions};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

/// A client of the gateway, of either era, that answers every question.
pub(crate) struct PersonClient {
    is_modern: bool,
    capabilities: Value,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    last_id: u64,
}

fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// What a person, a model or a program answers.
fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "who": "Ada" } }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "Ada" },
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///home/Ada" }] }),
        other => panic!("{other}"),
    }
}

impl PersonClient {
    pub(crate) async fn connect(test: &FaultTest, is_modern: bool) -> Self {
        Self::connect_with(test, is_modern, capabilities()).await
    }

    async fn connect_with(test: &FaultTest, is_modern: bool, capabilities: Value) -> Self {
        let server = McpServer::new(test.executor.clone(), ServeOptions::new("test", "1"));
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move { server.serve(reader, writer, CancellationToken::new()).await });
        let (reader, writer) = tokio::io::split(ours);
        let lines = BufReader::new(reader).lines();
        let mut client = Self {
            is_modern,
            capabilities,
            lines,
            writer,
            last_id: 100,
        };
        if !is_modern {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": client.capabilities,
                "clientInfo": { "name": "c", "version": "1" },
            });
            client.request("initialize", params).await;
            client.next().await;
        }
        client
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) async fn request(&mut self, method: &str, mut params: Value) {
        if self.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(message).await;
    }

    /// Sends a request and answers everything it asks. Returns the questions and the last message.
    pub(crate) async fn run(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let mut questions = Vec::new();
        self.request(method, params.clone()).await;
        loop {
            let message = self.next().await;
            if message["method"].is_string() {
                let result = answer(message["method"].as_str().unwrap());
                self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
                    .await;
                questions.push(message);
            } else if message["result"]["resultType"] == "input_required" {
                let mut again = params.clone();
                again["requestState"] = message["result"]["requestState"].clone();
                for (key, question) in message["result"]["inputRequests"].as_object().unwrap() {
                    let result = answer(question["method"].as_str().unwrap());
                    again["inputResponses"][key] = result;
                    questions.push(question.clone());
                }
                self.request(method, again).await;
            } else {
                assert_eq!(message["id"], self.last_id, "{message}");
                return (questions, message);
            }
        }
    }
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": format!("{FAKE}__{tool}"), "arguments": arguments })
}

async fn start(modes: &[&str]) -> FaultTest {
    let builder = FaultTestBuilder::new().relays_questions();
    let builder = builder.server(FAKE, modes).server(NEIGHBOR, &[]);
    builder.start_settled().await
}

#[tokio::test]
async fn questions_of_every_kind_pass_between_all_pairs_of_eras() {
    for modes in [&["asking-content"][..], &["asking-content", "modern"]] {
        let test = start(modes).await;
        for is_modern in [false, true] {
            let who = format!("{modes:?}, modern client: {is_modern}");
            let mut client = PersonClient::connect(&test, is_modern).await;
            for (method, params, question) in [
                (
                    "tools/call",
                    call("elicit", &json!({})),
                    "elicitation/create",
                ),
                (
                    "tools/call",
                    call("elicit", &json!({ "url": true })),
                    "elicitation/create",
                ),
                (
                    "tools/call",
                    call("sample", &json!({})),
                    "sampling/createMessage",
                ),
                ("tools/call", call("roots", &json!({})), "roots/list"),
                (
                    "resources/read",
                    json!({ "uri": "fake://form" }),
                    "elicitation/create",
                ),
                (
                    "prompts/get",
                    json!({ "name": format!("{FAKE}__form") }),
                    "elicitation/create",
                ),
            ] {
                let (questions, done) = client.run(method, params.clone()).await;
                assert_eq!(questions.len(), 1, "{who}: {params}: {done}");
                assert_eq!(questions[0]["method"], question, "{who}");
                if params["arguments"]["url"] == true {
                    assert_eq!(questions[0]["params"]["url"], "https://example.org/who");
                }
                let text = done["result"].to_string();
                assert!(text.contains("Ada"), "{who}: {params}: {done}");
            }
            let (questions, done) = client
                .run("tools/call", call("elicit", &json!({ "times": 3 })))
                .await;
            assert_eq!(questions.len(), 3, "{who}: {done}");
        }
        test.finish_after_clients().await;
    }
}

#[tokio::test]
async fn sampling_with_tools_passes_between_all_pairs_of_eras() {
    let tool = json!({ "name": "look", "inputSchema": { "type": "object" } });
    let text = json!({ "type": "text", "text": "Who?" });
    let request = json!({
        "messages": [{ "role": "user", "content": text }], "maxTokens": 10,
        "tools": [tool], "toolChoice": { "mode": "auto" }, "includeContext": "thisServer",
    });
    let params = call("sample", &json!({ "request": request }));
    for modes in [&[][..], &["modern"]] {
        let test = start(modes).await;
        for is_modern in [false, true] {
            let who = format!("{modes:?}, modern client: {is_modern}");
            let able = json!({ "sampling": { "tools": {}, "context": {} } });
            let mut client = PersonClient::connect_with(&test, is_modern, able).await;
            let (questions, done) = client.run("tools/call", params.clone()).await;
            assert_eq!(questions.len(), 1, "{who}: {done}");
            assert_eq!(questions[0]["params"], request, "{who}");
            assert!(done["result"].to_string().contains("Ada"), "{who}: {done}");

            let unable = json!({ "sampling": {} });
            let mut client = PersonClient::connect_with(&test, is_modern, unable).await;
            let (questions, done) = client.run("tools/call", params.clone()).await;
            assert!(questions.is_empty(), "{who}: {questions:?}");
            let told = done["result"]["content"][0]["text"].as_str().unwrap();
            assert!(told.contains("declares 'sampling.tools'"), "{who}: {told}");
        }
        if modes.is_empty() {
            let heard = test.answer("received", json!({})).await;
            let heard = heard.as_array().unwrap().iter();
            let mut hello = heard.filter(|message| message["method"] == "initialize");
            let sampling = &hello.next().unwrap()["params"]["capabilities"]["sampling"];
            assert_eq!(*sampling, json!({ "context": {}, "tools": {} }));
        }
        test.finish_after_clients().await;
    }
}

#[tokio::test]
async fn two_clients_of_one_old_server_never_see_each_others_questions() {
    let test = start(&[]).await;
    let mut ada = PersonClient::connect(&test, false).await;
    let mut bob = PersonClient::connect(&test, true).await;
    // Ada's call runs, and Bob's asks: it is unclear which of them the server means.
    ada.request("tools/call", call("sleep", &json!({ "ms": 2000 })))
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let (questions, done) = bob.run("tools/call", call("elicit", &json!({}))).await;
    assert_eq!(questions, [] as [Value; 0]);
    assert!(done.to_string().contains("decline"), "{done}");
    let slept = ada.next().await;
    assert!(slept.to_string().contains("slept"), "{slept}");
    let (questions, done) = bob.run("tools/call", call("elicit", &json!({}))).await;
    assert_eq!(questions.len(), 1);
    assert!(done.to_string().contains("Ada"), "{done}");
    test.finish_after_clients().await;
}

#[tokio::test]
async fn a_server_that_dies_while_a_person_thinks_ends_its_call() {
    for is_modern in [false, true] {
        let test = start(&[]).await;
        let mut client = PersonClient::connect(&test, is_modern).await;
        client
            .request("tools/call", call("elicit", &json!({})))
            .await;
        let question = client.next().await;
        let pid = test.answer("pid", json!({})).await;
        crate::fault_test::signal("KILL", &pid);
        let params = call("elicit", &json!({}));
        let done = if is_modern {
            let mut again = params;
            again["requestState"] = question["result"]["requestState"].clone();
            again["inputResponses"] = json!({});
            // The question is repeated until the gateway notices that the server has ended.
            loop {
                client.request("tools/call", again.clone()).await;
                let message = client.next().await;
                if message["result"]["resultType"] != "input_required" {
                    break message;
                }
                again["requestState"] = message["result"]["requestState"].clone();
            }
        } else {
            let withdrawn = client.next().await;
            assert_eq!(
                withdrawn["method"], "notifications/cancelled",
                "{withdrawn}"
            );
            assert_eq!(withdrawn["params"]["requestId"], question["id"]);
            client.next().await
        };
        assert_eq!(done["result"]["isError"], true, "{done}");
        test.finish_after_clients().await;
    }
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_stopped() {
    let test = start(&[]).await;
    let mut client = PersonClient::connect(&test, false).await;
    let (questions, done) = client
        .run("tools/call", call("elicit", &json!({ "times": 200 })))
        .await;
    assert_eq!(questions.len(), 128);
    assert!(done.to_string().contains("cancel"), "{done}");
    test.finish_after_clients().await;
    let test = start(&["modern"]).await;
    let mut client = PersonClient::connect(&test, true).await;
    let (questions, done) = client
        .run("tools/call", call("elicit", &json!({ "times": 99 })))
        .await;
    assert_eq!(questions.len(), 8);
    assert!(done.to_string().contains("without completing"), "{done}");
    test.finish_after_clients().await;
}
