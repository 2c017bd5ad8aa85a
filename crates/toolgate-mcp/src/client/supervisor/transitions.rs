//! The state transitions of a supervised server: connected, exited, refused, given up, reconnected.

use std::time::Duration;

use toolgate_core::text::escape;
use tracing::{debug, error, error_span, info, warn};

use super::super::connect::ConnectError;
use super::super::connection::ConnectedServer;
use super::super::failure_report::{self, FailureReport};
use super::super::status::ServerState;
use super::super::transport::SessionEnd;
use super::{HEALTHY_UPTIME, MAX_ERROR_TEXT, ReconnectRequest, RetryState, ServerSupervisor};
use crate::ServerConnection;

impl ServerSupervisor {
    pub(super) fn handle_connected(&mut self, connected: ConnectedServer, elapsed: Duration) {
        let ConnectedServer { connection, offer } = connected;
        let (attempt, tools, era) = (
            self.retry_state.attempts,
            offer.tools.len(),
            connection.era(),
        );
        let (name, elapsed_ms) = (&self.settings().name, elapsed.as_micros() as f64 / 1000.0);
        match attempt {
            1 => info!(server = %name, %era, tools, elapsed_ms, "MCP server connected"),
            _ => {
                info!(server = %name, %era, tools, elapsed_ms, "MCP connection succeeded on attempt {attempt}");
            }
        }
        self.retry_state.is_failed = false;
        self.retry_state.is_permanent = false;
        // Order matters: withhold changed tools before calls that already wait can reach them, and
        // open the link before new tools become visible.
        self.link
            .set_withheld(self.pins.compare(&offer.listed).withheld);
        connection.attach(&self.link);
        self.publish_tools(offer);
        self.board.update(|facts| {
            facts.status.state = ServerState::Connected;
            facts.settled = true;
            facts.status.era = Some(era);
            facts.status.protocol = connection.revision();
            facts.status.connected_in = Some(elapsed);
            facts.status.error = None;
            facts.failed_last_time = false;
            facts.cannot_start = false;
            facts.connection = Some(connection);
            facts.status.health = None;
        });
        self.answer_reconnects(true);
    }

    pub(super) fn handle_exit(&mut self, end: &SessionEnd, uptime: Duration) {
        let redactor = &self.shared.options.redactor;
        let status = redactor.line(&end.status.to_string(), MAX_ERROR_TEXT);
        let plain = redactor.line(&end.status.without_cause(), MAX_ERROR_TEXT);
        let stderr = failure_report::stderr_tail(&end.stderr, redactor).join("\n");
        let stderr = (!stderr.is_empty()).then(|| escape(&stderr));
        warn!(server = %self.settings().name, %status, stderr, "MCP server ended");
        // If a server crashes soon after every start, its attempts go on counting, so that it
        // reaches the slow retries.
        if uptime >= HEALTHY_UPTIME || !self.retry_state.is_crash_looping {
            self.retry_state = RetryState {
                is_crash_looping: true,
                ..RetryState::default()
            };
        }
        let error = format!("it ended ({status})");
        self.board.update(|facts| {
            facts.status.restarts += 1;
            facts.status.error = Some(error.clone());
        });
        if self.retry_state.attempts >= self.shared.retry().attempts {
            self.give_up(&error, &plain, Some(&plain), &end.stderr);
        }
    }

    pub(super) fn handle_connect_error(&mut self, error: &ConnectError) {
        let redactor = &self.shared.options.redactor;
        let reason = redactor.line(&error.reason.to_string(), MAX_ERROR_TEXT);
        let plain = redactor.line(&error.reason.without_cause(), MAX_ERROR_TEXT);
        self.retry_state.is_permanent = error.is_permanent;
        self.board.update(|facts| {
            facts.status.error = Some(reason.clone());
            facts.failed_last_time = true;
            facts.cannot_start = error.is_not_started;
        });
        // Slow retries fail for the same reason, and a server with known tools doesn't need it: its
        // stored list stays valid.
        let is_worth_storing = !self.board.has_known_tools() || self.settings().is_package_runner();
        if !self.retry_state.is_failed && is_worth_storing {
            let reason = reason.clone();
            self.write_catalog(move |catalog, settings| {
                catalog.remember_failure(settings, &reason);
            });
        }
        let name = &self.settings().name;
        let (attempt, attempts) = (self.retry_state.attempts, self.shared.retry().attempts);
        if self.retry_state.is_failed {
            self.report_absent_tools(&plain);
            debug!(server = %name, attempt, error = %reason, "MCP connection attempt {attempt} failed");
        } else if error.is_permanent || attempt >= attempts {
            self.give_up(&reason, &plain, None, &error.stderr);
        } else if error.is_not_started && attempt == 1 {
            // Waiting won't fix a program that can't be started, so report it
            // before the last attempt.
            warn!(server = %name, attempt, "MCP server can't be started: {reason}; attempt {attempt} of {attempts}");
        } else {
            info!(server = %name, attempt, error = %reason, "MCP connection attempt {attempt} of {attempts} failed");
        }
    }

    /// Called when a round of attempts has failed. Calls now fail with the reason, and slow retries
    /// begin. `plain` is the reason without its cause.
    fn give_up(&mut self, reason: &str, plain: &str, status: Option<&str>, stderr: &[String]) {
        let attempts = self.retry_state.attempts;
        if !self.retry_state.is_reported {
            self.log_failure_report(reason, stderr);
        }
        self.retry_state.is_reported = true;
        self.retry_state.is_failed = true;
        self.retry_state.attempts = attempts.max(self.shared.retry().attempts);
        let tail = failure_report::stderr_tail(stderr, &self.shared.options.redactor);
        let details = std::iter::once(reason.to_owned()).chain(tail);
        let down_reason = self.down_reason(status);
        match status {
            Some(_) => self.registration.set_absent_reason(&down_reason),
            None => self.report_absent_tools(plain),
        }
        self.link
            .set_down(down_reason, Some(details.collect::<Vec<_>>().join("\n")));
        self.board.update(|facts| {
            facts.status.state = ServerState::Failed;
            facts.settled = true;
        });
        self.answer_reconnects(false);
    }

    // If the server has never listed its tools, there is no tool whose calls could fail with the
    // reason. So lookups that name the server report it.
    fn report_absent_tools(&self, reason: &str) {
        let name = escape(&self.settings().name);
        let state = match &self.settings().connection {
            ServerConnection::Stdio(_) => "running",
            ServerConnection::Http { .. } => "connected",
        };
        self.registration
            .set_absent_reason(&format!("its server '{name}' is not {state}: {reason}"));
    }

    fn down_reason(&self, status: Option<&str>) -> String {
        let name = escape(&self.settings().name);
        match (status, &self.settings().connection) {
            (Some(status), _) => format!("its server '{name}' is not running ({status})"),
            (None, ServerConnection::Stdio(_)) => format!("its server '{name}' is not running"),
            (None, ServerConnection::Http { .. }) => {
                format!("its server '{name}' can't be connected")
            }
        }
    }

    // One record for reason and report. The server's name is in a span, because a field would be
    // appended to the last line of the report.
    fn log_failure_report(&self, reason: &str, stderr: &[String]) {
        let name = &self.settings().name;
        let report = FailureReport {
            settings: self.settings(),
            attempts: self.retry_state.attempts,
            stderr,
            file: self.shared.options.file.as_deref(),
            local: &failure_report::local_tool_names(&self.shared.manager.tools()),
            others: &self.shared.roster.other_available_servers(name),
            redactor: &self.shared.options.redactor,
        };
        let attempts = failure_report::attempts_text(self.retry_state.attempts);
        error_span!("mcp", server = %escape(name)).in_scope(|| {
            error!(
                "MCP connection failed after {attempts}: {reason}\n{}",
                report.render()
            );
        });
    }

    pub(super) fn handle_reconnect(&mut self, request: ReconnectRequest) {
        info!(server = %self.settings().name, "MCP server is reconnecting as requested");
        let mut waiting = std::mem::take(&mut self.retry_state.waiting_reconnects);
        waiting.push(request);
        self.retry_state = RetryState {
            waiting_reconnects: waiting,
            ..RetryState::default()
        };
        self.starts.reset();
        self.link.set_connecting();
        self.board.update(|facts| {
            facts.status.state = ServerState::Restarting;
            facts.next_try = None;
        });
    }

    pub(super) fn answer_reconnects(&mut self, connected: bool) {
        let mut waiting = std::mem::take(&mut self.retry_state.waiting_reconnects);
        waiting.extend(std::iter::from_fn(|| {
            self.reconnect_requests.try_recv().ok()
        }));
        for request in waiting {
            // The requester may be gone.
            request.send(connected).ok();
        }
    }
}
