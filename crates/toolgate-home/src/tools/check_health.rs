//! `check_*_health`: the state of broker, gateway, radio and devices.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool};

use super::{HomeToolResult, build_tool, define_tool, read_only_annotations};
use crate::{HomeAccess, HomeHealth, HomeTool, outcome_text};

#[derive(Deserialize)]
struct HealthArguments {}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let name = access.protocol.name;
    let definition = define_tool(
        access,
        HomeTool::CheckHealth,
        format!("Check the {name} system"),
        format!(
            "Checks the connection to the {name} devices: MQTT broker, gateway, radio. Use it when a device can't be reached."
        ),
        &json!({}),
        &[],
        &read_only_annotations(),
    );
    build_tool(access, definition, check)
}

async fn check(access: HomeAccess, _: HealthArguments) -> HomeToolResult {
    access.wait_for_start().await;
    let health = access.home.health();
    let message = format!("{} {}", sentence(&access, &health), locks(&access));
    let named = |gateway| access.protocol.display_gateway(gateway);
    let fields = json!({
        "healthy": health.problem.is_none(),
        "problem": health.problem,
        "brokerConnected": health.broker_connected,
        "gateway": health.gateway.as_deref().map(named),
        "gatewayAlive": health.gateway_alive,
        "gatewayVersion": health.gateway_version,
        "otherGateways": health.other_gateways.iter().map(|one| named(one)).collect::<Vec<_>>(),
        "radio": health.radio,
        "devices": health.devices,
        "deadDevices": health.dead,
        "stale": health.stale,
        "locksEnabled": access.locks_allowed,
    });
    Ok(outcome_text::tool_output(message, None, fields))
}

fn sentence(access: &HomeAccess, health: &HomeHealth) -> String {
    let name = access.protocol.name;
    if let Some(problem) = &health.problem {
        return format!("The {name} system is not available: {problem}");
    }
    let shown = |gateway| access.protocol.display_gateway(gateway);
    let gateway = shown(health.gateway.as_deref().unwrap_or_default());
    let version = health
        .gateway_version
        .as_ref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    let devices = match health.devices {
        1 => "1 device".to_owned(),
        several => format!("{several} devices"),
    };
    let dead = match health.dead {
        0 => String::new(),
        dead => {
            let list = HomeTool::ListDevices.name(access.protocol);
            let do_not = if dead == 1 { "does" } else { "do" };
            format!(" {dead} of them {do_not} not answer: {list} with state \"dead\" shows which.")
        }
    };
    let others = match health.other_gateways.as_slice() {
        [] => String::new(),
        others => format!(
            " Other gateways are online but not used: {}. Set {} to choose.",
            others
                .iter()
                .map(|one| shown(one))
                .collect::<Vec<_>>()
                .join(", "),
            access.protocol.env_var("GATEWAY")
        ),
    };
    format!("The {name} system works: the gateway {gateway}{version} has {devices}.{dead}{others}")
}

fn locks(access: &HomeAccess) -> String {
    if access.locks_allowed {
        return "Locks may be moved.".to_owned();
    }
    format!(
        "Locks are off: start the server with {}=1 to offer {}.",
        access.protocol.env_var("ALLOW_LOCKS"),
        HomeTool::ControlLock.name(access.protocol)
    )
}
