//! What stands in the messages of values.
//!
//! A gateway is set to one of three forms: time and value, the whole description of the value, or the bare value.
//! Whatever can not be read is an unknown value, never an old one and never a default.

use serde_json::{Map, Value as Json};

use crate::node::Described;

/// Longer messages of a value are not read.
pub(crate) const MAX_PAYLOAD: usize = 1024 * 1024;
/// Longer texts of a value are not kept.
const MAX_TEXT: usize = 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Report {
    /// `None`: nobody knows.
    pub value: Option<Json>,
    /// Milliseconds since 1970, by the gateway's clock, at which the value became known.
    pub time: Option<u64>,
    /// The description of the value, in the form that has it.
    pub described: Option<Box<Described>>,
    /// How the gateway calls the node at the moment, if it says so.
    pub node_name: Option<String>,
    /// Where the gateway says the node is.
    pub node_location: Option<String>,
}

pub(crate) fn report(payload: &[u8]) -> Report {
    if payload.len() > MAX_PAYLOAD {
        return Report::default();
    }
    let Ok(json) = serde_json::from_slice::<Json>(payload) else {
        return Report::default();
    };
    match json {
        Json::Object(fields) if fields.contains_key("commandClass") => whole(fields),
        Json::Object(fields) if is_time_value(&fields) => Report {
            time: fields.get("time").and_then(Json::as_u64),
            node_name: text(&fields, "nodeName"),
            node_location: text(&fields, "nodeLocation"),
            value: fields.get("value").and_then(keep),
            described: None,
        },
        bare => Report {
            value: keep(&bare),
            ..Report::default()
        },
    }
}

fn whole(fields: Map<String, Json>) -> Report {
    let (node_name, node_location) = (text(&fields, "nodeName"), text(&fields, "nodeLocation"));
    let described = serde_json::from_value::<Described>(Json::Object(fields))
        .ok()
        .filter(|told| told.id().is_some());
    Report {
        value: described.as_ref().and_then(|told| told.value.clone()),
        time: described.as_ref().and_then(|told| told.last_update),
        described: described.map(Box::new),
        node_name,
        node_location,
    }
}

/// A bare duration, `{"value":0,"unit":"seconds"}`, has a `value` as well.
fn is_time_value(fields: &Map<String, Json>) -> bool {
    fields.contains_key("time")
        || (fields.contains_key("value")
            && fields
                .keys()
                .all(|key| ["value", "nodeName", "nodeLocation"].contains(&key.as_str())))
}

fn text(fields: &Map<String, Json>, key: &str) -> Option<String> {
    fields.get(key).and_then(Json::as_str).map(str::to_owned)
}

/// Only what people are told is kept: truth values, numbers and short texts.
pub(crate) fn keep(value: &Json) -> Option<Json> {
    match value {
        Json::Bool(_) | Json::Number(_) => Some(value.clone()),
        Json::String(text) if text.len() <= MAX_TEXT => Some(value.clone()),
        _ => None,
    }
}

/// Reads a status: bare, or with its time.
pub(crate) fn flag(payload: &[u8]) -> Option<bool> {
    report(payload).value.as_ref().and_then(Json::as_bool)
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
            assert_eq!(report(payload.as_bytes()).value, value, "{payload}");
        }
    }

    #[test]
    fn what_is_not_told_is_unknown() {
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
            assert_eq!(report(payload.as_bytes()).value, None, "{payload}");
        }
        assert_eq!(report(&[b'['; 200_000]).value, None, "too deep");
        assert_eq!(report(&[0xff, 0xfe]).value, None, "not even text");
        let long = format!("\"{}\"", "x".repeat(MAX_TEXT + 1));
        assert_eq!(report(long.as_bytes()).value, None, "too long");
        assert_eq!(report(&vec![b' '; MAX_PAYLOAD + 1]).value, None);
    }

    #[test]
    fn the_time_is_the_gateways() {
        let report = report(br#"{"time":1794766104495,"value":1,"nodeName":"A"}"#);
        assert_eq!(report.time, Some(1_794_766_104_495));
        assert_eq!(report.node_name.as_deref(), Some("A"));
        assert_eq!(super::report(br#"{"time":-1,"value":1}"#).time, None);
    }

    #[test]
    fn a_whole_value_describes_itself() {
        let report = report(
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
        fn no_payload_breaks_it(payload in proptest::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]\",:a-z0-9.e+-]{0,80}") {
            report(&payload);
            report(text.as_bytes());
            flag(&payload);
        }
    }
}
