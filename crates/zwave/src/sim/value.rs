//! A simulated value: as the device has it, and as the gateway knows it.

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::catalog::class_info;
use super::node::object;
use crate::value::{NodeId, ValueId};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SimulatedValue {
    #[serde(flatten)]
    pub id: ValueId,
    /// If it differs from the property.
    property_name: Option<String>,
    pub key_name: Option<String>,
    pub kind: String,
    pub write_only: bool,
    pub writeable: bool,
    pub label: String,
    specific: Option<Json>,
    pub range: Option<(u32, u32)>,
    unit: Option<String>,
    pub states: Vec<Json>,
    pub real: Option<Json>,
    /// The gateway's value. `None` is left out of messages, unlike null.
    pub known: Option<Json>,
    /// In milliseconds since 1970.
    pub updated: Option<u64>,
    /// True for values that never get a timestamp.
    pub undated: bool,
    /// True for values that are described but never published.
    pub unpublished: bool,
}

impl SimulatedValue {
    pub(super) fn is(&self, class: u16, property: &str) -> bool {
        self.id.command_class == class && self.id.property == property
    }

    pub(super) fn property_name(&self) -> &str {
        self.property_name.as_deref().unwrap_or(&self.id.property)
    }

    pub(super) fn describe(&self, node: NodeId) -> Map<String, Json> {
        let (class_name, version) = class_info(self.id.command_class);
        let mut all = object(json!({
            "id": format!("{node}-{}", self.id), "nodeId": node, "toUpdate": false,
            "commandClass": self.id.command_class, "commandClassName": class_name,
            "endpoint": self.id.endpoint, "property": self.id.property,
            "propertyName": self.property_name(), "type": self.kind,
            "readable": !self.write_only, "writeable": self.writeable, "label": self.label,
            "stateless": false, "commandClassVersion": version, "list": !self.states.is_empty(),
        }));
        let target = self.target();
        let optional = [
            ("propertyKey", self.id.json_key()),
            ("propertyKeyName", self.key_name.clone().map(Json::from)),
            ("ccSpecific", self.specific.clone()),
            ("min", self.range.map(|(min, _)| json!(min))),
            ("max", self.range.map(|(_, max)| json!(max))),
            ("unit", self.unit.clone().map(Json::from)),
            (
                "states",
                (!self.states.is_empty()).then(|| json!(self.states)),
            ),
            ("value", self.known.clone()),
            ("isCurrentValue", target.as_ref().map(|_| json!(true))),
            ("targetValue", target.map(Json::from)),
            ("lastUpdate", self.updated.map(Json::from)),
        ];
        let known = optional.into_iter();
        all.extend(known.filter_map(|(key, value)| Some((key.to_owned(), value?))));
        all
    }

    /// The value to write in order to change this one, if they differ.
    fn target(&self) -> Option<String> {
        let target = match self.id.property.as_str() {
            "currentValue" => "targetValue",
            "currentMode" => "targetMode",
            _ => return None,
        };
        Some(ValueId::new(self.id.command_class, self.id.endpoint, target).to_string())
    }
}
