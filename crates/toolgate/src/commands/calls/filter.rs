//! Turns the options of `toolgate calls` into a journal filter.

use anyhow::{Context, bail};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use toolgate_journal::JournalFilter;

use crate::cli::CallsOptions;

pub(super) fn read(options: &CallsOptions) -> anyhow::Result<JournalFilter> {
    let now = Timestamp::now();
    let time = |option: &str, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| moment(text, now).with_context(|| format!("{option} {text}")))
            .transpose()
    };
    let mut filter = JournalFilter::default();
    filter.tool.clone_from(&options.tool);
    filter.server.clone_from(&options.server);
    filter.origin.clone_from(&options.origin);
    filter.caller.clone_from(&options.caller);
    filter.outcome.clone_from(&options.outcome);
    filter.search.clone_from(&options.search);
    filter.since = time("--since", &options.since)?;
    filter.until = time("--until", &options.until)?;
    filter.limit = options.limit;
    Ok(filter)
}

/// Accepts an age such as `7d`, a timestamp, or a local date with an optional time.
fn moment(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Some(ago) = ago(text) {
        return Ok(now.checked_sub(ago)?);
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    match text.parse::<DateTime>() {
        Ok(local) => Ok(local.to_zoned(TimeZone::system())?.timestamp()),
        Err(_) => bail!("is not a time: write 30m, 2h, 7d, 2026-12-24 or 2026-12-24T18:00:00Z"),
    }
}

fn ago(text: &str) -> Option<SignedDuration> {
    if let Some(days) = text.strip_suffix('d') {
        let days: u32 = days.parse().ok()?;
        return Some(SignedDuration::from_hours(24 * i64::from(days)));
    }
    SignedDuration::try_from(toolgate_core::text::parse_duration(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_many_ways() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("30m", Some("2026-11-16T11:30:00Z")),
            ("1.5s", Some("2026-11-16T11:59:58.5Z")),
            ("30d", Some("2026-10-17T12:00:00Z")),
            ("2026-11-01T10:00:00+02:00", Some("2026-11-01T08:00:00Z")),
            ("yesterday", None),
            ("d", None),
            ("99999999999d", None),
        ] {
            let found = moment(text, now).ok().map(|time| time.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(moment("2026-11-01", now).unwrap() < now);
    }
}
