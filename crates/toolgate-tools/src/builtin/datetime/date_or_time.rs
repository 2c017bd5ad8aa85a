//! [`DateOrTime`]: parses a date, or a date and time, as people write it.

use std::fmt;

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use toolgate_core::ToolError;

use super::sentences;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DateOrTime {
    Day(Date),
    Moment(Zoned),
}

impl DateOrTime {
    /// A time without an offset is in `zone`. A time that daylight saving skips is moved
    /// forward by the gap.
    pub(super) fn parse(parameter: &str, text: &str, zone: &TimeZone) -> Result<Self, ToolError> {
        Self::parse_pieces(text.trim(), zone)
            .map_err(|problem| ToolError::invalid(parameter, problem))
    }

    fn parse_pieces(text: &str, zone: &TimeZone) -> Result<Self, String> {
        let pieces = Pieces::parse(text).map_err(|_| describe_problem(text))?;
        let date = pieces.date();
        if date.year() < 1 {
            return Err("must be in the years 1 to 9999".to_owned());
        }
        let Some(time) = pieces.time() else {
            return Ok(Self::Day(date));
        };
        let own_zone = match pieces.to_numeric_offset() {
            Some(offset) => Some(TimeZone::fixed(offset)),
            None => pieces
                .to_time_zone()
                .map_err(|_| EXPECTED_FORM.to_owned())?,
        };
        let moment = date
            .to_datetime(whole_seconds(time))
            .to_zoned(own_zone.unwrap_or_else(|| zone.clone()));
        let moment = moment.map_err(|_| "must be in the years 1 to 9999".to_owned())?;
        Ok(Self::Moment(moment.with_time_zone(zone.clone())))
    }

    pub(super) fn date(&self) -> Date {
        match self {
            Self::Day(date) => *date,
            Self::Moment(moment) => moment.date(),
        }
    }

    /// The moment when it begins. `None` if that is out of range.
    pub(super) fn start(&self, zone: &TimeZone) -> Option<Zoned> {
        match self {
            Self::Day(date) => date.to_zoned(zone.clone()).ok(),
            Self::Moment(moment) => Some(moment.clone()),
        }
    }

    /// Returns `moment` with the precision of `self`: only its day if `self` is a day.
    pub(super) fn with_same_precision(&self, moment: Zoned) -> Self {
        match self {
            Self::Day(_) => Self::Day(moment.date()),
            Self::Moment(_) => Self::Moment(moment),
        }
    }
}

impl fmt::Display for DateOrTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(date) => date.fmt(f),
            Self::Moment(moment) => moment.strftime("%Y-%m-%dT%H:%M:%S%:z").fmt(f),
        }
    }
}

fn whole_seconds(time: Time) -> Time {
    Time::constant(time.hour(), time.minute(), time.second(), 0)
}

const EXPECTED_FORM: &str =
    "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00";

// The closer a text looks to a date, the more precise the message.
fn describe_problem(text: &str) -> String {
    let Some((year, month, day)) = parse_numbers(text) else {
        return EXPECTED_FORM.to_owned();
    };
    let Ok(first) = Date::new(year, month, 1) else {
        return format!("must be a real date: there is no month {month}");
    };
    if Date::new(year, month, day).is_err() {
        let (month, days) = (sentences::month(first), first.days_in_month());
        return format!("must be a real date: {month} {year} has {days} days");
    }
    "must end in a real time of day like T18:00 or T18:00:30, or end after the date".to_owned()
}

/// Parses the numbers of `YYYY-MM-DD` at the start of a text, even if there is no such day.
fn parse_numbers(text: &str) -> Option<(i16, i8, i8)> {
    let mut parts = text.get(..10)?.split('-');
    let mut digits = |length: usize| {
        parts
            .next()
            .filter(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (year, month, day) = (digits(4)?, digits(2)?, digits(2)?);
    Some((year.parse().ok()?, month.parse().ok()?, day.parse().ok()?))
}
