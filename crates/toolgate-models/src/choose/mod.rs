//! Selects the model to use, and its address and key, from the settings and the environment.

pub(crate) mod address;
pub(crate) mod model_list;
pub(crate) mod probe;
mod sentences;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use self::model_list::{ModelList, is_listed};
pub use self::sentences::load_sentences;
use crate::provider::{ProviderEntry, join_names};
use crate::{AnswerSource, ModelError, ModelSettings, Provider, SentenceRouter, Toolbox};

// A server on this machine answers at once or isn't running.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
// Listing models is a request of its own, so it may take longer than a probe.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks up an environment variable.
pub type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A model that is ready to be asked, and why it was selected.
pub struct ConnectedModel {
    pub router: SentenceRouter,
    pub settings: ModelSettings,
    /// Why it was selected, such as `ANTHROPIC_API_KEY is set`.
    pub why: String,
    /// The same as in [`ModelSelection::skipped`].
    pub skipped: Vec<String>,
}

/// A model that was selected but not connected to yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSelection {
    pub provider: AnswerSource,
    /// The settings in effect: provider, name, address and key are filled in.
    pub settings: ModelSettings,
    pub why: String,
    /// The providers that were tried first, each with the reason why it was skipped.
    pub skipped: Vec<String>,
    /// True if the user named neither a provider nor a model. Sentences then answer while
    /// the model is unavailable.
    pub is_automatic: bool,
}

/// Why no model could be selected or connected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelSelectionError {
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Selects a model without connecting to it.
///
/// A provider in the settings wins, and `reason` (such as `the configuration says so`) becomes the
/// selection's `why`. Otherwise the first of these wins: Ollama, if it answers within a second and
/// has a model that can use tools; Anthropic, OpenAI or Gemini, if their variables are set;
/// sentences, which need no model.
pub async fn select_model(
    settings: &ModelSettings,
    reason: &str,
    environment: Environment<'_>,
) -> Result<ModelSelection, ModelSelectionError> {
    let chooser = ModelSelector {
        settings,
        environment,
    };
    match settings.provider {
        Some(AnswerSource::Model(provider)) => chooser.select_named(provider, reason).await,
        Some(AnswerSource::Sentences) => Ok(chooser.select_sentences(reason.to_owned())),
        None => chooser.select_available().await,
    }
}

/// Builds the router for a selection. Sends no request yet.
pub fn connect(
    selection: ModelSelection,
    toolbox: &Toolbox,
) -> Result<ConnectedModel, ModelSelectionError> {
    let settings = selection.settings;
    let router = match selection.provider {
        AnswerSource::Sentences => {
            SentenceRouter::sentences_only(load_sentences(&settings, toolbox)?)
        }
        AnswerSource::Model(provider) => {
            let mut router = SentenceRouter::new((provider.entry().connect)(&settings)?);
            if settings.intents_first {
                router = router.sentences_first(load_sentences(&settings, toolbox)?);
            }
            if selection.is_automatic {
                let known = router.sentences().map(Arc::clone);
                let sentences = known.map_or_else(|| load_sentences(&settings, toolbox), Ok)?;
                router = router.sentences_last(sentences);
            }
            router
        }
    };
    Ok(ConnectedModel {
        router,
        settings,
        why: selection.why,
        skipped: selection.skipped,
    })
}

/// Asks the selected provider which models it has.
///
/// The request costs nothing, and fails if the key is refused.
pub async fn list_models(selection: &ModelSelection) -> Result<ModelList, ModelError> {
    model_list::fetch_models(&selection.settings, LIST_TIMEOUT).await
}

// The settings of a usable provider and why it is selected, or why it can't be used.
type ProviderCandidate = Result<(ModelSettings, String), String>;

struct ModelSelector<'a> {
    settings: &'a ModelSettings,
    environment: Environment<'a>,
}

impl ModelSelector<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn key_variable(&self, provider: Provider) -> Option<&'static str> {
        let mut keys = provider.entry().key_variables.iter().copied();
        keys.find(|key| self.variable(key).is_some())
    }

    // Variables only fill in what the settings leave empty.
    fn with_variables(&self, provider: Provider) -> Result<ModelSettings, ModelSelectionError> {
        let [_, url] = provider.variables();
        let mut settings = self.settings.clone();
        settings.provider = Some(provider.into());
        let mut reason = "model.url";
        if settings.url.is_empty() {
            reason = url;
            settings.url = self.variable(url).unwrap_or_default();
        }
        settings.url = address::normalize_url(provider, &settings.url)
            .map_err(|error| ModelSelectionError::Settings(format!("{reason}: {error}")))?;
        if settings.key.is_empty() {
            let key = self.key_variable(provider);
            settings.key = key.and_then(|key| self.variable(key)).unwrap_or_default();
        }
        Ok(settings)
    }

    async fn select_named(
        &self,
        provider: Provider,
        reason: &str,
    ) -> Result<ModelSelection, ModelSelectionError> {
        let mut settings = self.with_variables(provider)?;
        let entry = provider.entry();
        if entry.needs_key && settings.url == entry.url && settings.key.is_empty() {
            let (key, [_, url]) = (provider.key_setting(), provider.variables());
            return Err(ModelSelectionError::Settings(format!(
                "{provider} needs a key: set {key} (or {url}, if it is served elsewhere)"
            )));
        }
        self.fill_in_model(provider, &mut settings).await;
        Ok(ModelSelection {
            provider: provider.into(),
            settings,
            why: reason.to_owned(),
            skipped: Vec::new(),
            is_automatic: false,
        })
    }

    // Doesn't check whether the model can be reached: its first question will show that. A
    // self-hosted server is probed even for a named model, because it reports the context size.
    async fn fill_in_model(&self, provider: Provider, settings: &mut ModelSettings) {
        let entry = provider.entry();
        let is_named = !settings.name.is_empty();
        if is_named && (!entry.has_own_servers || settings.context_tokens.is_some()) {
            return;
        }
        let found = (entry.probe)(settings, PROBE_TIMEOUT).await;
        let usual = || (provider.default_model().to_owned(), None);
        let (name, window) = found.unwrap_or_else(usual);
        settings.context_tokens = settings.context_tokens.or(window);
        if !is_named {
            settings.name = name;
        }
    }

    async fn select_available(&self) -> Result<ModelSelection, ModelSelectionError> {
        for (key, value) in [("url", &self.settings.url), ("key", &self.settings.key)] {
            if !value.is_empty() {
                let names = join_names(&Provider::ALL.map(Provider::as_str), "or");
                return Err(ModelSelectionError::Settings(format!(
                    "model.{key} needs model.provider beside it, which says whose {key} it is: {names}"
                )));
            }
        }
        if let Some((provider, name)) = self.settings.name.split_once(':')
            && let Ok(provider) = provider.parse::<AnswerSource>()
        {
            let name = toolgate_core::text::escape(name);
            return Err(ModelSelectionError::Settings(format!(
                "model.name holds a provider too: write {provider} as model.provider, and '{name}' as model.name"
            )));
        }
        let mut skipped = Vec::new();
        for provider in providers_by_preference() {
            let found = match provider {
                Provider::Ollama => self.find_ollama().await?,
                _ => self.find_remote(provider)?,
            };
            match found {
                Ok((mut settings, why)) => {
                    self.fill_in_model(provider, &mut settings).await;
                    return Ok(ModelSelection {
                        provider: provider.into(),
                        settings,
                        why,
                        skipped,
                        is_automatic: self.settings.name.is_empty(),
                    });
                }
                Err(reason) => skipped.push(format!("{provider}: {reason}")),
            }
        }
        self.select_fallback(skipped)
    }

    // Sentences answer if no model is available. Someone who named a model gets an error instead.
    fn select_fallback(&self, skipped: Vec<String>) -> Result<ModelSelection, ModelSelectionError> {
        let name = &self.settings.name;
        if !name.is_empty() {
            return Err(ModelSelectionError::Settings(format!(
                "no provider here has the model '{}' ({}); {}name its provider with --provider",
                toolgate_core::text::escape(name),
                skipped.join("; "),
                provider_hint(name)
            )));
        }
        Ok(ModelSelection {
            skipped,
            is_automatic: true,
            ..self.select_sentences("no model is configured or reachable".to_owned())
        })
    }

    fn select_sentences(&self, why: String) -> ModelSelection {
        let mut settings = self.settings.clone();
        settings.provider = Some(AnswerSource::Sentences);
        settings.url.clear();
        if settings.name.is_empty() {
            "en".clone_into(&mut settings.name);
        }
        ModelSelection {
            provider: AnswerSource::Sentences,
            settings,
            why,
            skipped: Vec::new(),
            is_automatic: false,
        }
    }

    async fn find_ollama(&self) -> Result<ProviderCandidate, ModelSelectionError> {
        let mut settings = self.with_variables(Provider::Ollama)?;
        let shown = crate::settings::display_url(&settings.url);
        let models = match probe::probe_ollama(&settings, PROBE_TIMEOUT).await {
            Ok(models) => models,
            Err(reason) => return Ok(Err(format!("{reason} at {shown}"))),
        };
        let Some(name) = models.usable(&settings.name) else {
            let reason = models.explain_unusable(&settings.name);
            // Only Ollama's model names have tags, so no other provider is tried.
            if is_tagged(&settings.name) {
                return Err(ModelSelectionError::Settings(format!(
                    "ollama: {reason}; if another provider has it, say so with --provider"
                )));
            }
            return Ok(Err(reason));
        };
        let shown_name = toolgate_core::text::escape(&name);
        let why = format!("it answers at {shown} and its {shown_name} can use tools");
        settings.name = name;
        Ok(Ok((settings, why)))
    }

    fn find_remote(&self, provider: Provider) -> Result<ProviderCandidate, ModelSelectionError> {
        let ([key, url], entry) = (provider.variables(), provider.entry());
        let why = match self.key_variable(provider) {
            _ if entry.has_own_servers && self.variable(url).is_some() => format!("{url} is set"),
            Some(key) => format!("{key} is set"),
            None if entry.has_own_servers => {
                return Ok(Err(format!("neither {key} nor {url} is set")));
            }
            None => return Ok(Err(format!("{key} is not set"))),
        };
        let settings = self.with_variables(provider)?;
        let name = &settings.name;
        // A self-hosted server may have any model names, except those of a provider that was tried
        // earlier: such a name means that provider.
        let may_have_any = entry.has_own_servers && settings.url != entry.url;
        let is_its = (entry.owns_model)(name)
            || may_have_any
                && find_owner(name)
                    .is_none_or(|find_owner| find_owner.preference > entry.preference);
        if !name.is_empty() && !is_its {
            let name = toolgate_core::text::escape(name);
            return Ok(Err(format!("'{name}' is not a model of {provider}")));
        }
        Ok(Ok((settings, why)))
    }
}

fn provider_hint(name: &str) -> String {
    match find_owner(name) {
        Some(find_owner) => format!(
            "for {} set {}, or ",
            find_owner.provider,
            find_owner.provider.key_setting()
        ),
        None if is_tagged(name) => "for ollama start it with 'ollama serve', or ".to_owned(),
        None => String::new(),
    }
}

// As in `qwen3:4b`. OpenAI's fine-tuned models have a colon too, but begin with `ft:`.
fn is_tagged(name: &str) -> bool {
    name.contains(':') && find_owner(name).is_none()
}

fn find_owner(name: &str) -> Option<&'static ProviderEntry> {
    let mut entries = Provider::ALL.into_iter().map(Provider::entry);
    entries.find(|entry| (entry.owns_model)(name))
}

fn providers_by_preference() -> [Provider; Provider::ALL.len()] {
    let mut tried = Provider::ALL;
    tried.sort_unstable_by_key(|provider| provider.entry().preference);
    tried
}
