//! The model that `ask` and `chat` would use.

use toolgate_models::{Choice, ChooseError, Chosen, Offer, Provider, Toolbox, ollama};

use super::{Finding, Report, detail};
use crate::config::Config;
use crate::talk;
use crate::wiring::{self, Tools};

impl Report {
    pub(super) async fn on_model(&mut self, config: &Config, tools: &Tools) {
        // What is not set was said with the rest of the configuration.
        if config.unset_for_model().is_some() {
            return;
        }
        if let Err(error) = talk::refuse_strange(config, &config.model) {
            return self.add("model", &Finding::Bad(format!("{error:#}")));
        }
        let said_by = "the configuration says so";
        let choice = toolgate_models::choice(&config.model, said_by, &wiring::environment).await;
        let toolbox = Toolbox::new(wiring::probe(config, tools));
        let chosen = choice.and_then(|choice| {
            tools.redactor.learn(choice.settings.secrets());
            Ok((choice.clone(), toolgate_models::connect(choice, &toolbox)?))
        });
        match chosen {
            Ok((choice, chosen)) => self.on_chosen(config, &choice, &chosen, &toolbox).await,
            Err(ChooseError::Model(error)) => {
                self.add("model", &Finding::Warning(error.to_string()));
            }
            Err(error) => self.add("model", &Finding::Bad(error.to_string())),
        }
    }

    async fn on_chosen(
        &mut self,
        config: &Config,
        choice: &Choice,
        chosen: &Chosen,
        toolbox: &Toolbox,
    ) {
        let who = talk::described(chosen);
        self.add("model", &Finding::Good(format!("{who}: {}", chosen.why)));
        detail("passed over", &chosen.passed_over);
        match choice.provider {
            Provider::Ollama => self.on_ollama(config, choice, chosen, toolbox).await,
            Provider::Intents => {}
            provider => {
                let finding = match toolgate_models::check(choice).await {
                    Ok(()) if choice.settings.key.is_empty() => {
                        Finding::Good("it answers; no key is set".to_owned())
                    }
                    Ok(()) => Finding::Good("it answers, and takes the key".to_owned()),
                    // It may be the network of the moment.
                    Err(error) => Finding::Warning(error.to_string()),
                };
                self.add(provider.as_str(), &finding);
            }
        }
    }

    async fn on_ollama(
        &mut self,
        config: &Config,
        choice: &Choice,
        chosen: &Chosen,
        toolbox: &Toolbox,
    ) {
        let offer = Offer::all(chosen.client.catalog(&toolbox.current()));
        let is_wanted = config.model.provider.is_some();
        for found in ollama::diagnose(&choice.settings, offer.tokens()).await {
            let finding = match found.ok {
                true => Finding::Good(found.text),
                false if is_wanted => Finding::Bad(found.text),
                false => Finding::Warning(found.text),
            };
            self.add("ollama", &finding);
            detail("do", found.fix.as_slice());
        }
    }
}
