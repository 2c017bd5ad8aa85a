//! Sentences about devices whose names come from a tool.

use super::*;

#[tokio::test]
async fn sentences_about_devices_become_calls() {
    let interpreter = interpreter_with_all_tools();
    let on = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#;
    let off = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"off"}"#;
    let one = r#"control_zwave_device {"deviceName":"Switch 1","action":"on"}"#;
    let two = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"} + control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"}"#;
    let switches = r#"control_zwave_device {"deviceName":"Switch 1","action":"on"} + control_zwave_device {"deviceName":"Switch 2","action":"on"}"#;
    let three = format!("{two} + {one}");
    let three = three.as_str();
    let dim = r#"control_zwave_device {"deviceName":"Bedroom Light","action":"dim","level":30}"#;
    let bedroom = r#"get_device_sensor_data {"deviceName":"Bedroom"}"#;
    let warm = r#"set_thermostat {"deviceName":"Living Room Thermostat","temperature":21}"#;
    for (text, expected) in [
        ("turn on the kitchen light", on),
        ("Turn on the kitchen light.", on),
        ("turn the kitchen light on", on),
        ("TURN ON KITCHEN LIGHT", on),
        ("please switch on the kitchen light", on),
        ("kitchen light on", on),
        ("could you turn on the light in the kitchen?", on),
        ("turn on the kitchen-light", on),
        ("turn on the kichen light", on),
        ("turn on the kitchen ligth", on),
        ("trun on the kitchen light", on),
        ("switch off the kitchen light", off),
        ("turn of the kitchen light", off),
        ("turn the kitchen light off please", off),
        ("Turn on switch one.", one),
        (" TURN ON SWITCH ONE.", one),
        ("Turn on switch number one.", one),
        ("Turn on switch #1.", one),
        ("turn on switch 1", one),
        ("Turn on Switch1", one),
        ("switch on switch one", one),
        (
            "turn off the lamp",
            r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"off"}"#,
        ),
        (
            "turn on the cafe machine",
            r#"control_zwave_device {"deviceName":"Café Machine","action":"on"}"#,
        ),
        ("set the bedroom light to 30%", dim),
        ("Set bedroom light to thirty percent.", dim),
        ("dim the bedroom light to 30", dim),
        ("bedroom light 30 percent", dim),
        ("set the brightness of the bedroom light to 30 percent", dim),
        ("turn the bedroom light down to 30 percent", dim),
        ("how warm is the bedroom", bedroom),
        ("how warm is it in the bedroom?", bedroom),
        ("what's the temperature in the bedroom", bedroom),
        (
            "what is the battery of the motion sensor",
            r#"get_device_sensor_data {"deviceName":"Motion Sensor"}"#,
        ),
        (
            "is the front door locked?",
            r#"get_device_sensor_data {"deviceName":"Front Door"}"#,
        ),
        ("set the living room thermostat to 21", warm),
        ("set the living room thermostat to 21 degrees", warm),
        ("set the living room thermostat to 21°C", warm),
        (
            "set the living room thermostat to twenty one degrees celsius",
            warm,
        ),
        (
            "set the thermostat to 19.5",
            r#"set_thermostat {"deviceName":"Thermostat","temperature":19.5}"#,
        ),
        (
            "set the temperature in the bedroom to 20",
            r#"set_thermostat {"deviceName":"Bedroom","temperature":20}"#,
        ),
        (
            "heat the bedroom to 20 degrees",
            r#"set_thermostat {"deviceName":"Bedroom","temperature":20}"#,
        ),
        (
            "activate the dinner scene",
            r#"activate_scene {"sceneName":"dinner"}"#,
        ),
        (
            "activate movie night",
            r#"activate_scene {"sceneName":"movie night"}"#,
        ),
        (
            "activate scene Movie Night",
            r#"activate_scene {"sceneName":"Movie Night"}"#,
        ),
        (
            "lock the front door",
            r#"control_lock {"deviceName":"Front Door","action":"lock"}"#,
        ),
        (
            "Unlock the front door.",
            r#"control_lock {"deviceName":"Front Door","action":"unlock"}"#,
        ),
        ("which devices are there", "list_zwave_devices {}"),
        (
            "which devices are in the bedroom",
            r#"list_zwave_devices {"location":"Bedroom"}"#,
        ),
        (
            "which lights are on",
            r#"list_zwave_devices {"filter":"light","state":"on"}"#,
        ),
        (
            "is the kitchen light on",
            r#"list_zwave_devices {"filter":"Kitchen Light"}"#,
        ),
        ("turn on the kitchen light and the lamp", two),
        ("turn the kitchen light and the kitchen lamp on", two),
        ("turn on all the kitchen lights", two),
        (
            "switch off all switches",
            r#"control_zwave_device {"deviceName":"Switch 1","action":"off"} + control_zwave_device {"deviceName":"Switch 2","action":"off"}"#,
        ),
        (
            "turn off all the lights",
            r#"control_zwave_device {"deviceName":"Kitchen Light","action":"off"} + control_zwave_device {"deviceName":"Kitchen Lamp","action":"off"} + control_zwave_device {"deviceName":"Bedroom Light","action":"off"}"#,
        ),
        ("turn on switch one and two", switches),
        ("turn on the kitchen light, the lamp, and switch 1", three),
        (
            "turn off all thermostats",
            r#"control_zwave_device {"deviceName":"Living Room Thermostat","action":"off"} + control_zwave_device {"deviceName":"Thermostat","action":"off"}"#,
        ),
        (
            "check the motion sensor",
            r#"get_device_sensor_data {"deviceName":"Motion Sensor"}"#,
        ),
        ("is the z-wave network ok?", "check_zwave_health {}"),
        ("check zwave", "check_zwave_health {}"),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn ambiguous_sentences_ask_which_device_is_meant() {
    let interpreter = interpreter_with_all_tools();
    for (text, expected) in [
        (
            "turn on the kitchen",
            "Which one: Kitchen Light or Kitchen Lamp?",
        ),
        ("turn on the switch", "Which one: Switch 1 or Switch 2?"),
        (
            "turn off the light",
            "Which one: Kitchen Light or Bedroom Light?",
        ),
        // A misspelt name must not move a lock.
        (
            "unlock the frnt door",
            "Which one: Front Door or Font Door?",
        ),
        ("lock the frontt door", "Do you mean “lock Front Door”?"),
        ("lokc the front door", "Do you mean “lock Front Door”?"),
        ("unlock the front", "Do you mean “unlock Front Door”?"),
        ("unlock the door", "Which one: Front Door or Font Door?"),
        (
            "unlock all doors",
            "Do you mean “unlock Front Door and Font Door”?",
        ),
        (
            "turn everything off",
            "Do you mean “turn Kitchen Light, Kitchen Lamp, Bedroom Light, Switch 1, Switch 2 and Café Machine off”?",
        ),
        ("turn on", "What should I turn on?"),
        ("turn off", "What should I turn off?"),
        (
            "turn it off",
            "I don't know what “it” is. Please say its name.",
        ),
        (
            "turn on the bathroom light",
            "I don't know any device called “bathroom light”. Do you mean “turn on Bedroom Light”?",
        ),
        (
            "turn on the garage fountain",
            "I don't know any device called “garage fountain”.",
        ),
        (
            "dim the bedroom light to 300 percent",
            "The brightness goes from 0 to 100.",
        ),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn unrelated_sentences_are_not_taken_for_devices() {
    let house = interpreter_with_all_tools();
    let bare = english_interpreter(&manager_with(Vec::new()));
    for text in [
        "read file notes.txt",
        "read the file notes.txt",
        "what does the fox say",
        "how is your day",
        "hang on",
    ] {
        for interpreter in [&house, &bare] {
            let said = say(interpreter, text).await;
            let is_general = ["I did not understand", "I don't know any sentences"];
            assert!(
                is_general.iter().any(|start| said.starts_with(start)),
                "{text}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn a_missing_tool_is_reported() {
    let interpreter = english_interpreter(&manager_with(
        HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools(),
    ));
    for (text, expected) in [
        (
            "turn on the kitchen light",
            "I can't switch devices here: no tool for it is connected (control_zwave_device).",
        ),
        (
            "unlock the front door",
            "I can't lock or unlock doors here: no tool for it is connected (control_lock).",
        ),
        (
            "search my notes for cats",
            "I can't search documents here: no tool for it is connected (documents).",
        ),
    ] {
        assert_eq!(say(&interpreter, text).await, expected);
    }
}

#[tokio::test]
async fn tools_with_the_same_name_are_reported_as_ambiguous() {
    let named = |listed: &str| {
        let definition = ToolDefinition::builder(listed, "…", object(json!({}), &[]))
            .original_name("check_zwave_health");
        Arc::new(
            FunctionTool::with_definition(definition, async |_: Value, _| {
                Ok::<_, ToolError>("fine")
            })
            .unwrap(),
        ) as Arc<dyn Tool>
    };
    let one = english_interpreter(&manager_with(vec![named("a__check")]));
    assert_eq!(say(&one, "check z-wave").await, "a__check {}");
    let two = english_interpreter(&manager_with(vec![named("a__check"), named("b__check")]));
    assert_eq!(
        say(&two, "check z-wave").await,
        "I can't check the Z-Wave network here: there are several tools called check_zwave_health: a__check and b__check."
    );
}

#[tokio::test]
async fn added_sentences_win_over_built_in_ones() {
    let mine = Pack::parse(r#"{ "intents": [{ "sentences": ["check z wave"], "tool": "activate_scene", "arguments": { "sceneName": "Check" } }] }"#).unwrap();
    let toolbox = Toolbox::new(ToolExecutor::new(manager_with(house_tools(|| {
        Ok(devices())
    }))));
    let interpreter = SentenceInterpreter::new(toolbox, Pack::english().with(mine)).unwrap();
    assert_eq!(
        say(&interpreter, "check Z-Wave").await,
        r#"activate_scene {"sceneName":"Check"}"#
    );
}

#[tokio::test]
async fn another_language_is_a_pack_of_data() {
    let german = r#"{
        "language": "de", "polite": ["bitte"], "small": ["das", "die"],
        "numbers": { "words": { "eins": 1 } },
        "intents": [{ "sentences": ["schalte [das|die] {device} ein"], "tool": "control_zwave_device",
            "arguments": { "deviceName": "{device}", "action": "on" } }]
    }"#;
    let toolbox = Toolbox::new(ToolExecutor::new(manager_with(house_tools(|| {
        Ok(devices())
    }))));
    let pack = Pack::english().with(Pack::parse(german).unwrap());
    let interpreter = SentenceInterpreter::new(toolbox, pack).unwrap();
    assert_eq!(interpreter.language(), "de");
    let on =
        |name: &str| format!(r#"control_zwave_device {{"deviceName":"{name}","action":"on"}}"#);
    for (text, expected) in [
        ("Schalte das Kitchen Light ein, bitte", on("Kitchen Light")),
        ("schalte die Switch eins ein", on("Switch 1")),
        ("schalde das Kitchen Ligth ein", on("Kitchen Light")),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}
