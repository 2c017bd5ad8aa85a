//! Whatever clients ask for: no request reaches a server without the right to it, and no answer,
//! update, question or log message reaches another client. Set `PROPTEST_CASES` for more cases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::client::{PATIENCE, TestClient};
use crate::gateway::{ERAS, Gateway};

const SERVERS: [&str; 3] = ["a", "b", "c"];
const METHODS: [&str; 3] = ["resources/read", "prompts/get", "completion/complete"];
/// Tools that ask their client, and that log a message.
const TOOLS: [&str; 2] = ["elicit", "notify"];
/// The key in `_meta` that says which client made a request.
const BY: &str = "example.org/by";

/// What one client may do: era_pairs of a server and a method or tool.
type Rights = BTreeSet<(String, String)>;

#[derive(Debug, Clone)]
struct ClientPlan {
    is_modern: bool,
    rights: Rights,
    // Written as a list of what is denied, instead of what is allowed.
    is_denied: bool,
    requests: Vec<PlannedRequest>,
}

#[derive(Debug, Clone)]
enum PlannedRequest {
    Read(String),
    Prompt(String),
    Complete(String),
    Subscribe(String),
    BeAsked(&'static str),
    Log(&'static str),
}

/// Addresses of resources: of the scheme that all servers list, of a scheme of one, with the name
/// of a server in many forms, and random text.
fn address() -> impl Strategy<Value = String> {
    let own = prop_oneof![
        3 => Just("x:N".to_owned()),
        1 => prop::sample::select(SERVERS.to_vec()).prop_map(|server| format!("{server}-own:N")),
        1 => "[a-zA-Z:/%.{}]{0,12}N",
    ];
    let server = prop_oneof![
        4 => prop::sample::select(SERVERS.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["A", "%61", "", "d", "a/b", "b%2Fa"]).prop_map(str::to_owned),
    ];
    let prefix = prop::sample::select(vec![
        "toolgate://",
        "ui://toolgate/",
        "TOOLGATE://",
        "ui://",
    ]);
    let named = (prefix, server, own.clone());
    let named = named.prop_map(|(prefix, server, own)| format!("{prefix}{server}/{own}"));
    let twice = (prop::sample::select(SERVERS.to_vec()), named.clone());
    let twice = twice.prop_map(|(server, own)| format!("toolgate://{server}/{own}"));
    prop_oneof![3 => own, 4 => named, 1 => twice]
}

fn prompt() -> impl Strategy<Value = String> {
    let own = prop::sample::select(vec!["p", "a__p", "only-b", "b__p"]);
    let qualified = (prop::sample::select(SERVERS.to_vec()), own.clone());
    let qualified = qualified.prop_map(|(server, own)| format!("{server}__{own}"));
    prop_oneof![2 => own.prop_map(str::to_owned), 2 => qualified, 1 => "[abc_p]{0,6}"]
}

fn request() -> impl Strategy<Value = PlannedRequest> {
    prop_oneof![
        3 => address().prop_map(PlannedRequest::Read),
        2 => prompt().prop_map(PlannedRequest::Prompt),
        1 => address().prop_map(PlannedRequest::Complete),
        2 => address().prop_map(PlannedRequest::Subscribe),
        2 => prop::sample::select(SERVERS.to_vec()).prop_map(PlannedRequest::BeAsked),
        1 => prop::sample::select(SERVERS.to_vec()).prop_map(PlannedRequest::Log),
    ]
}

fn all_rights() -> Vec<(String, String)> {
    let targets = METHODS.into_iter().chain(TOOLS);
    let era_pairs = SERVERS
        .iter()
        .flat_map(|server| targets.clone().map(move |target| (server, target)));
    era_pairs
        .map(|(server, method)| ((*server).to_owned(), method.to_owned()))
        .collect()
}

fn plan() -> impl Strategy<Value = ClientPlan> {
    let rights = prop::sample::subsequence(all_rights(), 0..=all_rights().len());
    let requests = prop::collection::vec(request(), 1..8);
    (any::<bool>(), rights, any::<bool>(), requests).prop_map(
        |(is_modern, rights, is_denied, requests)| ClientPlan {
            is_modern,
            rights: rights.into_iter().collect(),
            is_denied,
            requests,
        },
    )
}

/// A client that follows its plan.
struct Actor {
    client: TestClient,
    number: usize,
    rights: Rights,
    // By the address: the server and its own URI, if the client may read it.
    accepted: BTreeMap<String, (String, String)>,
    // The log messages that its calls caused.
    logged: BTreeSet<String>,
    // No other client uses the servers, so everything must reach this one.
    is_alone: bool,
}

impl Actor {
    async fn new(gateway: &Gateway, plan: &ClientPlan, number: usize, is_alone: bool) -> Self {
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
        Self {
            client: gateway
                .client_answering(
                    era,
                    &allow,
                    &deny,
                    json!({ "who": format!("client {number}") }),
                )
                .await,
            number,
            rights: plan.rights.clone(),
            accepted: BTreeMap::new(),
            logged: BTreeSet::new(),
            is_alone,
        }
    }

    fn may(&self, server: &str, method: &str) -> bool {
        self.rights
            .contains(&(server.to_owned(), method.to_owned()))
    }

    async fn ask(&mut self, method: &str, mut params: Value) -> Option<Value> {
        params["_meta"] = json!({ BY: self.number });
        let mut response = self.client.ask(method, params).await;
        response["error"]
            .is_null()
            .then(|| response["result"].take())
    }

    /// Asks, and checks that the answer comes from a server that may answer, to this very request.
    async fn act(&mut self, request: &PlannedRequest, nonce: &str) {
        let own = |text: &str| text.replace('N', nonce);
        match request {
            PlannedRequest::Read(uri) => drop(self.read(&own(uri)).await),
            PlannedRequest::Prompt(name) => {
                let params = json!({ "name": name, "arguments": { "nonce": nonce } });
                if let Some(result) = self.ask("prompts/get", params).await {
                    let text = result["messages"][0]["content"]["text"].as_str().unwrap();
                    let (prompt, server) = text.rsplit_once(" of ").unwrap();
                    let (theirs, prompt) = prompt.split_once('/').unwrap();
                    assert_eq!(theirs, nonce, "{name}: {text}");
                    assert!(self.may(server, "prompts/get"), "{name}: {text}");
                    assert!(name.ends_with(prompt), "{name}: {text}");
                }
            }
            PlannedRequest::Complete(uri) => {
                let uri = own(uri);
                let reference = json!({ "type": "ref/resource", "uri": uri });
                let params = json!({ "ref": reference, "argument": { "name": "n", "value": "" } });
                let result = self.ask("completion/complete", params).await;
                if let Some(text) =
                    result.and_then(|it| Some(it["completion"]["values"][0].as_str()?.to_owned()))
                {
                    let (theirs, server) = text.rsplit_once(" of ").unwrap();
                    assert!(self.may(server, "completion/complete"), "{uri}: {text}");
                    assert!(
                        uri.ends_with(theirs) || uri.starts_with("ui://"),
                        "{uri}: {text}"
                    );
                }
            }
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
            PlannedRequest::BeAsked(server) => self.be_asked(server, nonce).await,
            PlannedRequest::Log(server) => self.log(server, nonce).await,
        }
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
    async fn be_asked(&mut self, server: &str, nonce: &str) {
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
    async fn log(&mut self, server: &str, nonce: &str) {
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
    fn take_logs(&self, notifications: &mut Vec<Value>) -> BTreeSet<String> {
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

    /// Returns the server that answered, and the URI there.
    async fn read(&mut self, uri: &str) -> Option<(String, String)> {
        let result = self.ask("resources/read", json!({ "uri": uri })).await?;
        assert_eq!(result["contents"][0]["uri"], uri, "{result}");
        let text = result["contents"][0]["text"].as_str().unwrap();
        let (own, server) = text.rsplit_once(" of ").unwrap();
        assert!(self.may(server, "resources/read"), "{uri}: {text}");
        assert!(
            uri.ends_with(own) || uri.starts_with("ui://"),
            "{uri}: {text}"
        );
        Some((server.to_owned(), own.to_owned()))
    }
}

/// Checks that every request that a server received came from a client that may make it.
async fn check_received(gateway: &Gateway, actors: &[Actor]) {
    for server in SERVERS {
        for params in gateway.received(server, "tools/call").await {
            let Some(tool) = TOOLS.iter().find(|tool| params["name"] == **tool) else {
                continue;
            };
            let Some(number) = params["_meta"][BY].as_u64() else {
                panic!("{tool} without its client: {params}");
            };
            let by = actors.iter().find(|actor| actor.number as u64 == number);
            assert!(
                by.is_none_or(|by| by.may(server, tool)),
                "{server}: {params}"
            );
        }
        for method in METHODS {
            for params in gateway.received(server, method).await {
                let Some(number) = params["_meta"][BY].as_u64() else {
                    panic!("{method} without its client: {params}");
                };
                // Requests of earlier cases were checked then.
                let by = actors.iter().find(|actor| actor.number as u64 == number);
                let Some(by) = by else { continue };
                assert!(by.may(server, method), "{server} {method}: {params}");
                if method == "completion/complete" {
                    let base = match params["ref"]["type"] == "ref/prompt" {
                        true => "prompts/get",
                        false => "resources/read",
                    };
                    assert!(by.may(server, base), "{server}: {params}");
                }
            }
        }
    }
}

/// Checks that servers have only the subscriptions of clients that may read them, and that each
/// update reaches exactly those clients.
async fn check_updates(gateway: &Gateway, actors: &mut [Actor]) {
    let mut wanted: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (server, own) in actors.iter().flat_map(|actor| actor.accepted.values()) {
        let server = SERVERS.iter().find(|it| *it == server).unwrap();
        wanted.entry(server).or_default().insert(own.clone());
    }
    for server in SERVERS {
        let own = wanted.get(server).cloned().unwrap_or_default();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        gateway.wait_until_subscribed(server, &own).await;
    }
    for actor in &mut *actors {
        let mut so_far = actor.client.drain_briefly().await;
        actor.take_logs(&mut so_far);
    }
    let every: BTreeSet<String> = wanted.into_values().flatten().collect();
    for (server, uri) in SERVERS
        .iter()
        .flat_map(|server| every.iter().map(move |uri| (server, uri)))
    {
        let update = json!({ "uri": uri, "always": true });
        gateway.call(server, "update", update).await;
    }
    for actor in actors {
        let expected: BTreeSet<String> = actor.accepted.keys().cloned().collect();
        let mut updated_uris = BTreeSet::new();
        let receiving = async {
            while updated_uris.len() < expected.len() {
                updated_uris.insert(actor.client.next_updated_uri().await);
            }
        };
        drop(tokio::time::timeout(PATIENCE, receiving).await);
        let rest = actor.client.drain_briefly().await;
        updated_uris.extend(
            rest.iter()
                .map(|it| it["params"]["uri"].as_str().unwrap().to_owned()),
        );
        assert_eq!(updated_uris, expected, "{:?}", actor.rights);
    }
}

async fn run_case(gateway: &Gateway, plans: &[ClientPlan], first_number: usize) {
    let mut actors = Vec::new();
    for (plan, number) in plans.iter().zip(first_number..) {
        actors.push(Actor::new(gateway, plan, number, plans.len() == 1).await);
    }
    // All clients at once.
    let acting = actors
        .iter_mut()
        .zip(plans)
        .map(|(actor, plan)| async move {
            for (step, request) in plan.requests.iter().enumerate() {
                let nonce = format!("{}-{step}", actor.number);
                actor.act(request, &nonce).await;
            }
        });
    futures::future::join_all(acting).await;
    // And all on the same server at once, where calls are most easily confused.
    for server in SERVERS {
        let acting = actors.iter_mut().map(|actor| async move {
            let nonce = format!("{}-{server}", actor.number);
            actor.be_asked(server, &nonce).await;
            actor.log(server, &nonce).await;
        });
        futures::future::join_all(acting).await;
    }
    check_received(gateway, &actors).await;
    check_updates(gateway, &mut actors).await;
    drop(actors);
    for server in SERVERS {
        gateway.wait_until_subscribed(server, &[]).await;
    }
}

fn content(server: &str) -> Value {
    json!({
        "instructions": format!("only for those who may use {server}"),
        "resources": [{ "uri": "x:1" }, { "uri": format!("{server}-own:1") }],
        "templates": [{ "uriTemplate": "x:{n}" }],
        "prompts": [{ "name": "p" }, { "name": format!("only-{server}") }, { "name": "a__p" }],
    })
}

#[test]
fn permissions_decide_and_answers_reach_only_their_client() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let gateway = runtime.block_on(async {
        let mut gateway = Gateway::prepare(ProtocolEra::Legacy, &[], |options| {
            options.relays_questions = true;
        });
        for (server, era) in SERVERS.iter().zip([ERAS[0], ERAS[1], ERAS[0]]) {
            gateway.add(server, era, &content(server));
        }
        gateway.apply().await;
        gateway
    });
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 24;
    }
    let number = std::cell::Cell::new(1);
    let plans = prop::collection::vec(plan(), 1..4);
    let result = TestRunner::new(config).run(&plans, |plans| {
        let first = number.replace(number.get() + plans.len());
        let case = async {
            let case = run_case(&gateway, &plans, first);
            tokio::time::timeout(Duration::from_secs(100), case).await
        };
        runtime.block_on(case).expect("the case ends");
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    runtime.block_on(gateway.stop());
}
