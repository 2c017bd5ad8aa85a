//! A tool as the Gemini API wants it.
//!
//! Schemas go out as `parametersJsonSchema`: the older `parameters` is a structure of its own whose `type` is a single word, and
//! a request with one keyword too many in it is refused whole.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::Dialect;
use crate::lowering::{Lowered, Rules, lower};

impl Rules {
    /// The keywords that the documentation of the API names, but for references, which are put in place, and `format`, of which
    /// only some values are taken.
    pub(crate) const GEMINI: Self = Self {
        keywords: Some(&[
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
        ]),
        is_parameter_name: |name| {
            let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            (1..=64).contains(&name.len()) && name.bytes().all(usual)
        },
        longest_description: 4 << 10,
        continued: false,
    };
}

pub(super) const DIALECT: Dialect = Dialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| form(&lower(definition, &Rules::GEMINI)?, wire_name),
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

/// A name that begins otherwise costs the whole request.
pub(super) fn form(lowered: &Lowered<'_>, wire_name: &str) -> Result<Box<RawValue>, String> {
    if !wire_name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Err("its name doesn't begin with a letter, which Gemini asks for".to_owned());
    }
    let declaration = Declaration {
        name: wire_name,
        description: &lowered.description,
        parameters_json_schema: &lowered.schema,
    };
    to_raw_value(&declaration).map_err(|error| error.to_string())
}
