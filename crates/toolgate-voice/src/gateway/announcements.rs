//! The sentences in which the gateway says what works and what doesn't.

use toolgate_models::Toolbox;

use crate::EngineRole;

const ABILITIES: [(&str, &str); 3] = [
    ("datetime", "tell the time"),
    ("math_eval", "calculate"),
    ("search", "look things up"),
];

/// A sentence about what doesn't work and what does, or `None` if all is well. `missing`
/// names unreachable tool servers.
pub(crate) fn degraded_sentence(
    missing: Option<&str>,
    lost: &[EngineRole],
    toolbox: &Toolbox,
) -> Option<String> {
    let missing = missing.map(|what| format!("I can't reach {what}"));
    let lost_problems = lost.iter().filter_map(|role| role_problem(*role));
    let problems = missing.into_iter().chain(lost_problems.map(str::to_owned));
    let text = join_words(&problems.collect::<Vec<_>>(), ", and ")?;
    // A gateway that can't hear can't do anything, so listing abilities would mislead.
    let is_deaf =
        lost.contains(&EngineRole::Transcription) || lost.contains(&EngineRole::Microphone);
    Some(match join_words(&list_abilities(toolbox), " and ") {
        Some(can) if !is_deaf => format!("{text}, but I can {can}."),
        _ => format!("{text}."),
    })
}

pub(super) fn change_sentence(before: Option<&str>, now: Option<&str>) -> Option<String> {
    match (before, now) {
        (None, Some(missing)) => Some(format!("I can't reach {missing} any more.")),
        (Some(missing), None) => Some(format!("I can reach {missing} again.")),
        (Some(before), Some(missing)) if before != missing => {
            Some(format!("Now I can't reach {missing}."))
        }
        _ => None,
    }
}

// Without a voice nothing can be announced, so those roles have no text.
fn role_problem(role: EngineRole) -> Option<&'static str> {
    match role {
        EngineRole::Transcription => Some("I can't understand speech"),
        EngineRole::Wake => Some("I can't hear my name"),
        EngineRole::Microphone => Some("I have no microphone"),
        EngineRole::Model => Some("I can't reach my language model"),
        EngineRole::Speech | EngineRole::Loudspeaker => None,
    }
}

fn list_abilities(toolbox: &Toolbox) -> Vec<String> {
    let list = toolbox.current();
    let names = list.tools().iter().map(|tool| tool.definition().name());
    let known = ABILITIES
        .iter()
        .filter(|(tool, _)| names.clone().any(|name| name == *tool));
    known
        .map(|(_, words)| (*words).to_owned())
        .take(2)
        .collect()
}

fn join_words(parts: &[String], word: &str) -> Option<String> {
    match parts {
        [] => None,
        [one] => Some(one.clone()),
        [all @ .., last] => Some(format!("{}{word}{last}", all.join(", "))),
    }
}
