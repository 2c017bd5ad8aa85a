//! A value, twice: as the device has it, and as the gateway knows it.

use serde_json::{Map, Value as Json, json};

use super::catalog::class;
use crate::value::{NodeId, ValueId};

#[derive(Debug, Clone)]
pub(super) struct Value {
    pub id: ValueId,
    pub property_name: String,
    pub key_name: Option<&'static str>,
    pub kind: &'static str,
    pub readable: bool,
    pub writeable: bool,
    pub label: String,
    pub specific: Option<Json>,
    pub range: Option<(u32, u32)>,
    pub unit: Option<&'static str>,
    /// Empty, or what one can choose from: text and value.
    pub states: Vec<Json>,
    /// What the device has.
    pub real: Option<Json>,
    /// What the gateway knows; `None` stands nowhere in a message, which is not the same as null.
    pub known: Option<Json>,
    /// Milliseconds since 1970.
    pub updated: Option<u64>,
    /// Some values never get a time.
    pub dated: bool,
    /// Some values are described and never published.
    pub published: bool,
}

impl Value {
    /// Only to be read, and unknown.
    pub(super) fn new(class: u16, property: &str, kind: &'static str, label: &str) -> Self {
        Self {
            id: ValueId::new(class, 0, property),
            property_name: property.to_owned(),
            key_name: None,
            kind,
            readable: true,
            writeable: false,
            label: label.to_owned(),
            specific: None,
            range: None,
            unit: None,
            states: Vec::new(),
            real: None,
            known: None,
            updated: None,
            dated: true,
            published: true,
        }
    }

    pub(super) fn key(mut self, key: &str, name: &'static str) -> Self {
        self.id.key = Some(key.to_owned());
        self.key_name = Some(name);
        self
    }

    pub(super) fn writeable(mut self) -> Self {
        self.writeable = true;
        self
    }

    pub(super) fn only_writeable(mut self) -> Self {
        (self.readable, self.writeable) = (false, true);
        self
    }

    pub(super) fn range(mut self, low: u32, high: u32) -> Self {
        self.range = Some((low, high));
        self
    }

    pub(super) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    pub(super) fn specific(mut self, specific: Json) -> Self {
        self.specific = Some(specific);
        self
    }

    pub(super) fn states<T: Into<Json> + Copy>(mut self, states: &[(&str, T)]) -> Self {
        let states = states
            .iter()
            .map(|(text, value)| json!({ "text": text, "value": (*value).into() }));
        self.states = states.collect();
        self
    }

    /// As it is at first, known to everybody.
    pub(super) fn at_first(mut self, value: impl Into<Json>) -> Self {
        self.real = Some(value.into());
        self.known.clone_from(&self.real);
        self
    }

    pub(super) fn is(&self, class: u16, property: &str) -> bool {
        self.id.command_class == class && self.id.property == property
    }

    /// The whole description, as `getNodes` has it.
    pub(super) fn whole(&self, node: NodeId) -> Map<String, Json> {
        let (class_name, version) = class(self.id.command_class);
        let mut all = Map::new();
        let mut put = |key: &str, value: Json| all.insert(key.to_owned(), value);
        put("id", json!(format!("{node}-{}", self.id)));
        put("nodeId", json!(node));
        put("toUpdate", json!(false));
        put("commandClass", json!(self.id.command_class));
        put("commandClassName", json!(class_name));
        put("endpoint", json!(self.id.endpoint));
        put("property", json!(self.id.property));
        put("propertyName", json!(self.property_name));
        if let Some(key) = self.json_key() {
            put("propertyKey", key);
            put("propertyKeyName", json!(self.key_name));
        }
        put("type", json!(self.kind));
        put("readable", json!(self.readable));
        put("writeable", json!(self.writeable));
        put("label", json!(self.label));
        if let Some(specific) = &self.specific {
            put("ccSpecific", specific.clone());
        }
        put("stateless", json!(false));
        put("commandClassVersion", json!(version));
        if let Some((min, max)) = self.range {
            put("min", json!(min));
            put("max", json!(max));
        }
        if let Some(unit) = self.unit {
            put("unit", json!(unit));
        }
        put("list", json!(!self.states.is_empty()));
        if !self.states.is_empty() {
            put("states", json!(self.states));
        }
        if let Some(value) = &self.known {
            put("value", value.clone());
        }
        if let Some(target) = self.target() {
            put("isCurrentValue", json!(true));
            put("targetValue", json!(target));
        }
        if let Some(updated) = self.updated {
            put("lastUpdate", json!(updated));
        }
        all
    }

    /// The value that is written to change this one, if it is another.
    fn target(&self) -> Option<String> {
        let target = match self.id.property.as_str() {
            "currentValue" => "targetValue",
            "currentMode" => "targetMode",
            _ => return None,
        };
        Some(ValueId::new(self.id.command_class, self.id.endpoint, target).to_string())
    }

    /// Keys that are numbers are numbers to the gateway.
    pub(super) fn json_key(&self) -> Option<Json> {
        let key = self.id.key.as_ref()?;
        Some(key.parse::<u64>().map_or_else(|_| json!(key), Json::from))
    }
}
