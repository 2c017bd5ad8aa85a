//! Which model, where nobody said, and where it is.

mod address;
mod connect;
mod listed;
mod probe;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use self::connect::connect;
pub use self::listed::{Listed, is_listed};
use crate::{ModelClient, ModelError, ModelSettings, Provider, Toolbox};

/// A model on this machine answers at once, or is not there.
const PATIENCE: Duration = Duration::from_secs(1);
/// A person who asks for a check waits longer.
const CHECK: Duration = Duration::from_secs(5);

/// How a variable is looked up.
pub type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A model, and why it is this one.
pub struct Chosen {
    /// What is asked.
    pub client: Arc<dyn ModelClient>,
    /// The settings it was made of: provider, name, address and key are filled in.
    pub settings: ModelSettings,
    /// For a person: why this one.
    pub why: String,
    /// For a person: what would have gone before it, and why it did not.
    pub passed_over: Vec<String>,
}

/// The same before anything is made of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Whose model.
    pub provider: Provider,
    /// With provider, name, address and key filled in.
    pub settings: ModelSettings,
    /// For a person: why this one.
    pub why: String,
    /// For a person: what would have gone before it, and why it did not.
    pub passed_over: Vec<String>,
    /// True if nobody named provider or model: where it can not be reached, sentences that need no model stand in for it.
    pub is_unasked: bool,
}

/// There is no model to be asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// A setting is missing or makes no sense.
    #[error("{0}")]
    Settings(String),
    /// It can not be used.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Makes the client of the model that the settings and the environment mean.
///
/// A provider in the settings is the one, for the reason `said_by`, such as `the configuration says so`. Else it is Ollama if
/// it answers within a second and has a model that can use tools, else Anthropic or OpenAI if their variables are set, else
/// `intents`, which needs no model.
pub async fn choose(
    settings: &ModelSettings,
    said_by: &str,
    environment: Environment<'_>,
    toolbox: &Toolbox,
) -> Result<Chosen, ChooseError> {
    let choice = choice(settings, said_by, environment).await?;
    connect(choice, toolbox)
}

/// Only the choice, for a person who wants to know.
pub async fn choice(
    settings: &ModelSettings,
    said_by: &str,
    environment: Environment<'_>,
) -> Result<Choice, ChooseError> {
    let chooser = Chooser {
        settings,
        environment,
    };
    match settings.provider {
        Some(provider) => chooser.given(provider, said_by).await,
        None => chooser.whoever_is_there().await,
    }
}

/// Asks the provider of a choice which models it has, by a request that costs nothing; a key that it does not take is an error.
pub async fn check(choice: &Choice) -> Result<Listed, ModelError> {
    listed::listed(&choice.settings, CHECK).await
}

/// The settings of a provider that is there and why it is taken, or why it is not.
type Candidate = Result<(ModelSettings, String), String>;

struct Chooser<'a> {
    settings: &'a ModelSettings,
    environment: Environment<'a>,
}

impl Chooser<'_> {
    /// A variable that says something.
    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The settings of a provider, with what its variables say where the settings say nothing.
    fn filled(&self, provider: Provider) -> Result<ModelSettings, ChooseError> {
        let [key, url] = provider.variables();
        let mut settings = self.settings.clone();
        settings.provider = Some(provider);
        let mut said_by = "model.url";
        if settings.url.is_empty() {
            said_by = url;
            settings.url = self.variable(url).unwrap_or_default();
        }
        settings.url = address::tidy(provider, &settings.url)
            .map_err(|wrong| ChooseError::Settings(format!("{said_by}: {wrong}")))?;
        if settings.key.is_empty() {
            settings.key = self.variable(key).unwrap_or_default();
        }
        Ok(settings)
    }

    async fn given(&self, provider: Provider, said_by: &str) -> Result<Choice, ChooseError> {
        let mut settings = self.filled(provider)?;
        let is_usual = settings.url == address::usual(provider);
        let needs_key = matches!(provider, Provider::Anthropic | Provider::OpenAi) && is_usual;
        if needs_key && settings.key.is_empty() {
            let (key, [_, url]) = (provider.key_setting(), provider.variables());
            return Err(ChooseError::Settings(format!(
                "{provider} needs a key: set {key} (or {url}, if it is served elsewhere)"
            )));
        }
        self.complete(&mut settings).await;
        Ok(Choice {
            provider,
            settings,
            why: said_by.to_owned(),
            passed_over: Vec::new(),
            is_unasked: false,
        })
    }

    /// Where no model is named it is one the provider has, else the table's; whether that can be reached is found out when
    /// it is asked. A server of one's own is asked how much the model holds, be it named or not.
    async fn complete(&self, settings: &mut ModelSettings) {
        let provider = settings.provider.unwrap_or(Provider::Intents);
        let is_usual = settings.url == address::usual(provider);
        let is_named = !settings.name.is_empty();
        let there = match provider {
            _ if is_named
                && (provider != Provider::OpenAi || settings.context_tokens.is_some()) =>
            {
                return;
            }
            Provider::Ollama => {
                let models = probe::ollama(settings, PATIENCE).await.ok();
                models.and_then(|models| models.usable("").or_else(|| models.any()))
            }
            Provider::OpenAi if !is_usual => {
                let found = probe::openai(settings, PATIENCE).await;
                found.map(|(name, window)| {
                    settings.context_tokens = settings.context_tokens.or(window);
                    name
                })
            }
            _ => None,
        };
        if !is_named {
            settings.name = there.unwrap_or_else(|| provider.default_model().to_owned());
        }
    }

    async fn whoever_is_there(&self) -> Result<Choice, ChooseError> {
        for (key, value) in [("url", &self.settings.url), ("key", &self.settings.key)] {
            if !value.is_empty() {
                return Err(ChooseError::Settings(format!(
                    "model.{key} needs model.provider beside it, which says whose {key} it is: anthropic, ollama or openai"
                )));
            }
        }
        if let Some((provider, name)) = self.settings.name.split_once(':')
            && let Ok(provider) = provider.parse::<Provider>()
        {
            let name = toolgate_core::escape(name);
            return Err(ChooseError::Settings(format!(
                "model.name holds a provider too: write {provider} as model.provider, and '{name}' as model.name"
            )));
        }
        let mut passed_over = Vec::new();
        for provider in [Provider::Ollama, Provider::Anthropic, Provider::OpenAi] {
            let found = match provider {
                Provider::Ollama => self.ollama().await?,
                _ => self.remote(provider)?,
            };
            match found {
                Ok((mut settings, why)) => {
                    self.complete(&mut settings).await;
                    return Ok(Choice {
                        provider,
                        settings,
                        why,
                        passed_over,
                        is_unasked: self.settings.name.is_empty(),
                    });
                }
                Err(reason) => passed_over.push(format!("{provider}: {reason}")),
            }
        }
        self.nobody(passed_over)
    }

    /// Sentences need no model, but a person who named one wants that one.
    fn nobody(&self, passed_over: Vec<String>) -> Result<Choice, ChooseError> {
        let name = &self.settings.name;
        if !name.is_empty() {
            return Err(ChooseError::Settings(format!(
                "nobody here has the model '{}' ({}); {}say whose it is with --provider",
                toolgate_core::escape(name),
                passed_over.join("; "),
                likely(name)
            )));
        }
        let provider = Provider::Intents;
        let mut settings = self.settings.clone();
        settings.provider = Some(provider);
        settings.name = provider.default_model().to_owned();
        Ok(Choice {
            provider,
            settings,
            why: "no model is configured or reachable".to_owned(),
            passed_over,
            is_unasked: true,
        })
    }

    async fn ollama(&self) -> Result<Candidate, ChooseError> {
        let mut settings = self.filled(Provider::Ollama)?;
        let shown = crate::settings::shown(&settings.url);
        let models = match probe::ollama(&settings, PATIENCE).await {
            Ok(models) => models,
            Err(reason) => return Ok(Err(format!("{reason} at {shown}"))),
        };
        let Some(name) = models.usable(&settings.name) else {
            let reason = models.none_usable(&settings.name);
            // A name with a tag means this Ollama: the words are not for somebody else.
            if is_tagged(&settings.name) {
                return Err(ChooseError::Settings(format!(
                    "ollama: {reason}; if another provider has it, say so with --provider"
                )));
            }
            return Ok(Err(reason));
        };
        let shown_name = toolgate_core::escape(&name);
        let why = format!("it answers at {shown} and its {shown_name} can use tools");
        settings.name = name;
        Ok(Ok((settings, why)))
    }

    fn remote(&self, provider: Provider) -> Result<Candidate, ChooseError> {
        let [key, url] = provider.variables();
        let set = |name: &str| self.variable(name).is_some();
        let why = match provider {
            Provider::OpenAi if set(url) => format!("{url} is set"),
            _ if set(key) => format!("{key} is set"),
            Provider::OpenAi => return Ok(Err(format!("neither {key} nor {url} is set"))),
            _ => return Ok(Err(format!("{key} is not set"))),
        };
        let settings = self.filled(provider)?;
        let name = &settings.name;
        let is_usual = settings.url == address::usual(provider);
        let is_its = match provider {
            Provider::Anthropic => name.starts_with("claude"),
            // A server of one's own may call its models anything.
            _ => !name.starts_with("claude") && (!is_usual || is_of_openai(name)),
        };
        if !name.is_empty() && !is_its {
            let name = toolgate_core::escape(name);
            return Ok(Err(format!("'{name}' is no model of {provider}")));
        }
        Ok(Ok((settings, why)))
    }
}

/// What helps if a name means what such names usually do.
fn likely(name: &str) -> String {
    let provider = match name {
        _ if name.starts_with("claude") => Provider::Anthropic,
        _ if is_of_openai(name) => Provider::OpenAi,
        _ if is_tagged(name) => {
            return "for ollama start it with 'ollama serve', or ".to_owned();
        }
        _ => return String::new(),
    };
    format!("for {provider} set {}, or ", provider.key_setting())
}

/// `qwen3:4b`, as Ollama writes names; a fine-tuned model of OpenAI begins with `ft:`.
fn is_tagged(name: &str) -> bool {
    name.contains(':') && !is_of_openai(name)
}

/// What OpenAI calls its own models.
fn is_of_openai(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    ["gpt-", "chatgpt-", "codex-", "ft:"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.strip_prefix('o').is_some_and(is_numbered)
}
