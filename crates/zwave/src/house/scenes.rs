//! Scenes: several values set at once, as people arranged them in the gateway.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::House;
use crate::api::{AskError, Function};
use crate::command::{Achieved, Last};
use crate::device::class;
use crate::node::Bounded;

const MAX_SCENES: usize = 500;

/// A scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scene {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub label: String,
    /// True if it moves a lock, or may: what can not be read counts as a lock.
    pub moves_locks: bool,
}

impl<'de> Deserialize<'de> for Scene {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "sceneid")]
            id: u64,
            #[serde(default)]
            label: String,
            #[serde(default)]
            values: Vec<serde_json::Value>,
        }
        let Written { id, label, values } = Written::deserialize(deserializer)?;
        let is_harmless = |value: &serde_json::Value| {
            let class = value["commandClass"].as_u64();
            class.is_some_and(|number| number != u64::from(class::LOCK))
        };
        Ok(Self {
            id,
            label,
            moves_locks: !values.iter().all(is_harmless),
        })
    }
}

impl House {
    /// The scenes that the gateway has; an error is a sentence for a person.
    pub async fn scenes(&self) -> Result<Vec<Scene>, String> {
        let args = json!([]);
        let scenes = self
            .inner
            .ask::<Bounded<Scene, MAX_SCENES>>(Function::GetScenes, &args);
        match scenes.await {
            Ok(scenes) => Ok(scenes.unwrap_or_default().0),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sets a scene going. Done means that the gateway started it: it does not tell what came of its parts.
    pub async fn activate(&self, scene: &Scene) -> Achieved {
        let args = json!([scene.id]);
        let started = self.inner.ask::<bool>(Function::ActivateScene, &args);
        match started.await {
            Ok(Some(true)) => Achieved::Done {
                state: "started".to_owned(),
            },
            Ok(_) => Achieved::Refused {
                reason: format!("The gateway did not start the scene '{}'.", scene.label),
            },
            Err(AskError::Offline(reason)) => Achieved::Offline { reason },
            Err(AskError::Refused(reason)) => Achieved::Refused { reason },
            Err(AskError::Silent(reason)) => Achieved::Unknown {
                reason,
                last: Last {
                    state: "unknown".to_owned(),
                    at: None,
                },
            },
        }
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
            let scene: Scene = serde_json::from_value(written).unwrap();
            assert_eq!(scene.moves_locks, moves_locks, "{values}");
            assert_eq!((scene.id, scene.label.as_str()), (4, "Night"));
        }
        assert!(
            !serde_json::from_value::<Scene>(json!({ "sceneid": 1 }))
                .unwrap()
                .moves_locks
        );
    }
}
