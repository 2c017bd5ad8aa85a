//! Wyoming services of this program: it answers requests, and lends its voice.

mod handle;
mod tts;

use crate::wyoming::{Artifact, Attribution};

pub(crate) use handle::{Answered, Asked, HandleService, Respond};
pub(crate) use tts::TtsService;

fn artifact(name: &str, description: &str) -> Artifact {
    Artifact {
        name: name.to_owned(),
        attribution: Attribution {
            name: "Toolgate".to_owned(),
            url: String::new(),
        },
        installed: true,
        description: Some(description.to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    }
}

/// The languages a service says it knows; without any, nobody would choose it.
fn or_english(languages: Vec<String>) -> Vec<String> {
    match languages.is_empty() {
        true => vec!["en".to_owned()],
        false => languages,
    }
}
