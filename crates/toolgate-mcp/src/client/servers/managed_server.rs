//! One configured server with its remembered tools and its task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_core::text::escape;
use toolgate_core::{Redactor, ToolRank};

use super::super::catalog::ToolCatalog;
use super::super::content::ListedContent;
use super::super::link::ServerLink;
use super::super::pinning::{PinVerdict, ToolPins};
use super::super::status::StatusBoard;
use super::super::supervisor::ReconnectRequest;
use super::super::tool;
use super::super::tool_registration::ToolRegistration;

// A failure counts as recent for this long.
const RECENT_FAILURE: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(super) struct ManagedServers {
    pub(super) list: Vec<ManagedServer>,
    // Tasks that are ending, by server name: a new server of the same name waits for the old one.
    pub(super) stopping: HashMap<String, JoinHandle<()>>,
}

pub(super) struct ManagedServer {
    pub(super) board: Arc<StatusBoard>,
    pub(super) registration: Arc<ToolRegistration>,
    pub(super) pins: Arc<ToolPins>,
    pub(super) rank: ToolRank,
    pub(super) link: ServerLink,
    /// `None` if it is disabled or blocked.
    pub(super) task: Option<ServerTask>,
}

pub(super) struct ServerTask {
    pub(super) stop: CancellationToken,
    pub(super) reconnect_requests: mpsc::Sender<ReconnectRequest>,
    pub(super) task: JoinHandle<()>,
}

impl ManagedServers {
    pub(super) fn find(&self, name: &str) -> Option<&ManagedServer> {
        self.list.iter().find(|member| member.name() == name)
    }

    pub(super) fn names(&self, is_match: impl Fn(&StatusBoard) -> bool) -> Vec<String> {
        let matching = self.list.iter().filter(|member| is_match(&member.board));
        matching.map(|member| member.name().to_owned()).collect()
    }
}

impl ManagedServer {
    pub(super) fn name(&self) -> &str {
        &self.board.settings.name
    }

    pub(super) fn restore_tools(&self, catalog: &ToolCatalog, redactor: &Redactor) {
        let settings = &self.board.settings;
        let (listed_at, mut listed, mut content) = match catalog.recall(settings) {
            Some(known) => (Some(known.listed_at), known.tools, known.content),
            None => (None, Vec::new(), ListedContent::default()),
        };
        // The configuration may contain new secrets since the lists were stored.
        for tool in &mut listed {
            tool::hide_tool_secrets(&mut tool.definition, redactor);
        }
        content.hide_secrets(redactor);
        let verdict = self.pins.compare_remembered(&listed);
        self.link.set_withheld(verdict.withheld.clone());
        let tools = tool::tools_from_catalog(listed, settings, &self.link);
        let content = content.offer(settings, &self.link);
        let offered = self.registration.offer(tools, verdict.withheld, content);
        let failure = catalog.last_failure(settings);
        let failed_last = failure.is_some();
        let age = failure.and_then(|failure| failure.at.elapsed().ok());
        self.board.update(|facts| {
            facts.status.tools = offered;
            facts.status.changes = verdict.changes;
            facts.status.listed_at = listed_at;
            facts.failed_last_time = failed_last;
            facts.failed_recently =
                listed_at.is_none() && age.is_some_and(|age| age < RECENT_FAILURE);
        });
    }

    pub(super) fn apply_verdict(&self, verdict: PinVerdict) {
        self.link.set_withheld(verdict.withheld.clone());
        let offered = self.registration.withhold(verdict.withheld);
        self.board.update(|facts| {
            facts.status.tools = offered;
            facts.status.changes = verdict.changes;
        });
    }

    /// For a server that is never started. Its remembered tools keep their names, and calls
    /// fail with the reason.
    pub(super) fn block(&self, reason: &str) {
        let server = escape(self.name());
        let reason_text = format!("its server '{server}' can't be started: {reason}");
        self.registration.set_absent_reason(&reason_text);
        self.link.set_down(reason_text, None);
        self.board.update(|facts| {
            facts.settled = true;
            facts.status.error = Some(reason.to_owned());
        });
    }

    pub(super) fn wake(&self) {
        self.board.mark_starting();
        self.link.request_start();
    }

    pub(super) fn is_alive(&self) -> bool {
        match &self.task {
            Some(task) => !task.task.is_finished() && !task.stop.is_cancelled(),
            None => self.board.settings.disabled || self.board.settings.blocked.is_some(),
        }
    }

    /// Removes its tools and stops it.
    pub(super) fn remove(mut self, stopping: &mut HashMap<String, JoinHandle<()>>) {
        self.registration.clear();
        self.registration.close();
        self.stop(stopping);
    }

    pub(super) fn stop(&mut self, stopping: &mut HashMap<String, JoinHandle<()>>) {
        if let Some(task) = self.task.take() {
            task.stop.cancel();
            stopping.insert(self.name().to_owned(), task.task);
        }
    }
}
