//! A chat session, which `ask`, `chat` and `voice` share: a model, the tools it may use,
//! and the conversation between them.

mod ending;
mod saved;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolgate_core::text::escape;
use toolgate_core::{Origin, Redactor, ToolExecutorBuilder, ToolPattern};
use toolgate_mcp::ServerSettings;
use toolgate_models::{
    AnswerSource, ConnectedModel, Conversation, ModelError, ModelSelection, ModelSelectionError,
    ModelSettings, Toolbox, TurnRecord,
};
#[cfg(feature = "voice")]
use toolgate_voice::SpokenApprovals;

#[cfg(feature = "voice")]
use crate::approve::AloudApprover;
use crate::approve::{ClientApprover, ClientFirstApprover, TerminalApprover};
use crate::cli::{GlobalOptions, ModelOptions};
use crate::config::{Config, ConfiguredServer, SecretScope};
use crate::display::{AnswerFormat, ChatDisplay, DisplayOptions};
use crate::gateway::{GatewayObservers, OriginApprover};
use crate::journal::{CommandJournal, OpenRetry};
use crate::patterns::ToolName;
use crate::servers::{self, ServerFleet, ServerStart, UnseenServers};
use crate::spinner::Spinner;
use crate::wanted_model::{SAVED, for_provider, resolve_wanted, split};
use crate::wiring::{self, ConfiguredTools, ToolServices};
use crate::{exit, output, patterns, wanted_model};

pub(crate) use ending::{exit_for, turn_ending};
pub(crate) use saved::{check_savable, read_saved, save};

// How long to wait for servers if `--tools` names a tool that isn't known yet.
const NAMED_TOOLS_TIMEOUT: Duration = Duration::from_secs(5);
// How long a demo waits for the server of its simulated house.
const DEMO_HOUSE_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) struct ChatSession {
    pub(crate) config: Arc<Config>,
    pub(crate) tools: ConfiguredTools,
    pub(crate) toolbox: Toolbox,
    /// The requested model, before it is known which one is available.
    pub(crate) wanted: ModelSettings,
    /// Why that provider was requested; shown beside the model's name.
    reason: &'static str,
    file: Option<PathBuf>,
    patterns: Vec<String>,
    pub(crate) spinner: Spinner,
    pub(crate) journal: CommandJournal,
    /// Asks for approval aloud, once the voice gateway runs.
    #[cfg(feature = "voice")]
    pub(crate) spoken: SpokenApprovals,
    is_demo: bool,
}

pub(crate) struct SessionOptions<'a> {
    command: &'a str,
    resume: Option<&'a Path>,
    pub(crate) observers: Option<&'a GatewayObservers>,
    pub(crate) origin: Origin,
    pub(crate) services: ToolServices,
    /// Uses a throw-away journal, because demo calls aren't worth keeping.
    pub(crate) is_demo: bool,
}

impl<'a> SessionOptions<'a> {
    pub(crate) fn new(command: &'a str) -> Self {
        Self {
            command,
            resume: None,
            observers: None,
            origin: Origin::Chat,
            services: ToolServices::default(),
            is_demo: false,
        }
    }

    pub(crate) fn resuming(mut self, file: Option<&'a Path>) -> Self {
        self.resume = file;
        self
    }

    fn load_config(&self, global: &GlobalOptions) -> anyhow::Result<Config> {
        if !self.is_demo {
            return wiring::load_config_or_ask(global, SecretScope::Everything);
        }
        let mut config = wiring::load_config(global, SecretScope::Everything)?;
        config.simulate_all();
        Ok(config)
    }

    fn open_journal(&self, config: &Config, tools: &ConfiguredTools) -> CommandJournal {
        match self.is_demo {
            true => CommandJournal::temporary(config, tools, self.command),
            false => CommandJournal::open(config, tools, self.command, OpenRetry::Endless),
        }
    }

    /// Adds the approver that is closest to the person: by voice, at the
    /// dashboard or at the terminal.
    fn with_approver(
        &self,
        builder: ToolExecutorBuilder,
        terminal: TerminalApprover,
        #[cfg(feature = "voice")] spoken: &SpokenApprovals,
    ) -> ToolExecutorBuilder {
        match self.observers {
            #[cfg(feature = "voice")]
            None if self.origin == Origin::Voice => builder.approver(AloudApprover {
                spoken: spoken.clone(),
                terminal,
            }),
            Some(observers) => observers.attach(builder).approver(ClientFirstApprover {
                client: ClientApprover {
                    redactor: terminal.redactor.clone(),
                },
                elsewhere: OriginApprover {
                    dashboard: observers.approvals.clone(),
                    terminal,
                },
            }),
            None => builder.approver(terminal),
        }
    }
}

impl ChatSession {
    pub(crate) fn names_model(&self) -> bool {
        self.wanted.provider.is_some() || !self.wanted.name.is_empty()
    }

    pub(crate) fn new(
        global: &GlobalOptions,
        options: &ModelOptions,
        mut session: SessionOptions<'_>,
    ) -> anyhow::Result<Self> {
        let config = session.load_config(global)?;
        // Before anything starts, because a file that can't be resumed is a usage error.
        let saved = session.resume.map(read_saved).transpose()?;
        let (mut wanted, reason) = resolve_wanted(&config, &options.choice, saved.as_ref())?;
        wanted.timeout = options.timeout.unwrap_or(wanted.timeout);
        let services = std::mem::take(&mut session.services);
        let tools = wiring::build_tools_with_services(&config, services);
        wiring::warn_about_config(&config, &tools);
        wiring::warn_about_servers(&config);
        let spinner = Spinner::new("starting");
        let journal = session.open_journal(&config, &tools);
        // The display or the model shows calls already, so they aren't logged as well.
        let builder = match output::logs_to_terminal() && global.verbose == 0 {
            true => wiring::unobserved_builder(&config, &tools),
            false => wiring::logged_builder(&config, &tools),
        };
        let approver = TerminalApprover {
            agreed: options.yes,
            spinner: spinner.clone(),
            redactor: tools.redactor.clone(),
        };
        #[cfg(feature = "voice")]
        let spoken = SpokenApprovals::new(tools.redactor.clone());
        let executor = session.with_approver(
            journal.attach(builder),
            approver,
            #[cfg(feature = "voice")]
            &spoken,
        );
        let patterns: Vec<ToolPattern> = options
            .tools
            .iter()
            .map(|text| ToolPattern::new(text))
            .collect();
        Ok(Self {
            toolbox: Toolbox::new(executor.build())
                .only_if_any(patterns)
                .with_origin(session.origin),
            config: Arc::new(config),
            tools,
            wanted,
            reason,
            file: global.config.clone(),
            patterns: options.tools.clone(),
            spinner,
            journal,
            #[cfg(feature = "voice")]
            spoken,
            is_demo: session.is_demo,
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

    /// Starts the servers and selects a model, concurrently. Remembered tools are offered at once;
    /// others are awaited when they are needed. The selection is `None`
    /// if the person interrupted it.
    pub(crate) async fn start(
        &self,
        needed: Option<Vec<ServerSettings>>,
        start: ServerStart,
    ) -> (
        Option<ServerFleet>,
        Option<Result<ModelSelection, ModelSelectionError>>,
    ) {
        let spinner = &self.spinner;
        let fleet = needed.map(|settings| {
            ServerFleet::start(&self.config, &self.tools, settings, start, Some(spinner))
        });
        let choosing = self.select_model();
        let Some(fleet) = fleet else {
            let choice = tokio::select! {
                choice = choosing => Some(choice),
                () = exit::wait_for_interrupt() => None,
            };
            return (None, choice);
        };
        let mut choice = None;
        let unseen = UnseenServers::new(&fleet, &self.tools, start);
        self.toolbox.set_readiness(Arc::new(unseen));
        let timeout = match self.unmatched_tools_error() {
            _ if self.is_demo => DEMO_HOUSE_TIMEOUT,
            Some(_) => NAMED_TOOLS_TIMEOUT,
            None => Duration::ZERO,
        };
        if !timeout.is_zero() {
            fleet.servers.start_installed_servers_without_tools();
        }
        let settled = async {
            let waiting = tokio::time::timeout(timeout, fleet.servers.wait_for_known_tools());
            let (_, chosen) = tokio::join!(waiting, choosing);
            choice = Some(chosen);
        };
        let is_settled = fleet.wait(spinner, settled).await;
        if is_settled && output::is_interactive() {
            fleet.note_missing_except_unseen();
        }
        (Some(fleet), choice)
    }

    pub(crate) async fn select_model(&self) -> Result<ModelSelection, ModelSelectionError> {
        let choosing =
            toolgate_models::select_model(&self.wanted, self.reason, &wiring::environment);
        choosing.await.map_err(|error| match error {
            ModelSelectionError::Settings(text) if self.reason == SAVED => ModelSelectionError::Settings(format!(
                "{text}; it answered in the saved conversation; --provider continues with another"
            )),
            other => other,
        })
    }

    pub(crate) fn unmatched_tools_error(&self) -> Option<String> {
        // Suggestions come from all tools: a misspelled pattern may mean one that isn't selected.
        let tools = self.tools.manager.tools();
        let matches_some = |text: &str| {
            let pattern = ToolPattern::new(text);
            let mut definitions = tools.iter().map(|tool| tool.definition());
            definitions.any(|tool| pattern.grants(tool) && self.toolbox.executor().is_visible(tool))
        };
        let text = self.patterns.iter().find(|text| !matches_some(text))?;
        let visible = tools.iter().map(|tool| tool.definition());
        let visible = visible.filter(|tool| self.toolbox.executor().is_visible(tool));
        let visible: Vec<ToolName> = visible.map(ToolName::from_definition).collect();
        let hint = patterns::hint(text, &visible);
        Some(format!("--tools {}: no tool matches; {hint}", escape(text)))
    }

    pub(crate) fn connect(
        &self,
        choice: ModelSelection,
    ) -> Result<ConnectedModel, ModelSelectionError> {
        self.tools.redactor.add_secrets(choice.settings.secrets());
        toolgate_models::connect(choice, &self.toolbox)
    }

    pub(crate) fn conversation(
        &self,
        chosen: &ConnectedModel,
        resume: Option<&Path>,
    ) -> anyhow::Result<Conversation> {
        let router = chosen.router.clone();
        let new = Conversation::new(router, self.toolbox.clone(), chosen.settings.clone());
        Ok(match resume {
            Some(file) => new.with_history(read_saved(file)?.messages),
            None => new,
        })
    }

    pub(crate) fn display(&self, options: DisplayOptions) -> ChatDisplay {
        ChatDisplay::new(options, self.redactor(), self.spinner.clone())
    }

    pub(crate) fn redactor(&self) -> Redactor {
        self.tools.redactor.clone()
    }

    /// Resolves another choice: `provider`, `provider:name`, or a name of the same provider.
    pub(crate) async fn reselect_model(
        &self,
        text: &str,
        current: &ModelSettings,
    ) -> anyhow::Result<ModelSelection> {
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
        Ok(toolgate_models::select_model(&wanted, "you chose it", &wiring::environment).await?)
    }

    pub(crate) fn doctor_hint(&self, model: &ModelSettings) -> String {
        let command = wanted_model::doctor_command(self.file.as_deref(), &self.config.model, model);
        format!("'{command}' checks the model and says what to do")
    }

    pub(crate) fn advise(&self, error: &ModelError, model: &ModelSettings) -> Option<String> {
        const LONGER: &str = "to wait longer, use --timeout, or model.timeout and model.firstByteTimeout in the configuration";
        match error {
            // Too long or too often: the doctor couldn't help.
            ModelError::Limited { .. } | ModelError::TooLong { .. } => None,
            ModelError::TimedOut { .. } => Some(format!("{LONGER}; {}", self.doctor_hint(model))),
            _ => Some(self.doctor_hint(model)),
        }
    }
}

/// Runs one turn and shows it. `None` if the person stopped it; the partial
/// answer stays in the conversation.
pub(crate) async fn run_turn(
    conversation: &mut Conversation,
    display: &ChatDisplay,
    text: &str,
) -> Option<Result<TurnRecord, ModelError>> {
    let mut listener = display.clone();
    let turn = conversation.turn(text, &mut listener);
    let answered = tokio::select! {
        answered = animate_during(display, turn) => Some(answered),
        () = exit::wait_for_interrupt() => None,
    };
    display.finish_turn();
    if answered.is_none() {
        conversation.keep_partial_answer();
    }
    answered
}

async fn animate_during<T>(display: &ChatDisplay, turn: impl Future<Output = T>) -> T {
    let drawing = async {
        let never: Infallible = display.animate().await;
        match never {}
    };
    tokio::select! {
        done = turn => done,
        never = drawing => never,
    }
}

pub(crate) fn answer_format(chosen: &ConnectedModel) -> AnswerFormat {
    match chosen.router.source() {
        AnswerSource::Sentences => AnswerFormat::Plain,
        AnswerSource::Model(_) => AnswerFormat::Markdown,
    }
}
