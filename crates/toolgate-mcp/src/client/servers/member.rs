//! One configured server: what is remembered of it, and the task that looks after it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Rank, Redactor, escape};

use super::super::catalogue::Catalogue;
use super::super::link::Link;
use super::super::pinning::{PinVerdict, ToolPins};
use super::super::server::Order;
use super::super::shelf::Shelf;
use super::super::status::Board;
use super::super::tool;

/// A server that was tried in vain within this time isn't waited for when tools are listed.
const LATELY: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    /// Tasks on their way out, by server: the next one of the name waits for it.
    pub(super) leaving: HashMap<String, JoinHandle<()>>,
}

pub(super) struct Member {
    pub(super) board: Arc<Board>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) pins: Arc<ToolPins>,
    pub(super) rank: Rank,
    pub(super) link: Link,
    /// None if it is disabled.
    pub(super) life: Option<Life>,
}

pub(super) struct Life {
    pub(super) stop: CancellationToken,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) task: JoinHandle<()>,
}

impl Members {
    pub(super) fn downloads(&self) -> Vec<String> {
        let boards = self.list.iter().map(|member| &member.board);
        let downloading =
            boards.filter(|board| board.settings.is_package_runner() && !board.is_settled());
        downloading
            .map(|board| board.settings.name.clone())
            .collect()
    }
}

impl Member {
    /// Offers what the server listed in an earlier run, in the place of what its former configuration had.
    pub(super) fn recall(&self, catalogue: &Catalogue, redactor: &Redactor) {
        let settings = &self.board.settings;
        let remembered = catalogue.recall(settings);
        let (listed_at, mut listed) = match remembered {
            Some(remembered) => (Some(remembered.listed_at), remembered.tools),
            None => (None, Vec::new()),
        };
        // What was no secret yet when it was remembered may be one now.
        for tool in &mut listed {
            tool::hide_secrets(&mut tool.definition, redactor);
        }
        let verdict = self.pins.recall(&listed);
        self.link.withhold(verdict.withheld.clone());
        let tools = tool::recall(listed, settings, &self.link);
        let offered = self.shelf.offer(tools, verdict.withheld);
        let failure = catalogue.failure(settings);
        let failed_last = failure.is_some();
        let age = failure.and_then(|failure| failure.at.elapsed().ok());
        self.board.update(|facts| {
            facts.tools = offered;
            facts.changes = verdict.changes;
            facts.listed_at = listed_at;
            facts.failed_last = failed_last;
            facts.failed_lately = listed_at.is_none() && age.is_some_and(|age| age < LATELY);
        });
    }

    pub(super) fn apply_verdict(&self, verdict: PinVerdict) {
        self.link.withhold(verdict.withheld.clone());
        let offered = self.shelf.withhold(verdict.withheld);
        self.board.update(|facts| {
            facts.tools = offered;
            facts.changes = verdict.changes;
        });
    }

    /// It is never started: its tools are there by name, and answer with the reason.
    pub(super) fn block(&self, reason: &str) {
        let server = escape(&self.board.settings.name);
        let gone = format!("its server '{server}' can't be started: {reason}");
        self.shelf.fail(&gone);
        self.link.down(gone, None);
        self.board.update(|facts| {
            facts.settled = true;
            facts.error = Some(reason.to_owned());
        });
    }

    pub(super) fn wake(&self) {
        self.board.begin();
        self.link.want();
    }

    /// Its task is there, or there is nothing to do for one.
    pub(super) fn is_alive(&self) -> bool {
        match &self.life {
            Some(life) => !life.task.is_finished() && !life.stop.is_cancelled(),
            None => self.board.settings.disabled || self.board.settings.blocked.is_some(),
        }
    }

    /// It isn't configured any more, or otherwise.
    pub(super) fn leave(mut self, leaving: &mut HashMap<String, JoinHandle<()>>) {
        self.shelf.clear();
        self.shelf.close();
        self.end(leaving);
    }

    pub(super) fn end(&mut self, leaving: &mut HashMap<String, JoinHandle<()>>) {
        if let Some(life) = self.life.take() {
            life.stop.cancel();
            leaving.insert(self.board.settings.name.clone(), life.task);
        }
    }
}
