//! [`HomeAccess`]: the home, as its tools see it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::ToolError;
use toolgate_core::text::escape;

use crate::names::{self, ResolveError};
use crate::{Home, HomeDevice, HomeProtocol, HomeTool};

// For this long after the start, calls wait for the gateway's first messages. Later, missing data
// is reported at once.
const START_GRACE: Duration = Duration::from_secs(3);
// Sentences give up on a list of names after two seconds, so a call must wait less.
const MAX_WAIT: Duration = Duration::from_millis(1500);
const MAX_NAMES: usize = 8;

/// A home as its tools use it: with its protocol, and whether they may move locks.
/// Clones share the home.
#[derive(Clone)]
pub struct HomeAccess {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) protocol: &'static HomeProtocol,
    pub(crate) locks_allowed: bool,
    grace_end: Instant,
}

impl HomeAccess {
    /// Wraps a home that was just opened. With `locks_allowed`, doors may be locked and unlocked.
    pub fn new(home: Arc<dyn Home>, protocol: &'static HomeProtocol, locks_allowed: bool) -> Self {
        Self {
            home,
            protocol,
            locks_allowed,
            grace_end: Instant::now() + START_GRACE,
        }
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.home.health().problem
    }

    // Waits for the gateway's first messages, but not once the start is over.
    pub(crate) async fn wait_for_start(&self) {
        let left = self.grace_end.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            self.home.ready(left.min(MAX_WAIT)).await;
        }
    }

    // Fails if no device is known. Devices that may be out of date are good enough.
    pub(crate) async fn wait_until_known(&self) -> Result<(), ToolError> {
        self.wait_for_start().await;
        match self.problem() {
            Some(problem) if self.home.devices().is_empty() => Err(ToolError::failed(problem)),
            _ => Ok(()),
        }
    }

    /// Finds the device that people mean; with `exact`, by its exact name only.
    pub fn resolve(&self, said: &str, exact: bool) -> Result<HomeDevice, ToolError> {
        // Names are enough to find a device; only the one that was found is read in full.
        let outlines = self.home.outlines();
        let found = match exact {
            true => names::resolve_exact(&outlines, said),
            false => names::resolve(&outlines, said),
        };
        let found = found.map_err(|error| self.explain_resolve_error(said, error))?;
        Ok(self.home.device(found.id).unwrap_or(found))
    }

    pub(crate) fn devices_in_room(&self, said: &str) -> Vec<HomeDevice> {
        names::devices_in_room(&self.home.devices(), said)
    }

    pub(crate) fn explain_resolve_error(&self, said: &str, error: ResolveError) -> ToolError {
        let said = escape(said.trim());
        let list = HomeTool::ListDevices.name(self.protocol);
        let text = match error {
            ResolveError::Ambiguous { candidates } => format!(
                "'{said}' could be any of several devices: {}. Say which one, by its name and room.",
                list_titles(&candidates)
            ),
            ResolveError::NotFound { nearest } if nearest.is_empty() => {
                format!("No device is called '{said}'. {list} shows all names.")
            }
            ResolveError::NotFound { nearest } => format!(
                "No device is called '{said}'. Did you mean {}? {list} shows all names.",
                list_titles(&nearest)
            ),
        };
        ToolError::failed(self.with_problem(text))
    }

    pub(crate) fn with_problem(&self, text: String) -> String {
        match self.problem() {
            Some(problem) => format!("{text} This may be out of date: {problem}"),
            None => text,
        }
    }
}

pub(crate) fn list_titles(devices: &[HomeDevice]) -> String {
    let titles = devices.iter().take(MAX_NAMES).map(HomeDevice::title);
    let mut titles = titles.collect::<Vec<_>>();
    if devices.len() > MAX_NAMES {
        titles.push(format!("{} more", devices.len() - MAX_NAMES));
    }
    match titles.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => titles.concat(),
    }
}
