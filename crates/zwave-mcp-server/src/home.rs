//! The house, as the tools see it.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::{ToolError, escape};
use zwave::{Device, House, Unresolved};

/// So long after the start, calls wait for the first news from the gateway. Later, what is missing is told at once.
const SETTLING: Duration = Duration::from_secs(3);
/// No call waits longer than this for news: whoever asks for a list of names gives up after two seconds.
const PATIENCE: Duration = Duration::from_millis(1500);
/// More candidates help nobody.
const MOST_NAMES: usize = 8;

/// The house, and what may be done with it. Clones are the same house.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) house: House,
    /// Whether locks may be moved.
    pub(crate) locks: bool,
    settled: Instant,
}

impl Home {
    pub(crate) fn new(house: House, locks: bool) -> Self {
        Self {
            house,
            locks,
            settled: Instant::now() + SETTLING,
        }
    }

    /// What is missing and what to do; `None` if all is well.
    pub(crate) fn problem(&self) -> Option<String> {
        self.house.health().problem
    }

    /// Gives a house that was just opened a moment to become known.
    pub(crate) async fn settle(&self) {
        let left = self.settled.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            self.house.ready(left.min(PATIENCE)).await;
        }
    }

    /// An error if no device is known because something is missing.
    pub(crate) async fn known(&self) -> Result<(), ToolError> {
        self.settle().await;
        match self.problem() {
            Some(problem) if self.house.devices().is_empty() => Err(ToolError::failed(problem)),
            _ => Ok(()),
        }
    }

    /// The device that is meant.
    pub(crate) fn find(&self, said: &str) -> Result<Device, ToolError> {
        self.house
            .resolve(said)
            .map_err(|why| self.unresolved(said, why))
    }

    /// Why no device was found, and what to do.
    pub(crate) fn unresolved(&self, said: &str, why: Unresolved) -> ToolError {
        let said = escape(said.trim());
        let text = match why {
            Unresolved::Ambiguous { candidates } => format!(
                "'{said}' could be any of several devices: {}. Say which one, by its name and room.",
                titles(&candidates)
            ),
            Unresolved::NotFound { nearest } if nearest.is_empty() => {
                format!(
                    "No device is called '{said}'. list_zwave_devices shows the names there are."
                )
            }
            Unresolved::NotFound { nearest } => format!(
                "No device is called '{said}'. Did you mean {}? list_zwave_devices shows the names there are.",
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

/// Names with their rooms, as a list to choose from.
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
