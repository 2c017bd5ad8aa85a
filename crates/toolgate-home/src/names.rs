//! Finds the device that a person names.
//!
//! All words must match: those of the name, of the name and the location in any order, or of a
//! location or kind that has only one device. Similar names are suggested, never acted on.

mod words;

pub(crate) use words::name_words;

use crate::kind::LIGHT_WORDS;
use crate::{DeviceKind, HomeDevice};

const MAX_NEAREST: usize = 3;
/// Similarity from 0 to 1 at which a name is suggested.
const MIN_SIMILARITY: f64 = 0.7;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResolveError {
    NotFound { nearest: Vec<HomeDevice> },
    Ambiguous { candidates: Vec<HomeDevice> },
}

pub(crate) fn resolve(devices: &[HomeDevice], said: &str) -> Result<HomeDevice, ResolveError> {
    let meant = name_words(said);
    // Most exact first: a looser rule applies only if no device matched the ones before it.
    let rules: [&dyn Fn(&HomeDevice) -> bool; 6] = [
        &|device| is_same_text(&device.name, said),
        &|device| name_words(&device.name) == meant,
        &|device| is_name_and_location(device, &meant),
        &|device| is_number(device, &meant),
        &|device| !device.location.is_empty() && name_words(&device.location) == meant,
        &|device| is_kind_and_location(device, &meant),
    ];
    if meant.is_empty() {
        return Err(ResolveError::NotFound {
            nearest: Vec::new(),
        });
    }
    for rule in rules {
        if let Some(found) = single_match(devices.iter().filter(|device| rule(device))) {
            return found;
        }
    }
    Err(not_found(devices, &meant))
}

// Finds a device by its exact name, ignoring only case, for commands that must not go wrong. If
// devices share a name, the location in front of it distinguishes them.
pub(crate) fn resolve_exact(
    devices: &[HomeDevice],
    said: &str,
) -> Result<HomeDevice, ResolveError> {
    let full = |device: &HomeDevice| format!("{} {}", device.location, device.name);
    single_match(
        devices
            .iter()
            .filter(|device| is_same_text(&device.name, said)),
    )
    .or_else(|| {
        single_match(
            devices
                .iter()
                .filter(|device| is_same_text(&full(device), said)),
        )
    })
    .unwrap_or_else(|| Err(not_found(devices, &name_words(said))))
}

/// True if two names sound the same: case, accents, articles and the spelling
/// of numbers don't count.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    let meant = name_words(one);
    !meant.is_empty() && meant == name_words(other)
}

pub(crate) fn devices_in_room(devices: &[HomeDevice], said: &str) -> Vec<HomeDevice> {
    let meant = name_words(said);
    let is_there = |device: &&HomeDevice| {
        !device.location.is_empty()
            && (is_same_text(&device.location, said) || name_words(&device.location) == meant)
    };
    devices.iter().filter(is_there).cloned().collect()
}

// A loose search for lists, where one device too many does no harm: a device matches if each word
// is the beginning of a word in its name, location or kind. The device that [`resolve`] finds
// comes first.
pub(crate) fn search(devices: &[HomeDevice], said: &str) -> Vec<HomeDevice> {
    let meant = name_words(said);
    let mut found = devices
        .iter()
        .filter(|device| {
            let known = words_about(device);
            meant.iter().all(|word| matches_any_word(word, &known))
        })
        .cloned()
        .collect::<Vec<_>>();
    if let Ok(one) = resolve(devices, said) {
        found.retain(|device| device.id != one.id);
        found.insert(0, one);
    }
    found
}

fn words_about(device: &HomeDevice) -> Vec<String> {
    let mut known = name_words(&device.name);
    known.extend(name_words(&device.location));
    known.push(device.kind.to_string());
    let kinds = kinds(device);
    if kinds.contains(&"light") {
        known.extend(LIGHT_WORDS.map(str::to_owned));
    }
    known
}

// Short words and numbers must match exactly: switch 1 is not switch 10.
fn matches_any_word(word: &str, known: &[String]) -> bool {
    let is_long = word.chars().count() > 2 && !word.starts_with(char::is_numeric);
    let singular = word.strip_suffix('s').filter(|_| is_long);
    known.iter().any(|one| {
        one == word || singular == Some(one.as_str()) || is_long && one.starts_with(word)
    })
}

fn single_match<'a>(
    mut found: impl Iterator<Item = &'a HomeDevice>,
) -> Option<Result<HomeDevice, ResolveError>> {
    let first = found.next()?;
    let others = found.cloned().collect::<Vec<_>>();
    Some(if others.is_empty() {
        Ok(first.clone())
    } else {
        let mut candidates = vec![first.clone()];
        candidates.extend(others);
        Err(ResolveError::Ambiguous { candidates })
    })
}

fn is_same_text(name: &str, said: &str) -> bool {
    !name.is_empty() && name.trim().to_lowercase() == said.trim().to_lowercase()
}

fn is_name_and_location(device: &HomeDevice, meant: &[String]) -> bool {
    let (name, location) = (name_words(&device.name), name_words(&device.location));
    !location.is_empty()
        && meant.len() == name.len() + location.len()
        && (meant.strip_prefix(location.as_slice()) == Some(name.as_slice())
            || meant.strip_prefix(name.as_slice()) == Some(location.as_slice()))
}

/// `node 6` and `nodeID_6`.
fn is_number(device: &HomeDevice, meant: &[String]) -> bool {
    match meant {
        [node, number] if node == "node" || node == "nodeid" => *number == device.id.to_string(),
        _ => false,
    }
}

/// Location (if any) and kind, such as `kitchen light` or `thermostat`.
fn is_kind_and_location(device: &HomeDevice, meant: &[String]) -> bool {
    let location = name_words(&device.location);
    let kind = match meant.strip_prefix(location.as_slice()) {
        Some([kind]) => kind,
        _ => match meant {
            [kind] => kind,
            [kind, rest @ ..] if !location.is_empty() && *rest == location => kind,
            _ => return false,
        },
    };
    kinds(device).contains(&kind.as_str())
}

/// A switch may control anything with a plug: only its name can make it a light.
fn kinds(device: &HomeDevice) -> Vec<&'static str> {
    let mut kinds = match device.kind {
        DeviceKind::Switch => vec!["switch"],
        DeviceKind::Dimmer => vec!["dimmer", "light"],
        DeviceKind::Blind => vec!["blind", "shade", "shutter", "curtain"],
        DeviceKind::Fan => vec!["fan"],
        DeviceKind::Lock => vec!["lock"],
        DeviceKind::Thermostat => vec!["thermostat"],
        DeviceKind::Sensor => vec!["sensor"],
        DeviceKind::Meter => vec!["meter"],
        DeviceKind::Other => vec![],
    };
    if matches!(device.kind, DeviceKind::Switch | DeviceKind::Dimmer) {
        let name = name_words(&device.name);
        for light in LIGHT_WORDS {
            if name.iter().any(|word| word == light) {
                kinds.push("light");
                kinds.push(light);
            }
        }
    }
    kinds
}

fn not_found(devices: &[HomeDevice], meant: &[String]) -> ResolveError {
    let said = meant.join(" ");
    let mut near = devices
        .iter()
        .map(|device| (similarity(device, &said), device))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .collect::<Vec<_>>();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    ResolveError::NotFound {
        nearest: near
            .into_iter()
            .take(MAX_NEAREST)
            .map(|(_, device)| device.clone())
            .collect(),
    }
}

fn similarity(device: &HomeDevice, said: &str) -> f64 {
    let (name, location) = (
        name_words(&device.name).join(" "),
        name_words(&device.location).join(" "),
    );
    [
        name.clone(),
        format!("{location} {name}"),
        format!("{name} {location}"),
    ]
    .iter()
    .map(|candidate| strsim::normalized_damerau_levenshtein(candidate.trim(), said))
    .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
