//! Builds an executor with all its tools from a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use toolgate_core::{LogObserver, Redactor, ToolExecutor, ToolExecutorBuilder, ToolManager};
use toolgate_journal::RecentCallsHandler;
use toolgate_mcp::ServerHealthHandler;
use toolgate_mcp::skills::SkillFolders;
use toolgate_tools::HandlerRegistry;
use toolgate_tools::builtin::{BuiltinSettings, VolumeControl};
use toolgate_tools::internal::{self, Documents};
use tracing::warn;

use crate::cli::GlobalOptions;
use crate::config::{self, Config, ConfigLocation, ConfigReadOptions, SecretScope};
use crate::folder_file::{self, FolderFile};
use crate::output;
use crate::trust::{self, TrustScope, TrustStore};

pub(crate) fn environment(name: &str) -> Option<String> {
    // Lossy, because silently ignoring a variable would be worse than a path that isn't found.
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Finds and reads the configuration, and notes a file in the working folder that isn't in use.
pub(crate) fn load_config(
    global: &GlobalOptions,
    secret_scope: SecretScope,
) -> anyhow::Result<Config> {
    find_config(global, secret_scope, |_, _| None).inspect(note_unused_file)
}

/// Like [`load_config`], for a command that a person waits for: on a terminal it asks whether to
/// use the file in the working folder.
pub(crate) fn load_config_or_ask(
    global: &GlobalOptions,
    secret_scope: SecretScope,
) -> anyhow::Result<Config> {
    find_config(global, secret_scope, trust::ask).inspect(note_unused_file)
}

fn note_unused_file(config: &Config) {
    if let Some(unused) = &config.unused_file {
        output::print_note(&unused.note());
    }
}

/// `--config`, else `$TOOLGATE_CONFIG`, else `toolgate.json` or `.mcp.json` here if the person has
/// agreed to it, else the user's; none is fine.
pub(crate) fn find_config(
    global: &GlobalOptions,
    secret_scope: SecretScope,
    ask: impl Fn(&FolderFile, &mut TrustStore) -> Option<TrustScope>,
) -> anyhow::Result<Config> {
    let reading = ConfigReadOptions::new(&environment, secret_scope);
    if let Some(path) = config::named_file(global.config.as_deref(), &environment) {
        return Ok(Config::read(&path, reading)?);
    }
    let here = std::env::current_dir().context("the working folder is gone")?;
    let (agreed, unused) = folder_file::find_agreed(&here, &environment, ask);
    let user = config::user_file(&environment);
    // A file that can't be read must be an error, not a policy that silently doesn't apply.
    let user = user.filter(|path| path.symlink_metadata().is_ok());
    let mut config = match (agreed, user) {
        (Some((file, scope)), _) => file.config(&scope, reading)?,
        (None, Some(user)) => {
            let mut config = Config::read(&relative_to(&user, &here), reading)?;
            config.location = ConfigLocation::User;
            config
        }
        (None, None) => Config::default(),
    };
    config.unused_file = unused;
    Ok(config)
}

pub(crate) fn relative_to(path: &Path, here: &Path) -> PathBuf {
    path.strip_prefix(here).unwrap_or(path).to_owned()
}

pub(crate) struct ConfiguredTools {
    pub(crate) manager: Arc<ToolManager>,
    pub(crate) services: ToolServices,
    pub(crate) redactor: Redactor,
    pub(crate) problems: Vec<config::ConfigError>,
}

pub(crate) fn build_tools(config: &Config) -> ConfiguredTools {
    build_tools_with_services(config, ToolServices::default())
}

/// Services that stay when the tools are built again.
#[derive(Clone, Default)]
pub(crate) struct ToolServices {
    /// Reports on the servers, once they are started.
    pub(crate) health: ServerHealthHandler,
    /// Reports recent calls, once the journal is open.
    pub(crate) recent: RecentCallsHandler,
    /// What `volume` controls instead of the machine's speakers.
    pub(crate) sounding: Option<Arc<dyn VolumeControl>>,
    /// Offers skills to the manager that was built first.
    pub(crate) skills: Option<Arc<SkillFolders>>,
}

/// Like [`build_tools`], with services that may be in use already.
pub(crate) fn build_tools_with_services(
    config: &Config,
    mut services: ToolServices,
) -> ConfiguredTools {
    let mut settings = BuiltinSettings::default();
    settings.search = config.search.clone();
    settings.volume_control.clone_from(&services.sounding);
    let mut handlers = HandlerRegistry::new(&settings);
    let mut documents = config.documents.clone();
    // The index contains the text of the documents, so it is stored where
    // confined servers can't read.
    documents.index = config::state_folder(&environment).map(|folder| folder.join("documents.db"));
    handlers.add_service(
        Documents::NAME,
        Documents::parameters(),
        Arc::new(Documents::new(documents)),
    );
    handlers.add_service(
        ServerHealthHandler::NAME,
        ServerHealthHandler::parameters(),
        Arc::new(services.health.clone()),
    );
    handlers.add_service(
        RecentCallsHandler::NAME,
        RecentCallsHandler::parameters(),
        Arc::new(services.recent.clone()),
    );

    let manager = Arc::new(ToolManager::new());
    if services.skills.is_none() {
        services.skills = Some(SkillFolders::new(&manager));
    }
    manager.add_all(handlers.builtin_tools());
    if config.resources.tools {
        manager.add_all(internal::resource_tools());
    }
    let loaded = handlers.load(&config.tools);
    manager.add_all(loaded.tools);
    ConfiguredTools {
        manager,
        services,
        redactor: Redactor::new(config.secrets()),
        problems: loaded
            .problems
            .iter()
            .map(|problem| config.locate(problem))
            .collect(),
    }
}

impl ToolServices {
    /// Has the configured folders of skills looked through. Must be called in a tokio runtime.
    pub(crate) fn offer_skills(&self, config: &Config) {
        if let Some(skills) = &self.skills {
            skills.set_folders_soon(config.skills.folders.clone());
        }
    }
}

pub(crate) fn warn_about_config(config: &Config, tools: &ConfiguredTools) {
    for warning in config.warnings.iter().chain(&tools.problems) {
        warn!("{warning}");
    }
}

pub(crate) fn warn_about_servers(config: &Config) {
    for problem in &config.server_problems {
        warn!("{}", problem.error);
    }
}

/// An executor for checks, which asks no questions and logs and records nothing.
pub(crate) fn probe_executor(config: &Config, tools: &ConfiguredTools) -> ToolExecutor {
    unobserved_builder(config, tools).build()
}

pub(crate) fn logged_builder(config: &Config, tools: &ConfiguredTools) -> ToolExecutorBuilder {
    let log = LogObserver::default().redactor(tools.redactor.clone());
    unobserved_builder(config, tools).observer(log)
}

pub(crate) fn unobserved_builder(config: &Config, tools: &ConfiguredTools) -> ToolExecutorBuilder {
    ToolExecutor::builder(Arc::clone(&tools.manager))
        .limits(config.limits.clone())
        .policy(config.policy.clone())
        .without_observers()
}
