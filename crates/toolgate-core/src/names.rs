//! Parameter names: models like `snake_case`, MCP servers often want `camelCase`.
//!
//! Decision: the specification's blind rewrite of every underscore breaks each server whose real parameters are snake_case,
//! and LangChain's adapters, the stated reason for it, do not rename anything. So a name that the server's schema declares is
//! never touched (`Undeclared`, the default for MCP servers); `Always` is the literal text, `Never` turns it off.
//!
//! With `Always` a call has two spellings: the one that the schema declares is validated, the other one is sent. Validating
//! what is sent would find every declared parameter missing, and a closed schema would drop what we renamed ourselves.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::DeclaredNames;
use crate::text::cut;
use crate::{SchemaLimits, ToolError};

/// Parameters that got another name: from, to.
pub(crate) type Renames = Vec<(String, String)>;

/// The arguments of one call, in the spelling that is validated.
pub(crate) struct Spelled {
    pub(crate) checked: Arc<Value>,
    /// What is still to be renamed between validating and sending.
    pub(crate) to_send: Renames,
    /// From the names of the caller to those that are sent.
    pub(crate) changes: Renames,
}

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
    declared: Arc<DeclaredNames>,
    /// With `Always`: the declared name for each name that is sent.
    declared_as: Arc<HashMap<String, String>>,
}

impl ParameterNames {
    /// `mapped` goes before the general rule, which turns `_x` into `X`.
    pub fn new(mode: Normalize, mapped: HashMap<String, String>) -> Self {
        Self {
            mode,
            mapped: Arc::new(mapped),
            declared: Arc::default(),
            declared_as: Arc::default(),
        }
    }

    /// The same, knowing which names a schema declares.
    pub(crate) fn declared_by(mut self, schema: &Value, limits: &SchemaLimits) -> Self {
        if self.mode == Normalize::Never {
            return self;
        }
        let declared = DeclaredNames::of(schema, limits);
        if self.mode == Normalize::Always {
            let mut sorted: Vec<&str> = declared.iter().collect();
            sorted.sort_unstable(); // Where several are sent as one, it is always the same that is meant.
            let mut declared_as = HashMap::new();
            for name in sorted {
                let sent = self.rewritten(name);
                declared_as.entry(sent).or_insert_with(|| name.to_owned());
            }
            self.declared_as = Arc::new(declared_as);
        }
        self.declared = Arc::new(declared);
        self
    }

    pub(crate) fn compile_patterns(&self) {
        self.declared.compiled();
    }

    /// The name under which a parameter that the schema declares reaches the server.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use toolgate_core::{Normalize, ParameterNames};
    ///
    /// let names = ParameterNames::new(Normalize::Always, HashMap::new());
    /// assert_eq!(names.sent_name("device_name"), "deviceName");
    /// ```
    pub fn sent_name(&self, declared: &str) -> String {
        self.spellings(declared).1
    }

    /// Spells the arguments of a call as the schema declares them, and says what is sent under another name. Two spellings
    /// of one parameter are an error, never a silent pick.
    pub(crate) fn apply(&self, arguments: &Arc<Value>) -> Result<Spelled, ToolError> {
        let mut spelled = Spelled {
            checked: Arc::clone(arguments),
            to_send: Vec::new(),
            changes: Vec::new(),
        };
        let Value::Object(given) = &**arguments else {
            return Ok(spelled);
        };
        if self.mode == Normalize::Never {
            return Ok(spelled);
        }
        if !self.declared.can_match(given.keys()) {
            return Err(ToolError::too_large_to_check());
        }
        if given.keys().all(|name| self.stays(name)) {
            return Ok(spelled);
        }
        let mut checked_arguments = Map::with_capacity(given.len());
        let mut checked_from: HashMap<String, &str> = HashMap::new();
        let mut sent_from: HashMap<String, &str> = HashMap::new();
        for (name, value) in given {
            let (checked, sent) = self.spellings(name);
            let other = sent_from.insert(sent.clone(), name);
            if let Some(other) = checked_from.insert(checked.clone(), name).or(other) {
                let text = format!("and '{}' are the same parameter", cut(name, 100));
                return Err(ToolError::invalid(cut(other, 100), text));
            }
            if sent != *name {
                spelled.changes.push((name.clone(), sent.clone()));
            }
            if sent != checked {
                spelled.to_send.push((checked.clone(), sent));
            }
            checked_arguments.insert(checked, value.clone());
        }
        spelled.checked = Arc::new(Value::Object(checked_arguments));
        Ok(spelled)
    }

    fn stays(&self, name: &str) -> bool {
        if self.mode == Normalize::Undeclared && self.declared.has_name(name) {
            return true; // Nearly every name of nearly every call.
        }
        let (checked, sent) = self.spellings(name);
        checked == name && sent == name
    }

    /// How a parameter is spelled for the schema, and how for the server.
    fn spellings(&self, name: &str) -> (String, String) {
        let own = || name.to_owned();
        if self.mode == Normalize::Never {
            return (own(), own());
        }
        let sent = self.rewritten(name);
        if self.mode == Normalize::Undeclared {
            // Patterns are asked only where it matters.
            let stays = sent == name || self.declared.has(name);
            return if stays {
                (own(), own())
            } else {
                (sent.clone(), sent)
            };
        }
        let checked = match self.declared_as.get(&sent) {
            _ if self.declared.has_name(name) => own(),
            Some(declared) if !self.declared.has_name(&sent) => declared.clone(),
            None if self.declared.has(name) => own(),
            _ => sent.clone(),
        };
        (checked, sent)
    }

    /// By the map, else by the general rule.
    fn rewritten(&self, name: &str) -> String {
        let mapped = self.mapped.get(name).cloned();
        mapped.unwrap_or_else(|| to_camel_case(name))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ValidArguments;

    fn zwave(mode: Normalize, schema: &Value) -> ParameterNames {
        let mapped = [("device_name", "deviceName"), ("command", "action")]
            .map(|(from, to)| (from.to_owned(), to.to_owned()));
        ParameterNames::new(mode, HashMap::from(mapped))
            .declared_by(schema, &SchemaLimits::default())
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
            let given = Arc::new(given.clone());
            let spelled = zwave(mode, schema).apply(&given).ok().unwrap();
            let sent = ValidArguments::new(spelled.checked, Vec::new()).renamed(spelled.to_send);
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
            let error = zwave(Normalize::Undeclared, &schema)
                .apply(&Arc::new(given))
                .err()
                .unwrap();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn always_checks_the_declared_spelling_and_sends_the_other() {
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
            let spelled = zwave(Normalize::Always, schema).apply(&Arc::new(given));
            let spelled = spelled.ok().unwrap();
            assert_eq!(spelled.checked.to_string(), checked.to_string());
            let renames = spelled.to_send.iter();
            let renames: Vec<String> = renames.map(|(from, to)| format!("{from}>{to}")).collect();
            assert_eq!(renames.join(" "), to_send);
        }
    }

    #[test]
    fn a_chain_of_mapped_names_loses_no_argument() {
        let mapped = [("a", "b"), ("b", "c")].map(|(from, to)| (from.to_owned(), to.to_owned()));
        let names = |schema: Value| {
            ParameterNames::new(Normalize::Always, HashMap::from(mapped.clone()))
                .declared_by(&schema, &SchemaLimits::default())
        };
        let given = Arc::new(json!({ "a": 1, "b": 2 }));
        let both = names(json!({ "properties": { "a": {}, "b": {} } }));
        let spelled = both.apply(&given).ok().unwrap();
        let sent = ValidArguments::new(spelled.checked, Vec::new()).renamed(spelled.to_send);
        assert_eq!(sent.as_value(), &json!({ "b": 1, "c": 2 }));
        let one = names(json!({ "properties": { "b": {} } }));
        assert_eq!(
            one.apply(&given).err().unwrap().to_string(),
            "Invalid parameters: 'a' and 'b' are the same parameter"
        );
    }
}
