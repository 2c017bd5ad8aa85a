//! Removes `$schema` and `$id` from a schema before it is compiled.

use serde_json::{Map, Value};

use super::SchemaError;

// The compiler receives a copy in which a reference can only mean a position in the document
// itself. A nested `$id` would change the base of references, a nested `$schema` would change the
// meaning of keywords, and an unknown `$schema` would be rejected. None of them constrains
// arguments.
pub(super) fn without_identity(document: &Value) -> Result<Value, SchemaError> {
    let mut copy = document.clone();
    if let Value::Object(schema) = &mut copy {
        let declared = draft(schema);
        if declared.is_none() {
            schema.shift_remove("$schema");
        }
        schema.shift_remove("$id");
        schema.shift_remove("id");
        let id = if declared == Some("draft-04") {
            "id"
        } else {
            "$id"
        };
        strip_parts(schema, id, "")?;
    }
    Ok(copy)
}

fn draft(schema: &Map<String, Value>) -> Option<&'static str> {
    let uri = schema.get("$schema")?.as_str()?.trim_end_matches('#');
    let uri = uri
        .strip_prefix("https://")
        .or(uri.strip_prefix("http://"))?;
    let name = uri
        .strip_prefix("json-schema.org/")?
        .strip_suffix("/schema")?;
    "draft-04 draft-06 draft-07 draft/2019-09 draft/2020-12"
        .split(' ')
        .find(|known| *known == name)
}

fn strip_identity(value: &mut Value, id: &str, path: &str) -> Result<(), SchemaError> {
    match value {
        Value::Object(schema) => {
            let moves_base = |id: &Value| id.as_str().is_some_and(|id| !id.starts_with('#'));
            if schema.get(id).is_some_and(moves_base) {
                return Err(SchemaError::Keyword {
                    keyword: id.to_owned(),
                    path: path.to_owned(),
                    problem: "inside a schema is not supported".to_owned(),
                });
            }
            for keyword in ["$schema", "id"] {
                if keyword != id && schema.get(keyword).is_some_and(Value::is_string) {
                    schema.shift_remove(keyword);
                }
            }
            strip_parts(schema, id, path)
        }
        Value::Array(list) => strip_all(list.iter_mut().enumerate(), id, path),
        _ => Ok(()),
    }
}

fn strip_parts(schema: &mut Map<String, Value>, id: &str, path: &str) -> Result<(), SchemaError> {
    for (keyword, value) in schema {
        let path = format!("{path}/{}", crate::text::escape_truncated(keyword, 60));
        match (keyword.as_str(), value) {
            // These hold values, not schemas.
            ("enum" | "const" | "default" | "examples", _) => {}
            // These hold schemas under arbitrary names, which may look like keywords.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(named),
            ) => strip_all(named, id, &path)?,
            (_, value) => strip_identity(value, id, &path)?,
        }
    }
    Ok(())
}

fn strip_all<'a, N: ToString>(
    schemas: impl IntoIterator<Item = (N, &'a mut Value)>,
    id: &str,
    path: &str,
) -> Result<(), SchemaError> {
    schemas.into_iter().try_for_each(|(name, schema)| {
        let name = crate::text::escape_truncated(&name.to_string(), 60);
        strip_identity(schema, id, &format!("{path}/{name}"))
    })
}
