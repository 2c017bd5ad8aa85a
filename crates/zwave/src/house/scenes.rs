//! Lists and starts the gateway's scenes.

use serde::Deserialize;
use serde_json::json;
use toolgate_home::{CommandOutcome, HomeScene, LastState};

use super::HouseState;
use crate::api::{ApiFunction, ApiRequestError};
use crate::device::class;
use crate::node::BoundedList;

const MAX_SCENES: usize = 500;

#[derive(Debug, Deserialize)]
struct GatewayScene {
    #[serde(rename = "sceneid")]
    id: u64,
    #[serde(default)]
    label: String,
    #[serde(default)]
    values: Vec<serde_json::Value>,
}

impl From<GatewayScene> for HomeScene {
    fn from(GatewayScene { id, label, values }: GatewayScene) -> Self {
        // A value without a readable class might be a lock's.
        let is_harmless = |value: &serde_json::Value| {
            let class = value["commandClass"].as_u64();
            class.is_some_and(|number| number != u64::from(class::LOCK))
        };
        Self {
            id,
            label,
            moves_locks: !values.iter().all(is_harmless),
        }
    }
}

pub(super) async fn scenes(inner: &HouseState) -> Result<Vec<HomeScene>, String> {
    let args = json!([]);
    let scenes =
        inner.request::<BoundedList<GatewayScene, MAX_SCENES>>(ApiFunction::GetScenes, &args);
    match scenes.await {
        Ok(scenes) => {
            let scenes = scenes.unwrap_or_default().0.into_iter();
            Ok(scenes.map(HomeScene::from).collect())
        }
        Err(error) => Err(error.to_string()),
    }
}

pub(super) async fn activate(inner: &HouseState, scene: &HomeScene) -> CommandOutcome {
    let args = json!([scene.id]);
    let started = inner.request::<bool>(ApiFunction::ActivateScene, &args);
    match started.await {
        Ok(Some(true)) => CommandOutcome::Done {
            state: "started".to_owned(),
        },
        Ok(_) => CommandOutcome::Refused {
            reason: format!("The gateway did not start the scene '{}'.", scene.label),
        },
        Err(ApiRequestError::Offline(reason)) => CommandOutcome::Offline { reason },
        Err(ApiRequestError::Refused(reason)) => CommandOutcome::Refused { reason },
        Err(ApiRequestError::NoAnswer(reason)) => CommandOutcome::Unknown {
            reason,
            last: LastState {
                state: "unknown".to_owned(),
                at: None,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_that_may_move_a_lock_says_so() {
        for (values, moves_locks) in [
            (json!([]), false),
            (
                json!([{ "nodeId": 2, "commandClass": 37, "value": true }]),
                false,
            ),
            (
                json!([{ "commandClass": 38 }, { "commandClass": 98, "property": "targetMode" }]),
                true,
            ),
            (json!([{ "nodeId": 2 }]), true),
            (json!(["98-0-targetMode"]), true),
        ] {
            let written = json!({ "sceneid": 4, "label": "Night", "values": values });
            let scene = serde_json::from_value::<GatewayScene>(written).unwrap();
            let scene = HomeScene::from(scene);
            assert_eq!(scene.moves_locks, moves_locks, "{values}");
            assert_eq!((scene.id, scene.label.as_str()), (4, "Night"));
        }
        let bare = serde_json::from_value::<GatewayScene>(json!({ "sceneid": 1 })).unwrap();
        assert!(!HomeScene::from(bare).moves_locks);
    }
}
