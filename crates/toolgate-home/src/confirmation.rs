//! [`CommandConfirmation`]: decides from the reports that follow a command whether it worked.
//!
//! ```text
//!  one write ─▶ watch the value ─▶ done
//!                   │
//!                   └─ no further report: ask the gateway to read the device once
//! ```
//!
//! A gateway publishes the new value as soon as the radio has sent the command (~80 ms), and reads
//! the device back later: a switch after ~1 s, a dimmer after ~7 s. It never reads back a device
//! that confirms its own commands. So the first matching value proves nothing. A later one does,
//! and so does a reading that was requested.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::DeviceStatus;

/// Two reports within this time may be one report, delivered twice.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(300);
/// If no further report comes within this time, a reading is requested.
const READ_AFTER: Duration = Duration::from_secs(2);

/// The value that a command should lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WantedState {
    Is(bool),
    /// A level, give or take one: devices round it.
    Level(u64),
    /// Any level but 0.
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
    fn settling_time(self) -> Duration {
        match self {
            Self::Is(_) | Self::Number(_) => Duration::from_secs(1),
            Self::Level(_) | Self::On => Duration::from_secs(6),
            Self::Bolt(_) => Duration::from_secs(5),
        }
    }
}

/// What the sender of a command should do next. All but `RequestReading` and `Wait` are final.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfirmationStep {
    /// The device confirmed the command.
    Done,
    /// The device settled on another value.
    Contrary(Json),
    Dead,
    Asleep,
    /// Ask the gateway to read the device, then pass the result to `record_reading`.
    RequestReading,
    /// Call `step` again at this time, or when a report arrives.
    Wait(Instant),
    /// Nothing was confirmed in time.
    TimedOut,
}

/// The evidence for one command: feed it reports, and ask `step` what to do.
#[derive(Debug)]
pub struct CommandConfirmation {
    wanted: WantedState,
    sent: Instant,
    deadline: Instant,
    /// When the gateway published the target, which means that the radio has sent the command.
    echo: Option<Instant>,
    /// When the first matching value arrived, with the gateway's timestamp. The gateway may publish
    /// a value before the device has it, so this alone proves nothing.
    first_match: Option<(Instant, Option<u64>)>,
    contrary: Option<(Instant, Json)>,
    confirmed: bool,
    status: Option<DeviceStatus>,
    reading_requested: bool,
}

impl CommandConfirmation {
    pub fn new(wanted: WantedState, sent: Instant, timeout: Duration) -> Self {
        Self {
            wanted,
            sent,
            deadline: sent + timeout,
            echo: None,
            first_match: None,
            contrary: None,
            confirmed: false,
            status: None,
            reading_requested: false,
        }
    }

    /// Takes the target value that the gateway publishes once the radio has sent the command.
    pub fn record_echo(&mut self, now: Instant) {
        self.echo.get_or_insert(now);
    }

    /// Takes a published value. `time` is the gateway's timestamp in milliseconds since 1970.
    pub fn record_report(&mut self, value: Option<&Json>, time: Option<u64>, now: Instant) {
        let Some(value) = value else {
            return;
        };
        let late = self.echo.is_some_and(|echo| now - echo >= DUPLICATE_WINDOW);
        if !self.wanted.is_met(value) {
            if self.first_match.is_some() || late {
                self.contrary = Some((now, value.clone()));
            }
            return;
        }
        self.contrary = None;
        match self.first_match {
            None => {
                self.first_match = Some((now, time));
                // The gateway's expected value comes together with the echo. A later one comes from
                // the device.
                self.confirmed = late;
            }
            Some((first, first_time)) => {
                self.confirmed |=
                    now - first >= DUPLICATE_WINDOW || (time.is_some() && time != first_time);
            }
        }
    }

    /// Takes the result of a requested reading, which is proof by itself.
    pub fn record_reading(&mut self, value: &Json, now: Instant) {
        if self.wanted.is_met(value) {
            self.confirmed = true;
            self.contrary = None;
        } else {
            self.contrary = Some((now, value.clone()));
        }
    }

    pub fn record_status(&mut self, status: DeviceStatus) {
        self.status = Some(status);
    }

    /// Decides what to do now. Returns `RequestReading` only once.
    pub fn step(&mut self, now: Instant) -> ConfirmationStep {
        if self.confirmed {
            return ConfirmationStep::Done;
        }
        match self.status {
            Some(DeviceStatus::Dead) => return ConfirmationStep::Dead,
            Some(DeviceStatus::Asleep) => return ConfirmationStep::Asleep,
            _ => {}
        }
        if let Some((since, value)) = &self.contrary {
            let settled = (*since + self.wanted.settling_time()).min(self.deadline);
            return if now >= settled {
                ConfirmationStep::Contrary(value.clone())
            } else {
                ConfirmationStep::Wait(settled)
            };
        }
        if now >= self.deadline {
            return ConfirmationStep::TimedOut;
        }
        if self.reading_requested {
            return ConfirmationStep::Wait(self.deadline);
        }
        let sign_of_life = self.first_match.map(|(at, _)| at).or(self.echo);
        let due = match sign_of_life {
            Some(at) => at + READ_AFTER,
            // Without any, wait: it takes ~4 s until a node is reported dead, and that is a better
            // answer than a reading.
            None => self.sent + (self.deadline - self.sent) / 2,
        };
        if now >= due {
            self.reading_requested = true;
            ConfirmationStep::RequestReading
        } else {
            ConfirmationStep::Wait(due.min(self.deadline))
        }
    }
}

#[cfg(test)]
mod tests;
