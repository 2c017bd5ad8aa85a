//! The model that `ask` and `chat` would use.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::{escape, nearest};
use toolgate_models::{
    AnswerSource, Choice, ChooseError, Chosen, Conversation, Listed, ModelSettings, Provider,
    Toolbox, ollama,
};

use super::{Finding, Report, detail};
use crate::cli::ChoiceOptions;
use crate::config::Config;
use crate::wanted_model;
use crate::wiring::{self, Tools};

/// How long an Ollama may take to tell of its model.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many models are told where the one that is meant is missing.
const NEAREST: usize = 3;

impl Report {
    pub(super) async fn on_model(
        &mut self,
        config: &Config,
        options: &ChoiceOptions,
        tools: &Tools,
    ) {
        // What is not set was said with the rest of the configuration.
        if config.unset_for_model().is_some() {
            return;
        }
        let (wanted, said_by) = match wanted_model::wanted(config, options, None) {
            Ok(wanted) => wanted,
            Err(error) => return self.add("model", &Finding::Bad(format!("{error:#}"))),
        };
        let choice = toolgate_models::choice(&wanted, said_by, &wiring::environment).await;
        let toolbox = Toolbox::new(wiring::probe(config, tools));
        let chosen = choice.and_then(|choice| {
            tools.redactor.learn(choice.settings.secrets());
            Ok((choice.clone(), toolgate_models::connect(choice, &toolbox)?))
        });
        match chosen {
            Ok((choice, chosen)) => self.on_chosen(&wanted, &choice, &chosen, &toolbox).await,
            Err(ChooseError::Model(error)) => {
                self.add("model", &missed(&wanted, error.to_string()));
            }
            Err(error) => self.add("model", &Finding::Bad(error.to_string())),
        }
    }

    async fn on_chosen(
        &mut self,
        wanted: &ModelSettings,
        choice: &Choice,
        chosen: &Chosen,
        toolbox: &Toolbox,
    ) {
        let who = wanted_model::described(chosen);
        self.add("model", &Finding::Good(format!("{who}: {}", chosen.why)));
        detail("passed over", &chosen.passed_over);
        // An Ollama tells how much its model holds: a small one is offered fewer tools.
        let router = chosen.router.clone();
        router.prepare(Instant::now() + PATIENCE).await;
        let question = Conversation::new(router, toolbox.clone(), choice.settings.clone());
        let offer = question.offer("");
        self.on_offer(&question, toolbox, &offer);
        match choice.provider {
            AnswerSource::Sentences => {}
            AnswerSource::Model(Provider::Ollama) => {
                self.on_ollama(wanted, choice, offer.tokens()).await;
            }
            AnswerSource::Model(provider) => self.on_listed(wanted, choice, provider).await,
        }
    }

    async fn on_listed(&mut self, wanted: &ModelSettings, choice: &Choice, of: Provider) {
        let (provider, name) = (of.as_str(), choice.settings.name.as_str());
        let (models, is_all) = match toolgate_models::check(choice).await {
            Ok(Listed::Models { names, is_all }) => (names, is_all),
            Ok(Listed::Nothing { at }) => return self.on_untold(choice, of, &at),
            Ok(_) => return,
            Err(error) => return self.add(provider, &missed(wanted, error.to_string())),
        };
        let text = match choice.settings.key.is_empty() {
            true => "it answers; no key is set",
            false => "it answers, and takes the key",
        };
        self.add(provider, &Finding::Good(text.to_owned()));
        if toolgate_models::is_listed(name, &models) {
            return;
        }
        if is_all && !models.is_empty() {
            return self.add(provider, &missed(wanted, unknown(name, &models)));
        }
        let text = format!(
            "it does not tell all of its models: whether '{}' is one of them can not be told without a question",
            escape(name)
        );
        self.add(provider, &Finding::Warning(text));
    }

    /// It may answer questions all the same, which are not asked here: they cost something.
    fn on_untold(&mut self, choice: &Choice, provider: Provider, at: &str) {
        let name = escape(&choice.settings.name);
        let text = format!(
            "it answers, and has no list of models at {at}: whether it has '{name}' can not be told without a question"
        );
        self.add(provider.as_str(), &Finding::Warning(text));
        let [key, url] = provider.variables();
        let mut todo =
            format!("if a question fails, check {url} and {key}, or model.url and model.key");
        if provider == Provider::OpenAi && !at.ends_with("/v1/models") {
            todo.push_str("; the address usually ends in /v1");
        }
        detail("do", &[todo]);
    }

    async fn on_ollama(&mut self, wanted: &ModelSettings, choice: &Choice, tool_tokens: usize) {
        for found in ollama::diagnose(&choice.settings, tool_tokens).await {
            let finding = match found.ok {
                true => Finding::Good(found.text),
                false => missed(wanted, found.text),
            };
            self.add("ollama", &finding);
            detail("do", found.fix.as_slice());
        }
    }
}

/// Something the model needs is not there: bad, if somebody asked for this model.
fn missed(wanted: &ModelSettings, text: String) -> Finding {
    match wanted.provider.is_some() || !wanted.name.is_empty() {
        true => Finding::Bad(text),
        false => Finding::Warning(text),
    }
}

fn unknown(name: &str, models: &[String]) -> String {
    let name = escape(name);
    let mut near = nearest(&name, models.iter().map(String::as_str), NEAREST);
    if near.is_empty() {
        near = models.iter().take(NEAREST).cloned().collect();
    }
    format!("it has no model '{name}'; it has {}", near.join(", "))
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn a_model_that_is_not_there_is_told_with_those_that_are_like_it() {
        let models = ["claude-sonnet-4-5-20250929", "gpt-4o", "gpt-4o-mini"].map(str::to_owned);
        for (name, expected) in [
            ("gpt-4p", "it has no model 'gpt-4p'; it has gpt-4o"),
            (
                "x",
                "it has no model 'x'; it has claude-sonnet-4-5-20250929, gpt-4o, gpt-4o-mini",
            ),
        ] {
            assert_eq!(unknown(name, &models), expected);
        }
    }
}
