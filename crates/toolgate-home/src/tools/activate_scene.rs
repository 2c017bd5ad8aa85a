//! `activate_scene`: starts a scene of the gateway.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::text::{escape, nearest_names};
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{
    HomeToolResult, build_tool, control_annotations, define_tool, lock_annotations, name_schema,
};
use crate::names::is_same_name;
use crate::{CommandOutcome, HomeAccess, HomeScene, HomeTool, outcome_text};

const MAX_NAMES: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SceneArguments {
    scene_name: String,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let parameters = json!({ "sceneName": name_schema("The scene's name, such as \"Dinner\"") });
    // Only where locks are allowed can a scene move one, so only there it is destructive.
    let annotations = if access.locks_allowed {
        lock_annotations()
    } else {
        control_annotations()
    };
    let definition = define_tool(
        access,
        HomeTool::ActivateScene,
        "Activate a scene",
        format!(
            "Activates a scene: several devices set at once, as arranged in {}. With a wrong name it lists the existing ones.",
            access.protocol.gateway
        ),
        &parameters,
        &["sceneName"],
        &annotations,
    );
    build_tool(access, definition, activate)
}

async fn activate(access: HomeAccess, arguments: SceneArguments) -> HomeToolResult {
    access.wait_for_start().await;
    if let Some(problem) = access.problem() {
        return Err(ToolError::failed(format!("{problem} Nothing was sent.")));
    }
    let scenes = access
        .home
        .scenes()
        .await
        .map_err(|reason| ToolError::failed(format!("{reason} Nothing was sent.")))?;
    let scene = find_scene(&access, &scenes, &arguments.scene_name)?;
    let label = &scene.label;
    if scene.moves_locks && !access.locks_allowed {
        return Err(ToolError::failed(format!(
            "The scene '{label}' moves a lock, and locks are off here. Start the server with {}=1 to allow it.",
            access.protocol.env_var("ALLOW_LOCKS")
        )));
    }
    match access.home.activate_scene(scene).await {
        CommandOutcome::Done { .. } => Ok(outcome_text::tool_output(
            format!(
                "The gateway started the scene '{label}'. It does not report the single devices."
            ),
            None,
            json!({ "scene": label, "outcome": "started" }),
        )),
        CommandOutcome::Offline { reason } => Err(ToolError::failed(format!(
            "{reason} Nothing was sent, and nothing will be."
        ))),
        CommandOutcome::Unknown { reason, .. } => Err(ToolError::failed(format!(
            "It is not known whether the scene '{label}' was started. {reason} It was sent once and won't be repeated."
        ))),
        CommandOutcome::Refused { reason } => Err(ToolError::failed(reason)),
        other => Err(ToolError::failed(format!(
            "The scene '{label}' was not started ({other:?})."
        ))),
    }
}

fn find_scene<'a>(
    access: &HomeAccess,
    scenes: &'a [HomeScene],
    said: &str,
) -> Result<&'a HomeScene, ToolError> {
    let gateway = access.protocol.gateway;
    let found = scenes
        .iter()
        .filter(|scene| is_same_name(&scene.label, said));
    let found = found.collect::<Vec<_>>();
    let said = escape(said.trim());
    let text = match found.as_slice() {
        [only] => return Ok(only),
        [] if scenes.is_empty() => {
            format!("No scene is called '{said}': there are no scenes. Create them in {gateway}.")
        }
        [] => {
            let names = scenes
                .iter()
                .map(|scene| scene.label.as_str())
                .filter(|label| !label.is_empty());
            let near = nearest_names(&said, names.clone(), 3);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!(" Did you mean '{}'?", near.join("' or '"))
            };
            let names = names.take(MAX_NAMES).collect::<Vec<_>>().join(", ");
            format!("No scene is called '{said}'.{hint} The scenes are: {names}.")
        }
        _ => {
            format!("Several scenes are called '{said}'. Give them different names in {gateway}.")
        }
    };
    Err(ToolError::failed(text))
}
