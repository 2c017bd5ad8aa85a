//! The read-only tools: lists, readings, health.

use serde_json::json;

use super::*;

fn names(fields: &Value) -> Vec<&str> {
    let devices = fields["devices"].as_array().unwrap();
    devices
        .iter()
        .map(|device| device["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_has_name_room_type_status_and_state() {
    let fixture = fixture().await;
    let (text, fields) = fixture.call("list_zwave_devices", json!({})).await.unwrap();
    assert_eq!(fields["total"], 13);
    assert_eq!(names(&fields).len(), 13);
    assert!(text.starts_with("There are 13 Z-Wave devices.\n"), "{text}");
    assert!(
        text.contains("\n- Living Room Lamp in Living Room (dimmer): on at 60 %"),
        "{text}"
    );
    assert!(
        text.contains("\n- Garage Light in Garage (switch): off, does not answer"),
        "{text}"
    );
    let lamp = fields["devices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|device| device["node"] == 4)
        .unwrap();
    for (field, value) in [
        ("name", "Living Room Lamp"),
        ("location", "Living Room"),
        ("type", "dimmer"),
        ("status", "alive"),
        ("state", "on at 60 %"),
    ] {
        assert_eq!(lamp[field], value, "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_filtered_by_words_room_and_state() {
    let fixture = fixture().await;
    for (arguments, expected) in [
        (
            json!({ "filter": "light" }),
            &[
                "Bedside Lamp",
                "Garage Light",
                "Kitchen Light",
                "Living Room Lamp",
            ][..],
        ),
        (
            json!({ "filter": "lights", "state": "on" }),
            &["Living Room Lamp"],
        ),
        (json!({ "filter": "Kitchen Light" }), &["Kitchen Light"]),
        (json!({ "state": "on" }), &["Living Room Lamp", "TV Plug"]),
        (json!({ "state": "dead" }), &["Garage Light"]),
        (json!({ "state": "asleep" }), &["Radiator"]),
        (json!({ "state": "locked" }), &["Front Door"]),
        (
            json!({ "location": "the bedroom" }),
            &["Bedside Lamp", "Climate Sensor"],
        ),
        (
            json!({ "location": "Bedroom", "filter": "sensor" }),
            &["Climate Sensor"],
        ),
        (json!({ "filter": "submarine" }), &[]),
    ] {
        let (text, fields) = fixture
            .call("list_zwave_devices", arguments.clone())
            .await
            .unwrap();
        assert_eq!(names(&fields), expected, "{arguments}: {text}");
        assert_eq!(fields["total"], expected.len());
    }
    assert_eq!(
        fixture
            .text("list_zwave_devices", json!({ "location": "Attic" }))
            .await,
        "There are no Z-Wave devices in Attic. The rooms are: Bathroom, Bedroom, Garage, Hall, Kitchen, Living Room."
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_list_comes_in_pages() {
    let fixture = fixture().await;
    let mut seen = Vec::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let arguments = json!({ "limit": 5, "offset": offset });
        let (text, fields) = fixture.call("list_zwave_devices", arguments).await.unwrap();
        seen.extend(names(&fields).into_iter().map(str::to_owned));
        offset = fields["nextOffset"].clone();
        assert!(
            offset.is_null() || text.contains(&format!("offset={offset}")),
            "{text}"
        );
    }
    assert_eq!(seen.len(), 13);
    seen.dedup();
    assert_eq!(seen.len(), 13, "none comes twice");
    let beyond = fixture
        .call("list_zwave_devices", json!({ "offset": 99 }))
        .await
        .unwrap()
        .1;
    assert_eq!((names(&beyond).len(), &beyond["total"]), (0, &json!(13)));
}

#[tokio::test(start_paused = true)]
async fn readings_have_unit_age_and_source() {
    let fixture = fixture().await;
    let (text, fields) = fixture
        .call(
            "get_device_sensor_data",
            json!({ "deviceName": "climate sensor" }),
        )
        .await
        .unwrap();
    assert!(text.starts_with("Climate Sensor in Bedroom: "), "{text}");
    assert!(
        text.contains("Air temperature 19.4 °C (") && text.contains("Humidity 47 % ("),
        "{text}"
    );
    let readings = fields["devices"][0]["readings"].as_array().unwrap();
    let warmth = readings
        .iter()
        .find(|reading| reading["label"] == "Air temperature")
        .unwrap();
    assert_eq!(
        (&warmth["value"], &warmth["unit"]),
        (&json!(19.4), &json!("°C"))
    );
    assert!(warmth["ageSeconds"].is_u64(), "{warmth}");
    assert!(
        ["gateway", "retained", "report"].contains(&warmth["source"].as_str().unwrap()),
        "{warmth}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_room_is_read_as_a_whole() {
    let fixture = fixture().await;
    let (text, fields) = fixture
        .call("get_device_sensor_data", json!({ "deviceName": "Bedroom" }))
        .await
        .unwrap();
    assert_eq!(
        names(&fields),
        ["Climate Sensor"],
        "the lamp measures nothing: {text}"
    );
    let (_, fields) = fixture
        .call(
            "get_device_sensor_data",
            json!({ "deviceName": "the living room" }),
        )
        .await
        .unwrap();
    assert_eq!(names(&fields), ["Balcony Door", "TV Plug", "Thermostat"]);
    assert_eq!(
        fixture
            .error("get_device_sensor_data", json!({ "deviceName": "Attic" }))
            .await,
        "No device is called 'Attic'. list_zwave_devices shows all names."
    );
}

#[tokio::test(start_paused = true)]
async fn a_device_without_readings_reports_its_state() {
    let fixture = fixture().await;
    let text = |name| fixture.text("get_device_sensor_data", json!({ "deviceName": name }));
    assert_eq!(
        text("Kitchen Light").await,
        "Kitchen Light in Kitchen is off; it measures nothing."
    );
    let door = text("Front Door").await;
    assert!(
        door.starts_with("Front Door in Hall is locked: ") && door.contains("Battery 91 %"),
        "{door}"
    );
}

#[tokio::test(start_paused = true)]
async fn health_reports_gateway_devices_and_locks() {
    let fixture = fixture().await;
    let (text, fields) = fixture.call("check_zwave_health", json!({})).await.unwrap();
    assert!(
        text.starts_with("The Z-Wave system works: the gateway Simulated_House"),
        "{text}"
    );
    assert!(
        text.contains("has 13 devices. 1 of them does not answer"),
        "{text}"
    );
    assert!(text.contains("ZWAVE_ALLOW_LOCKS=1"), "{text}");
    assert_eq!(
        (&fields["healthy"], &fields["devices"]),
        (&json!(true), &json!(13))
    );
    assert_eq!(
        (&fields["deadDevices"], &fields["locksEnabled"]),
        (&json!(1), &json!(false))
    );
}
