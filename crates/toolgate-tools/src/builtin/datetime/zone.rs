//! Finds time zones by the names that people use.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use toolgate_core::ToolError;
use toolgate_core::text::{escape, nearest_names};

/// Finds a time zone by its IANA name in any case, or by a city if only one zone is named after it.
pub(super) fn find(name: &str) -> Result<TimeZone, ToolError> {
    if let Some(zone) = load_zone(name) {
        return Ok(zone);
    }
    let (names, wanted) = (zone_names(), normalize(name));
    let fits: Vec<&String> = names
        .iter()
        .filter(|name| normalize(name) == wanted || city(name) == wanted)
        .collect();
    let zones: Vec<TimeZone> = fits.iter().filter_map(|name| load_zone(name)).collect();
    match zones.as_slice() {
        [zone, others @ ..] if others.iter().all(|other| same_rules(zone, other)) => {
            Ok(zone.clone())
        }
        [] => Err(unknown_zone(name, &suggestions(&wanted, &names))),
        _ => Err(unknown_zone(
            name,
            &fits.into_iter().cloned().collect::<Vec<_>>(),
        )),
    }
}

// The system's rules are newer, but the bundled ones exist on every machine and include old names.
fn load_zone(name: &str) -> Option<TimeZone> {
    jiff::tz::db()
        .get(name)
        .or_else(|_| TimeZoneDatabase::bundled().get(name))
        .ok()
}

// Without `Etc`: `Etc/GMT+2` is two hours *behind* Greenwich, and people who write `GMT+2` mean two
// hours ahead.
fn zone_names() -> Vec<String> {
    let database = TimeZoneDatabase::bundled();
    let names = database.available().map(|name| name.to_string());
    names.filter(|name| !name.starts_with("Etc/")).collect()
}

fn normalize(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

fn city(name: &str) -> String {
    normalize(name.rsplit('/').next().unwrap_or(name))
}

// True for two names of the same zone, such as `Asia/Istanbul` and `Europe/Istanbul`.
fn same_rules(one: &TimeZone, other: &TimeZone) -> bool {
    const MAX_COMPARED: usize = 500;
    let changes = |zone: &TimeZone| {
        zone.following(Timestamp::MIN)
            .take(MAX_COMPARED)
            .map(|change| (change.timestamp(), change.offset()))
            .collect::<Vec<_>>()
    };
    changes(one) == changes(other)
}

fn suggestions(wanted: &str, names: &[String]) -> Vec<String> {
    const MAX_SUGGESTED: usize = 3;
    let key = if wanted.contains('/') {
        normalize
    } else {
        city
    };
    let keys: Vec<String> = names.iter().map(|name| key(name)).collect();
    let near = nearest_names(wanted, keys.iter().map(String::as_str), MAX_SUGGESTED);
    let fits = near
        .iter()
        .flat_map(|near| names.iter().filter(move |name| key(name) == *near));
    fits.take(MAX_SUGGESTED).cloned().collect()
}

fn unknown_zone(name: &str, suggestions: &[String]) -> ToolError {
    let text = format!(
        "must be an IANA time zone such as 'Europe/Berlin'; '{}' is not one",
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
