//! What a value does after a command.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use super::plan::Wanted;
use crate::value::NodeStatus;

/// Reports of one value closer together than this may be the same report, delivered twice.
const SAME: Duration = Duration::from_millis(300);
/// A gateway that reads the device by itself does it within this time after the value it expects.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Proven.
    Done,
    /// The device is something else.
    Contrary(Json),
    Dead,
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
pub(crate) struct Watch {
    wanted: Wanted,
    sent: Instant,
    deadline: Instant,
    /// The gateway wrote down the target: the radio has sent the command.
    echo: Option<Instant>,
    /// The first value that fits, which may be only what the gateway expects; with the gateway's time of it.
    expected: Option<(Instant, Option<u64>)>,
    /// The last value since then that does not fit.
    contrary: Option<(Instant, Json)>,
    proven: bool,
    status: Option<NodeStatus>,
    asked: bool,
}

impl Watch {
    pub(crate) fn new(wanted: Wanted, sent: Instant, timeout: Duration) -> Self {
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
    pub(crate) fn take_echo(&mut self, now: Instant) {
        self.echo.get_or_insert(now);
    }

    /// The value was published.
    pub(crate) fn take_report(&mut self, value: Option<&Json>, time: Option<u64>, now: Instant) {
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
    pub(crate) fn take_answer(&mut self, value: &Json, now: Instant) {
        if self.wanted.is_met(value) {
            self.proven = true;
            self.contrary = None;
        } else {
            self.contrary = Some((now, value.clone()));
        }
    }

    pub(crate) fn take_status(&mut self, status: NodeStatus) {
        self.status = Some(status);
    }

    pub(crate) fn asked(&mut self) {
        self.asked = true;
    }

    pub(crate) fn step(&self, now: Instant) -> Step {
        if self.proven {
            return Step::Done;
        }
        match self.status {
            Some(NodeStatus::Dead) => return Step::Dead,
            Some(NodeStatus::Asleep) => return Step::Asleep,
            _ => {}
        }
        if let Some((since, value)) = &self.contrary {
            let settled = (*since + self.settling()).min(self.deadline);
            return if now >= settled {
                Step::Contrary(value.clone())
            } else {
                Step::Wait(settled)
            };
        }
        if now >= self.deadline {
            return Step::Over;
        }
        if self.asked {
            return Step::Wait(self.deadline);
        }
        let sign = self.expected.map(|(at, _)| at).or(self.echo);
        let due = match sign {
            Some(at) => at + ASK_AFTER,
            // Nothing at all: it takes ~4 s until a device is known as dead.
            None => self.sent + (self.deadline - self.sent) / 2,
        };
        if now >= due {
            Step::Ask
        } else {
            Step::Wait(due.min(self.deadline))
        }
    }

    /// How long a device may still be on its way: dimmers ramp, and bolts turn.
    fn settling(&self) -> Duration {
        match self.wanted {
            Wanted::Is(_) | Wanted::Number(_) => Duration::from_secs(1),
            Wanted::Level(_) | Wanted::On => Duration::from_secs(6),
            Wanted::Locked | Wanted::Unlocked => Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// What happens, at a time in milliseconds after the command.
    enum Happens {
        Echo,
        Report(Json, u64),
        Bare(Json),
        Status(NodeStatus),
        Answer(Json),
    }
    use Happens::{Answer, Bare, Echo, Report, Status};

    /// Lets it happen, and follows the steps to the end: how it ended, and when; asked or not.
    fn play(wanted: Wanted, events: Vec<(u64, Happens)>) -> (Step, u64, bool) {
        let start = Instant::now();
        let mut watch = Watch::new(wanted, start, TIMEOUT);
        let mut events = events.into_iter().peekable();
        let mut now = 0;
        loop {
            let instant = start + Duration::from_millis(now);
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= now) {
                match event {
                    Echo => watch.take_echo(instant),
                    Report(value, time) => watch.take_report(Some(&value), Some(time), instant),
                    Bare(value) => watch.take_report(Some(&value), None, instant),
                    Status(status) => watch.take_status(status),
                    Answer(value) => watch.take_answer(&value, instant),
                }
            }
            let until = match watch.step(instant) {
                Step::Wait(until) => u64::try_from((until - start).as_millis()).unwrap(),
                Step::Ask => {
                    watch.asked();
                    continue;
                }
                end => return (end, now, watch.asked),
            };
            now = events.peek().map_or(until, |(at, _)| until.min(*at));
        }
    }

    #[test]
    fn the_first_value_is_no_proof_and_the_second_is() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(true), 1)),
            (1_170, Report(json!(true), 2)),
        ];
        assert_eq!(play(Wanted::Is(true), events), (Step::Done, 1_170, false));
        // Without times.
        let events = vec![
            (80, Echo),
            (80, Bare(json!(false))),
            (1_170, Bare(json!(false))),
        ];
        assert_eq!(play(Wanted::Is(false), events), (Step::Done, 1_170, false));
    }

    #[test]
    fn the_first_value_delivered_twice_is_no_proof() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(true), 1)),
            (90, Report(json!(true), 1)),
            (1_170, Report(json!(false), 2)),
        ];
        let (end, at, _) = play(Wanted::Is(true), events);
        assert_eq!((end, at), (Step::Contrary(json!(false)), 2_170));
    }

    #[test]
    fn a_device_that_reports_by_itself_is_believed_at_once() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(true), 1)),
            (230, Report(json!(true), 2)),
        ];
        assert_eq!(play(Wanted::Is(true), events), (Step::Done, 230, false));
        // A lock that turns: no expected value, but its own word later.
        let events = vec![(80, Echo), (3_000, Report(json!(255), 9))];
        let (end, at, _) = play(Wanted::Locked, events);
        assert_eq!((end, at), (Step::Done, 3_000));
    }

    #[test]
    fn a_switch_that_falls_back_did_not_switch() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(true), 1)),
            (1_100, Report(json!(false), 2)),
        ];
        assert_eq!(
            play(Wanted::Is(true), events),
            (Step::Contrary(json!(false)), 2_100, false)
        );
    }

    #[test]
    fn a_dimmer_on_its_way_is_waited_for() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(50), 1)),
            (2_200, Answer(json!(30))),
            (7_100, Report(json!(50), 2)),
        ];
        assert_eq!(play(Wanted::Level(50), events), (Step::Done, 7_100, true));
    }

    #[test]
    fn a_level_that_the_device_rounds_is_the_level() {
        let events = vec![(80, Echo), (81, Bare(json!(50))), (7_000, Bare(json!(49)))];
        assert_eq!(play(Wanted::Level(50), events).0, Step::Done);
        assert!(!Wanted::Level(1).is_met(&json!(0)), "off is not rounding");
        assert!(!Wanted::Level(0).is_met(&json!(1)));
    }

    #[test]
    fn where_nothing_more_comes_the_device_is_read() {
        let events = vec![
            (80, Echo),
            (81, Report(json!(true), 1)),
            (2_150, Answer(json!(true))),
        ];
        assert_eq!(play(Wanted::Is(true), events), (Step::Done, 2_150, true));
        // Not even an echo: the gateway dropped it, and the device says so.
        let events = vec![(5_100, Answer(json!(false)))];
        let (end, at, asked) = play(Wanted::Is(true), events);
        assert_eq!(
            (end, at, asked),
            (Step::Contrary(json!(false)), 6_100, true)
        );
    }

    #[test]
    fn silence_is_no_answer() {
        assert_eq!(play(Wanted::Is(true), vec![]), (Step::Over, 10_000, true));
        let events = vec![(80, Echo), (81, Report(json!(true), 1))];
        assert_eq!(play(Wanted::Is(true), events), (Step::Over, 10_000, true));
    }

    #[test]
    fn a_target_beyond_the_device_moves_nothing() {
        // As recorded: `targetValue` becomes 150, `currentValue` stays, and no error comes.
        assert_eq!(play(Wanted::Level(150), vec![(80, Echo)]).0, Step::Over);
    }

    #[test]
    fn a_node_that_dies_or_sleeps_ends_it() {
        let events = vec![(4_000, Status(NodeStatus::Dead))];
        assert_eq!(play(Wanted::Is(true), events), (Step::Dead, 4_000, false));
        let events = vec![(50, Status(NodeStatus::Asleep))];
        assert_eq!(play(Wanted::Is(true), events), (Step::Asleep, 50, false));
    }

    #[test]
    fn what_came_before_the_expected_value_does_not_count() {
        let events = vec![
            (10, Report(json!(false), 1)),
            (80, Echo),
            (81, Report(json!(true), 2)),
            (1_100, Report(json!(true), 3)),
        ];
        assert_eq!(play(Wanted::Is(true), events), (Step::Done, 1_100, false));
    }
}
