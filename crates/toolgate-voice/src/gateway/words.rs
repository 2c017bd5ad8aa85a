//! What the gateway says of itself.

use toolgate_models::Toolbox;

use crate::Role;

/// Tools that can be told of in a few words, and the words.
const ABILITIES: [(&str, &str); 3] = [
    ("datetime", "tell the time"),
    ("math_eval", "calculate"),
    ("search", "look things up"),
];

/// One sentence about what does not work and what does; none if all is well. `missing` are tools that are away, in words.
pub(crate) fn degraded(missing: Option<&str>, lost: &[Role], toolbox: &Toolbox) -> Option<String> {
    let mut problems: Vec<String> = missing
        .map(|what| format!("I can't reach {what}"))
        .into_iter()
        .collect();
    problems.extend(lost.iter().filter_map(|role| of(*role)).map(str::to_owned));
    // Who can not be asked can do nothing.
    let is_deaf = lost.contains(&Role::Transcription) || lost.contains(&Role::Microphone);
    let can = match abilities(toolbox).as_slice() {
        _ if is_deaf => return join(&problems, ", and ").map(|text| text + "."),
        [] => return join(&problems, ", and ").map(|text| text + "."),
        some => join(some, " and ")?,
    };
    let text = join(&problems, ", and ")?;
    Some(format!("{text}, but I can {can}."))
}

pub(super) fn change(before: Option<&str>, now: Option<&str>) -> Option<String> {
    match (before, now) {
        (None, Some(missing)) => Some(format!("I can't reach {missing} any more.")),
        (Some(missing), None) => Some(format!("I can reach {missing} again.")),
        (Some(before), Some(missing)) if before != missing => {
            Some(format!("Now I can't reach {missing}."))
        }
        _ => None,
    }
}

/// What it means that an engine is away; without a voice nothing of that can be said.
fn of(role: Role) -> Option<&'static str> {
    match role {
        Role::Transcription => Some("I can't understand speech"),
        Role::Wake => Some("I can't hear my name"),
        Role::Microphone => Some("I have no microphone"),
        Role::Model => Some("I can't reach my language model"),
        Role::Speech | Role::Loudspeaker => None,
    }
}

fn abilities(toolbox: &Toolbox) -> Vec<String> {
    let list = toolbox.current();
    let has = |name: &str| {
        let mut tools = list.tools().iter();
        tools.any(|tool| tool.definition().name() == name)
    };
    ABILITIES
        .iter()
        .filter(|(tool, _)| has(tool))
        .map(|(_, words)| (*words).to_owned())
        .take(2)
        .collect()
}

fn join(parts: &[String], word: &str) -> Option<String> {
    match parts {
        [] => None,
        [one] => Some(one.clone()),
        [all @ .., last] => Some(format!("{}{word}{last}", all.join(", "))),
    }
}
