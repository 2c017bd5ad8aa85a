//! What `ask`, `chat` and `voice` share: a model, the tools it may use, and a conversation between them.

mod ending;
mod saved;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolgate_core::{Origin, Pattern, Redactor, ToolExecutorBuilder, escape};
use toolgate_mcp::ServerSettings;
use toolgate_models::{
    AnswerSource, Choice, ChooseError, Chosen, Conversation, ModelError, ModelSettings, Toolbox,
    Turn,
};
#[cfg(feature = "voice")]
use toolgate_voice::SpokenApprovals;

#[cfg(feature = "voice")]
use crate::approve::AloudApprover;
use crate::approve::TerminalApprover;
use crate::cli::{Global, ModelOptions};
use crate::config::{Config, ConfiguredServer, Uses};
use crate::display::{AnswerFormat, Display, Manner};
use crate::gateway::{Nearest, Watch};
use crate::journal::{Patience, Record};
use crate::patterns::ToolName;
use crate::servers::{self, Fleet, Start, UnseenServers};
use crate::spinner::Spinner;
use crate::wanted_model::{SAVED, for_provider, split, wanted};
use crate::wiring::{self, Services, Tools};
use crate::{exit, patterns, say, wanted_model};

pub(crate) use ending::{ending, exit_of};
pub(crate) use saved::{expect_savable, read, save};

/// How long `--tools` that nobody is known to have are waited for.
const NAMED_TOOLS: Duration = Duration::from_secs(5);
/// A demo is nothing without its house.
const HOUSE: Duration = Duration::from_secs(15);

/// Everything that does not change between two questions.
pub(crate) struct Setting {
    pub(crate) config: Arc<Config>,
    pub(crate) tools: Tools,
    pub(crate) toolbox: Toolbox,
    /// What the person wants of a model, before it is known which is there.
    pub(crate) wanted: ModelSettings,
    /// Why that provider, if one was named.
    said_by: &'static str,
    file: Option<PathBuf>,
    /// `--tools`, as typed.
    patterns: Vec<String>,
    pub(crate) spinner: Spinner,
    pub(crate) record: Record,
    /// Asks aloud, once there is a voice.
    #[cfg(feature = "voice")]
    pub(crate) spoken: SpokenApprovals,
    is_play: bool,
}

pub(crate) struct Occasion<'a> {
    command: &'a str,
    /// A conversation that it goes on with.
    resume: Option<&'a Path>,
    pub(crate) watch: Option<&'a Watch>,
    pub(crate) origin: Origin,
    pub(crate) services: Services,
    /// Nothing of it is real: what was called is of no use to anybody once it is over.
    pub(crate) is_play: bool,
}

impl<'a> Occasion<'a> {
    pub(crate) fn new(command: &'a str) -> Self {
        Self {
            command,
            resume: None,
            watch: None,
            origin: Origin::Chat,
            services: Services::default(),
            is_play: false,
        }
    }

    pub(crate) fn resuming(mut self, file: Option<&'a Path>) -> Self {
        self.resume = file;
        self
    }

    fn configuration(&self, global: &Global) -> anyhow::Result<Config> {
        if !self.is_play {
            return wiring::configuration_or_ask(global, Uses::Everything);
        }
        let mut config = wiring::configuration(global, Uses::Everything)?;
        config.keep_simulated();
        Ok(config)
    }

    fn record(&self, config: &Config, tools: &Tools) -> Record {
        match self.is_play {
            true => Record::passing(config, tools, self.command),
            false => Record::open(config, tools, self.command, Patience::Endless),
        }
    }

    /// Whoever is nearest is asked: by voice, on the dashboard or at the terminal.
    fn approved_by(
        &self,
        door: ToolExecutorBuilder,
        terminal: TerminalApprover,
        #[cfg(feature = "voice")] spoken: &SpokenApprovals,
    ) -> ToolExecutorBuilder {
        match self.watch {
            #[cfg(feature = "voice")]
            None if self.origin == Origin::Voice => door.approver(AloudApprover {
                spoken: spoken.clone(),
                terminal,
            }),
            Some(watch) => watch.keep(door).approver(Nearest {
                dashboard: watch.approvals.clone(),
                terminal,
            }),
            None => door.approver(terminal),
        }
    }
}

impl Setting {
    pub(crate) fn is_asked(&self) -> bool {
        self.wanted.provider.is_some() || !self.wanted.name.is_empty()
    }

    pub(crate) fn new(
        global: &Global,
        options: &ModelOptions,
        mut occasion: Occasion<'_>,
    ) -> anyhow::Result<Self> {
        let config = occasion.configuration(global)?;
        // Before anything is started: what can not be resumed is wrong usage.
        let saved = occasion.resume.map(read).transpose()?;
        let (mut wanted, said_by) = wanted(&config, &options.choice, saved.as_ref())?;
        wanted.timeout = options.timeout.unwrap_or(wanted.timeout);
        let services = std::mem::take(&mut occasion.services);
        let tools = wiring::tools_beside(&config, services);
        wiring::warn_about(&config, &tools);
        wiring::warn_about_servers(&config);
        let spinner = Spinner::new("starting");
        let record = occasion.record(&config, &tools);
        // What the display shows, or the model tells, is not logged once more.
        let door = match say::is_read() && global.verbose == 0 {
            true => wiring::quiet(&config, &tools),
            false => wiring::logged(&config, &tools),
        };
        let approver = TerminalApprover {
            agreed: options.yes,
            spinner: spinner.clone(),
            redactor: tools.redactor.clone(),
        };
        #[cfg(feature = "voice")]
        let spoken = SpokenApprovals::new(tools.redactor.clone());
        let executor = occasion.approved_by(
            record.keep(door),
            approver,
            #[cfg(feature = "voice")]
            &spoken,
        );
        let patterns: Vec<Pattern> = options
            .tools
            .iter()
            .map(|text| Pattern::new(text))
            .collect();
        Ok(Self {
            toolbox: Toolbox::new(executor.build())
                .only(patterns)
                .asked_by(occasion.origin),
            config: Arc::new(config),
            tools,
            wanted,
            said_by,
            file: global.config.clone(),
            patterns: options.tools.clone(),
            spinner,
            record,
            #[cfg(feature = "voice")]
            spoken,
            is_play: occasion.is_play,
        })
    }

    pub(crate) fn needed_servers(&self) -> Option<Vec<ServerSettings>> {
        let (config, names) = (&self.config, &self.patterns);
        let are_names = !names.is_empty() && names.iter().all(|name| !name.contains(['*', '/']));
        let of = |name: &String| servers::needed(config, &self.tools.manager, name);
        let named: Vec<_> = names.iter().filter(|_| are_names).flat_map(of).collect();
        let is_needed = |server: &&ConfiguredServer| {
            let mut named = named.iter();
            !are_names || named.any(|named| named.settings.name == server.settings.name)
        };
        let needed: Vec<_> = config.servers.iter().filter(is_needed).collect();
        (!needed.is_empty()).then(|| servers::settings(needed))
    }

    /// Starts the servers and looks for a model, side by side. Tools that are remembered are offered at once; whoever needs
    /// others waits for them later. `None` if the person had enough of waiting.
    pub(crate) async fn start(
        &self,
        needed: Option<Vec<ServerSettings>>,
        start: Start,
    ) -> (Option<Fleet>, Option<Result<Choice, ChooseError>>) {
        let spinner = &self.spinner;
        let fleet =
            needed.map(|them| Fleet::start(&self.config, &self.tools, them, start, Some(spinner)));
        let choosing = self.choose();
        let Some(fleet) = fleet else {
            let choice = tokio::select! {
                choice = choosing => Some(choice),
                () = exit::interrupted() => None,
            };
            return (None, choice);
        };
        let mut choice = None;
        let unseen = UnseenServers::new(&fleet, &self.tools, start);
        self.toolbox.wait_for(Arc::new(unseen));
        let patience = match self.unmatched() {
            _ if self.is_play => HOUSE,
            Some(_) => NAMED_TOOLS,
            None => Duration::ZERO,
        };
        if !patience.is_zero() {
            fleet.servers.start_unseen_installed();
        }
        let settled = async {
            let waiting = tokio::time::timeout(patience, fleet.servers.tools_known());
            let (_, chosen) = tokio::join!(waiting, choosing);
            choice = Some(chosen);
        };
        let is_settled = fleet.wait(spinner, settled).await;
        if is_settled && say::is_followed() {
            fleet.tell_missing_for_good();
        }
        (Some(fleet), choice)
    }

    pub(crate) async fn choose(&self) -> Result<Choice, ChooseError> {
        let choosing = toolgate_models::choice(&self.wanted, self.said_by, &wiring::environment);
        choosing.await.map_err(|error| match error {
            ChooseError::Settings(text) if self.said_by == SAVED => ChooseError::Settings(format!(
                "{text}; the saved conversation was with it, and --provider goes on with another"
            )),
            other => other,
        })
    }

    pub(crate) fn unmatched(&self) -> Option<String> {
        // Not only those that were chosen: another spelling may mean one that was not.
        let tools = self.tools.manager.tools();
        let means_some = |text: &str| {
            let pattern = Pattern::new(text);
            let mut definitions = tools.iter().map(|tool| tool.definition());
            definitions.any(|tool| pattern.grants(tool) && self.toolbox.executor().is_visible(tool))
        };
        let text = self.patterns.iter().find(|text| !means_some(text))?;
        let visible = tools.iter().map(|tool| tool.definition());
        let visible = visible.filter(|tool| self.toolbox.executor().is_visible(tool));
        let visible: Vec<ToolName> = visible.map(ToolName::of).collect();
        let hint = patterns::hint(text, &visible);
        Some(format!(
            "--tools {}: no tool is like that; {hint}",
            escape(text)
        ))
    }

    pub(crate) fn connect(&self, choice: Choice) -> Result<Chosen, ChooseError> {
        self.tools.redactor.learn(choice.settings.secrets());
        toolgate_models::connect(choice, &self.toolbox)
    }

    pub(crate) fn conversation(
        &self,
        chosen: &Chosen,
        resume: Option<&Path>,
    ) -> anyhow::Result<Conversation> {
        let router = chosen.router.clone();
        let new = Conversation::new(router, self.toolbox.clone(), chosen.settings.clone());
        Ok(match resume {
            Some(file) => new.resumed(read(file)?.messages),
            None => new,
        })
    }

    pub(crate) fn display(&self, manner: Manner) -> Display {
        Display::new(manner, self.redactor(), self.spinner.clone())
    }

    pub(crate) fn redactor(&self) -> Redactor {
        self.tools.redactor.clone()
    }

    /// Which model another choice would be: `provider`, `provider:name` or a name of the same provider.
    pub(crate) async fn rechoose(
        &self,
        text: &str,
        current: &ModelSettings,
    ) -> anyhow::Result<Choice> {
        let (provider, name) = split(text);
        let provider = provider.or(current.provider);
        let mut wanted = match provider {
            Some(provider) => for_provider(&self.config.model, provider),
            None => self.config.model.clone(),
        };
        if let Some(name) = name {
            name.clone_into(&mut wanted.name);
        }
        wanted.timeout = self.wanted.timeout;
        Ok(toolgate_models::choice(&wanted, "you say so", &wiring::environment).await?)
    }

    pub(crate) fn doctor(&self, model: &ModelSettings) -> String {
        let command = wanted_model::doctor(self.file.as_deref(), &self.config.model, model);
        format!("'{command}' looks at the model and says what to do")
    }

    pub(crate) fn help(&self, error: &ModelError, model: &ModelSettings) -> Option<String> {
        const LONGER: &str = "--timeout gives it longer, and so do model.timeout and model.firstByteTimeout in the configuration";
        match error {
            // What was said is too much, or too often: a look at the model tells nothing more.
            ModelError::Limited { .. } | ModelError::TooLong { .. } => None,
            ModelError::TimedOut { .. } => Some(format!("{LONGER}; {}", self.doctor(model))),
            _ => Some(self.doctor(model)),
        }
    }
}

/// One turn, shown as it goes on; `None` if the person stopped it. What the model had said by then stays in the conversation.
pub(crate) async fn turn(
    conversation: &mut Conversation,
    display: &Display,
    text: &str,
) -> Option<Result<Turn, ModelError>> {
    let mut listener = display.clone();
    let turn = conversation.turn(text, &mut listener);
    let answered = tokio::select! {
        answered = beside(display, turn) => Some(answered),
        () = exit::interrupted() => None,
    };
    display.end();
    if answered.is_none() {
        conversation.keep_told();
    }
    answered
}

/// A display beside a turn: draws until the turn is over.
async fn beside<T>(display: &Display, turn: impl Future<Output = T>) -> T {
    let drawing = async {
        let never: Infallible = display.animate().await;
        match never {}
    };
    tokio::select! {
        done = turn => done,
        never = drawing => never,
    }
}

/// Models write Markdown, matched sentences don't.
pub(crate) fn answer_format(chosen: &Chosen) -> AnswerFormat {
    match chosen.router.source() {
        AnswerSource::Sentences => AnswerFormat::Plain,
        AnswerSource::Model(_) => AnswerFormat::Markdown,
    }
}
