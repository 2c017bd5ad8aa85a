//! Checks of the model that `ask` and `chat` would use.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::text::{escape, nearest_names};
use toolgate_models::{
    AnswerSource, ConnectedModel, Conversation, ModelList, ModelSelection, ModelSelectionError,
    ModelSettings, Provider, Toolbox, ollama,
};

use super::DoctorFinding::{Bad, Good, Warning};
use super::{DoctorFinding, DoctorReport, detail};
use crate::cli::ChoiceOptions;
use crate::config::Config;
use crate::wanted_model;
use crate::wiring::{self, ConfiguredTools};

// How long Ollama may take to describe its model.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
// How many models are suggested for an unknown one.
const NEAREST: usize = 3;

impl DoctorReport {
    pub(super) async fn check_model(
        &mut self,
        config: &Config,
        options: &ChoiceOptions,
        tools: &ConfiguredTools,
    ) {
        // Unset variables are reported with the configuration.
        if config.unset_in_sections(&["model"]).is_some() {
            return;
        }
        let (wanted, reason) = match wanted_model::resolve_wanted(config, options, None) {
            Ok(wanted) => wanted,
            Err(error) => return self.add("model", Bad(format!("{error:#}"))),
        };
        let choice = toolgate_models::select_model(&wanted, reason, &wiring::environment).await;
        let toolbox = Toolbox::new(wiring::probe_executor(config, tools));
        let chosen = choice.and_then(|choice| {
            tools.redactor.add_secrets(choice.settings.secrets());
            Ok((choice.clone(), toolgate_models::connect(choice, &toolbox)?))
        });
        match chosen {
            Ok((choice, chosen)) => self.check_chosen(&wanted, &choice, &chosen, &toolbox).await,
            Err(ModelSelectionError::Model(error)) => {
                self.add("model", missing_finding(&wanted, error.to_string()));
            }
            Err(error) => self.add("model", Bad(error.to_string())),
        }
    }

    async fn check_chosen(
        &mut self,
        wanted: &ModelSettings,
        choice: &ModelSelection,
        chosen: &ConnectedModel,
        toolbox: &Toolbox,
    ) {
        let who = wanted_model::describe_model(chosen);
        self.add("model", Good(format!("{who}: {}", chosen.why)));
        detail("skipped", &chosen.skipped);
        // Ollama reports how much its model holds, and a small one is offered fewer tools.
        let router = chosen.router.clone();
        router.prepare(Instant::now() + DESCRIBE_TIMEOUT).await;
        let question = Conversation::new(router, toolbox.clone(), choice.settings.clone());
        let offer = question.offer("");
        self.check_model_tools(&question, toolbox, &offer);
        match choice.provider {
            AnswerSource::Sentences => {}
            AnswerSource::Model(Provider::Ollama) => {
                self.check_ollama(wanted, choice, offer.tokens()).await;
            }
            AnswerSource::Model(provider) => self.check_listed(wanted, choice, provider).await,
        }
    }

    async fn check_listed(
        &mut self,
        wanted: &ModelSettings,
        choice: &ModelSelection,
        of: Provider,
    ) {
        let (provider, name) = (of.as_str(), choice.settings.name.as_str());
        let (models, is_all) = match toolgate_models::list_models(choice).await {
            Ok(ModelList::Models { names, is_all }) => (names, is_all),
            Ok(ModelList::Nothing { at }) => return self.check_unlisted(choice, of, &at),
            Ok(_) => return,
            Err(error) => return self.add(provider, missing_finding(wanted, error.to_string())),
        };
        let text = match choice.settings.key.is_empty() {
            true => "it answers; no key is set",
            false => "it answers and accepts the key",
        };
        self.add(provider, Good(text.to_owned()));
        if toolgate_models::is_listed(name, &models) {
            return;
        }
        if is_all && !models.is_empty() {
            return self.add(
                provider,
                missing_finding(wanted, unknown_model(name, &models)),
            );
        }
        let text = format!(
            "it doesn't list all of its models, so only a question can show whether '{}' is one of them",
            escape(name)
        );
        self.add(provider, Warning(text));
    }

    // The model may still work. Asking it costs something, so this stays a warning.
    fn check_unlisted(&mut self, choice: &ModelSelection, provider: Provider, at: &str) {
        let name = escape(&choice.settings.name);
        let text = format!(
            "it answers, but has no list of models at {at}, so only a question can show whether it has '{name}'"
        );
        self.add(provider.as_str(), Warning(text));
        let [key, url] = provider.variables();
        let mut fix =
            format!("if a question fails, check {url} and {key}, or model.url and model.key");
        if provider == Provider::OpenAi && !at.ends_with("/v1/models") {
            fix.push_str("; the address usually ends in /v1");
        }
        detail("fix", &[fix]);
    }

    async fn check_ollama(
        &mut self,
        wanted: &ModelSettings,
        choice: &ModelSelection,
        tool_tokens: usize,
    ) {
        for found in ollama::diagnose(&choice.settings, tool_tokens).await {
            let finding = match found.ok {
                true => Good(found.text),
                false => missing_finding(wanted, found.text),
            };
            self.add("ollama", finding);
            detail("fix", found.fix.as_slice());
        }
    }
}

fn missing_finding(wanted: &ModelSettings, text: String) -> DoctorFinding {
    match wanted.provider.is_some() || !wanted.name.is_empty() {
        true => Bad(text),
        false => Warning(text),
    }
}

fn unknown_model(name: &str, models: &[String]) -> String {
    let name = escape(name);
    let mut near = nearest_names(&name, models.iter().map(String::as_str), NEAREST);
    if near.is_empty() {
        near = models.iter().take(NEAREST).cloned().collect();
    }
    format!("it has no model '{name}'; it has {}", near.join(", "))
}

#[cfg(test)]
mod tests {
    use super::unknown_model;

    #[test]
    fn an_unknown_model_is_reported_with_similar_ones() {
        let models = ["claude-sonnet-4-5-20250929", "gpt-4o", "gpt-4o-mini"].map(str::to_owned);
        for (name, expected) in [
            ("gpt-4p", "it has no model 'gpt-4p'; it has gpt-4o"),
            (
                "x",
                "it has no model 'x'; it has claude-sonnet-4-5-20250929, gpt-4o, gpt-4o-mini",
            ),
        ] {
            assert_eq!(unknown_model(name, &models), expected);
        }
    }
}
