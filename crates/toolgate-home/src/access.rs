//! A home, as its tools see it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::{ToolError, escape};

use crate::names::{self, ResolveError};
use crate::{Device, Home, HomeDialect, HomeTool};

/// So long after the start, calls wait for the first news from the gateway. Later, what is missing is told at once.
const SETTLING: Duration = Duration::from_secs(3);
/// No call waits longer than this for news: whoever asks for a list of names gives up after two seconds.
const PATIENCE: Duration = Duration::from_millis(1500);
const MOST_NAMES: usize = 8;

/// A home, and what may be done with it. Clones are the same home.
#[derive(Clone)]
pub struct HomeAccess {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) dialect: &'static HomeDialect,
    /// Whether locks may be moved.
    pub(crate) locks: bool,
    settled: Instant,
}

impl HomeAccess {
    /// To a home that was just opened. With `locks`, doors may be locked and unlocked.
    pub fn new(home: Arc<dyn Home>, dialect: &'static HomeDialect, locks: bool) -> Self {
        Self {
            home,
            dialect,
            locks,
            settled: Instant::now() + SETTLING,
        }
    }

    /// What is missing and what to do; `None` if all is well.
    pub(crate) fn problem(&self) -> Option<String> {
        self.home.health().problem
    }

    /// Gives a home that was just opened a moment to become known.
    pub(crate) async fn settle(&self) {
        let left = self.settled.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            self.home.ready(left.min(PATIENCE)).await;
        }
    }

    pub(crate) async fn known(&self) -> Result<(), ToolError> {
        self.settle().await;
        match self.problem() {
            Some(problem) if self.home.devices().is_empty() => Err(ToolError::failed(problem)),
            _ => Ok(()),
        }
    }

    /// Finds the device that people mean; with `exact`, by its exact name alone. Outlines are enough
    /// to find it; then it is looked at as a whole.
    pub fn resolve(&self, said: &str, exact: bool) -> Result<Device, ToolError> {
        let outlines = self.home.outlines();
        let found = match exact {
            true => names::resolve_exact(&outlines, said),
            false => names::resolve(&outlines, said),
        };
        let found = found.map_err(|why| self.unresolved(said, why))?;
        Ok(self.home.device(found.id).unwrap_or(found))
    }

    /// The devices of a room or place.
    pub(crate) fn room(&self, said: &str) -> Vec<Device> {
        names::room(&self.home.devices(), said)
    }

    pub(crate) fn unresolved(&self, said: &str, why: ResolveError) -> ToolError {
        let said = escape(said.trim());
        let list = HomeTool::ListDevices.name(self.dialect);
        let text = match why {
            ResolveError::Ambiguous { candidates } => format!(
                "'{said}' could be any of several devices: {}. Say which one, by its name and room.",
                titles(&candidates)
            ),
            ResolveError::NotFound { nearest } if nearest.is_empty() => {
                format!("No device is called '{said}'. {list} shows the names there are.")
            }
            ResolveError::NotFound { nearest } => format!(
                "No device is called '{said}'. Did you mean {}? {list} shows the names there are.",
                titles(&nearest)
            ),
        };
        ToolError::failed(self.with_problem(text))
    }

    /// A text, and what is missing if anything is.
    pub(crate) fn with_problem(&self, text: String) -> String {
        match self.problem() {
            Some(problem) => format!("{text} What is known may be out of date: {problem}"),
            None => text,
        }
    }
}

pub(crate) fn titles(devices: &[Device]) -> String {
    let titles = devices.iter().take(MOST_NAMES).map(Device::title);
    let mut titles = titles.collect::<Vec<_>>();
    if devices.len() > MOST_NAMES {
        titles.push(format!("{} more", devices.len() - MOST_NAMES));
    }
    match titles.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => titles.concat(),
    }
}
