//! Decides from the reports that follow a command whether it worked.
//!
//! ```text
//!  one write ─▶ watch the value ─▶ done
//!                   │
//!                   └─ nothing more comes: ask the gateway to read the device once
//! ```
//!
//! A gateway publishes the new value as soon as the radio has sent the command (~80 ms) and reads
//! the device later: a switch after ~1 s, a dimmer after ~7 s, a device that confirms its
//! commands never. So the first matching value proves nothing. A later one does, and so does a
//! reading that was requested.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::DeviceStatus;

/// Two reports within this time may be one report, delivered twice.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(300);
/// A gateway that reads the device on its own does so within this time.
const ASK_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WantedState {
    Is(bool),
    /// A level, give or take one: devices round it.
    Level(u64),
    On,
    /// One of these bolt positions, as numbers of the protocol.
    Bolt(&'static [u64]),
    /// A number, with a tolerance of 0.05.
    Number(f64),
}

impl WantedState {
    pub fn is_met(self, value: &Json) -> bool {
        match self {
            Self::Is(wanted) => value.as_bool() == Some(wanted),
            Self::Level(0) => value.as_u64() == Some(0),
            Self::Level(wanted) => value
                .as_u64()
                .is_some_and(|level| level > 0 && level.abs_diff(wanted) <= 1),
            Self::On => value.as_u64().is_some_and(|level| level > 0),
            Self::Bolt(positions) => value.as_u64().is_some_and(|at| positions.contains(&at)),
            Self::Number(wanted) => value
                .as_f64()
                .is_some_and(|number| (number - wanted).abs() < 0.05),
        }
    }

    /// How long a device may take to get there: dimmers ramp, and bolts turn.
    fn settling(self) -> Duration {
        match self {
            Self::Is(_) | Self::Number(_) => Duration::from_secs(1),
            Self::Level(_) | Self::On => Duration::from_secs(6),
            Self::Bolt(_) => Duration::from_secs(5),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ProofStep {
    Done,
    Contrary(Json),
    Dead,
    Asleep,
    Ask,
    /// Call `step` again at this time, or when a report arrives.
    Wait(Instant),
    Over,
}

#[derive(Debug)]
pub struct CommandProof {
    wanted: WantedState,
    sent: Instant,
    deadline: Instant,
    /// When the gateway published the target, which means that the radio has sent the command.
    echo: Option<Instant>,
    /// The first matching value, with the gateway's timestamp. It may be only the expected value.
    expected: Option<(Instant, Option<u64>)>,
    contrary: Option<(Instant, Json)>,
    proven: bool,
    status: Option<DeviceStatus>,
    asked: bool,
}

impl CommandProof {
    pub fn new(wanted: WantedState, sent: Instant, timeout: Duration) -> Self {
        Self {
            wanted,
            sent,
            deadline: sent + timeout,
            echo: None,
            expected: None,
            contrary: None,
            proven: false,
            status: None,
            asked: false,
        }
    }

    pub fn take_echo(&mut self, now: Instant) {
        self.echo.get_or_insert(now);
    }

    pub fn take_report(&mut self, value: Option<&Json>, time: Option<u64>, now: Instant) {
        let Some(value) = value else {
            return;
        };
        let late = self.echo.is_some_and(|echo| now - echo >= DUPLICATE_WINDOW);
        if !self.wanted.is_met(value) {
            if self.expected.is_some() || late {
                self.contrary = Some((now, value.clone()));
            }
            return;
        }
        self.contrary = None;
        match self.expected {
            None => {
                self.expected = Some((now, time));
                // The gateway's expected value comes together with the echo. A later one comes from
                // the device.
                self.proven = late;
            }
            Some((first, first_time)) => {
                self.proven |=
                    now - first >= DUPLICATE_WINDOW || (time.is_some() && time != first_time);
            }
        }
    }

    pub fn take_answer(&mut self, value: &Json, now: Instant) {
        if self.wanted.is_met(value) {
            self.proven = true;
            self.contrary = None;
        } else {
            self.contrary = Some((now, value.clone()));
        }
    }

    pub fn take_status(&mut self, status: DeviceStatus) {
        self.status = Some(status);
    }

    /// Decides what to do now. Returns `Ask` only once.
    pub fn step(&mut self, now: Instant) -> ProofStep {
        if self.proven {
            return ProofStep::Done;
        }
        match self.status {
            Some(DeviceStatus::Dead) => return ProofStep::Dead,
            Some(DeviceStatus::Asleep) => return ProofStep::Asleep,
            _ => {}
        }
        if let Some((since, value)) = &self.contrary {
            let settled = (*since + self.wanted.settling()).min(self.deadline);
            return if now >= settled {
                ProofStep::Contrary(value.clone())
            } else {
                ProofStep::Wait(settled)
            };
        }
        if now >= self.deadline {
            return ProofStep::Over;
        }
        if self.asked {
            return ProofStep::Wait(self.deadline);
        }
        let sign = self.expected.map(|(at, _)| at).or(self.echo);
        let due = match sign {
            Some(at) => at + ASK_AFTER,
            // Without any sign, wait: it takes ~4 s until a node is reported dead, and that is a
            // better answer than a reading.
            None => self.sent + (self.deadline - self.sent) / 2,
        };
        if now >= due {
            self.asked = true;
            ProofStep::Ask
        } else {
            ProofStep::Wait(due.min(self.deadline))
        }
    }
}

#[cfg(test)]
mod tests;
