//! Parts that a build may leave out, and what is said where one of them is missing.
//!
//! The parts themselves are gated where they are declared; this is the only list of them.

use serde_json::{Map, Value};

use crate::config::{ConfigError, Document};

/// A Cargo feature of this crate, with what only it understands.
struct Feature {
    name: &'static str,
    is_built: bool,
    commands: &'static [&'static str],
    /// Of the configuration.
    sections: &'static [&'static str],
}

const FEATURES: [Feature; 7] = [
    Feature {
        name: "chat",
        is_built: cfg!(feature = "chat"),
        commands: &["ask", "chat"],
        sections: &[],
    },
    Feature {
        name: "demo",
        is_built: cfg!(feature = "demo"),
        commands: &["demo"],
        sections: &[],
    },
    Feature {
        name: "keyring",
        is_built: cfg!(feature = "keyring"),
        commands: &["secret"],
        sections: &[],
    },
    Feature {
        name: "otlp",
        is_built: cfg!(feature = "otlp"),
        commands: &[],
        sections: &["telemetry"],
    },
    Feature {
        name: "serve",
        is_built: cfg!(feature = "serve"),
        commands: &["serve"],
        sections: &[],
    },
    Feature {
        name: "voice",
        is_built: cfg!(feature = "voice"),
        commands: &["voice"],
        sections: &["mqtt", "voice"],
    },
    Feature {
        name: "zwave",
        is_built: cfg!(feature = "zwave"),
        commands: &["zwave-mcp-server"],
        sections: &[],
    },
];

pub(crate) fn missing(feature: &str) -> String {
    format!(
        "this toolgate was built without the feature '{feature}'; build it with --features {feature}"
    )
}

pub(crate) fn missing_command(word: &str) -> Option<String> {
    let mut left_out = FEATURES.iter().filter(|feature| !feature.is_built);
    left_out
        .find(|feature| feature.commands.contains(&word))
        .map(|feature| missing(feature.name))
}

/// One error for each section that this build has no use for: to ignore it would look like a
/// setting that doesn't work.
pub(crate) fn missing_sections(document: &Document, root: &Map<String, Value>) -> Vec<ConfigError> {
    let left_out = FEATURES.iter().filter(|feature| !feature.is_built);
    let sections = left_out.flat_map(|feature| {
        let sections = feature.sections.iter();
        sections.map(|section| (*section, feature.name))
    });
    sections
        .filter(|(section, _)| root.contains_key(*section))
        .map(|(section, feature)| {
            let text = format!("{section}: {}", missing(feature));
            document.error_at(&[section], text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Reading, Uses};

    /// Runs in each build that is tested: whatever is left out is named with its feature, and
    /// nothing else is.
    #[test]
    fn a_configuration_of_a_missing_part_names_the_feature_it_needs() {
        for feature in &FEATURES {
            for section in feature.sections {
                let text = format!(r#"{{ "{section}": {{}} }}"#);
                let document = Document::parse(Path::new("t.json"), text.as_bytes()).unwrap();
                let read = Config::resolve(document, Reading::new(&|_| None, Uses::Everything));
                match feature.is_built {
                    true => assert!(read.is_ok(), "{section}"),
                    false => {
                        let error = read.unwrap_err().to_string();
                        let expected = format!("--features {}", feature.name);
                        assert!(error.contains(&expected), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_command_is_there_or_said_to_be_missing() {
        use clap::CommandFactory;
        let program = crate::cli::Cli::command();
        for feature in &FEATURES {
            for word in feature.commands {
                let is_there = program.find_subcommand(word).is_some();
                assert_eq!(is_there, feature.is_built, "{word}");
                assert_eq!(is_there, missing_command(word).is_none(), "{word}");
            }
        }
    }
}
