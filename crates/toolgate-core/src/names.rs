//! Parameter names: models like `snake_case`, MCP servers often want `camelCase`.
//!
//! Decision: the specification's blind rewrite of every underscore breaks each server whose real parameters are snake_case,
//! and LangChain's adapters, the stated reason for it, do not rename anything. So a name that the server's schema declares is
//! never touched (`Undeclared`, the default for MCP servers); `Always` is the literal text, `Never` turns it off.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::ToolError;
use crate::redact::cut;

/// Parameter names that ship, by the tool's name on its server: those of the Z-Wave server.
const SHIPPED: &[(&str, &[(&str, &str)])] = &[
    (
        "control_zwave_device",
        &[
            ("device_name", "deviceName"),
            ("command", "action"),
            ("brightness", "level"),
        ],
    ),
    ("get_device_sensor_data", &[("device_name", "deviceName")]),
];

/// Parameters that got another name: from, to.
pub(crate) type Renames = Vec<(String, String)>;

/// When names are rewritten.
///
/// ```
/// assert_eq!(toolgate_core::Normalize::default(), toolgate_core::Normalize::Never);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Normalize {
    /// Local tools: never.
    #[default]
    Never,
    /// Only names that the schema does not declare.
    Undeclared,
    /// Every name, whatever the schema says.
    Always,
}

/// How the parameters of one tool are renamed. Pure: the same names always give the same result.
///
/// ```
/// use std::collections::HashMap;
/// use serde_json::json;
/// use toolgate_core::{Normalize, ParameterNames, Source, ToolDefinition};
///
/// let names = ParameterNames::new(Normalize::Undeclared, HashMap::from([("command".to_owned(), "action".to_owned())]));
/// let parameters = json!({ "type": "object", "properties": { "action": {}, "deviceName": {} } });
/// let control = ToolDefinition::builder("control", "Controls a device", parameters);
/// control.source(Source::Mcp("house".to_owned())).names(names).build()?;
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ParameterNames {
    mode: Normalize,
    mapped: Arc<HashMap<String, String>>,
    declared: Arc<HashSet<String>>,
}

impl ParameterNames {
    /// `mapped` goes before the general rule, which turns `_x` into `X`.
    pub fn new(mode: Normalize, mapped: HashMap<String, String>) -> Self {
        Self {
            mode,
            mapped: Arc::new(mapped),
            declared: Arc::default(),
        }
    }

    /// For the tool that a server calls `original_name`. What ships for tools of that name holds on any server; `configured`
    /// adds to it, and wins.
    pub fn of_server_tool(
        mode: Normalize,
        original_name: &str,
        configured: &HashMap<String, String>,
    ) -> Self {
        let shipped = SHIPPED.iter().filter(|(tool, _)| *tool == original_name);
        let shipped = shipped.flat_map(|(_, names)| names.iter());
        let mut mapped: HashMap<String, String> = shipped
            .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
            .collect();
        mapped.extend(configured.clone());
        Self::new(mode, mapped)
    }

    /// The same, knowing which names a schema declares.
    pub(crate) fn declared_by(mut self, schema: &Value) -> Self {
        if self.mode == Normalize::Undeclared {
            self.declared = Arc::new(declared(schema));
        }
        self
    }

    /// Renames the arguments of a call; says which ones. Two spellings of one parameter are an error, never a silent pick.
    pub(crate) fn apply(&self, arguments: &Arc<Value>) -> Result<(Arc<Value>, Renames), ToolError> {
        let unchanged = || Ok((Arc::clone(arguments), Vec::new()));
        let Value::Object(given) = &**arguments else {
            return unchanged();
        };
        if self.mode == Normalize::Never || given.keys().all(|name| self.rename(name).is_none()) {
            return unchanged();
        }
        let mut renamed = Map::with_capacity(given.len());
        let mut changes = Vec::new();
        let mut origins: HashMap<String, &str> = HashMap::new();
        for (name, value) in given {
            let new = self.rename(name).unwrap_or_else(|| name.clone());
            if let Some(other) = origins.insert(new.clone(), name) {
                let text = format!("and '{}' are the same parameter", cut(name, 100));
                return Err(ToolError::invalid(cut(other, 100), text));
            }
            if new != *name {
                changes.push((name.clone(), new.clone()));
            }
            renamed.insert(new, value.clone());
        }
        Ok((Arc::new(Value::Object(renamed)), changes))
    }

    fn rename(&self, name: &str) -> Option<String> {
        if self.mode == Normalize::Undeclared && self.declared.contains(name) {
            return None;
        }
        let new = self
            .mapped
            .get(name)
            .cloned()
            .unwrap_or_else(|| to_camel_case(name));
        (new != name).then_some(new)
    }
}

/// The specification's rule `_([a-z])`, to the letter: an underscore before anything else stays.
fn to_camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.peek() {
            Some(next) if c == '_' && next.is_ascii_lowercase() => {
                out.push(next.to_ascii_uppercase());
                rest.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Property names at the root of a schema, also those behind its combinators and references. Each part is looked at once,
/// however often it is referred to: a schema that is not checked may be of any kind.
fn declared(document: &Value) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut seen: HashSet<*const Value> = HashSet::new();
    let mut ahead = vec![document];
    while let Some(schema) = ahead.pop() {
        if !seen.insert(schema) {
            continue;
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            names.extend(properties.keys().cloned());
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter();
        let parts = parts.filter_map(|keyword| schema.get(keyword)?.as_array());
        ahead.extend(parts.flatten());
        let reference = schema.get("$ref").and_then(Value::as_str);
        let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
        ahead.extend(pointer.and_then(|pointer| document.pointer(pointer)));
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn zwave(mode: Normalize, schema: &Value) -> ParameterNames {
        let mapped = [("device_name", "deviceName"), ("command", "action")]
            .map(|(from, to)| (from.to_owned(), to.to_owned()));
        ParameterNames::new(mode, HashMap::from(mapped)).declared_by(schema)
    }

    #[test]
    fn an_underscore_before_a_small_letter_becomes_a_capital() {
        for (given, expected) in [
            ("new_parameter_name", "newParameterName"),
            ("level", "level"),
            ("_private", "Private"),
            ("a__b", "a_B"),
            ("URL_path", "URLPath"),
            ("x_1", "x_1"),
            ("trailing_", "trailing_"),
            ("getHTTPResponse", "getHTTPResponse"),
            ("über_maß", "überMaß"),
        ] {
            assert_eq!(to_camel_case(given), expected);
        }
    }

    #[test]
    fn each_mode_renames_what_it_should() {
        let camel = json!({ "properties": { "deviceName": {}, "action": {}, "level": {} } });
        let snake = json!({ "allOf": [{ "$ref": "#/$defs/p" }], "$defs": { "p": { "properties": { "device_name": {}, "command": {} } } } });
        let given =
            json!({ "device_name": "Switch One", "command": "on", "level": 5, "new_key": 1 });
        let by_map = json!({ "deviceName": "Switch One", "action": "on", "level": 5, "newKey": 1 });
        for (mode, schema, expected) in [
            (Normalize::Undeclared, &camel, &by_map),
            (
                Normalize::Undeclared,
                &snake,
                &json!({ "device_name": "Switch One", "command": "on", "level": 5, "newKey": 1 }),
            ),
            (Normalize::Always, &snake, &by_map),
            (Normalize::Never, &camel, &given),
        ] {
            let (renamed, changes) = zwave(mode, schema).apply(&Arc::new(given.clone())).unwrap();
            assert_eq!(
                renamed.to_string(),
                expected.to_string(),
                "order is kept too"
            );
            assert_eq!(changes.is_empty(), *renamed == given);
        }
    }

    #[test]
    fn two_spellings_of_one_parameter_are_refused() {
        let schema = json!({ "properties": { "deviceName": {}, "action": {} } });
        for (given, expected) in [
            (
                json!({ "device_name": "Lamp", "deviceName": "Door" }),
                "Invalid parameters: 'device_name' and 'deviceName' are the same parameter",
            ),
            (
                json!({ "action": "on", "command": "off" }),
                "Invalid parameters: 'action' and 'command' are the same parameter",
            ),
        ] {
            let error = zwave(Normalize::Undeclared, &schema)
                .apply(&Arc::new(given))
                .unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
