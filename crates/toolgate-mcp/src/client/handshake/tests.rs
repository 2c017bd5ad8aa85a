use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};
use crate::client::transport::HttpStatus;
use crate::client::transport::TransportError;

const PROBE: Duration = Duration::from_secs(3);

fn legacy(method: &str) -> ScriptedReply {
    match method {
        "initialize" => {
            ScriptedReply::Answers(json!({ "protocolVersion": "2025-06-18", "capabilities": {} }))
        }
        _ => ScriptedReply::Refuses(-32601, "Method not found"),
    }
}

fn modern(method: &str) -> ScriptedReply {
    match method {
        "server/discover" => ScriptedReply::Answers(
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }),
        ),
        _ => ScriptedReply::Refuses(-32601, "Method not found"),
    }
}

fn status(status: u16) -> ScriptedReply {
    ScriptedReply::Fails(TransportError::Refused {
        status: HttpStatus(status),
        body: None,
    })
}

#[tokio::test(start_paused = true)]
async fn on_stdio_initialize_goes_first_and_discover_only_after_a_refusal() {
    for (script, choice, methods, expected) in [
        (
            legacy as fn(&str) -> ScriptedReply,
            EraSetting::Auto,
            "initialize notifications/initialized",
            Some(ProtocolEra::Legacy),
        ),
        (
            legacy,
            EraSetting::Legacy,
            "initialize notifications/initialized",
            Some(ProtocolEra::Legacy),
        ),
        (legacy, EraSetting::Modern, "server/discover", None),
        (
            modern,
            EraSetting::Auto,
            "initialize server/discover",
            Some(ProtocolEra::Modern),
        ),
        (
            modern,
            EraSetting::Modern,
            "server/discover",
            Some(ProtocolEra::Modern),
        ),
        (modern, EraSetting::Legacy, "initialize", None),
    ] {
        let (session, server) = ScriptedServer::session(move |method, _| script(method));
        let era = handshake_stdio(&session, choice, &json!({})).await.ok();
        assert_eq!(era, expected, "{choice:?}");
        assert_eq!(server.agreed_era(), expected);
        assert_eq!(server.methods().join(" "), methods);
    }
}

#[tokio::test(start_paused = true)]
async fn on_http_the_modern_request_goes_first_then_the_older_one() {
    for (code, methods, expected) in [
        (
            400,
            "server/discover initialize notifications/initialized",
            Some(ProtocolEra::Legacy),
        ),
        (
            404,
            "server/discover initialize notifications/initialized",
            Some(ProtocolEra::Legacy),
        ),
        (
            405,
            "server/discover initialize notifications/initialized",
            Some(ProtocolEra::Legacy),
        ),
        (401, "server/discover", None),
        (403, "server/discover", None),
        (503, "server/discover", None),
    ] {
        let (session, server) = ScriptedServer::session(move |method, _| match method {
            "server/discover" => status(code),
            other => legacy(other),
        });
        let era = handshake_http(&session, EraSetting::Auto, &json!({}), PROBE)
            .await
            .ok();
        assert_eq!(era, expected, "{code}");
        assert_eq!(server.methods().join(" "), methods, "{code}");
    }
    // A server that doesn't even refuse costs the probe's timeout, not the whole one.
    let (session, server) = ScriptedServer::session(|method, _| match method {
        "server/discover" => ScriptedReply::Nothing,
        other => legacy(other),
    });
    assert_eq!(
        handshake_http(&session, EraSetting::Auto, &json!({}), PROBE)
            .await
            .ok(),
        Some(ProtocolEra::Legacy)
    );
    assert!(server.methods().contains(&"initialize".to_owned()));
}

#[tokio::test]
async fn a_server_that_supports_the_revision_it_refused_is_asked_once_more() {
    for (supported, refusals, methods, expected) in [
        (
            json!(["2026-07-28"]),
            1,
            "server/discover server/discover",
            ProtocolEra::Modern,
        ),
        (
            json!(["2026-07-28"]),
            9,
            "server/discover server/discover initialize notifications/initialized",
            ProtocolEra::Legacy,
        ),
        (
            json!(["2025-11-25"]),
            9,
            "server/discover initialize notifications/initialized",
            ProtocolEra::Legacy,
        ),
    ] {
        let left = AtomicUsize::new(refusals);
        let (session, server) = ScriptedServer::session(move |method, _| match method {
            "server/discover" if left.load(Ordering::Relaxed) > 0 => {
                left.fetch_sub(1, Ordering::Relaxed);
                let data = json!({ "supported": supported, "requested": "2026-07-28" });
                ScriptedReply::RefusesWith(-32022, data)
            }
            "server/discover" => modern(method),
            other => legacy(other),
        });
        let era = handshake_http(&session, EraSetting::Auto, &json!({}), PROBE).await;
        assert_eq!(era.ok(), Some(expected));
        assert_eq!(server.methods().join(" "), methods);
    }
}

#[tokio::test]
async fn the_modern_era_puts_revision_and_client_into_every_request() {
    let (session, server) = ScriptedServer::session(|method, _| modern(method));
    handshake_stdio(&session, EraSetting::Modern, &json!({ "roots": {} }))
        .await
        .unwrap();
    drop(
        session
            .request(SessionRequest::new("tools/list", json!({})))
            .await,
    );
    for message in server.sent() {
        let meta = &message["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28",
            "{message}"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientInfo"]["name"],
            "toolgate"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({ "extensions": { "io.modelcontextprotocol/skills": {} } })
        );
    }
}

#[tokio::test]
async fn unknown_revisions_are_explained() {
    let (session, _server) = ScriptedServer::session(|_, _| {
        ScriptedReply::Answers(json!({ "supportedVersions": ["2031-01-01"] }))
    });
    let refusal = handshake_stdio(&session, EraSetting::Modern, &json!({}))
        .await
        .unwrap_err();
    assert_eq!(
        explain(&refusal).to_string(),
        "it supports the protocol revisions [\"2031-01-01\"]; this version supports 2026-07-28, and revisions up to 2025-11-25"
    );
}
