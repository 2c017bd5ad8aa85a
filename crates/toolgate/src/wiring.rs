//! From a configuration to an executor with all its tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use toolgate_core::{LogObserver, Redactor, ToolExecutor, ToolExecutorBuilder, ToolManager};
use toolgate_journal::RecentCalls;
use toolgate_mcp::ServerHealth;
use toolgate_tools::Handlers;
use toolgate_tools::builtin::{BuiltinSettings, Sounding};
use toolgate_tools::internal::Documents;
use tracing::warn;

use crate::cli::Global;
use crate::config::{self, Config, Place, Reading, Uses};
use crate::folder_file::{self, FolderFile};
use crate::journal::Record;
use crate::say;
use crate::trust::{self, Scope, Trust};

pub(crate) fn environment(name: &str) -> Option<String> {
    // Lossy rather than not there: a variable that is ignored without a word would be worse than a path that is not found.
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Finds and reads the configuration, and tells of a file in the working folder that isn't in use.
pub(crate) fn configuration(global: &Global, uses: Uses) -> anyhow::Result<Config> {
    let config = find_configuration(global, uses, |_, _| None)?;
    tell_waiting(&config);
    Ok(config)
}

/// Like [`configuration`], for a command that a person waits for: on a terminal it asks whether to
/// use the file in the working folder.
pub(crate) fn configuration_or_ask(global: &Global, uses: Uses) -> anyhow::Result<Config> {
    let config = find_configuration(global, uses, trust::ask)?;
    tell_waiting(&config);
    Ok(config)
}

fn tell_waiting(config: &Config) {
    if let Some(waiting) = &config.waiting {
        say::note(&waiting.note());
    }
}

/// `--config`, else `$TOOLGATE_CONFIG`, else `toolgate.json` or `.mcp.json` here if the person has
/// agreed to it, else the user's; none is fine.
pub(crate) fn find_configuration(
    global: &Global,
    uses: Uses,
    ask: impl Fn(&FolderFile, &mut Trust) -> Option<Scope>,
) -> anyhow::Result<Config> {
    let reading = Reading::new(&environment, uses);
    if let Some(path) = config::named(global.config.as_deref(), &environment) {
        return Ok(Config::read(&path, reading)?);
    }
    let here = std::env::current_dir().context("the working folder is gone")?;
    let (agreed, waiting) = folder_file::agreed(&here, &environment, ask);
    let user = config::user_file(&environment);
    // Whatever has the name counts: a file that can't be read must be an error, not a policy that
    // silently isn't there.
    let user = user.filter(|path| path.symlink_metadata().is_ok());
    let mut config = match (agreed, user) {
        (Some((file, scope)), _) => file.config(&scope, reading)?,
        (None, Some(user)) => {
            let mut config = Config::read(&shortened(&user, &here), reading)?;
            config.place = Place::User;
            config
        }
        (None, None) => Config::default(),
    };
    config.waiting = waiting;
    Ok(config)
}

pub(crate) fn shortened(path: &Path, here: &Path) -> PathBuf {
    path.strip_prefix(here).unwrap_or(path).to_owned()
}

pub(crate) struct Tools {
    pub(crate) manager: Arc<ToolManager>,
    /// The service that will report on the servers, once there are any.
    pub(crate) health: ServerHealth,
    /// The service that will tell of calls, once they are recorded.
    pub(crate) recent: RecentCalls,
    /// A voice of our own that `volume` governs, if there is one.
    pub(crate) sounding: Option<Arc<dyn Sounding>>,
    pub(crate) redactor: Redactor,
    /// What is odd about the configuration's own tools.
    pub(crate) problems: Vec<config::ConfigError>,
}

impl Tools {
    pub(crate) fn services(&self) -> Services {
        Services {
            health: self.health.clone(),
            recent: self.recent.clone(),
            sounding: self.sounding.clone(),
        }
    }
}

/// Makes all tools. Nothing is contacted.
pub(crate) fn tools(config: &Config) -> Tools {
    tools_beside(config, Services::default())
}

/// What is there before the tools are made anew, and stays.
#[derive(Clone, Default)]
pub(crate) struct Services {
    pub(crate) health: ServerHealth,
    pub(crate) recent: RecentCalls,
    /// What `volume` governs instead of the machine's speakers.
    pub(crate) sounding: Option<Arc<dyn Sounding>>,
}

/// The same, for services that may be at work already.
pub(crate) fn tools_beside(config: &Config, services: Services) -> Tools {
    let Services {
        health,
        recent,
        sounding,
    } = services;
    let mut settings = BuiltinSettings::default();
    settings.search = config.search.clone();
    settings.sounding.clone_from(&sounding);
    let mut handlers = Handlers::new(&settings);
    let mut documents = config.documents.clone();
    // It holds the text of the documents, so it lies where a confined server can't read.
    documents.index = config::state_folder(&environment).map(|folder| folder.join("documents.db"));
    handlers.add_service(
        Documents::NAME,
        Documents::parameters(),
        Arc::new(Documents::new(documents)),
    );
    handlers.add_service(
        ServerHealth::NAME,
        ServerHealth::parameters(),
        Arc::new(health.clone()),
    );
    handlers.add_service(
        RecentCalls::NAME,
        RecentCalls::parameters(),
        Arc::new(recent.clone()),
    );

    let manager = Arc::new(ToolManager::new());
    manager.add_all(handlers.builtin_tools());
    let loaded = handlers.load(&config.tools);
    manager.add_all(loaded.tools);
    Tools {
        manager,
        health,
        recent,
        sounding,
        redactor: Redactor::new(config.secrets()),
        problems: loaded
            .problems
            .iter()
            .map(|problem| config.locate(problem))
            .collect(),
    }
}

pub(crate) fn warn_about(config: &Config, tools: &Tools) {
    for oddity in config.warnings.iter().chain(&tools.problems) {
        warn!("{oddity}");
    }
}

pub(crate) fn warn_about_servers(config: &Config) {
    for problem in &config.server_problems {
        warn!("{}", problem.error);
    }
}

/// The door where nobody can be asked: what needs approval is denied.
pub(crate) fn unattended(config: &Config, tools: &Tools, record: &Record) -> ToolExecutor {
    record.keep(logged(config, tools)).build()
}

/// The door for a look at what works: nobody is asked, nothing is logged or recorded.
pub(crate) fn probe(config: &Config, tools: &Tools) -> ToolExecutor {
    quiet(config, tools).build()
}

/// A door whose calls are logged.
pub(crate) fn logged(config: &Config, tools: &Tools) -> ToolExecutorBuilder {
    let log = LogObserver::default().redactor(tools.redactor.clone());
    quiet(config, tools).observer(log)
}

/// A door whose calls nobody hears of.
pub(crate) fn quiet(config: &Config, tools: &Tools) -> ToolExecutorBuilder {
    ToolExecutor::builder(Arc::clone(&tools.manager))
        .limits(config.limits.clone())
        .policy(config.policy.clone())
        .unobserved()
}
