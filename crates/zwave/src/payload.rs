//! Parses the payloads of value messages.
//!
//! A gateway uses one of three formats: time and value, the complete description, or the bare
//! value. Anything unreadable is an unknown value, never an old one or a default.

use serde_json::{Map, Value as Json};

use crate::node::DescribedValue;

// In bytes; longer messages are not read.
pub(crate) const MAX_PAYLOAD: usize = 1024 * 1024;
// In bytes; longer strings are dropped.
const MAX_TEXT: usize = 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ValueReport {
    pub value: Option<Json>,
    /// When the value became known by the gateway's clock, in milliseconds since 1970.
    pub time: Option<u64>,
    pub described: Option<Box<DescribedValue>>,
    pub node_name: Option<String>,
    pub node_location: Option<String>,
}

pub(crate) fn parse_report(payload: &[u8]) -> ValueReport {
    if payload.len() > MAX_PAYLOAD {
        return ValueReport::default();
    }
    let Ok(json) = serde_json::from_slice::<Json>(payload) else {
        return ValueReport::default();
    };
    match json {
        Json::Object(fields) if fields.contains_key("commandClass") => parse_description(fields),
        Json::Object(fields) if is_time_value(&fields) => ValueReport {
            time: fields.get("time").and_then(Json::as_u64),
            node_name: text_field(&fields, "nodeName"),
            node_location: text_field(&fields, "nodeLocation"),
            value: fields.get("value").and_then(scalar_value),
            described: None,
        },
        bare => ValueReport {
            value: scalar_value(&bare),
            ..ValueReport::default()
        },
    }
}

fn parse_description(fields: Map<String, Json>) -> ValueReport {
    let (node_name, node_location) = (
        text_field(&fields, "nodeName"),
        text_field(&fields, "nodeLocation"),
    );
    let described = serde_json::from_value::<DescribedValue>(Json::Object(fields))
        .ok()
        .filter(|value| value.id().is_some());
    ValueReport {
        value: described.as_ref().and_then(|value| value.value.clone()),
        time: described.as_ref().and_then(|value| value.last_update),
        described: described.map(Box::new),
        node_name,
        node_location,
    }
}

/// A bare duration, `{"value":0,"unit":"seconds"}`, has a `value` as well, so all keys count.
fn is_time_value(fields: &Map<String, Json>) -> bool {
    fields.contains_key("time")
        || (fields.contains_key("value")
            && fields
                .keys()
                .all(|key| ["value", "nodeName", "nodeLocation"].contains(&key.as_str())))
}

fn text_field(fields: &Map<String, Json>, key: &str) -> Option<String> {
    fields.get(key).and_then(Json::as_str).map(str::to_owned)
}

pub(crate) fn scalar_value(value: &Json) -> Option<Json> {
    match value {
        Json::Bool(_) | Json::Number(_) => Some(value.clone()),
        Json::String(text) if text.len() <= MAX_TEXT => Some(value.clone()),
        _ => None,
    }
}

pub(crate) fn parse_flag(payload: &[u8]) -> Option<bool> {
    parse_report(payload).value.as_ref().and_then(Json::as_bool)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_from_all_three_forms() {
        for (payload, value) in [
            (
                r#"{"time":1794766104495,"value":false,"nodeName":"Switch One","nodeLocation":"Kitchen"}"#,
                Some(json!(false)),
            ),
            (
                r#"{"id":"2-37-0-currentValue","nodeId":2,"commandClass":37,"endpoint":0,"property":"currentValue","value":true,"lastUpdate":5}"#,
                Some(json!(true)),
            ),
            ("true", Some(json!(true))),
            ("21.6", Some(json!(21.6))),
            (r#""7.0""#, Some(json!("7.0"))),
            (r#"{"value":25}"#, Some(json!(25))),
        ] {
            assert_eq!(parse_report(payload.as_bytes()).value, value, "{payload}");
        }
    }

    #[test]
    fn an_unreadable_value_is_unknown() {
        for payload in [
            "",
            " ",
            "null",
            "NaN",
            "1e999",
            "-Infinity",
            "not json {",
            "\u{0}",
            "{",
            "[1,2]",
            r#"{"time":1794766104500,"nodeName":"Switch One","nodeLocation":"Kitchen"}"#,
            r#"{"time":1794766109576,"value":null}"#,
            r#"{"time":1,"value":{"unit":"seconds"}}"#,
            r#"{"value":0,"unit":"seconds"}"#,
            r#"{"id":"2-37-0-targetValue","nodeId":2,"commandClass":37,"endpoint":0,"property":"targetValue"}"#,
            r#"{"commandClass":"many","value":true}"#,
        ] {
            assert_eq!(parse_report(payload.as_bytes()).value, None, "{payload}");
        }
        assert_eq!(parse_report(&[b'['; 200_000]).value, None, "too deep");
        assert_eq!(parse_report(&[0xff, 0xfe]).value, None, "not even text");
        let long = format!("\"{}\"", "x".repeat(MAX_TEXT + 1));
        assert_eq!(parse_report(long.as_bytes()).value, None, "too long");
        assert_eq!(parse_report(&vec![b' '; MAX_PAYLOAD + 1]).value, None);
    }

    #[test]
    fn the_time_is_the_gateways() {
        let report = parse_report(br#"{"time":1794766104495,"value":1,"nodeName":"A"}"#);
        assert_eq!(report.time, Some(1_794_766_104_495));
        assert_eq!(report.node_name.as_deref(), Some("A"));
        assert_eq!(super::parse_report(br#"{"time":-1,"value":1}"#).time, None);
    }

    #[test]
    fn a_complete_description_is_parsed() {
        let report = parse_report(
            r#"{"id":"8-67-0-setpoint-1","nodeId":8,"commandClass":67,"endpoint":0,"property":"setpoint","propertyName":"setpoint","propertyKey":1,"writeable":true,"label":"Setpoint (Heating)","min":5,"max":35,"unit":"°C","value":20,"lastUpdate":1794766195675}"#.as_bytes(),
        );
        let described = report.described.unwrap();
        assert_eq!(described.node_id, Some(8));
        assert_eq!(described.id().unwrap().to_string(), "67-0-setpoint-1");
        assert_eq!(described.unit.as_deref(), Some("°C"));
        assert_eq!(report.time, Some(1_794_766_195_675));
    }

    proptest! {
        #[test]
        fn any_payload_is_parsed_without_a_panic(payload in proptest::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]\",:a-z0-9.e+-]{0,80}") {
            parse_report(&payload);
            parse_report(text.as_bytes());
            parse_flag(&payload);
        }
    }
}
