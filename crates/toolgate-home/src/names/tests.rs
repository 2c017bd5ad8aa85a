use super::*;
use crate::{DeviceId, DeviceStatus};

fn device(id: DeviceId, name: &str, location: &str, kind: DeviceKind) -> HomeDevice {
    HomeDevice {
        id,
        name: name.to_owned(),
        location: location.to_owned(),
        kind,
        status: DeviceStatus::Alive,
        stale: false,
        last_seen: None,
        readings: Vec::new(),
        state: "off".to_owned(),
    }
}

fn sample_devices() -> Vec<HomeDevice> {
    use DeviceKind::{Blind, Dimmer, Fan, Lock, Sensor, Switch, Thermostat};
    vec![
        device(2, "Switch One", "Kitchen", Switch),
        device(3, "Ceiling", "Kitchen", Dimmer),
        device(4, "Light", "Hall", Dimmer),
        device(5, "Light", "Living Room", Dimmer),
        device(6, "nodeID_6", "", Switch),
        device(7, "Kid's Lamp #2", "Office", Switch),
        device(8, "Heizung", "Küche", Thermostat),
        device(9, "Front Door", "Hall", Lock),
        device(10, "Coffee", "Office", Switch),
        device(11, "Climate", "Bedroom", Sensor),
        device(12, "Back Door", "Garden", Lock),
        device(13, "Back Door", "Cellar", Lock),
        device(14, "South", "Attic", Blind),
        device(15, "Ceiling", "Attic", Fan),
    ]
}

/// The device's number, or `none` or `several` with the numbers.
fn outcome(found: Result<HomeDevice, ResolveError>) -> String {
    match found {
        Ok(device) => device.id.to_string(),
        Err(ResolveError::NotFound { nearest }) => {
            let numbers = nearest.iter().map(|device| device.id.to_string());
            ["none".to_owned()]
                .into_iter()
                .chain(numbers)
                .collect::<Vec<_>>()
                .join(" ")
        }
        Err(ResolveError::Ambiguous { candidates }) => {
            let numbers = candidates.iter().map(|device| device.id.to_string());
            ["several".to_owned()]
                .into_iter()
                .chain(numbers)
                .collect::<Vec<_>>()
                .join(" ")
        }
    }
}

#[test]
fn devices_are_found_as_people_name_them() {
    for (said, expected) in [
        // The name, however it is said or written.
        ("Switch One", "2"),
        ("switch one", "2"),
        ("switch 1", "2"),
        ("Switch_One", "2"),
        ("the switch one.", "2"),
        ("switch number 1", "2"),
        ("kids lamp two", "7"),
        ("heizung", "8"),
        // Name and location, in any order.
        ("Kitchen switch one", "2"),
        ("switch one in the kitchen", "2"),
        ("the hall light", "4"),
        ("Living Room Light", "5"),
        ("light living room", "5"),
        ("Kuche Heizung", "8"),
        // A location or a kind with a single device.
        ("bedroom", "11"),
        ("the kitchen light", "3"),
        ("kitchen dimmer", "3"),
        ("office light", "7"),
        ("the thermostat", "8"),
        ("attic blind", "14"),
        ("the curtain in the attic", "14"),
        ("attic fan", "15"),
        // A level alone does not make a light.
        ("attic light", "none"),
        ("attic dimmer", "none"),
        // Unnamed nodes.
        ("nodeID_6", "6"),
        ("node 6", "6"),
        ("node six", "6"),
        ("node 4", "4"),
        // Several.
        ("light", "several 4 5"),
        ("Back Door", "several 12 13"),
        ("kitchen", "several 2 3"),
        ("lock", "several 9 12 13"),
        // Parts of names don't match, and similar names are only suggested.
        ("switch", "several 2 6 7 10"),
        ("coff", "none"),
        ("cofee", "none 10"),
        ("switch two", "none"),
        ("switch on", "none 2"),
        ("front", "none"),
        ("heating", "none"),
        ("garage light", "none"),
        ("", "none"),
        ("  ", "none"),
        ("🙂", "none"),
        ("node 99", "none"),
    ] {
        let found = outcome(resolve(&sample_devices(), said));
        if expected == "none" {
            assert!(found.starts_with("none"), "{said:?}: {found}");
        } else {
            assert_eq!(found, expected, "{said:?}");
        }
    }
}

#[test]
fn locks_are_found_only_by_their_exact_name() {
    for (said, expected) in [
        ("Front Door", "9"),
        ("front door", "9"),
        (" FRONT DOOR ", "9"),
        ("the front door", "none 9"),
        ("front-door", "none 9"),
        ("Front", "none"),
        ("Hall", "none"),
        ("lock", "none"),
        ("node 9", "none"),
        ("Back Door", "several 12 13"),
        ("Garden Back Door", "12"),
        ("cellar back door", "13"),
        ("Back Door Garden", "none 12"),
    ] {
        let found = outcome(resolve_exact(&sample_devices(), said));
        if expected == "none" {
            assert!(found.starts_with("none"), "{said:?}: {found}");
        } else {
            assert_eq!(found, expected, "{said:?}");
        }
    }
}

#[test]
fn look_alikes_are_different_devices() {
    let devices = vec![
        device(2, "Switch One", "", DeviceKind::Switch),
        // Starts with a Cyrillic letter.
        device(3, "Ѕwitch One", "", DeviceKind::Switch),
        device(4, "switch-one", "", DeviceKind::Switch),
    ];
    assert_eq!(outcome(resolve(&devices, "Switch One")), "2");
    assert_eq!(outcome(resolve(&devices, "Ѕwitch One")), "3");
    assert_eq!(outcome(resolve(&devices, "the switch one")), "several 2 4");
}

fn numbers(found: &[HomeDevice]) -> Vec<DeviceId> {
    found.iter().map(|device| device.id).collect()
}

#[test]
fn a_room_is_found_by_all_of_its_words() {
    for (said, expected) in [
        ("kitchen", vec![2, 3]),
        ("the Kitchen", vec![2, 3]),
        ("kuche", vec![8]),
        ("living", vec![]),
        ("living room", vec![5]),
        ("", vec![]),
    ] {
        assert_eq!(
            numbers(&devices_in_room(&sample_devices(), said)),
            expected,
            "{said}"
        );
    }
}

#[test]
fn a_search_lists_the_device_with_that_name_first() {
    for (said, expected) in [
        ("lights", vec![3, 4, 5, 7]),
        ("light", vec![3, 4, 5, 7]),
        ("lamp", vec![7, 3, 4, 5]),
        ("kitchen", vec![2, 3]),
        ("light in the hall", vec![4]),
        ("switch 1", vec![2]),
        ("switch", vec![2, 6, 7, 10]),
        ("back door cellar", vec![13]),
        ("lock", vec![9, 12, 13]),
        ("kit", vec![2, 3]),
        ("ki", vec![]),
        ("garage", vec![]),
    ] {
        assert_eq!(
            numbers(&search(&sample_devices(), said)),
            expected,
            "{said}"
        );
    }
    let mut devices = sample_devices();
    devices.insert(
        0,
        device(20, "Coffee Grinder", "Office", DeviceKind::Switch),
    );
    assert_eq!(numbers(&search(&devices, "coffee")), [10, 20]);
}
