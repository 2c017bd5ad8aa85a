//! Scenes: several values set at once, as people arranged them in the gateway.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::House;
use crate::api::{AskError, Function};
use crate::command::{Achieved, Last};
use crate::node::Bounded;

const MAX_SCENES: usize = 500;

/// A scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// Its number.
    #[serde(rename = "sceneid")]
    pub id: u64,
    /// Its name.
    #[serde(default)]
    pub label: String,
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
