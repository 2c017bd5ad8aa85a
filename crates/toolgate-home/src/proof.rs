//! Whether a command worked, by what its value does afterwards.
//!
//! ```text
//!  one write ─▶ watch the value ─▶ done
//!                   │
//!                   └─ nothing more comes: ask the gateway to read the device once
//! ```
//!
//! A gateway shows the new value as soon as the radio has sent the command (~80 ms), and reads the device later: a switch
//! after ~1 s, a dimmer after ~7 s, a device that confirms its commands never. So the first value that fits proves
//! nothing; a later one does, and so does a reading that we ask for.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::DeviceStatus;

/// Reports of one value closer together than this may be the same report, delivered twice.
const SAME: Duration = Duration::from_millis(300);
/// A gateway that reads the device by itself does it within this time after the value it expects.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WantedState {
    /// On or off.
    Is(bool),
    /// A level; devices round it.
    Level(u64),
    /// Any level but 0.
    On,
    /// A bolt in one of these positions, in the numbers of its protocol.
    Bolt(&'static [u64]),
    /// A number, to a twentieth.
    Number(f64),
}

impl WantedState {
    /// True if a value is what it must be.
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

    /// How long a device may still be on its way: dimmers ramp, and bolts turn.
    fn settling(self) -> Duration {
        match self {
            Self::Is(_) | Self::Number(_) => Duration::from_secs(1),
            Self::Level(_) | Self::On => Duration::from_secs(6),
            Self::Bolt(_) => Duration::from_secs(5),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ProofStep {
    /// Proven.
    Done,
    /// The device is something else.
    Contrary(Json),
    /// The device does not answer.
    Dead,
    /// The device sleeps.
    Asleep,
    /// Ask the gateway to read the device.
    Ask,
    /// Look again at this time, or as soon as something comes.
    Wait(Instant),
    /// The time is over.
    Over,
}

/// The evidence so far.
#[derive(Debug)]
pub struct CommandProof {
    wanted: WantedState,
    sent: Instant,
    deadline: Instant,
    /// The gateway wrote down the target: the radio has sent the command.
    echo: Option<Instant>,
    /// The first value that fits, which may be only what the gateway expects; with the gateway's time of it.
    expected: Option<(Instant, Option<u64>)>,
    /// The last value since then that does not fit.
    contrary: Option<(Instant, Json)>,
    proven: bool,
    status: Option<DeviceStatus>,
    asked: bool,
}

impl CommandProof {
    /// Watches from now on, for at most so long.
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

    /// The target was published.
    pub fn take_echo(&mut self, now: Instant) {
        self.echo.get_or_insert(now);
    }

    /// The value was published.
    pub fn take_report(&mut self, value: Option<&Json>, time: Option<u64>, now: Instant) {
        let Some(value) = value else {
            return;
        };
        let late = self.echo.is_some_and(|echo| now - echo >= SAME);
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
                // The expected value comes together with the echo; this one the device told.
                self.proven = late;
            }
            Some((first, first_time)) => {
                self.proven |= now - first >= SAME || (time.is_some() && time != first_time);
            }
        }
    }

    /// The device was read.
    pub fn take_answer(&mut self, value: &Json, now: Instant) {
        if self.wanted.is_met(value) {
            self.proven = true;
            self.contrary = None;
        } else {
            self.contrary = Some((now, value.clone()));
        }
    }

    /// What the network says of the device has changed.
    pub fn take_status(&mut self, status: DeviceStatus) {
        self.status = Some(status);
    }

    /// What to do now. It asks for a reading once.
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
            // Nothing at all: it takes ~4 s until a device is known as dead.
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
