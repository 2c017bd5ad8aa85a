//! Time zones by the names people use.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use toolgate_core::{ToolError, escape, nearest};

/// The zone of an IANA name in any spelling, or of a city only one zone is named after.
pub(super) fn find(name: &str) -> Result<TimeZone, ToolError> {
    if let Some(zone) = get(name) {
        return Ok(zone);
    }
    let (names, wanted) = (names(), spelling(name));
    let fits: Vec<&String> = names
        .iter()
        .filter(|name| spelling(name) == wanted || city(name) == wanted)
        .collect();
    let zones: Vec<TimeZone> = fits.iter().filter_map(|name| get(name)).collect();
    match zones.as_slice() {
        [zone, others @ ..] if others.iter().all(|other| same_rules(zone, other)) => {
            Ok(zone.clone())
        }
        [] => Err(unknown(name, &suggestions(&wanted, &names))),
        _ => Err(unknown(
            name,
            &fits.into_iter().cloned().collect::<Vec<_>>(),
        )),
    }
}

/// The system's rules are the newer ones; the bundled ones are there on every machine, old names included.
fn get(name: &str) -> Option<TimeZone> {
    jiff::tz::db()
        .get(name)
        .or_else(|_| TimeZoneDatabase::bundled().get(name))
        .ok()
}

/// All names but those under `Etc`: `Etc/GMT+2` is two hours *behind* Greenwich, which nobody who writes `GMT+2` means.
fn names() -> Vec<String> {
    let database = TimeZoneDatabase::bundled();
    let names = database.available().map(|name| name.to_string());
    names.filter(|name| !name.starts_with("Etc/")).collect()
}

fn spelling(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

fn city(name: &str) -> String {
    spelling(name.rsplit('/').next().unwrap_or(name))
}

/// True for old and new names of one place, as `Asia/Istanbul` and `Europe/Istanbul` are.
fn same_rules(one: &TimeZone, other: &TimeZone) -> bool {
    const ENOUGH: usize = 500;
    let changes = |zone: &TimeZone| {
        zone.following(Timestamp::MIN)
            .take(ENOUGH)
            .map(|change| (change.timestamp(), change.offset()))
            .collect::<Vec<_>>()
    };
    changes(one) == changes(other)
}

fn suggestions(wanted: &str, names: &[String]) -> Vec<String> {
    const MOST: usize = 3;
    let key = if wanted.contains('/') { spelling } else { city };
    let keys: Vec<String> = names.iter().map(|name| key(name)).collect();
    let near = nearest(wanted, keys.iter().map(String::as_str), MOST);
    let fits = near
        .iter()
        .flat_map(|near| names.iter().filter(move |name| key(name) == *near));
    fits.take(MOST).cloned().collect()
}

fn unknown(name: &str, suggestions: &[String]) -> ToolError {
    let text = format!(
        "must be an IANA time zone such as 'Europe/Berlin', and '{}' is none",
        escape(name)
    );
    let hint = suggestions
        .iter()
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(" or ");
    ToolError::invalid(
        "timezone",
        if hint.is_empty() {
            text
        } else {
            format!("{text}; did you mean {hint}?")
        },
    )
}
