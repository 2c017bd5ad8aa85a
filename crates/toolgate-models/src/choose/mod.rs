//! Which model, where nobody said, and where it is.

pub(crate) mod address;
pub(crate) mod listed;
pub(crate) mod probe;
mod sentences;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use self::listed::{Listed, is_listed};
pub use self::sentences::sentences;
use crate::provider::{ProviderEntry, join_names};
use crate::{AnswerSource, ModelError, ModelSettings, Provider, SentenceRouter, Toolbox};

/// A model on this machine answers at once, or is not there.
const PATIENCE: Duration = Duration::from_secs(1);
/// A person who asks for a check waits longer.
const CHECK: Duration = Duration::from_secs(5);

/// How a variable is looked up.
pub type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A model, and why it is this one.
pub struct Chosen {
    /// Who is asked.
    pub router: SentenceRouter,
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
    /// Whose model, or that sentences do without.
    pub provider: AnswerSource,
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
/// it answers within a second and has a model that can use tools, else Anthropic, OpenAI or Gemini if their variables are set, else
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
        Some(AnswerSource::Model(provider)) => chooser.given(provider, said_by).await,
        Some(AnswerSource::Sentences) => Ok(chooser.sentences(said_by.to_owned())),
        None => chooser.whoever_is_there().await,
    }
}

/// Makes what answers for a choice. Nothing is asked yet.
pub fn connect(choice: Choice, toolbox: &Toolbox) -> Result<Chosen, ChooseError> {
    let settings = choice.settings;
    let router = match choice.provider {
        AnswerSource::Sentences => SentenceRouter::sentences_only(sentences(&settings, toolbox)?),
        AnswerSource::Model(provider) => {
            let mut router = SentenceRouter::new((provider.entry().connect)(&settings)?);
            if settings.intents_first {
                router = router.sentences_first(sentences(&settings, toolbox)?);
            }
            if choice.is_unasked {
                let known = router.sentences().map(Arc::clone);
                let sentences = known.map_or_else(|| sentences(&settings, toolbox), Ok)?;
                router = router.sentences_last(sentences);
            }
            router
        }
    };
    Ok(Chosen {
        router,
        settings,
        why: choice.why,
        passed_over: choice.passed_over,
    })
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
    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn key_variable(&self, provider: Provider) -> Option<&'static str> {
        let mut keys = provider.entry().key_variables.iter().copied();
        keys.find(|key| self.variable(key).is_some())
    }

    /// The settings of a provider, with what its variables say where the settings say nothing.
    fn filled(&self, provider: Provider) -> Result<ModelSettings, ChooseError> {
        let [_, url] = provider.variables();
        let mut settings = self.settings.clone();
        settings.provider = Some(provider.into());
        let mut said_by = "model.url";
        if settings.url.is_empty() {
            said_by = url;
            settings.url = self.variable(url).unwrap_or_default();
        }
        settings.url = address::tidy(provider, &settings.url)
            .map_err(|wrong| ChooseError::Settings(format!("{said_by}: {wrong}")))?;
        if settings.key.is_empty() {
            let key = self.key_variable(provider);
            settings.key = key.and_then(|key| self.variable(key)).unwrap_or_default();
        }
        Ok(settings)
    }

    async fn given(&self, provider: Provider, said_by: &str) -> Result<Choice, ChooseError> {
        let mut settings = self.filled(provider)?;
        let entry = provider.entry();
        if entry.needs_key && settings.url == entry.url && settings.key.is_empty() {
            let (key, [_, url]) = (provider.key_setting(), provider.variables());
            return Err(ChooseError::Settings(format!(
                "{provider} needs a key: set {key} (or {url}, if it is served elsewhere)"
            )));
        }
        self.complete(provider, &mut settings).await;
        Ok(Choice {
            provider: provider.into(),
            settings,
            why: said_by.to_owned(),
            passed_over: Vec::new(),
            is_unasked: false,
        })
    }

    /// Where no model is named it is one the provider has, else the table's; whether that can be reached is found out when
    /// it is asked. A server of one's own is asked how much the model holds, be it named or not.
    async fn complete(&self, provider: Provider, settings: &mut ModelSettings) {
        let entry = provider.entry();
        let is_named = !settings.name.is_empty();
        if is_named && (!entry.has_own_servers || settings.context_tokens.is_some()) {
            return;
        }
        let found = (entry.probe)(settings, PATIENCE).await;
        let usual = || (provider.default_model().to_owned(), None);
        let (name, window) = found.unwrap_or_else(usual);
        settings.context_tokens = settings.context_tokens.or(window);
        if !is_named {
            settings.name = name;
        }
    }

    async fn whoever_is_there(&self) -> Result<Choice, ChooseError> {
        for (key, value) in [("url", &self.settings.url), ("key", &self.settings.key)] {
            if !value.is_empty() {
                let names = join_names(&Provider::ALL.map(Provider::as_str), "or");
                return Err(ChooseError::Settings(format!(
                    "model.{key} needs model.provider beside it, which says whose {key} it is: {names}"
                )));
            }
        }
        if let Some((provider, name)) = self.settings.name.split_once(':')
            && let Ok(provider) = provider.parse::<AnswerSource>()
        {
            let name = toolgate_core::escape(name);
            return Err(ChooseError::Settings(format!(
                "model.name holds a provider too: write {provider} as model.provider, and '{name}' as model.name"
            )));
        }
        let mut passed_over = Vec::new();
        for provider in by_preference() {
            let found = match provider {
                Provider::Ollama => self.ollama().await?,
                _ => self.remote(provider)?,
            };
            match found {
                Ok((mut settings, why)) => {
                    self.complete(provider, &mut settings).await;
                    return Ok(Choice {
                        provider: provider.into(),
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
        Ok(Choice {
            passed_over,
            is_unasked: true,
            ..self.sentences("no model is configured or reachable".to_owned())
        })
    }

    fn sentences(&self, why: String) -> Choice {
        let mut settings = self.settings.clone();
        settings.provider = Some(AnswerSource::Sentences);
        settings.url.clear();
        if settings.name.is_empty() {
            "en".clone_into(&mut settings.name);
        }
        Choice {
            provider: AnswerSource::Sentences,
            settings,
            why,
            passed_over: Vec::new(),
            is_unasked: false,
        }
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
        let ([key, url], entry) = (provider.variables(), provider.entry());
        let why = match self.key_variable(provider) {
            _ if entry.has_own_servers && self.variable(url).is_some() => format!("{url} is set"),
            Some(key) => format!("{key} is set"),
            None if entry.has_own_servers => {
                return Ok(Err(format!("neither {key} nor {url} is set")));
            }
            None => return Ok(Err(format!("{key} is not set"))),
        };
        let settings = self.filled(provider)?;
        let name = &settings.name;
        // A server of one's own may call its models anything but what is another's that was tried before.
        let may_have_any = entry.has_own_servers && settings.url != entry.url;
        let is_its = (entry.owns_model)(name)
            || may_have_any && owner(name).is_none_or(|owner| owner.preference > entry.preference);
        if !name.is_empty() && !is_its {
            let name = toolgate_core::escape(name);
            return Ok(Err(format!("'{name}' is no model of {provider}")));
        }
        Ok(Ok((settings, why)))
    }
}

fn likely(name: &str) -> String {
    match owner(name) {
        Some(owner) => format!(
            "for {} set {}, or ",
            owner.provider,
            owner.provider.key_setting()
        ),
        None if is_tagged(name) => "for ollama start it with 'ollama serve', or ".to_owned(),
        None => String::new(),
    }
}

/// `qwen3:4b`, as Ollama writes names; a fine-tuned model of OpenAI begins with `ft:`.
fn is_tagged(name: &str) -> bool {
    name.contains(':') && owner(name).is_none()
}

fn owner(name: &str) -> Option<&'static ProviderEntry> {
    let mut entries = Provider::ALL.into_iter().map(Provider::entry);
    entries.find(|entry| (entry.owns_model)(name))
}

fn by_preference() -> [Provider; Provider::ALL.len()] {
    let mut tried = Provider::ALL;
    tried.sort_unstable_by_key(|provider| provider.entry().preference);
    tried
}
