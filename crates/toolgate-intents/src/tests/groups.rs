//! Sentences that name several things at once.

use super::*;

#[tokio::test]
async fn lights_are_found_by_name_or_as_dimmers() {
    let house = [
        ("Ceiling Light", json!("switch"), true),
        ("Floor Lamp", json!("switch"), true),
        ("Stairs", json!("dimmer"), true),
        ("Porch Light", Value::Null, true),
        ("TV Plug", json!("switch"), false),
        ("Lightning Rod", json!("switch"), false),
        ("Light Sensor", json!("sensor"), false),
        ("Blinds", json!("dimmer"), false),
        ("Ceiling Fan", json!("dimmer"), false),
        ("Heater", json!("thermostat"), false),
    ];
    let device = |(name, kind, _): &(&str, Value, bool)| json!({ "name": name, "location": "Hall", "type": kind });
    let devices: Vec<Value> = house.iter().map(device).collect();
    let tools = house_tools(move || Ok(json!({ "devices": devices })));
    let interpreter = english_interpreter(&manager_with(tools));
    let lights = house.iter().filter(|(_, _, is_light)| *is_light);
    let all = |arguments: &str| {
        let call = |(name, ..): &(&str, Value, bool)| {
            format!(r#"control_zwave_device {{"deviceName":"{name}",{arguments}}}"#)
        };
        lights.clone().map(call).collect::<Vec<_>>().join(" + ")
    };
    let (off, dim) = (
        all(r#""action":"off""#),
        all(r#""action":"dim","level":30"#),
    );
    for (text, expected) in [
        ("turn off all lights", &off),
        ("turn off all the lamps", &off),
        ("switch every light off", &off),
        ("turn off all the hall lights", &off),
        ("all the lights off", &off),
        ("turn off the lights", &off),
        ("turn off the lamps", &off),
        ("turn the lights off", &off),
        ("lights off", &off),
        ("the lights off please", &off),
        ("turn off the hall lights", &off),
        ("switch off the lights in the hall", &off),
        ("dim the lights to 30 percent", &dim),
        ("dim all the lights to 30 percent", &dim),
    ] {
        assert_eq!(say(&interpreter, text).await, *expected, "{text}");
    }
}

#[tokio::test]
async fn a_plural_means_all_devices_and_an_ambiguous_singular_asks() {
    let names = [
        "Hall Light",
        "Kitchen Lights",
        "Stair Light",
        "Stair Lamp",
        "Light 2",
        "Garden Speakers",
        "Kitchen Speaker",
        "Fan Switch",
        "Wall Switch",
    ];
    let devices = names.map(|name| json!({ "name": name, "type": "switch" }));
    let tools = house_tools(move || Ok(json!({ "devices": devices })));
    let interpreter = english_interpreter(&manager_with(tools));
    let on = |names: &[&str]| {
        let call = |name: &&str| {
            format!(r#"control_zwave_device {{"deviceName":"{name}","action":"on"}}"#)
        };
        names.iter().map(call).collect::<Vec<_>>().join(" + ")
    };
    let lights = [
        "Hall Light",
        "Kitchen Lights",
        "Stair Light",
        "Stair Lamp",
        "Light 2",
    ];
    for (text, expected) in [
        ("turn on the lights", on(&lights)),
        ("turn on all the lights", on(&lights)),
        ("turn on the kitchen lights", on(&["Kitchen Lights"])),
        (
            "turn on the speakers",
            on(&["Garden Speakers", "Kitchen Speaker"]),
        ),
        ("turn on the switches", on(&["Fan Switch", "Wall Switch"])),
        // Not every word with a plural ending is a plural.
        ("turn on the stairs light", on(&["Stair Light"])),
        ("turn on light two", on(&["Light 2"])),
        (
            "turn on the light",
            "Which one: Hall Light, Stair Light or Light 2?".to_owned(),
        ),
        (
            "turn on the switches and the fan",
            "I understood “turn on the switches”, but not “the fan”, so I did nothing.".to_owned(),
        ),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}
