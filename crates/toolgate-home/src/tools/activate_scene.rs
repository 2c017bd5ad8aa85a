//! `activate_scene`: several devices at once, as a person arranged them in the gateway.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError, escape, nearest};

use super::{Answer, build, changes, define, endangers, name, object};
use crate::names::same_name;
use crate::{CommandOutcome, HomeAccess, HomeTool, Scene, outcome_text};

const MOST_NAMES: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    scene_name: String,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let parameters = json!({ "sceneName": name("The scene's name, such as \"Dinner\"") });
    let definition = define(
        access,
        HomeTool::ActivateScene,
        "Activate a scene",
        format!(
            "Activates a scene: several devices set at once, as arranged in {}. With a wrong name it tells the names there are.",
            access.dialect.gateway
        ),
        object(&parameters, &["sceneName"]),
    );
    // A scene that moves locks is only let through where locks are allowed.
    let annotations = if access.locks { endangers() } else { changes() };
    build(access, definition.annotations(annotations), activate)
}

async fn activate(access: HomeAccess, arguments: Arguments) -> Answer {
    access.settle().await;
    if let Some(problem) = access.problem() {
        return Err(ToolError::failed(format!("{problem} Nothing was sent.")));
    }
    let scenes = access
        .home
        .scenes()
        .await
        .map_err(|reason| ToolError::failed(format!("{reason} Nothing was sent.")))?;
    let scene = meant(&access, &scenes, &arguments.scene_name)?;
    let label = &scene.label;
    if scene.moves_locks && !access.locks {
        return Err(ToolError::failed(format!(
            "The scene '{label}' moves a lock, and locks are off here. Start the server with {}=1 to allow it.",
            access.dialect.variable("ALLOW_LOCKS")
        )));
    }
    match access.home.activate(scene).await {
        CommandOutcome::Done { .. } => Ok(outcome_text::output(
            format!(
                "The gateway started the scene '{label}'. It does not tell what became of each device."
            ),
            None,
            json!({ "scene": label, "outcome": "started" }),
        )),
        CommandOutcome::Offline { reason } => Err(ToolError::failed(format!(
            "{reason} Nothing was sent, and nothing will be."
        ))),
        CommandOutcome::Unknown { reason, .. } => Err(ToolError::failed(format!(
            "It is not known whether the scene '{label}' was started. {reason} It was sent once and is not repeated."
        ))),
        CommandOutcome::Refused { reason } => Err(ToolError::failed(reason)),
        other => Err(ToolError::failed(format!(
            "The scene '{label}' was not started ({other:?})."
        ))),
    }
}

fn meant<'a>(access: &HomeAccess, scenes: &'a [Scene], said: &str) -> Result<&'a Scene, ToolError> {
    let gateway = access.dialect.gateway;
    let found = scenes.iter().filter(|scene| same_name(&scene.label, said));
    let found = found.collect::<Vec<_>>();
    let said = escape(said.trim());
    let text = match found.as_slice() {
        [only] => return Ok(only),
        [] if scenes.is_empty() => {
            format!("No scene is called '{said}': there are no scenes. They are made in {gateway}.")
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
            format!("Several scenes are called '{said}'. Give them different names in {gateway}.")
        }
    };
    Err(ToolError::failed(text))
}
