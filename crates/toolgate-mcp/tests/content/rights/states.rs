//! The states of calls that wait for answers (`requestState`), in the hands of others.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use super::actor::{Actor, BY};
use super::plan::SERVERS;

/// The key in `_meta` of a request that must not reach any server.
pub(super) const STOLEN: &str = "example.org/stolen";

/// A call that waits for the answers of its client.
struct HeldCall {
    params: Value,
    state: String,
    question: String,
}

impl HeldCall {
    /// The request that continues the call with this client's answer.
    fn resumption(&self, by: usize) -> Value {
        let content = json!({ "who": format!("client {by}") });
        let answer = json!({ "action": "accept", "content": content });
        let mut params = self.params.clone();
        params["requestState"] = json!(self.state);
        params["inputResponses"] = json!({ &self.question: answer });
        params["_meta"] = json!({ BY: by });
        params
    }
}

/// Every client that can hold a state gets one. All clients try to use it, and then it still works
/// for its owner, once.
pub(super) async fn steal_states(actors: &mut [Actor]) {
    for server in SERVERS {
        for owner in 0..actors.len() {
            let Some(held) = actors[owner].hold_call(server).await else {
                continue;
            };
            for (place, thief) in actors.iter_mut().enumerate() {
                match thief.client.era {
                    ProtocolEra::Modern => thief.try_states(&held, place == owner).await,
                    ProtocolEra::Legacy => thief.send_foreign_state(&held).await,
                }
            }
            actors[owner].resume_call(&held).await;
        }
    }
}

impl Actor {
    /// Makes a call whose question isn't answered yet.
    async fn hold_call(&mut self, server: &str) -> Option<HeldCall> {
        if self.client.era == ProtocolEra::Legacy || !self.may(server, "elicit") {
            return None;
        }
        let name = format!("{server}__elicit");
        let message = format!("held by {}", self.number);
        let params = json!({
            "name": name, "arguments": { "message": message }, "_meta": { BY: self.number },
        });
        let response = self.response("tools/call", params.clone()).await;
        let result = &response["result"];
        assert_eq!(result["resultType"], "input_required", "{response}");
        let questions = result["inputRequests"].as_object().unwrap();
        let (question, asked) = questions.iter().next().unwrap();
        assert_eq!(asked["params"]["message"], message);
        Some(HeldCall {
            params,
            state: result["requestState"].as_str().unwrap().to_owned(),
            question: question.clone(),
        })
    }

    async fn response(&mut self, method: &str, params: Value) -> Value {
        let (_, response) = self.client.start(method, params).await;
        response.await.unwrap()
    }

    /// Uses the state for what it isn't meant for. All of it is refused before any server hears it.
    async fn try_states(&mut self, held: &HeldCall, is_owner: bool) {
        let mut resumption = held.resumption(self.number);
        resumption["_meta"][STOLEN] = json!(true);
        let mut other_arguments = resumption.clone();
        other_arguments["arguments"]["message"] = json!("something else");
        let mut other_prompt = resumption.clone();
        other_prompt["name"] = json!("p");
        let mut invented = resumption.clone();
        invented["requestState"] = json!("A".repeat(held.state.len()));
        let mut changed = resumption.clone();
        changed["requestState"] = json!(held.state.to_ascii_uppercase());
        let mut attempts = vec![
            ("tools/call", other_arguments),
            ("prompts/get", other_prompt),
            ("tools/call", invented),
            ("tools/call", changed),
        ];
        if !is_owner {
            attempts.push(("tools/call", resumption));
        }
        for (method, params) in attempts {
            let response = self.response(method, params).await;
            let is_refused = !response["error"].is_null() || response["result"]["isError"] == true;
            assert!(is_refused, "{method}: {response}");
        }
    }

    /// Older clients have no states, so this is a call of their own.
    async fn send_foreign_state(&mut self, held: &HeldCall) {
        let params = held.resumption(self.number);
        let response = self.client.ask("tools/call", params).await;
        let said = response["result"]["content"][0]["text"].as_str().unwrap();
        let own = format!("client {}", self.number);
        assert!(!said.replace(&own, "").contains("client "), "{said}");
    }

    async fn resume_call(&mut self, held: &HeldCall) {
        let resumption = held.resumption(self.number);
        let response = self.response("tools/call", resumption.clone()).await;
        let said = response["result"]["content"][0]["text"].as_str();
        let said = said.unwrap_or_else(|| panic!("{response}"));
        assert!(said.contains(&format!("client {}", self.number)), "{said}");
        let again = self.response("tools/call", resumption).await;
        assert_eq!(again["error"]["code"], -32602, "{again}");
    }
}
