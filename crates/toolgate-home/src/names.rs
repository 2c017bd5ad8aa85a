//! What people say, and which device they mean.
//!
//! A device is meant only by all of its words: its name, or name and location in any order; or by a location or a kind
//! that has a single device. Near misses are suggested and never acted on.

mod words;

pub(crate) use words::words;

use crate::kind::LIGHTS;
use crate::{Device, DeviceKind};

const MAX_NEAREST: usize = 3;
/// How alike two names must be for one to be suggested for the other, from 0 to 1.
const ALIKE: f64 = 0.7;

/// Why no device was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResolveError {
    /// No device goes by this name.
    NotFound {
        /// Devices whose names are close, nearest first.
        nearest: Vec<Device>,
    },
    /// Several do.
    Ambiguous {
        /// All of them.
        candidates: Vec<Device>,
    },
}

pub(crate) fn resolve(devices: &[Device], said: &str) -> Result<Device, ResolveError> {
    let meant = words(said);
    let rules: [&dyn Fn(&Device) -> bool; 6] = [
        &|device| same(&device.name, said),
        &|device| words(&device.name) == meant,
        &|device| is_name_and_location(device, &meant),
        &|device| is_number(device, &meant),
        &|device| !device.location.is_empty() && words(&device.location) == meant,
        &|device| is_kind_and_location(device, &meant),
    ];
    if meant.is_empty() {
        return Err(ResolveError::NotFound {
            nearest: Vec::new(),
        });
    }
    for rule in rules {
        if let Some(found) = only(devices.iter().filter(|device| rule(device))) {
            return found;
        }
    }
    Err(not_found(devices, &meant))
}

/// Finds a device by its name alone, for what must not go wrong: capitals do not count, everything else does. Where two
/// devices have one name, the location before it says which.
pub(crate) fn resolve_exact(devices: &[Device], said: &str) -> Result<Device, ResolveError> {
    let full = |device: &Device| format!("{} {}", device.location, device.name);
    only(devices.iter().filter(|device| same(&device.name, said)))
        .or_else(|| only(devices.iter().filter(|device| same(&full(device), said))))
        .unwrap_or_else(|| Err(not_found(devices, &words(said))))
}

/// True if two names are the same to people: capitals, accents, articles and how numbers are written do not count.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let meant = words(one);
    !meant.is_empty() && meant == words(other)
}

pub(crate) fn room(devices: &[Device], said: &str) -> Vec<Device> {
    let meant = words(said);
    let is_there = |device: &&Device| {
        !device.location.is_empty()
            && (same(&device.location, said) || words(&device.location) == meant)
    };
    devices.iter().filter(is_there).cloned().collect()
}

/// For lists, where one too many does no harm: every word said must begin a word of name, location or kind. The device that
/// [`resolve`] would find comes first.
pub(crate) fn search(devices: &[Device], said: &str) -> Vec<Device> {
    let meant = words(said);
    let mut found = devices
        .iter()
        .filter(|device| {
            let known = words_about(device);
            meant.iter().all(|word| is_among(word, &known))
        })
        .cloned()
        .collect::<Vec<_>>();
    if let Ok(one) = resolve(devices, said) {
        found.retain(|device| device.id != one.id);
        found.insert(0, one);
    }
    found
}

fn words_about(device: &Device) -> Vec<String> {
    let mut known = words(&device.name);
    known.extend(words(&device.location));
    known.push(device.kind.to_string());
    let kinds = kinds(device);
    if kinds.contains(&"light") {
        known.extend(LIGHTS.map(str::to_owned));
    }
    known
}

/// Short words and numbers only as they are: switch 1 is not switch 10.
fn is_among(word: &str, known: &[String]) -> bool {
    let is_long = word.chars().count() > 2 && !word.starts_with(char::is_numeric);
    let singular = word.strip_suffix('s').filter(|_| is_long);
    known.iter().any(|one| {
        one == word || singular == Some(one.as_str()) || is_long && one.starts_with(word)
    })
}

/// `None` if nobody; an error if several.
fn only<'a>(mut found: impl Iterator<Item = &'a Device>) -> Option<Result<Device, ResolveError>> {
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

fn same(name: &str, said: &str) -> bool {
    !name.is_empty() && name.trim().to_lowercase() == said.trim().to_lowercase()
}

fn is_name_and_location(device: &Device, meant: &[String]) -> bool {
    let (name, location) = (words(&device.name), words(&device.location));
    !location.is_empty()
        && meant.len() == name.len() + location.len()
        && (meant.strip_prefix(location.as_slice()) == Some(name.as_slice())
            || meant.strip_prefix(name.as_slice()) == Some(location.as_slice()))
}

/// `node 6` and `nodeID_6`.
fn is_number(device: &Device, meant: &[String]) -> bool {
    match meant {
        [node, number] if node == "node" || node == "nodeid" => *number == device.id.to_string(),
        _ => false,
    }
}

/// `kitchen light`, `thermostat`: the location, if any, and the kind.
fn is_kind_and_location(device: &Device, meant: &[String]) -> bool {
    let location = words(&device.location);
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

/// A switch may be anything that has a plug: only a name makes a light of it.
fn kinds(device: &Device) -> Vec<&'static str> {
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
        let name = words(&device.name);
        for light in LIGHTS {
            if name.iter().any(|word| word == light) {
                kinds.push("light");
                kinds.push(light);
            }
        }
    }
    kinds
}

fn not_found(devices: &[Device], meant: &[String]) -> ResolveError {
    let said = meant.join(" ");
    let mut near = devices
        .iter()
        .map(|device| (likeness(device, &said), device))
        .filter(|(likeness, _)| *likeness >= ALIKE)
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

/// Names are compared whole, with and without the location.
fn likeness(device: &Device, said: &str) -> f64 {
    let (name, location) = (
        words(&device.name).join(" "),
        words(&device.location).join(" "),
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
