//! The Wyoming services that Toolgate offers: conversation and speech.

mod handle_service;
mod tts_service;

use crate::wyoming::{ArtifactAttribution, ServiceArtifact};

pub(crate) use handle_service::{HandleRequest, HandleResponse, HandleService, RequestHandler};
pub(crate) use tts_service::TtsService;

fn artifact(name: &str, description: &str) -> ServiceArtifact {
    ServiceArtifact {
        name: name.to_owned(),
        attribution: ArtifactAttribution {
            name: "Toolgate".to_owned(),
            url: String::new(),
        },
        installed: true,
        description: Some(description.to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    }
}

// A client would not choose a service that lists no language.
fn default_to_english(languages: Vec<String>) -> Vec<String> {
    match languages.is_empty() {
        true => vec!["en".to_owned()],
        false => languages,
    }
}
