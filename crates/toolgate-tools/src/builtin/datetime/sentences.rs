//! Writes dates and time spans as people say them.

use jiff::civil::Date;
use jiff::{Span, Zoned};

use super::{DateDifference, DateOrTime};

/// Writes `It is 3:05 PM on Sunday, November 15, 2026 in Europe/Berlin.`
pub(super) fn now(now: &Zoned) -> String {
    let place = match now.time_zone().iana_name() {
        Some(name) => format!("in {name}"),
        None => "here".to_owned(),
    };
    format!("It is {} on {} {place}.", time(now), day(now.date()))
}

pub(super) fn from_now(until: &DateOrTime, apart: &DateDifference) -> String {
    let (what, length) = (point(until), apart.length());
    match (apart.sign(), until) {
        (0, DateOrTime::Day(_)) => format!("{what} is today."),
        (0, DateOrTime::Moment(_)) => format!("{what} is now."),
        (1, _) => format!("{what} is in {length}."),
        _ => format!("{what} was {length} ago."),
    }
}

pub(super) fn between(from: &DateOrTime, until: &DateOrTime, apart: &DateDifference) -> String {
    let (from, until, length) = (point(from), point(until), apart.length());
    match apart.sign() {
        0 => format!("{from} and {until} are the same."),
        1 => format!("It is {length} from {from} to {until}."),
        _ => format!("{until} is {length} before {from}."),
    }
}

pub(super) fn date(date: Date) -> String {
    format!("{} {}, {}", month(date), date.day(), date.year())
}

pub(super) fn weekday(date: Date) -> String {
    date.strftime("%A").to_string()
}

pub(super) fn month(date: Date) -> String {
    date.strftime("%B").to_string()
}

fn point(point: &DateOrTime) -> String {
    match point {
        DateOrTime::Day(date) => day(*date),
        DateOrTime::Moment(moment) => format!("{} at {}", day(moment.date()), time(moment)),
    }
}

fn day(day: Date) -> String {
    format!("{}, {}", weekday(day), date(day))
}

fn time(moment: &Zoned) -> String {
    moment.strftime("%-I:%M %p").to_string()
}

impl DateDifference {
    /// `39 days (1 month and 8 days)`
    fn length(&self) -> String {
        let days = format_span(&self.days);
        match self.calendar.get_years() == 0 && self.calendar.get_months() == 0 {
            true => days,
            false => format!("{days} ({})", format_span(&self.calendar)),
        }
    }

    fn sign(&self) -> i8 {
        self.days.signum()
    }
}

// Seconds only matter in spans of less than an hour.
fn format_span(span: &Span) -> String {
    let span = span.abs();
    let mut parts = vec![
        part(span.get_years().into(), "year"),
        part(span.get_months().into(), "month"),
        part(span.get_days().into(), "day"),
        part(span.get_hours().into(), "hour"),
        part(span.get_minutes(), "minute"),
    ];
    if parts[..4].iter().all(Option::is_none) {
        parts.push(part(span.get_seconds(), "second"));
    }
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    match (parts.pop(), parts.is_empty()) {
        (Some(last), true) => last,
        (Some(last), false) => format!("{} and {last}", parts.join(", ")),
        (None, _) => "no time".to_owned(),
    }
}

fn part(count: i64, unit: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {unit}")),
        _ => Some(format!("{count} {unit}s")),
    }
}
