use super::*;
use crate::client::scripted::{Does, Scripted};
use crate::client::transport::TransportError;

const PROBE: Duration = Duration::from_secs(3);

fn legacy(method: &str) -> Does {
    match method {
        "initialize" => {
            Does::Answers(json!({ "protocolVersion": "2025-06-18", "capabilities": {} }))
        }
        _ => Does::Refuses(-32601, "Method not found"),
    }
}

fn modern(method: &str) -> Does {
    match method {
        "server/discover" => {
            Does::Answers(json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }))
        }
        _ => Does::Refuses(-32601, "Method not found"),
    }
}

fn status(status: u16) -> Does {
    Does::Fails(TransportError::Refused {
        status: Status(status),
        body: None,
    })
}

#[tokio::test(start_paused = true)]
async fn on_stdio_initialize_goes_first_and_discover_only_after_a_refusal() {
    for (script, choice, methods, expected) in [
        (
            legacy as fn(&str) -> Does,
            EraChoice::Auto,
            "initialize notifications/initialized",
            Some(Era::Legacy),
        ),
        (
            legacy,
            EraChoice::Legacy,
            "initialize notifications/initialized",
            Some(Era::Legacy),
        ),
        (legacy, EraChoice::Modern, "server/discover", None),
        (
            modern,
            EraChoice::Auto,
            "initialize server/discover",
            Some(Era::Modern),
        ),
        (
            modern,
            EraChoice::Modern,
            "server/discover",
            Some(Era::Modern),
        ),
        (modern, EraChoice::Legacy, "initialize", None),
    ] {
        let (session, server) = Scripted::session(move |method, _| script(method));
        let era = greet_process(&session, choice, &json!({})).await.ok();
        assert_eq!(era, expected, "{choice:?}");
        assert_eq!(server.agreed(), expected);
        assert_eq!(server.methods().join(" "), methods);
    }
}

#[tokio::test(start_paused = true)]
async fn on_http_the_modern_request_goes_first_then_the_older_one() {
    for (code, methods, expected) in [
        (
            400,
            "server/discover initialize notifications/initialized",
            Some(Era::Legacy),
        ),
        (
            404,
            "server/discover initialize notifications/initialized",
            Some(Era::Legacy),
        ),
        (
            405,
            "server/discover initialize notifications/initialized",
            Some(Era::Legacy),
        ),
        (401, "server/discover", None),
        (403, "server/discover", None),
        (503, "server/discover", None),
    ] {
        let (session, server) = Scripted::session(move |method, _| match method {
            "server/discover" => status(code),
            other => legacy(other),
        });
        let era = greet_http(&session, EraChoice::Auto, &json!({}), PROBE)
            .await
            .ok();
        assert_eq!(era, expected, "{code}");
        assert_eq!(server.methods().join(" "), methods, "{code}");
    }
    // One that does not even say no costs the probe, not the whole wait.
    let (session, server) = Scripted::session(|method, _| match method {
        "server/discover" => Does::Nothing,
        other => legacy(other),
    });
    assert_eq!(
        greet_http(&session, EraChoice::Auto, &json!({}), PROBE)
            .await
            .ok(),
        Some(Era::Legacy)
    );
    assert!(server.methods().contains(&"initialize".to_owned()));
}

#[tokio::test]
async fn the_modern_era_puts_revision_and_client_into_every_request() {
    let (session, server) = Scripted::session(|method, _| modern(method));
    greet_process(&session, EraChoice::Modern, &json!({ "roots": {} }))
        .await
        .unwrap();
    drop(session.request(Request::new("tools/list", json!({}))).await);
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
            json!({ "roots": {} })
        );
    }
}

#[tokio::test]
async fn a_server_of_unknown_revisions_is_told_apart_and_explained() {
    let (session, _server) =
        Scripted::session(|_, _| Does::Answers(json!({ "supportedVersions": ["2031-01-01"] })));
    let refusal = greet_process(&session, EraChoice::Modern, &json!({}))
        .await
        .unwrap_err();
    assert_eq!(
        explain(&refusal).to_string(),
        "it speaks the protocol revisions [\"2031-01-01\"]; this version speaks 2026-07-28 and up to 2025-11-25"
    );
}
