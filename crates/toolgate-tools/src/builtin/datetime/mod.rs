//! `datetime`: the current time in any time zone, the weekday of a date, the
//! difference of two dates.
//!
//! Every result has a `sentence` to be spoken, and fields for calculations.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Unit, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::date_or_time::DateOrTime;
use super::BuiltinTool;

mod date_or_time;
mod sentences;
mod zone;

pub(super) fn builtin() -> BuiltinTool {
    BuiltinTool {
        name: "datetime",
        description: "Tells the current date and time in any time zone, the weekday of a date, or how long it is from one \
                      date to another. Use it whenever an answer depends on today's date or on counting days.",
        parameters: parameters(),
        annotations: Annotations::READ_ONLY,
        handler: Arc::new(DatetimeHandler { now: Zoned::now }),
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "action": {
                "type": "string", "enum": ["now", "weekday", "difference"], "default": "now",
                "description": "now: the current date and time. weekday: the day of the week of `date`. difference: the time \
                                from `date` to `until`."
            },
            "timezone": {
                "type": "string", "maxLength": 64,
                "description": "IANA name such as Europe/Berlin, or a city; the local time zone if left out"
            },
            "date": {
                "type": "string", "maxLength": 64,
                "description": "Like 2026-11-15 or 2026-11-15T18:00; today if left out"
            },
            "until": {
                "type": "string", "maxLength": 64,
                "description": "For difference: the later date, like 2026-12-24 or 2026-12-24T18:00"
            }
        }
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DatetimeArguments {
    action: DatetimeAction,
    timezone: Option<String>,
    date: Option<String>,
    until: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DatetimeAction {
    #[default]
    Now,
    Weekday,
    Difference,
}

struct DatetimeHandler {
    // Returns the current local time. Tests replace it.
    now: fn() -> Zoned,
}

impl Handler for DatetimeHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { answer(&arguments.parse()?, (self.now)()).map(ToolOutput::json) })
    }
}

fn answer(arguments: &DatetimeArguments, now: Zoned) -> Result<Value, ToolError> {
    // Parsed dates have whole seconds, so `now` must not add a fraction to a difference.
    let now = now.with().subsec_nanosecond(0).build().unwrap_or(now);
    let now = match arguments.timezone.as_deref().map(str::trim) {
        Some(name) if !matches!(name, "" | "local") => now.with_time_zone(zone::find(name)?),
        _ if now.time_zone().is_unknown() => now.with_time_zone(TimeZone::UTC),
        _ => now,
    };
    match arguments.action {
        DatetimeAction::Now => Ok(describe_moment(&now)),
        DatetimeAction::Weekday => find_weekday(arguments, &now),
        DatetimeAction::Difference => compute_difference(arguments, now),
    }
}

fn describe_moment(now: &Zoned) -> Value {
    json!({
        "sentence": sentences::now(now),
        "datetime": now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "date": now.date().to_string(),
        "time": now.strftime("%H:%M:%S").to_string(),
        "weekday": sentences::weekday(now.date()),
        "timezone": now.time_zone().iana_name().unwrap_or("local"),
        "utc_offset": now.strftime("%:z").to_string(),
        "unix": now.timestamp().as_second(),
        "iso_week": iso_week(now.date()),
    })
}

fn find_weekday(arguments: &DatetimeArguments, now: &Zoned) -> Result<Value, ToolError> {
    let date = match &arguments.date {
        Some(text) => DateOrTime::parse("date", text, now.time_zone())?.date(),
        None => now.date(),
    };
    let verb = if date < now.date() { "was" } else { "is" };
    Ok(json!({
        "sentence": format!("{} {verb} a {}.", sentences::date(date), sentences::weekday(date)),
        "date": date.to_string(),
        "weekday": sentences::weekday(date),
        "iso_week": iso_week(date),
    }))
}

fn compute_difference(arguments: &DatetimeArguments, now: Zoned) -> Result<Value, ToolError> {
    let zone = now.time_zone().clone();
    let Some(until) = &arguments.until else {
        return Err(ToolError::invalid(
            "until",
            "is needed for a difference: a date like 2026-12-24",
        ));
    };
    let until = DateOrTime::parse("until", until, &zone)?;
    let from = match &arguments.date {
        Some(text) => DateOrTime::parse("date", text, &zone)?,
        None => until.with_same_precision(now),
    };
    let apart = DateDifference::new(&from, &until, &zone)
        .ok_or_else(|| ToolError::invalid("until", "is too far away"))?;
    let sentence = match arguments.date {
        Some(_) => sentences::between(&from, &until, &apart),
        None => sentences::from_now(&until, &apart),
    };

    let mut found = json!({
        "sentence": sentence,
        "from": from.to_string(),
        "until": until.to_string(),
        "years": apart.calendar.get_years(),
        "months": apart.calendar.get_months(),
        "days": apart.calendar.get_days(),
    });
    if let Some(seconds) = apart.seconds {
        found["hours"] = json!(apart.calendar.get_hours());
        found["minutes"] = json!(apart.calendar.get_minutes());
        found["seconds"] = json!(apart.calendar.get_seconds());
        found["total_seconds"] = json!(seconds);
    }
    found["total_days"] = json!(apart.days.get_days());
    Ok(found)
}

/// The time between two dates; negative if the second comes first.
struct DateDifference {
    calendar: Span,
    // In calendar days and the remaining time. A day with 23 hours is one day.
    days: Span,
    // Exact. `None` for whole days, which don't have a fixed length.
    seconds: Option<i64>,
}

impl DateDifference {
    fn new(from: &DateOrTime, until: &DateOrTime, zone: &TimeZone) -> Option<Self> {
        if let (DateOrTime::Day(from), DateOrTime::Day(until)) = (from, until) {
            let apart = |largest: Unit| from.until((largest, *until)).ok();
            return Some(Self {
                calendar: apart(Unit::Year)?,
                days: apart(Unit::Day)?,
                seconds: None,
            });
        }
        let (from, until) = (from.start(zone)?, until.start(zone)?);
        let apart = |largest: Unit| from.until((largest, &until)).ok();
        let seconds = until.timestamp().as_second() - from.timestamp().as_second();
        Some(Self {
            calendar: apart(Unit::Year)?,
            days: apart(Unit::Day)?,
            seconds: Some(seconds),
        })
    }
}

fn iso_week(date: Date) -> String {
    let week = date.iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

#[cfg(test)]
mod tests;
