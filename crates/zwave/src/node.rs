//! Parses the nodes and values that a gateway describes.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value as Json;
use toolgate_home::{DeviceStatus, ReadingSource, to_one_line};

use crate::kind::DeviceClass;
use crate::payload::scalar_value;
use crate::value::{NodeId, ValueId};

/// Everything here comes from the network, so number and size are bounded. A Z-Wave network has up
/// to 232 nodes, a long-range one 4,000.
pub(crate) const MAX_NODES: usize = 5_000;
/// Per node; further values are ignored.
pub(crate) const MAX_VALUES: usize = 1_000;
pub(crate) const MAX_ALL_VALUES: usize = 50_000;
// In bytes; longer names, labels and units are cut.
const MAX_TEXT: usize = 256;
/// Per value; further choices are ignored.
const MAX_STATES: usize = 256;

/// Virtual nodes: broadcast, long-range broadcast, and groups from 4096 on.
const BROADCAST: [NodeId; 2] = [255, 4095];
const FIRST_GROUP: NodeId = 4096;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeValue {
    /// The gateway's name for the property, from which named topics are built.
    pub property_name: String,
    pub label: String,
    pub unit: Option<String>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub states: Vec<ValueChoice>,
    /// `None` if the gateway did not say.
    pub writeable: Option<bool>,
    pub value: Option<Json>,
    /// When it became known, in milliseconds since 1970.
    pub updated: Option<u64>,
    pub source: ReadingSource,
    /// The topic where it was last published, without the prefix.
    pub topic: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ValueChoice {
    #[serde(default, deserialize_with = "text_or_empty")]
    pub text: String,
    #[serde(default)]
    pub value: Json,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ZwaveNode {
    pub id: NodeId,
    /// Empty if it has no name.
    pub name: String,
    pub location: String,
    pub device_class: DeviceClass,
    pub status: DeviceStatus,
    /// When it was last heard from, in milliseconds since 1970.
    pub last_active: Option<u64>,
    pub values: BTreeMap<ValueId, NodeValue>,
    /// False while it is known from topics only.
    pub described: bool,
}

impl ZwaveNode {
    /// The name, or `nodeID_6` as in the topics of unnamed nodes.
    pub(crate) fn title(&self) -> String {
        if self.name.trim().is_empty() {
            format!("{}{}", crate::topic::UNNAMED_PREFIX, self.id)
        } else {
            to_one_line(&self.name)
        }
    }
}

pub(crate) fn is_device(id: NodeId) -> bool {
    id != 0 && id < FIRST_GROUP && !BROADCAST.contains(&id)
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DescribedNode {
    #[serde(default, deserialize_with = "lenient")]
    pub id: Option<NodeId>,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub name: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub loc: String,
    #[serde(default, deserialize_with = "lenient")]
    r#virtual: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    is_controller_node: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    device_class: Option<DeviceClass>,
    #[serde(default, deserialize_with = "lenient")]
    status: Option<DeviceStatus>,
    #[serde(default, deserialize_with = "lenient")]
    last_active: Option<u64>,
    #[serde(default)]
    values: BoundedList<DescribedValue, MAX_VALUES>,
}

impl DescribedNode {
    /// `None` for the controller, for virtual nodes, and without a valid number.
    pub(crate) fn into_node(self) -> Option<ZwaveNode> {
        let id = self.id.filter(|id| is_device(*id))?;
        if self.r#virtual == Some(true) || self.is_controller_node == Some(true) {
            return None;
        }
        let values = self.values.0.into_iter();
        Some(ZwaveNode {
            id,
            name: self.name,
            location: self.loc,
            device_class: self.device_class.unwrap_or_default(),
            status: self.status.unwrap_or_default(),
            last_active: self.last_active,
            values: values
                .filter_map(|value| Some((value.id()?, value.into_value())))
                .collect(),
            described: true,
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DescribedValue {
    #[serde(default, deserialize_with = "lenient")]
    pub node_id: Option<NodeId>,
    #[serde(default, deserialize_with = "lenient")]
    command_class: Option<u16>,
    #[serde(default, deserialize_with = "lenient")]
    endpoint: Option<u16>,
    #[serde(default, deserialize_with = "text_or_number")]
    property: Option<String>,
    #[serde(default, deserialize_with = "text_or_number")]
    property_name: Option<String>,
    #[serde(default, deserialize_with = "text_or_number")]
    property_key: Option<String>,
    #[serde(default, deserialize_with = "text_or_empty")]
    label: String,
    #[serde(default, deserialize_with = "text_or_number")]
    pub unit: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    min: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    max: Option<f64>,
    #[serde(default)]
    states: BoundedList<ValueChoice, MAX_STATES>,
    #[serde(default, deserialize_with = "lenient")]
    writeable: Option<bool>,
    #[serde(default, deserialize_with = "optional_scalar")]
    pub value: Option<Json>,
    #[serde(default, deserialize_with = "lenient")]
    pub last_update: Option<u64>,
}

impl DescribedValue {
    pub(crate) fn id(&self) -> Option<ValueId> {
        Some(ValueId {
            command_class: self.command_class?,
            endpoint: self.endpoint.unwrap_or(0),
            property: self.property.clone()?,
            key: self.property_key.clone(),
        })
    }

    pub(crate) fn into_value(self) -> NodeValue {
        NodeValue {
            property_name: self.property_name.or(self.property).unwrap_or_default(),
            label: self.label,
            unit: self.unit.filter(|unit| !unit.is_empty()),
            min: self.min,
            max: self.max,
            states: self.states.0,
            writeable: self.writeable,
            value: self.value,
            updated: self.last_update,
            source: ReadingSource::Gateway,
            topic: None,
        }
    }
}

// Treats an invalid field as missing, because one odd field must not hide a whole home.
fn lenient<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let json = Json::deserialize(from)?;
    Ok(serde_json::from_value(json).ok())
}

fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Json::deserialize(from)? {
        Json::String(text) => Some(truncate_text(text)),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn text_or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(text_or_number(from)?.unwrap_or_default())
}

fn optional_scalar<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Ok(scalar_value(&Json::deserialize(from)?))
}

fn truncate_text(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    text
}

/// Deserializes a list, or the values of an object, and ignores items beyond `MAX`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BoundedList<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Default for BoundedList<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for BoundedList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BoundedListVisitor(PhantomData))
    }
}

struct BoundedListVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for BoundedListVisitor<T, MAX> {
    type Value = BoundedList<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let items = std::iter::from_fn(|| all.next_element().transpose());
        let kept = items.take(MAX).collect::<Result<_, _>>()?;
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(BoundedList(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let items = std::iter::from_fn(|| all.next_entry::<IgnoredAny, T>().transpose());
        let kept = items.take(MAX).map(|entry| Ok(entry?.1));
        let kept = kept.collect::<Result<_, _>>()?;
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(BoundedList(kept))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BoundedList(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Option<ZwaveNode> {
        serde_json::from_str::<DescribedNode>(json)
            .unwrap()
            .into_node()
    }

    #[test]
    fn controllers_and_virtual_nodes_are_left_out() {
        for left_out in [
            r#"{"id":1,"isControllerNode":true}"#,
            r#"{"id":255,"name":"Broadcast","virtual":true}"#,
            r#"{"id":255}"#,
            r#"{"id":4095}"#,
            r#"{"id":4096,"name":"Group"}"#,
            r#"{"id":0}"#,
            r#"{"id":-3}"#,
            r#"{"id":"two"}"#,
            r#"{"id":70000}"#,
            r#"{}"#,
        ] {
            assert_eq!(node(left_out), None, "{left_out}");
        }
        assert_eq!(node(r#"{"id":256}"#).unwrap().id, 256);
    }

    #[test]
    fn odd_fields_do_not_hide_a_node() {
        let node = node(
            r#"{"id":2,"name":["x"],"loc":7,"status":"Sleepy","lastActive":-1,"values":{
                "a":{"commandClass":37,"property":"currentValue","value":[1],"min":"low","states":null},
                "b":{"commandClass":112,"property":3,"propertyKey":255,"value":1},
                "c":{"property":"nothing"}}}"#,
        )
        .unwrap();
        assert_eq!(
            (node.title().as_str(), node.location.as_str()),
            ("nodeID_2", "7")
        );
        assert_eq!(node.status, DeviceStatus::Unknown);
        let ids = node.values.keys().map(ValueId::to_string);
        assert_eq!(
            ids.collect::<Vec<_>>(),
            ["37-0-currentValue", "112-0-3-255"]
        );
        assert!(node.values.values().next().unwrap().value.is_none());
    }

    #[test]
    fn more_values_than_a_device_has_are_left_out() {
        let values = (0..MAX_VALUES + 50)
            .map(|n| format!(r#""{n}":{{"commandClass":112,"property":"{n}"}}"#))
            .collect::<Vec<_>>()
            .join(",");
        let node = node(&format!(r#"{{"id":2,"values":{{{values}}}}}"#)).unwrap();
        assert_eq!(node.values.len(), MAX_VALUES);
    }

    #[test]
    fn long_names_are_cut_where_a_character_ends() {
        let long = "ü".repeat(70_000);
        let node = node(&format!(r#"{{"id":2,"name":"{long}"}}"#)).unwrap();
        assert_eq!(node.name, "ü".repeat(MAX_TEXT / 2));
    }
}
