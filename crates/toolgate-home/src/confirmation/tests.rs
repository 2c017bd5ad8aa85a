use serde_json::json;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(10);

/// An event at a time in milliseconds after the command.
enum ConfirmationEvent {
    Echo,
    Report(Json, u64),
    Bare(Json),
    Status(DeviceStatus),
    Answer(Json),
}
use ConfirmationEvent::{Answer, Bare, Echo, Report, Status};

/// Plays the events to the end. Returns the last step, its time, and whether
/// a reading was requested.
fn play(
    wanted: WantedState,
    events: Vec<(u64, ConfirmationEvent)>,
) -> (ConfirmationStep, u64, bool) {
    let start = Instant::now();
    let mut confirmation = CommandConfirmation::new(wanted, start, TIMEOUT);
    let mut events = events.into_iter().peekable();
    let mut now = 0;
    loop {
        let instant = start + Duration::from_millis(now);
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= now) {
            match event {
                Echo => confirmation.record_echo(instant),
                Report(value, time) => {
                    confirmation.record_report(Some(&value), Some(time), instant);
                }
                Bare(value) => confirmation.record_report(Some(&value), None, instant),
                Status(status) => confirmation.record_status(status),
                Answer(value) => confirmation.record_reading(&value, instant),
            }
        }
        let until = match confirmation.step(instant) {
            ConfirmationStep::Wait(until) => u64::try_from((until - start).as_millis()).unwrap(),
            ConfirmationStep::RequestReading => continue,
            end => return (end, now, confirmation.reading_requested),
        };
        now = events.peek().map_or(until, |(at, _)| until.min(*at));
    }
}

#[test]
fn the_second_matching_value_proves_the_command() {
    let events = vec![
        (80, Echo),
        (81, Report(json!(true), 1)),
        (1_170, Report(json!(true), 2)),
    ];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Done, 1_170, false)
    );
    // Without times.
    let events = vec![
        (80, Echo),
        (80, Bare(json!(false))),
        (1_170, Bare(json!(false))),
    ];
    assert_eq!(
        play(WantedState::Is(false), events),
        (ConfirmationStep::Done, 1_170, false)
    );
}

#[test]
fn a_duplicate_of_the_first_value_proves_nothing() {
    let events = vec![
        (80, Echo),
        (81, Report(json!(true), 1)),
        (90, Report(json!(true), 1)),
        (1_170, Report(json!(false), 2)),
    ];
    let (end, at, _) = play(WantedState::Is(true), events);
    assert_eq!((end, at), (ConfirmationStep::Contrary(json!(false)), 2_170));
}

#[test]
fn a_device_that_reports_by_itself_is_believed_at_once() {
    let events = vec![
        (80, Echo),
        (81, Report(json!(true), 1)),
        (230, Report(json!(true), 2)),
    ];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Done, 230, false)
    );
    // A turning lock has no expected value, but reports by itself later.
    let events = vec![(80, Echo), (3_000, Report(json!(255), 9))];
    let (end, at, _) = play(WantedState::Bolt(&[255]), events);
    assert_eq!((end, at), (ConfirmationStep::Done, 3_000));
}

#[test]
fn a_switch_that_falls_back_did_not_switch() {
    let events = vec![
        (80, Echo),
        (81, Report(json!(true), 1)),
        (1_100, Report(json!(false), 2)),
    ];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Contrary(json!(false)), 2_100, false)
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
    assert_eq!(
        play(WantedState::Level(50), events),
        (ConfirmationStep::Done, 7_100, true)
    );
}

#[test]
fn a_level_that_the_device_rounds_is_the_level() {
    let events = vec![(80, Echo), (81, Bare(json!(50))), (7_000, Bare(json!(49)))];
    assert_eq!(
        play(WantedState::Level(50), events).0,
        ConfirmationStep::Done
    );
    assert!(
        !WantedState::Level(1).is_met(&json!(0)),
        "off is not rounding"
    );
    assert!(!WantedState::Level(0).is_met(&json!(1)));
}

#[test]
fn a_device_without_further_reports_is_read() {
    let events = vec![
        (80, Echo),
        (81, Report(json!(true), 1)),
        (2_150, Answer(json!(true))),
    ];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Done, 2_150, true)
    );
    // Without an echo: the gateway dropped the command, and the reading shows that.
    let events = vec![(5_100, Answer(json!(false)))];
    let (end, at, asked) = play(WantedState::Is(true), events);
    assert_eq!(
        (end, at, asked),
        (ConfirmationStep::Contrary(json!(false)), 6_100, true)
    );
}

#[test]
fn a_silent_device_times_out() {
    assert_eq!(
        play(WantedState::Is(true), vec![]),
        (ConfirmationStep::TimedOut, 10_000, true)
    );
    let events = vec![(80, Echo), (81, Report(json!(true), 1))];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::TimedOut, 10_000, true)
    );
}

#[test]
fn a_target_beyond_the_device_moves_nothing() {
    // As recorded: `targetValue` becomes 150, `currentValue` stays, and no error comes.
    assert_eq!(
        play(WantedState::Level(150), vec![(80, Echo)]).0,
        ConfirmationStep::TimedOut
    );
}

#[test]
fn a_dead_or_sleeping_node_ends_the_proof() {
    let events = vec![(4_000, Status(DeviceStatus::Dead))];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Dead, 4_000, false)
    );
    let events = vec![(50, Status(DeviceStatus::Asleep))];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Asleep, 50, false)
    );
}

#[test]
fn reports_before_the_expected_value_do_not_count() {
    let events = vec![
        (10, Report(json!(false), 1)),
        (80, Echo),
        (81, Report(json!(true), 2)),
        (1_100, Report(json!(true), 3)),
    ];
    assert_eq!(
        play(WantedState::Is(true), events),
        (ConfirmationStep::Done, 1_100, false)
    );
}
