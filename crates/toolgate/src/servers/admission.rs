//! Which servers may start: those that nobody has agreed to yet are kept back, and told of.

use std::path::Path;

use toolgate_core::{ToolManager, escape};
use toolgate_mcp::ServerSettings;
use tracing::warn;

use crate::config::{Config, ConfiguredServer, Place};
use crate::trust::{self, Trust};
use crate::{say, wiring};

/// Servers that may start, and the names of those that may not.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) settings: Vec<ServerSettings>,
    pub(crate) untrusted: Vec<String>,
}

impl Admitted {
    /// Whoever asks for a tool of a server that does not start will be told why it is not there.
    pub(crate) fn tell_absent(&self, manager: &ToolManager) {
        let disabled = self.settings.iter().filter(|settings| settings.disabled);
        let disabled = disabled.map(|settings| (&settings.name, "disabled in the configuration"));
        let untrusted = self.untrusted.iter();
        let untrusted = untrusted.map(|name| (name, "not trusted yet; run 'toolgate trust'"));
        for (name, why) in disabled.chain(untrusted) {
            let reason = format!("its server '{}' is {why}", escape(name));
            manager.set_absent(name, Some(&reason));
        }
    }
}

/// Keeps back what nobody has agreed to. On a terminal the person is asked.
pub(crate) fn admit(config: &Config, wanted: &[&ConfiguredServer]) -> Admitted {
    admit_if(config, wanted, trust::ask)
}

/// The same, with every other server that may start without a question: which name a tool has depends on all of them.
pub(crate) fn admit_among_all(config: &Config, wanted: &[&ConfiguredServer]) -> Admitted {
    let Admitted {
        settings: asked,
        untrusted,
    } = admit(config, wanted);
    let others = admit_unasked(config).settings;
    let may_start = |server: &&ConfiguredServer| {
        let mut all = asked.iter().chain(&others);
        all.any(|settings| settings.name == server.settings.name)
    };
    let all = config.servers.iter().filter(may_start);
    Admitted {
        settings: all.map(|server| server.settings.clone()).collect(),
        untrusted,
    }
}

/// The same where nobody can be asked, because the program is busy with something else.
pub(crate) fn admit_unasked(config: &Config) -> Admitted {
    let all: Vec<_> = config.servers.iter().collect();
    admit_if(config, &all, |_, _| false)
}

fn admit_if(
    config: &Config,
    wanted: &[&ConfiguredServer],
    ask: impl FnOnce(&Path, &[&ConfiguredServer]) -> bool,
) -> Admitted {
    let file = config.file().filter(|_| config.place == Place::Here);
    let unknown = file.map_or_else(Vec::new, |file| strangers(file, wanted, ask));
    let is_unknown = |server: &&ConfiguredServer| {
        unknown
            .iter()
            .any(|unknown| unknown.settings.name == server.settings.name)
    };
    let (held, free): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(is_unknown);
    Admitted {
        settings: free.iter().map(|server| server.settings.clone()).collect(),
        untrusted: held
            .iter()
            .map(|server| server.settings.name.clone())
            .collect(),
    }
}

/// Those that are still not agreed to after the person was asked.
fn strangers<'c>(
    file: &Path,
    wanted: &[&'c ConfiguredServer],
    ask: impl FnOnce(&Path, &[&ConfiguredServer]) -> bool,
) -> Vec<&'c ConfiguredServer> {
    let starting = wanted.iter().filter(|server| !server.settings.disabled);
    if starting.clone().next().is_none() {
        return Vec::new();
    }
    let mut trust = Trust::read(&wiring::environment);
    let unknown: Vec<_> = starting
        .copied()
        .filter(|server| !trust.has(file, server))
        .collect();
    if unknown.is_empty() || !ask(file, &unknown) {
        return unknown;
    }
    let agreed = unknown
        .iter()
        .map(|server| (server.settings.name.as_str(), &server.entry));
    if let Err(error) = trust.agree(file, agreed) {
        // It holds for this time.
        warn!("{error:#}");
    }
    Vec::new()
}

/// Logs which servers wait for an agreement.
pub(crate) fn warn_of_untrusted(names: &[String]) {
    for name in names {
        warn!(server = %escape(name), "MCP server is not trusted; 'toolgate trust' shows what would be started, and agrees");
    }
}

/// Tells which servers wait for an agreement.
pub(crate) fn tell_untrusted(names: &[String]) {
    if names.is_empty() {
        return;
    }
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("'{}'", escape(name)))
        .collect();
    let (noun, verb) = match names.len() {
        1 => ("server", "is"),
        _ => ("servers", "are"),
    };
    say::note(&format!(
        "{noun} {} {verb} not trusted, since the file lies in this folder; 'toolgate trust' shows what would be started, and agrees",
        names.join(", ")
    ));
}
