//! Decides which model of which provider the person wants.

use std::path::Path;

use anyhow::bail;
use toolgate_core::text::escape;
use toolgate_models::{AnswerSource, ConnectedModel, ModelSettings, SavedConversation};

use crate::cli::ChoiceOptions;
use crate::config::Config;

// The reason for the model of a resumed conversation.
pub(crate) const SAVED: &str = "it answered in the saved conversation";

pub(crate) fn resolve_wanted(
    config: &Config,
    options: &ChoiceOptions,
    saved: Option<&SavedConversation>,
) -> anyhow::Result<(ModelSettings, &'static str)> {
    if let Some(unset) = config.unset_in_sections(&["model"]) {
        bail!(unset.clone());
    }
    let (provider, name) = requested_model(options)?;
    let (mut wanted, reason) = match provider {
        Some(provider) => (
            for_provider(&config.model, provider),
            "the command line says so",
        ),
        None => match saved.filter(|_| is_open(config, options)) {
            // A conversation is resumed only with the provider that it began with.
            Some(saved) => {
                let mut settings = for_provider(&config.model, saved.provider);
                saved.model.clone_into(&mut settings.name);
                (settings, SAVED)
            }
            None => (config.model.clone(), "the configuration says so"),
        },
    };
    if let Some(name) = name {
        name.clone_into(&mut wanted.name);
    }
    Ok((wanted, reason))
}

pub(crate) fn requested_model(
    options: &ChoiceOptions,
) -> anyhow::Result<(Option<AnswerSource>, Option<&str>)> {
    let (prefix, name) = match options.model.as_deref().map(split) {
        Some((prefix, name)) => (prefix, name),
        None => (None, None),
    };
    if let (Some(provider), Some(prefix)) = (options.provider, prefix)
        && provider != prefix
    {
        bail!("--provider {provider} and --model {prefix}:… are two providers");
    }
    Ok((options.provider.or(prefix), name))
}

/// `toolgate doctor` for this model, with the options that the configuration doesn't imply.
pub(crate) fn doctor_command(
    file: Option<&Path>,
    configured: &ModelSettings,
    wanted: &ModelSettings,
) -> String {
    let mut words = vec!["toolgate".to_owned()];
    if let Some(file) = file {
        words.extend(["--config".to_owned(), shell_word(&file.to_string_lossy())]);
    }
    words.push("doctor".to_owned());
    let is_other = wanted.provider != configured.provider;
    if let Some(provider) = wanted.provider.filter(|_| is_other) {
        words.extend(["-p".to_owned(), provider.to_string()]);
    }
    if !wanted.name.is_empty() && (is_other || wanted.name != configured.name) {
        words.extend(["-m".to_owned(), shell_word(&wanted.name)]);
    }
    words.join(" ")
}

// Quotes a word for a shell, in double quotes, because the whole command is shown in single ones.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=,".contains(c);
    let text = escape(text);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    let kept = |c: char| match c {
        '"' | '\\' | '$' | '`' => format!("\\{c}"),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(kept).collect::<String>())
}

fn is_open(config: &Config, options: &ChoiceOptions) -> bool {
    let configured = &config.model;
    options.model.is_none() && configured.provider.is_none() && configured.name.is_empty()
}

/// The configured settings, without the name, address and key of another provider.
pub(crate) fn for_provider(configured: &ModelSettings, provider: AnswerSource) -> ModelSettings {
    let mut settings = configured.clone();
    if configured.provider != Some(provider) {
        settings.name.clear();
        settings.url.clear();
        settings.key.clear();
    }
    // Settings without a provider apply to each of them.
    if configured.provider.is_some_and(|other| other != provider) {
        settings.context_tokens = None;
    }
    settings.provider = Some(provider);
    settings
}

pub(crate) fn split(text: &str) -> (Option<AnswerSource>, Option<&str>) {
    let (first, rest) = match text.split_once(':') {
        Some((first, rest)) => (first, Some(rest).filter(|rest| !rest.is_empty())),
        None => (text, None),
    };
    match first.parse() {
        Ok(provider) => (Some(provider), rest),
        Err(_) => (None, Some(text).filter(|text| !text.is_empty())),
    }
}

pub(crate) fn describe_model(chosen: &ConnectedModel) -> String {
    let name = escape(chosen.router.model_name());
    format!("{} {name}", chosen.router.source())
}

#[cfg(test)]
mod tests {
    use toolgate_models::Provider;

    use super::*;

    #[test]
    fn a_model_is_named_with_or_without_its_provider() {
        for (text, expected) in [
            ("ollama", (Some(Provider::Ollama.into()), None)),
            ("ollama:", (Some(Provider::Ollama.into()), None)),
            (
                "ollama:qwen3:4b",
                (Some(Provider::Ollama.into()), Some("qwen3:4b")),
            ),
            ("qwen3:4b", (None, Some("qwen3:4b"))),
            ("gpt-9", (None, Some("gpt-9"))),
            ("", (None, None)),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn another_provider_does_not_get_the_configured_key_or_address() {
        let mut configured = ModelSettings::default();
        configured.provider = Some(Provider::OpenAi.into());
        configured.name = "m".to_owned();
        configured.url = "http://h/v1".to_owned();
        configured.key = "k".to_owned();
        configured.max_tokens = 7;
        configured.context_tokens = Some(600);
        assert_eq!(
            for_provider(&configured, Provider::OpenAi.into()),
            configured
        );
        let other = for_provider(&configured, Provider::Anthropic.into());
        assert_eq!(
            (
                other.name.as_str(),
                other.url.as_str(),
                other.key.as_str(),
                other.max_tokens
            ),
            ("", "", "", 7)
        );
        assert_eq!(other.context_tokens, None);
        configured.provider = None;
        let other = for_provider(&configured, Provider::Anthropic.into());
        assert_eq!((other.key.as_str(), other.context_tokens), ("", Some(600)));
    }
}
