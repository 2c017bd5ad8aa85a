//! Renames parameters: models prefer `snake_case`, while many MCP servers expect `camelCase`.
//!
//! The specification rewrites every underscore. That breaks servers whose parameters really are in
//! snake_case, and LangChain's adapters, the stated reason for the rule, don't rename anything. So
//! by default (`Undeclared`) a name that the server's schema declares stays as it is. `Always`
//! follows the specification to the letter, and `Never` turns renaming off.
//!
//! With `Always` a parameter has two spellings: the one that the schema declares is validated, and
//! the other one is sent. If the sent spelling were validated, every declared parameter would be
//! reported as missing, and a closed schema would drop the names that we rewrote ourselves.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::DeclaredNames;
use crate::text::escape_truncated;
use crate::{SchemaLimits, ToolError};

/// Renamed parameters: from, to.
pub(crate) type Renames = Vec<(String, String)>;

pub(crate) struct RenamedArguments {
    pub(crate) to_validate: Arc<Value>,
    // Renamed after validation, before sending.
    pub(crate) to_send: Renames,
    // From the caller's names to the sent ones, for the record.
    pub(crate) changes: Renames,
}

/// Which parameter names are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RenameMode {
    /// None. Local tools always use this.
    #[default]
    Never,
    /// Only names that the schema doesn't declare.
    Undeclared,
    /// Every name, whatever the schema declares.
    Always,
}

/// Renames the parameters of one tool to the names that its server expects. Deterministic: the same
/// names always give the same result.
#[derive(Debug, Clone, Default)]
pub struct ParameterNames {
    mode: RenameMode,
    mapped: Arc<HashMap<String, String>>,
    declared: Arc<DeclaredNames>,
    // Only for `Always`: maps each sent name back to the declared one.
    declared_as: Arc<HashMap<String, String>>,
}

impl ParameterNames {
    /// `mapped` goes from our names to the server's. It takes precedence over the general rule,
    /// which turns `_x` into `X`.
    pub fn new(mode: RenameMode, mapped: HashMap<String, String>) -> Self {
        Self {
            mode,
            mapped: Arc::new(mapped),
            declared: Arc::default(),
            declared_as: Arc::default(),
        }
    }

    pub(crate) fn with_declared_names(mut self, schema: &Value, limits: &SchemaLimits) -> Self {
        if self.mode == RenameMode::Never {
            return self;
        }
        let declared = DeclaredNames::from_schema(schema, limits);
        if self.mode == RenameMode::Always {
            let mut sorted: Vec<&str> = declared.iter().collect();
            // If several names are sent under one name, the same one has to win every time.
            sorted.sort_unstable();
            let mut declared_as = HashMap::new();
            for name in sorted {
                let sent = self.rewrite(name);
                declared_as.entry(sent).or_insert_with(|| name.to_owned());
            }
            self.declared_as = Arc::new(declared_as);
        }
        self.declared = Arc::new(declared);
        self
    }

    pub(crate) fn compile_patterns(&self) {
        self.declared.compiled_patterns();
    }

    /// The name under which a declared parameter is sent.
    pub fn sent_name(&self, declared: &str) -> String {
        self.spellings(declared).1
    }

    /// Renames the arguments of a call to the declared spelling, and lists what is sent under
    /// another name. Two spellings of the same parameter are an error: picking one silently
    /// would drop the other.
    pub(crate) fn rename(&self, arguments: &Arc<Value>) -> Result<RenamedArguments, ToolError> {
        let mut spelled = RenamedArguments {
            to_validate: Arc::clone(arguments),
            to_send: Vec::new(),
            changes: Vec::new(),
        };
        let Value::Object(given) = &**arguments else {
            return Ok(spelled);
        };
        if self.mode == RenameMode::Never {
            return Ok(spelled);
        }
        if !self.declared.can_match(given.keys()) {
            return Err(ToolError::too_large_to_check());
        }
        if given.keys().all(|name| self.is_unchanged(name)) {
            return Ok(spelled);
        }
        let mut checked_arguments = Map::with_capacity(given.len());
        let mut checked_from: HashMap<String, &str> = HashMap::new();
        let mut sent_from: HashMap<String, &str> = HashMap::new();
        for (name, value) in given {
            let (checked, sent) = self.spellings(name);
            let other = sent_from.insert(sent.clone(), name);
            if let Some(other) = checked_from.insert(checked.clone(), name).or(other) {
                let text = format!(
                    "and '{}' are the same parameter",
                    escape_truncated(name, 100)
                );
                return Err(ToolError::invalid(escape_truncated(other, 100), text));
            }
            if sent != *name {
                spelled.changes.push((name.clone(), sent.clone()));
            }
            if sent != checked {
                spelled.to_send.push((checked.clone(), sent));
            }
            checked_arguments.insert(checked, value.clone());
        }
        spelled.to_validate = Arc::new(Value::Object(checked_arguments));
        Ok(spelled)
    }

    fn is_unchanged(&self, name: &str) -> bool {
        if self.mode == RenameMode::Undeclared && self.declared.has_name(name) {
            return true; // Nearly every name takes this fast path.
        }
        let (checked, sent) = self.spellings(name);
        checked == name && sent == name
    }

    /// The spellings to validate and to send.
    fn spellings(&self, name: &str) -> (String, String) {
        let own = || name.to_owned();
        if self.mode == RenameMode::Never {
            return (own(), own());
        }
        let sent = self.rewrite(name);
        if self.mode == RenameMode::Undeclared {
            // Matching patterns is expensive, so it comes last.
            let stays = sent == name || self.declared.declares(name);
            return if stays {
                (own(), own())
            } else {
                (sent.clone(), sent)
            };
        }
        // The declared spelling, whichever of the two the caller used.
        let checked = match self.declared_as.get(&sent) {
            _ if self.declared.has_name(name) => own(),
            Some(declared) if !self.declared.has_name(&sent) => declared.clone(),
            None if self.declared.declares(name) => own(),
            _ => sent.clone(),
        };
        (checked, sent)
    }

    fn rewrite(&self, name: &str) -> String {
        let mapped = self.mapped.get(name).cloned();
        mapped.unwrap_or_else(|| to_camel_case(name))
    }
}

// The specification's rule is `_([a-z])`: an underscore before anything else stays.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ValidArguments;

    fn zwave(mode: RenameMode, schema: &Value) -> ParameterNames {
        let mapped = [("device_name", "deviceName"), ("command", "action")]
            .map(|(from, to)| (from.to_owned(), to.to_owned()));
        ParameterNames::new(mode, HashMap::from(mapped))
            .with_declared_names(schema, &SchemaLimits::default())
    }

    #[test]
    fn snake_case_becomes_camel_case() {
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
            (RenameMode::Undeclared, &camel, &by_map),
            (
                RenameMode::Undeclared,
                &snake,
                &json!({ "device_name": "Switch One", "command": "on", "level": 5, "newKey": 1 }),
            ),
            (RenameMode::Always, &snake, &by_map),
            (RenameMode::Never, &camel, &given),
        ] {
            let given = Arc::new(given.clone());
            let spelled = zwave(mode, schema).rename(&given).ok().unwrap();
            let sent = ValidArguments::new(spelled.to_validate, Vec::new()).rename(spelled.to_send);
            assert_eq!(
                sent.as_value().to_string(),
                expected.to_string(),
                "order is kept too"
            );
            assert_eq!(spelled.changes.is_empty(), *sent.as_value() == *given);
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
            let error = zwave(RenameMode::Undeclared, &schema)
                .rename(&Arc::new(given))
                .err()
                .unwrap();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn mode_always_validates_the_declared_spelling_and_sends_the_other() {
        let snake = json!({ "properties": { "device_name": {}, "command": {}, "level": {} } });
        let camel = json!({ "properties": { "deviceName": {}, "action": {} } });
        for (schema, given, checked, to_send) in [
            (
                &snake,
                json!({ "device_name": 1, "command": 2, "level": 3 }),
                json!({ "device_name": 1, "command": 2, "level": 3 }),
                "device_name>deviceName command>action",
            ),
            // The caller has the sent names already.
            (
                &snake,
                json!({ "action": 2, "deviceName": 1 }),
                json!({ "command": 2, "device_name": 1 }),
                "command>action device_name>deviceName",
            ),
            (
                &camel,
                json!({ "device_name": 1, "command": 2 }),
                json!({ "deviceName": 1, "action": 2 }),
                "",
            ),
            (&snake, json!({ "new_key": 1 }), json!({ "newKey": 1 }), ""),
        ] {
            let spelled = zwave(RenameMode::Always, schema).rename(&Arc::new(given));
            let spelled = spelled.ok().unwrap();
            assert_eq!(spelled.to_validate.to_string(), checked.to_string());
            let renames = spelled.to_send.iter();
            let renames: Vec<String> = renames.map(|(from, to)| format!("{from}>{to}")).collect();
            assert_eq!(renames.join(" "), to_send);
        }
    }

    #[test]
    fn a_chain_of_mapped_names_loses_no_argument() {
        let mapped = [("a", "b"), ("b", "c")].map(|(from, to)| (from.to_owned(), to.to_owned()));
        let names = |schema: Value| {
            ParameterNames::new(RenameMode::Always, HashMap::from(mapped.clone()))
                .with_declared_names(&schema, &SchemaLimits::default())
        };
        let given = Arc::new(json!({ "a": 1, "b": 2 }));
        let both = names(json!({ "properties": { "a": {}, "b": {} } }));
        let spelled = both.rename(&given).ok().unwrap();
        let sent = ValidArguments::new(spelled.to_validate, Vec::new()).rename(spelled.to_send);
        assert_eq!(sent.as_value(), &json!({ "b": 1, "c": 2 }));
        let one = names(json!({ "properties": { "b": {} } }));
        assert_eq!(
            one.rename(&given).err().unwrap().to_string(),
            "Invalid parameters: 'a' and 'b' are the same parameter"
        );
    }
}
