//! `activate_scene`: several devices at once, as a person arranged them in the gateway.

use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError, escape, nearest};
use zwave::{Achieved, Scene, same_name};

use super::{About, Answer, changes, endangers, name, object};
use crate::home::Home;
use crate::told;

/// More names help nobody.
const MOST_NAMES: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    scene_name: String,
}

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    About {
        name: "activate_scene",
        title: "Activate a scene",
        description: "Activates a scene: several devices set at once, as arranged in zwave-js-ui. With a wrong name it tells the \
                      names there are.",
        parameters: object(&json!({ "sceneName": name("The scene's name, such as \"Dinner\"") }), &["sceneName"]),
        // A scene that moves locks is only let through where locks are allowed.
        annotations: if home.locks { endangers() } else { changes() },
        run: |home, arguments| activate(home, arguments).boxed(),
    }
    .of(home)
}

async fn activate(home: Home, arguments: Arguments) -> Answer {
    home.settle().await;
    if let Some(problem) = home.problem() {
        return Err(ToolError::failed(format!("{problem} Nothing was sent.")));
    }
    let scenes = home
        .house
        .scenes()
        .await
        .map_err(|reason| ToolError::failed(format!("{reason} Nothing was sent.")))?;
    let scene = meant(&scenes, &arguments.scene_name)?;
    let label = &scene.label;
    if scene.moves_locks && !home.locks {
        return Err(ToolError::failed(format!(
            "The scene '{label}' moves a lock, and locks are off here. Start the server with ZWAVE_ALLOW_LOCKS=1 to allow it."
        )));
    }
    match home.house.activate(scene).await {
        Achieved::Done { .. } => Ok(told::output(
            format!(
                "The gateway started the scene '{label}'. It does not tell what became of each device."
            ),
            json!({ "scene": label, "outcome": "started" }),
        )),
        Achieved::Offline { reason } => Err(ToolError::failed(format!(
            "{reason} Nothing was sent, and nothing will be."
        ))),
        Achieved::Unknown { reason, .. } => Err(ToolError::failed(format!(
            "It is not known whether the scene '{label}' was started. {reason} It was sent once and is not repeated."
        ))),
        Achieved::Refused { reason } => Err(ToolError::failed(reason)),
        other => Err(ToolError::failed(format!(
            "The scene '{label}' was not started ({other:?})."
        ))),
    }
}

fn meant<'a>(scenes: &'a [Scene], said: &str) -> Result<&'a Scene, ToolError> {
    let found = scenes.iter().filter(|scene| same_name(&scene.label, said));
    let found = found.collect::<Vec<_>>();
    let said = escape(said.trim());
    let text = match found.as_slice() {
        [only] => return Ok(only),
        [] if scenes.is_empty() => {
            format!(
                "No scene is called '{said}': there are no scenes. They are made in zwave-js-ui."
            )
        }
        [] => {
            let names = scenes
                .iter()
                .map(|scene| scene.label.as_str())
                .filter(|label| !label.is_empty());
            let near = nearest(&said, names.clone(), 3);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!(" Did you mean '{}'?", near.join("' or '"))
            };
            let names = names.take(MOST_NAMES).collect::<Vec<_>>().join(", ");
            format!("No scene is called '{said}'.{hint} The scenes are: {names}.")
        }
        _ => {
            format!("Several scenes are called '{said}'. Give them different names in zwave-js-ui.")
        }
    };
    Err(ToolError::failed(text))
}
