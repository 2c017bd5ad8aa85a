//! `check_zwave_health`: broker, gateway, radio and devices at a glance.

use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool};
use toolgate_mqtt::State;
use zwave::Health;

use super::{About, Answer, looks, object};
use crate::home::Home;
use crate::told;

#[derive(Deserialize)]
struct Arguments {}

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    About {
        name: "check_zwave_health",
        title: "Check the Z-Wave system",
        description: "Checks the way to the Z-Wave devices: MQTT broker, gateway, radio. Use it when a device can not be reached.",
        parameters: object(&json!({}), &[]),
        annotations: looks(),
        run: |home, arguments| check(home, arguments).boxed(),
    }
    .of(home)
}

async fn check(home: Home, _: Arguments) -> Answer {
    home.settle().await;
    let health = home.house.health();
    let message = format!("{}{}", sentence(&health), locks(&home));
    let fields = json!({
        "healthy": health.problem.is_none(),
        "problem": health.problem,
        "brokerConnected": health.broker == State::Online,
        "gateway": health.gateway.as_deref().map(named),
        "gatewayAlive": health.gateway_alive,
        "gatewayVersion": health.gateway_version,
        "otherGateways": health.other_gateways.iter().map(|one| named(one)).collect::<Vec<_>>(),
        "radio": health.driver,
        "devices": health.nodes,
        "deadDevices": health.dead,
        "stale": health.stale,
        "locksEnabled": home.locks,
    });
    Ok(told::output(message, fields))
}

fn sentence(health: &Health) -> String {
    if let Some(problem) = &health.problem {
        return format!("The Z-Wave system is not available: {problem}");
    }
    let gateway = named(health.gateway.as_deref().unwrap_or_default());
    let version = health
        .gateway_version
        .as_ref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    let devices = match health.nodes {
        1 => "1 device".to_owned(),
        several => format!("{several} devices"),
    };
    let dead = match health.dead {
        0 => String::new(),
        1 => " 1 of them does not answer: list_zwave_devices with state \"dead\" tells which."
            .to_owned(),
        several => format!(
            " {several} of them do not answer: list_zwave_devices with state \"dead\" tells which."
        ),
    };
    let others = match health.other_gateways.as_slice() {
        [] => String::new(),
        others => format!(
            " There are other gateways, which are not used: {}. Set ZWAVE_GATEWAY to choose.",
            others
                .iter()
                .map(|one| named(one))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    format!(
        "The Z-Wave system is well: the gateway {gateway}{version} has {devices}.{dead}{others}"
    )
}

/// As a person wrote it, but for what no topic can have.
fn named(gateway: &str) -> &str {
    gateway.strip_prefix("ZWAVE_GATEWAY-").unwrap_or(gateway)
}

fn locks(home: &Home) -> &'static str {
    if home.locks {
        " Locks may be moved."
    } else {
        " Locks are off: start the server with ZWAVE_ALLOW_LOCKS=1 to offer control_lock."
    }
}
