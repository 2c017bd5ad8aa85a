//! What becomes of a server at each turn: connected, died, refused, given up, ordered anew.

use std::time::Duration;

use toolgate_core::escape;
use tracing::{debug, error, error_span, info, warn};

use super::super::block::{self, Block};
use super::super::connect::ConnectError;
use super::super::peer::Reached;
use super::super::status::ServerState;
use super::super::transport::End;
use super::{Course, HEALTHY, LONGEST, Order, Server};
use crate::Connection;

impl Server {
    pub(super) fn connected(&mut self, reached: Reached, took: Duration) {
        let Reached { peer, offer } = reached;
        let (attempt, tools, era) = (self.course.used, offer.tools.len(), peer.era());
        let (name, elapsed_ms) = (&self.settings().name, took.as_micros() as f64 / 1000.0);
        match attempt {
            1 => info!(server = %name, %era, tools, elapsed_ms, "MCP server connected"),
            _ => {
                info!(server = %name, %era, tools, elapsed_ms, "MCP connection succeeded on attempt {attempt}");
            }
        }
        self.course.failed = false;
        self.course.hopeless = false;
        // Calls must get through before a tool is seen, and those that wait already not to a tool that changed.
        self.link
            .withhold(self.pins.compare(&offer.listed).withheld);
        peer.open(&self.link);
        self.offer(offer);
        self.board.update(|facts| {
            facts.state = ServerState::Connected;
            facts.settled = true;
            facts.era = Some(era);
            facts.protocol = peer.revision();
            facts.connected_in = Some(took);
            facts.error = None;
            facts.failed_last = false;
            facts.cannot_start = false;
            facts.peer = Some(peer);
            facts.health = None;
        });
        self.answer(true);
    }

    pub(super) fn died(&mut self, end: &End, lived: Duration) {
        let redactor = &self.shared.options.redactor;
        let status = redactor.line(&end.status.to_string(), LONGEST);
        let plain = redactor.line(&end.status.without_cause(), LONGEST);
        let stderr = block::stderr_tail(&end.stderr, redactor).join("\n");
        let stderr = (!stderr.is_empty()).then(|| escape(&stderr));
        warn!(server = %self.settings().name, %status, stderr, "MCP server ended");
        if lived >= HEALTHY || !self.course.dying {
            self.course = Course {
                dying: true,
                ..Course::default()
            };
        }
        let error = format!("it ended ({status})");
        self.board.update(|facts| {
            facts.restarts += 1;
            facts.error = Some(error.clone());
        });
        if self.course.used >= self.shared.retry().attempts {
            self.give_up(&error, &plain, Some(&plain), &end.stderr);
        }
    }

    pub(super) fn refused(&mut self, error: &ConnectError) {
        let redactor = &self.shared.options.redactor;
        let reason = redactor.line(&error.reason.to_string(), LONGEST);
        let plain = redactor.line(&error.reason.without_cause(), LONGEST);
        self.course.hopeless = error.hopeless;
        self.board.update(|facts| {
            facts.error = Some(reason.clone());
            facts.failed_last = true;
            facts.cannot_start = error.not_started;
        });
        // Slow retries say nothing new.
        let matters = !self.board.is_seen() || self.settings().is_package_runner();
        if !self.course.failed && matters {
            let reason = reason.clone();
            self.write(move |catalogue, settings| catalogue.remember_failure(settings, &reason));
        }
        let name = &self.settings().name;
        let (attempt, attempts) = (self.course.used, self.shared.retry().attempts);
        if self.course.failed {
            self.fail_with(&plain);
            debug!(server = %name, attempt, error = %reason, "MCP connection attempt {attempt} failed");
        } else if error.hopeless || attempt >= attempts {
            self.give_up(&reason, &plain, None, &error.stderr);
        } else if error.not_started && attempt == 1 {
            // Nothing can be waited for here: a person should not have to wait for the last attempt to hear of it.
            warn!(server = %name, attempt, "MCP server cannot be started: {reason}; attempt {attempt} of {attempts}");
        } else {
            info!(server = %name, attempt, error = %reason, "MCP connection attempt {attempt} of {attempts} failed");
        }
    }

    /// The round has failed: calls of its tools are told why, and slow retries begin.
    /// `plain` is the reason without its cause.
    fn give_up(&mut self, reason: &str, plain: &str, status: Option<&str>, stderr: &[String]) {
        let attempts = self.course.used;
        if !self.course.told {
            self.tell(reason, stderr);
        }
        self.course.told = true;
        self.course.failed = true;
        self.course.used = attempts.max(self.shared.retry().attempts);
        let tail = block::stderr_tail(stderr, &self.shared.options.redactor);
        let details = std::iter::once(reason.to_owned()).chain(tail);
        let gone = self.gone(status);
        match status {
            Some(_) => self.shelf.fail(&gone),
            None => self.fail_with(plain),
        }
        self.link
            .down(gone, Some(details.collect::<Vec<_>>().join("\n")));
        self.board.update(|facts| {
            facts.state = ServerState::Failed;
            facts.settled = true;
        });
        self.answer(false);
    }

    /// Whoever asks for a tool of a server that has never listed any is told why: there is no tool whose calls could tell it.
    fn fail_with(&self, reason: &str) {
        let name = escape(&self.settings().name);
        let state = match &self.settings().connection {
            Connection::Stdio(_) => "running",
            Connection::Http { .. } => "connected",
        };
        self.shelf
            .fail(&format!("its server '{name}' is not {state}: {reason}"));
    }

    fn gone(&self, status: Option<&str>) -> String {
        let name = escape(&self.settings().name);
        match (status, &self.settings().connection) {
            (Some(status), _) => format!("its server '{name}' is not running ({status})"),
            (None, Connection::Stdio(_)) => format!("its server '{name}' is not running"),
            (None, Connection::Http { .. }) => format!("its server '{name}' can't be reached"),
        }
    }

    /// One record for reason and block. The server stands in a span: fields would follow the block on its last line.
    fn tell(&self, reason: &str, stderr: &[String]) {
        let name = &self.settings().name;
        let block = Block {
            settings: self.settings(),
            attempts: self.course.used,
            stderr,
            file: self.shared.options.file.as_deref(),
            local: &block::local_tools(&self.shared.manager.tools()),
            others: &self.shared.roster.hopeful_besides(name),
            redactor: &self.shared.options.redactor,
        };
        let attempts = block::attempts(self.course.used);
        error_span!("mcp", server = %escape(name)).in_scope(|| {
            error!(
                "MCP connection failed after {attempts}: {reason}\n{}",
                block.text()
            );
        });
    }

    /// A person wants it anew: nothing of before counts.
    pub(super) fn ordered(&mut self, order: Order) {
        info!(server = %self.settings().name, "MCP server is connected anew, as asked for");
        let mut waiting = std::mem::take(&mut self.course.waiting);
        waiting.push(order);
        self.course = Course {
            waiting,
            ..Course::default()
        };
        self.starts.forget();
        self.link.connecting();
        self.board.update(|facts| {
            facts.state = ServerState::Restarting;
            facts.next_try = None;
        });
    }

    /// Tells those who ordered a reconnect, and those who did meanwhile.
    pub(super) fn answer(&mut self, connected: bool) {
        let mut waiting = std::mem::take(&mut self.course.waiting);
        waiting.extend(std::iter::from_fn(|| self.orders.try_recv().ok()));
        for order in waiting {
            // Whoever asked may be gone.
            order.send(connected).ok();
        }
    }
}
