use proptest::prelude::*;

use super::*;

#[test]
fn names_are_cleaned_as_the_gateway_does() {
    for (name, cleaned) in [
        ("Switch One", "Switch_One"),
        ("Kid's Lamp #2", "Kids_Lamp_2"),
        ("Küche  Ost", "Küche__Ost"),
        ("a+b#c$d", "abcd"),
        ("a/b", "a/b"),
        ("nul\0 tab\tline\n", "nul_tab_line_"),
        ("×÷ØÞ", "ØÞ"),
        ("Łódź", "ód"),
        ("no\u{a0}break\u{feff}\u{85}", "no_break_"),
        ("🙂", ""),
    ] {
        assert_eq!(sanitize(name), cleaned, "{name:?}");
    }
}

#[test]
fn a_node_has_a_base_for_every_setting() {
    let style = |names, locations| TopicStyle {
        form: TopicForm::ValueId,
        names,
        locations,
    };
    for (names, locations, name, location, base) in [
        (true, true, "Switch One", "Kitchen", "Kitchen/Switch_One"),
        (true, false, "Switch One", "Kitchen", "Switch_One"),
        (true, true, "", "", "nodeID_2"),
        (true, true, "", "Living Room", "Living_Room/nodeID_2"),
        (false, true, "Switch One", "Kitchen", "Kitchen/2"),
        (false, false, "Switch One", "Kitchen", "2"),
    ] {
        assert_eq!(style(names, locations).base(2, name, location), base);
        assert!(
            TopicStyle::ALL
                .into_iter()
                .any(|style| style.base(2, name, location) == base)
        );
    }
}

#[test]
fn suffixes_of_real_values_are_built_and_parsed() {
    let key = |key: &str| Some(key.to_owned());
    for (class, property, key, name, named, numbered) in [
        (
            37,
            "currentValue",
            None,
            "currentValue",
            "switch_binary/endpoint_0/currentValue",
            "37/0/currentValue",
        ),
        (
            49,
            "Air temperature",
            None,
            "Air temperature",
            "sensor_multilevel/endpoint_0/Air_temperature",
            "49/0/Air_temperature",
        ),
        (
            48,
            "Door/Window",
            None,
            "Door/Window",
            "sensor_binary/endpoint_0/Door-Window",
            "48/0/Door-Window",
        ),
        (
            113,
            "Home Security",
            key("Motion sensor status"),
            "Home Security",
            "notification/endpoint_0/Home_Security/Motion_sensor_status",
            "113/0/Home_Security/Motion_sensor_status",
        ),
        (
            50,
            "value",
            key("65537"),
            "value",
            "meter/endpoint_0/value/65537",
            "50/0/value/65537",
        ),
        (
            32,
            "targetValue",
            None,
            "Target value",
            "basic/endpoint_0/Target_value",
            "32/0/targetValue",
        ),
    ] {
        let id = ValueId {
            key,
            ..ValueId::new(class, 0, property)
        };
        for (form, text) in [(TopicForm::Named, named), (TopicForm::ValueId, numbered)] {
            assert_eq!(value_suffix(form, &id, name), text);
            let read = parse_suffix(text).unwrap();
            assert_eq!((read.form, read.command_class), (form, class), "{text}");
            assert!(read.matches(&id, name), "{text}");
            let other = ValueId::new(class, 0, "another");
            assert!(!read.matches(&other, "another"), "{text}");
        }
    }
}

#[test]
fn a_topic_is_split_at_its_class_from_the_right() {
    for (rest, base, class, property, key) in [
        (
            "Kitchen/2/37/0/currentValue",
            "Kitchen/2",
            37,
            "currentValue",
            None,
        ),
        ("2/37/0/currentValue", "2", 37, "currentValue", None),
        ("6/50/0/value/65537", "6", 50, "value", Some("65537")),
        ("2/112/0/7/1", "2", 112, "7", Some("1")),
        ("2/112/1/40/255", "2", 112, "40", Some("255")),
        (
            "Upper/Floor/Hall/Lamp/switch_binary/endpoint_1/currentValue",
            "Upper/Floor/Hall/Lamp",
            37,
            "currentValue",
            None,
        ),
        (
            "meter/switch_binary/endpoint_0/currentValue",
            "meter",
            37,
            "currentValue",
            None,
        ),
        (
            "nodeID_5/unknownClass_159/endpoint_0/x",
            "nodeID_5",
            159,
            "x",
            None,
        ),
    ] {
        let (found, suffix) = split_topic(rest).unwrap_or_else(|| panic!("{rest}"));
        assert_eq!(found, base);
        assert_eq!(
            (suffix.command_class, suffix.property, suffix.key),
            (class, property, key)
        );
    }
    for none in [
        "",
        "/",
        "Kitchen/Switch_One/status",
        "switch_binary/endpoint_0/currentValue",
        "a/switch_binary/endpoint_/x",
        "a/switch_binary/endpoint_+1/x",
        "a/37/0",
        "a/37/0/",
        "a/37/0/b/c/d",
        "a/99999/0/b",
    ] {
        assert_eq!(split_topic(none), None, "{none}");
    }
}

#[test]
fn the_subject_of_a_topic_is_parsed() {
    let topics = HomeTopics::new("/home/zwave/");
    assert_eq!(topics.subscription_filter(), "home/zwave/#");
    assert_eq!(
        topics.request("ZWAVE_GATEWAY-Zwave_Test", "getNodes"),
        "home/zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test/api/getNodes/set"
    );
    let gateway = "ZWAVE_GATEWAY-x";
    for (topic, about) in [
        (
            "home/zwave/_CLIENTS/ZWAVE_GATEWAY-x/status",
            TopicSubject::GatewayStatus(gateway),
        ),
        (
            "home/zwave/_CLIENTS/ZWAVE_GATEWAY-x/api/getNodes",
            TopicSubject::Reply(gateway, "getNodes"),
        ),
        (
            "home/zwave/_CLIENTS/ZWAVE_GATEWAY-x/api/getNodes/set",
            TopicSubject::Set,
        ),
        (
            "home/zwave/_EVENTS/ZWAVE_GATEWAY-x/node/node_dead",
            TopicSubject::Event(gateway, "node", "node_dead"),
        ),
        (
            "home/zwave/_CLIENTS/ZWAVE_GATEWAY-x/broadcast/37/0/targetValue",
            TopicSubject::Other,
        ),
        ("home/zwave/driver/status", TopicSubject::DriverStatus),
        ("home/zwave/5/37/0/x", TopicSubject::Node("5/37/0/x")),
        ("home/zwave/5/37/0/x/set", TopicSubject::Set),
        ("home/zwavejs/5/37/0/x", TopicSubject::Other),
        ("home/zwave", TopicSubject::Other),
        ("home/zwave/", TopicSubject::Node("")),
    ] {
        assert_eq!(topics.subject(topic), about, "{topic}");
    }
}

proptest! {
    #[test]
    fn written_topics_are_read_back(
        class in 32u16..=255, endpoint in 0u16..=127, property in "[A-Za-z_-]{1,12}", key in proptest::option::of("[A-Za-z0-9_]{1,8}"),
        name in "\\PC{0,20}", location in "\\PC{0,20}", names in any::<bool>(), locations in any::<bool>(), numbered in any::<bool>(),
    ) {
        let form = if numbered { TopicForm::ValueId } else { TopicForm::Named };
        let id = ValueId { command_class: class, endpoint, property: property.clone(), key: key.clone() };
        let base = TopicStyle { form, names, locations }.base(7, &name, &location);
        let end = value_suffix(form, &id, &property);
        let read = parse_suffix(&end).unwrap();
        prop_assert_eq!(read.value_id(), id.clone());
        prop_assert_eq!(read.form, form);
        if !base.is_empty() {
            let rest = format!("{base}/{end}");
            let (found, read) = split_topic(&rest).unwrap();
            prop_assert_eq!(found, base.as_str());
            prop_assert_eq!(read.value_id(), id);
        }
        prop_assert!(!base.contains(['+', '#', '\0', ' ']));
    }

    #[test]
    fn any_topic_is_split_without_a_panic(topic in ".*") {
        let topics = HomeTopics::new("zwave");
        for topic in [topic.clone(), format!("zwave/{topic}")] {
            if let TopicSubject::Node(rest) = topics.subject(&topic) {
                split_topic(rest);
                parse_suffix(rest);
            }
        }
    }
}
