//! Whatever clients ask for: no request reaches a server without the right to it, and no answer,
//! update, question or log message reaches another client, not even one that has stolen the state
//! of a waiting call. Set `PROPTEST_CASES` for more cases.

mod actor;
mod plan;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::client::PATIENCE;
use crate::gateway::{ERAS, Gateway};
use actor::{Actor, BY};
use plan::{
    ClientPlan, EXTENSION_METHODS, EXTENSION_RIGHT, EXTENSIONS, METHODS, SERVERS, TOOLS, plan,
};
use states::{STOLEN, steal_states};

/// Checks that every request that a server received came from a client that may make it.
async fn check_received(gateway: &Gateway, actors: &[Actor]) {
    for server in SERVERS {
        for message in gateway.received_messages(server).await {
            let (method, params) = (
                message["method"].as_str().unwrap_or_default(),
                &message["params"],
            );
            assert!(params["_meta"][STOLEN].is_null(), "{server}: {message}");
            let right = match method {
                "tools/call" => TOOLS.into_iter().find(|tool| params["name"] == *tool),
                _ if EXTENSION_METHODS.contains(&method) => Some(EXTENSION_RIGHT),
                _ => METHODS.into_iter().find(|it| *it == method),
            };
            let Some(right) = right else { continue };
            let Some(number) = params["_meta"][BY].as_u64() else {
                panic!("{right} without its client: {message}");
            };
            // Requests of earlier cases were checked then.
            let by = actors.iter().find(|actor| actor.number as u64 == number);
            let Some(by) = by else { continue };
            let base = match right {
                "completion/complete" if params["ref"]["type"] == "ref/prompt" => "prompts/get",
                "completion/complete" | "skills/get" | "resources/directory/read" => {
                    "resources/read"
                }
                right => right,
            };
            let may = [right, base].iter().all(|right| by.may(server, right));
            assert!(may, "{server} {right}: {message}");
            let is_shared = right != EXTENSION_RIGHT || by.shares_extension(server, method);
            assert!(is_shared, "{server}: {message} of {:?}", by.extensions);
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
    steal_states(&mut actors).await;
    check_received(gateway, &actors).await;
    check_updates(gateway, &mut actors).await;
    drop(actors);
    for server in SERVERS {
        gateway.wait_until_subscribed(server, &[]).await;
    }
}

fn content(server: &str) -> Value {
    let skill = format!("skill://{server}/SKILL.md");
    let description = format!("{skill} of {server}");
    let frontmatter = json!({ "name": server, "description": description });
    let own = EXTENSIONS
        .iter()
        .filter(|(_, servers)| servers.contains(&server));
    let mut extensions = Value::from_iter(own.map(|(id, _)| ((*id).to_owned(), json!({}))));
    extensions["io.modelcontextprotocol/skills"] = json!({ "directoryRead": true });
    let answer = json!({ "server": server, "params": null });
    let methods = EXTENSION_METHODS.map(|method| (method.to_owned(), answer.clone()));
    json!({
        "instructions": format!("only for those who may use {server}"),
        "resources": [{ "uri": "x:1" }, { "uri": format!("{server}-own:1") }],
        "templates": [{ "uriTemplate": "x:{n}" }],
        "prompts": [{ "name": "p" }, { "name": format!("only-{server}") }, { "name": "a__p" }],
        "skills": [{ "uri": skill, "frontmatter": frontmatter, "resources": "dynamic" }],
        "anything": true,
        "extensions": extensions,
        "methods": Value::from_iter(methods),
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
