//! Optional parts of a build, and what to say if one is missing.
//!
//! The parts themselves are gated where they are declared; this is the only list of them.

use serde_json::{Map, Value};

use crate::config::{ConfigDocument, ConfigError};

/// A Cargo feature of this crate: its name, whether it is built, and the commands and
/// sections that need it.
type CargoFeature = (
    &'static str,
    bool,
    &'static [&'static str],
    &'static [&'static str],
);

const FEATURES: [CargoFeature; 7] = [
    ("chat", cfg!(feature = "chat"), &["ask", "chat"], &[]),
    ("demo", cfg!(feature = "demo"), &["demo"], &[]),
    ("keyring", cfg!(feature = "keyring"), &["secret"], &[]),
    ("otlp", cfg!(feature = "otlp"), &[], &["telemetry"]),
    ("serve", cfg!(feature = "serve"), &["serve"], &[]),
    (
        "voice",
        cfg!(feature = "voice"),
        &["voice"],
        &["mqtt", "voice"],
    ),
    ("zwave", cfg!(feature = "zwave"), &["zwave-mcp-server"], &[]),
];

pub(crate) fn missing_message(feature: &str) -> String {
    format!(
        "this toolgate was built without the feature '{feature}'; build it with --features {feature}"
    )
}

fn missing_features() -> impl Iterator<Item = &'static CargoFeature> {
    FEATURES.iter().filter(|(_, is_built, ..)| !is_built)
}

pub(crate) fn missing_command(word: &str) -> Option<String> {
    missing_features()
        .find(|(.., commands, _)| commands.contains(&word))
        .map(|(name, ..)| missing_message(name))
}

/// One error for each section that this build can't use. Ignoring it would look like a
/// setting that doesn't work.
pub(crate) fn missing_sections(
    document: &ConfigDocument,
    root: &Map<String, Value>,
) -> Vec<ConfigError> {
    let sections = missing_features()
        .flat_map(|(name, _, _, sections)| sections.iter().map(move |section| (*section, *name)));
    sections
        .filter(|(section, _)| root.contains_key(*section))
        .map(|(section, feature)| {
            let text = format!("{section}: {}", missing_message(feature));
            document.error_at(&[section], text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, ConfigReadOptions, SecretScope};

    /// Runs in each build that is tested: whatever is left out is named with its feature,
    /// and nothing else is.
    #[test]
    fn a_configuration_of_a_missing_part_names_the_feature_it_needs() {
        for (name, is_built, _, sections) in &FEATURES {
            for section in *sections {
                let text = format!(r#"{{ "{section}": {{}} }}"#);
                let document = ConfigDocument::parse(Path::new("t.json"), text.as_bytes()).unwrap();
                let read = Config::resolve(
                    document,
                    ConfigReadOptions::new(&|_| None, SecretScope::Everything),
                );
                match is_built {
                    true => assert!(read.is_ok(), "{section}"),
                    false => {
                        let error = read.unwrap_err().to_string();
                        let expected = format!("--features {name}");
                        assert!(error.contains(&expected), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_command_exists_or_is_reported_as_missing() {
        use clap::CommandFactory;
        let program = crate::cli::Cli::command();
        for (_, is_built, commands, _) in &FEATURES {
            for word in *commands {
                let is_there = program.find_subcommand(word).is_some();
                assert_eq!(is_there, *is_built, "{word}");
                assert_eq!(is_there, missing_command(word).is_none(), "{word}");
            }
        }
    }
}
