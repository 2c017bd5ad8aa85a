//! A client that follows its plan, and checks every answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use super::plan::{ClientPlan, EXTENSION_RIGHT, EXTENSIONS, PlannedRequest, Rights, all_rights};
use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway, scope};

/// The key in `_meta` that says which client made a request.
pub(super) const BY: &str = "example.org/by";

pub(super) struct Actor {
    pub(super) client: TestClient,
    pub(super) number: usize,
    pub(super) rights: Rights,
    pub(super) extensions: Vec<&'static str>,
    // By URI: the server and its own URI, if the client may read it.
    pub(super) accepted: BTreeMap<String, (String, String)>,
    // The log messages that its calls caused.
    logged: BTreeSet<String>,
    // No other client uses the servers, so everything must reach this one.
    is_alone: bool,
}

impl Actor {
    pub(super) async fn new(
        gateway: &Gateway,
        plan: &ClientPlan,
        number: usize,
        is_alone: bool,
    ) -> Self {
        let pattern = |(server, method): &(String, String)| format!("{server}/{method}");
        let era = ERAS[usize::from(plan.is_modern)];
        let all = all_rights();
        let denied = all.iter().filter(|right| !plan.rights.contains(right));
        let (allow, deny): (Vec<String>, Vec<String>) = match plan.is_denied {
            true => (vec!["*".to_owned()], denied.map(pattern).collect()),
            false => (plan.rights.iter().map(pattern).collect(), Vec::new()),
        };
        let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
        let deny: Vec<&str> = deny.iter().map(String::as_str).collect();
        let who = format!("client {number}");
        let scope = scope(&allow, &deny).for_caller(who.clone());
        let declared = plan
            .extensions
            .iter()
            .map(|id| ((*id).to_owned(), json!({})));
        let server = gateway.server.within(scope);
        let (form, declared) = (json!({ "who": who }), Value::from_iter(declared));
        Self {
            client: TestClient::answering_with(server, era, form, declared).await,
            number,
            rights: plan.rights.clone(),
            extensions: plan.extensions.clone(),
            accepted: BTreeMap::new(),
            logged: BTreeSet::new(),
            is_alone,
        }
    }

    pub(super) fn may(&self, server: &str, method: &str) -> bool {
        self.rights
            .contains(&(server.to_owned(), method.to_owned()))
    }

    fn assert_may(&self, server: &str, methods: &[&str], about: &str) {
        let may = methods.iter().all(|method| self.may(server, method));
        assert!(may, "{methods:?} of {server}: {about}");
    }

    /// True if the client declares an extension of the server, and the method isn't named after
    /// one of another server.
    pub(super) fn shares_extension(&self, server: &str, method: &str) -> bool {
        let declared = EXTENSIONS
            .iter()
            .filter(|(id, _)| self.extensions.contains(id));
        let is_named = |id: &str| {
            let name = id.rsplit_once('/').unwrap().1;
            [id, name]
                .iter()
                .any(|id| method.starts_with(&format!("{id}/")))
        };
        let (named, others): (Vec<_>, Vec<_>) = declared.partition(|(id, _)| is_named(id));
        let counted = if named.is_empty() { others } else { named };
        counted.iter().any(|(_, servers)| servers.contains(&server))
    }

    pub(super) async fn ask(&mut self, method: &str, mut params: Value) -> Option<Value> {
        params["_meta"] = json!({ BY: self.number });
        let mut response = self.client.ask(method, params).await;
        response["error"]
            .is_null()
            .then(|| response["result"].take())
    }

    /// Asks, and checks that the answer comes from a server that may answer, to this very request.
    pub(super) async fn act(&mut self, request: &PlannedRequest, nonce: &str) {
        let own = |text: &str| text.replace('N', nonce);
        match request {
            PlannedRequest::Read(uri) => drop(self.read(&own(uri)).await),
            PlannedRequest::Prompt(name) => self.get_prompt(name, nonce).await,
            PlannedRequest::Complete(uri) => self.complete(&own(uri)).await,
            PlannedRequest::Subscribe(uri) => {
                let uri = own(uri);
                let readable = self.read(&uri).await;
                let is_accepted = self.client.subscribe(&[&uri]).await == [uri.clone()];
                assert_eq!(is_accepted, readable.is_some(), "{uri}");
                if self.client.era == ProtocolEra::Modern {
                    // A new request replaces the subscriptions of the one before in this client.
                    self.accepted.clear();
                }
                self.accepted.extend(readable.map(|owner| (uri, owner)));
            }
            PlannedRequest::GetSkill(uri) => self.get_skill(&own(uri)).await,
            PlannedRequest::ReadFolder(uri) => self.read_folder(&own(uri)).await,
            PlannedRequest::ListSkills => self.list_skills().await,
            PlannedRequest::UseExtension(method) => self.use_extension(method, nonce).await,
            PlannedRequest::BeAsked(server) => self.be_asked(server, nonce).await,
            PlannedRequest::Log(server) => self.log(server, nonce).await,
        }
    }

    async fn get_prompt(&mut self, name: &str, nonce: &str) {
        let params = json!({ "name": name, "arguments": { "nonce": nonce } });
        if let Some(result) = self.ask("prompts/get", params).await {
            let text = result["messages"][0]["content"]["text"].as_str().unwrap();
            let (prompt, server) = text.rsplit_once(" of ").unwrap();
            let (theirs, prompt) = prompt.split_once('/').unwrap();
            assert_eq!(theirs, nonce, "{name}: {text}");
            self.assert_may(server, &["prompts/get"], text);
            assert!(name.ends_with(prompt), "{name}: {text}");
        }
    }

    async fn complete(&mut self, uri: &str) {
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let params = json!({ "ref": reference, "argument": { "name": "n", "value": "" } });
        let result = self.ask("completion/complete", params).await;
        let text = |result: Value| Some(result["completion"]["values"][0].as_str()?.to_owned());
        if let Some(text) = result.and_then(text) {
            self.check_owner(uri, &text, &["completion/complete"]);
        }
    }

    /// Returns the server that answered, and the URI there.
    async fn read(&mut self, uri: &str) -> Option<(String, String)> {
        let result = self.ask("resources/read", json!({ "uri": uri })).await?;
        assert_eq!(result["contents"][0]["uri"], uri, "{result}");
        let text = result["contents"][0]["text"].as_str().unwrap();
        Some(self.check_owner(uri, text, &["resources/read"]))
    }

    async fn get_skill(&mut self, uri: &str) {
        if let Some(result) = self.ask("skills/get", json!({ "uri": uri })).await {
            let skill = &result["skill"];
            assert_eq!(skill["uri"], uri, "{skill}");
            let text = skill["frontmatter"]["description"].as_str().unwrap();
            self.check_owner(uri, text, &["skills/get", "resources/read"]);
        }
    }

    async fn read_folder(&mut self, uri: &str) {
        let method = "resources/directory/read";
        if let Some(result) = self.ask(method, json!({ "uri": uri })).await {
            let text = result["resources"][0]["name"].as_str().unwrap();
            self.check_owner(uri, text, &[method, "resources/read"]);
        }
    }

    async fn list_skills(&mut self) {
        let result = self.ask("skills/list", json!({})).await.unwrap();
        for skill in result["skills"].as_array().unwrap() {
            let text = skill["frontmatter"]["description"].as_str().unwrap();
            let (_, server) = text.rsplit_once(" of ").unwrap();
            self.assert_may(server, &["skills/get", "resources/read"], text);
        }
    }

    async fn use_extension(&mut self, method: &str, nonce: &str) {
        if let Some(result) = self.ask(method, json!({ "nonce": nonce })).await {
            assert_eq!(result["params"]["nonce"], nonce, "{method}: {result}");
            let server = result["server"].as_str().unwrap();
            self.assert_may(server, &[EXTENSION_RIGHT], method);
            assert!(self.shares_extension(server, method), "{method}: {result}");
        }
    }

    /// Checks the text of an answer, which says the server's own URI and the server. Returns both.
    fn check_owner(&self, uri: &str, text: &str, methods: &[&str]) -> (String, String) {
        let (own, server) = text.rsplit_once(" of ").unwrap();
        self.assert_may(server, methods, text);
        // These schemes stay in front of the server's name.
        let keeps_scheme = ["ui://", "skill://"].iter().any(|it| uri.starts_with(it));
        assert!(uri.ends_with(own) || keeps_scheme, "{uri}: {text}");
        (server.to_owned(), own.to_owned())
    }

    async fn call(&mut self, server: &str, tool: &str, arguments: Value) -> Option<String> {
        let params = json!({ "name": format!("{server}__{tool}"), "arguments": arguments });
        let result = self.ask("tools/call", params).await?;
        let is_done = result["isError"] != true;
        assert!(
            !is_done || self.may(server, tool),
            "{server} {tool}: {result}"
        );
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        is_done.then_some(text)
    }

    /// Calls a tool that asks its client. The answer may be missing while others use the server.
    pub(super) async fn be_asked(&mut self, server: &str, nonce: &str) {
        let before = self.client.received_questions.lock().len();
        let text = self
            .call(server, "elicit", json!({ "message": nonce }))
            .await;
        let asked = self.client.received_questions.lock().split_off(before);
        let answer = format!(r#""who":"client {}""#, self.number);
        let text = text.unwrap_or_default();
        match &*asked {
            [] => {
                assert!(!text.contains("client "), "{text}");
                assert!(
                    !self.is_alone || text.is_empty(),
                    "no client was asked: {text}"
                );
            }
            [message] => {
                assert_eq!(message, nonce);
                assert!(text.contains(&answer), "{text}");
            }
            more => panic!("{more:?}"),
        }
    }

    /// Calls a tool that logs. The message may be missing while others use the server.
    pub(super) async fn log(&mut self, server: &str, nonce: &str) {
        let params = json!({ "level": "info", "data": nonce });
        let arguments = json!({ "method": "notifications/message", "params": params });
        let is_allowed = self.may(server, "notify");
        if is_allowed {
            self.logged.insert(nonce.to_owned());
        }
        let is_done = self.call(server, "notify", arguments).await.is_some();
        assert_eq!(is_done, is_allowed);
        let mut so_far = self.client.drain_briefly().await;
        let logs = self.take_logs(&mut so_far);
        let is_missing = is_allowed && !logs.contains(nonce);
        assert!(!(self.is_alone && is_missing), "{logs:?} without {nonce}");
    }

    /// Returns the log messages among the notifications, all of which must be about its own calls.
    pub(super) fn take_logs(&self, notifications: &mut Vec<Value>) -> BTreeSet<String> {
        let is_log = |next: &mut Value| next["method"] == "notifications/message";
        let logs = notifications.extract_if(.., is_log);
        let logs: BTreeSet<String> = logs
            .map(|log| log["params"]["data"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            logs.is_subset(&self.logged),
            "{logs:?} of {:?}",
            self.logged
        );
        logs
    }
}
