use super::*;
use crate::node::DescribedNode;

fn node(values: &str) -> ZwaveNode {
    let json = format!(r#"{{"id":2,"name":"It","status":"Alive","values":[{values}]}}"#);
    serde_json::from_str::<DescribedNode>(&json)
        .unwrap()
        .into_node()
        .unwrap()
}

fn switch() -> ZwaveNode {
    node(
        r#"{"commandClass":37,"endpoint":0,"property":"currentValue","writeable":false},
           {"commandClass":37,"endpoint":0,"property":"targetValue","writeable":true}"#,
    )
}

fn dimmer() -> ZwaveNode {
    node(
        r#"{"commandClass":38,"endpoint":1,"property":"currentValue"},
           {"commandClass":38,"endpoint":1,"property":"targetValue","min":0,"max":99}"#,
    )
}

fn blind() -> ZwaveNode {
    ZwaveNode {
        name: "Blind".to_owned(),
        ..dimmer()
    }
}

fn lock() -> ZwaveNode {
    node(
        r#"{"commandClass":98,"property":"currentMode"},{"commandClass":98,"property":"targetMode"}"#,
    )
}

fn thermostat(mode: u8) -> ZwaveNode {
    node(&format!(
        r#"{{"commandClass":64,"property":"mode","value":{mode},
             "states":[{{"text":"Off","value":0}},{{"text":"Heat","value":1}},{{"text":"Cool","value":2}}]}},
           {{"commandClass":67,"property":"setpoint","propertyKey":1,"unit":"°C","min":5,"max":35,"value":20}},
           {{"commandClass":67,"property":"setpoint","propertyKey":2,"unit":"°F","min":60,"max":90,"value":75}}"#
    ))
}

fn sensor() -> ZwaveNode {
    node(r#"{"commandClass":49,"property":"Air temperature"}"#)
}

#[test]
fn a_command_is_one_write() {
    let mode = |mode: &str| DeviceCommand::Mode(mode.to_owned());
    for (node, command, target, send) in [
        (switch(), DeviceCommand::On, "37-0-targetValue", json!(true)),
        (
            switch(),
            DeviceCommand::Off,
            "37-0-targetValue",
            json!(false),
        ),
        (dimmer(), DeviceCommand::On, "38-1-targetValue", json!(255)),
        (dimmer(), DeviceCommand::Off, "38-1-targetValue", json!(0)),
        (
            dimmer(),
            DeviceCommand::Dim(0),
            "38-1-targetValue",
            json!(0),
        ),
        (
            dimmer(),
            DeviceCommand::Dim(50),
            "38-1-targetValue",
            json!(50),
        ),
        (
            dimmer(),
            DeviceCommand::Dim(99),
            "38-1-targetValue",
            json!(99),
        ),
        (
            dimmer(),
            DeviceCommand::Dim(100),
            "38-1-targetValue",
            json!(99),
        ),
        (blind(), DeviceCommand::On, "38-1-targetValue", json!(99)),
        (blind(), DeviceCommand::Off, "38-1-targetValue", json!(0)),
        (
            blind(),
            DeviceCommand::Dim(50),
            "38-1-targetValue",
            json!(50),
        ),
        (lock(), DeviceCommand::Lock, "98-0-targetMode", json!(255)),
        (lock(), DeviceCommand::Unlock, "98-0-targetMode", json!(0)),
        (thermostat(0), mode(" Heat"), "64-0-mode", json!(1)),
        (
            thermostat(1),
            DeviceCommand::Setpoint(21.0, None),
            "67-0-setpoint-1",
            json!(21),
        ),
        (
            thermostat(1),
            DeviceCommand::Setpoint(20.5, Some(TemperatureUnit::Celsius)),
            "67-0-setpoint-1",
            json!(20.5),
        ),
        (
            thermostat(1),
            DeviceCommand::Setpoint(70.0, Some(TemperatureUnit::Fahrenheit)),
            "67-0-setpoint-1",
            json!(21.1),
        ),
        (
            thermostat(2),
            DeviceCommand::Setpoint(25.0, Some(TemperatureUnit::Celsius)),
            "67-0-setpoint-2",
            json!(77),
        ),
    ] {
        let plan = plan_command(&node, &command).unwrap();
        assert_eq!(
            (plan.target.to_string().as_str(), &plan.send),
            (target, &send),
            "{command:?}"
        );
        assert!(plan.wanted.is_met(&send), "{command:?}");
    }
}

#[test]
fn impossible_commands_are_refused_with_a_reason() {
    for (node, command, reason) in [
        (
            switch(),
            DeviceCommand::Dim(50),
            "'It' is a switch and can't be dimmed. It can be turned on or off.",
        ),
        (
            dimmer(),
            DeviceCommand::Dim(101),
            "A level goes from 0 to 100.",
        ),
        (
            sensor(),
            DeviceCommand::On,
            "'It' is a sensor and can't be turned on or off.",
        ),
        (
            lock(),
            DeviceCommand::On,
            "'It' is a lock and can't be turned on or off. It can be locked or unlocked.",
        ),
        (
            switch(),
            DeviceCommand::Unlock,
            "'It' is a switch and can't be locked or unlocked.",
        ),
        (
            thermostat(0),
            DeviceCommand::Mode("boil".to_owned()),
            "'It' has no such mode. It has: off, heat, cool.",
        ),
        (
            thermostat(1),
            DeviceCommand::Setpoint(99.0, None),
            "'It' can be set from 5 °C to 35 °C.",
        ),
        (
            thermostat(1),
            DeviceCommand::Setpoint(f64::NAN, None),
            "A temperature is a number.",
        ),
        (
            node(r#"{"commandClass":128,"property":"level"}"#),
            DeviceCommand::On,
            "'It' can't be turned on or off.",
        ),
        (
            node(r#"{"commandClass":37,"property":"targetValue","writeable":false}"#),
            DeviceCommand::On,
            "'It' can only be read.",
        ),
    ] {
        assert_eq!(plan_command(&node, &command).unwrap_err(), reason);
    }
}

#[test]
fn only_the_wanted_value_is_proof() {
    for (wanted, yes, no) in [
        (WantedState::Is(true), json!(true), json!(1)),
        (WantedState::On, json!(1), json!(0)),
        (WantedState::Bolt(&[LOCKED]), json!(255), json!(254)),
        (WantedState::Bolt(&UNLOCKED), json!(0), json!(false)),
        (WantedState::Number(20.5), json!(20.5), json!(20)),
        (WantedState::Level(99), json!(99), json!("99")),
    ] {
        assert!(wanted.is_met(&yes), "{wanted:?}");
        assert!(!wanted.is_met(&no), "{wanted:?}");
    }
}

#[test]
fn a_command_is_always_json() {
    for (send, payload) in [
        (json!(true), r#"{"value":true}"#),
        (json!(99), r#"{"value":99}"#),
        (json!(20.5), r#"{"value":20.5}"#),
    ] {
        let plan = CommandPlan {
            send,
            ..plan_command(&switch(), &DeviceCommand::On).unwrap()
        };
        assert_eq!(json!({ "value": plan.send }).to_string(), payload);
    }
}
