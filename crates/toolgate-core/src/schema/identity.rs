//! What a schema says of itself rather than of arguments.

use serde_json::{Map, Value};

use super::SchemaError;

/// A copy to compile, in which a reference can only mean a place in the document itself: an `$id` inside would move its
/// base, a `$schema` inside the meaning of its keywords, and an unknown `$schema` would be refused. None of them says
/// anything about arguments.
pub(super) fn plain(document: &Value) -> Result<Value, SchemaError> {
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
        settle_parts(schema, id, "")?;
    }
    Ok(copy)
}

/// The known draft that a schema declares.
fn draft(schema: &Map<String, Value>) -> Option<&'static str> {
    let uri = schema.get("$schema")?.as_str()?.trim_end_matches('#');
    let uri = uri
        .strip_prefix("https://")
        .or(uri.strip_prefix("http://"))?;
    let name = uri
        .strip_prefix("json-schema.org/")?
        .strip_suffix("/schema")?;
    [
        "draft-04",
        "draft-06",
        "draft-07",
        "draft/2019-09",
        "draft/2020-12",
    ]
    .into_iter()
    .find(|known| *known == name)
}

fn settle(value: &mut Value, id: &str, path: &str) -> Result<(), SchemaError> {
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
            settle_parts(schema, id, path)
        }
        Value::Array(list) => settle_all(list.iter_mut().enumerate(), id, path),
        _ => Ok(()),
    }
}

fn settle_parts(schema: &mut Map<String, Value>, id: &str, path: &str) -> Result<(), SchemaError> {
    for (keyword, value) in schema {
        let path = format!("{path}/{}", crate::text::cut(keyword, 60));
        match (keyword.as_str(), value) {
            // These hold values, not schemas.
            ("enum" | "const" | "default" | "examples", _) => {}
            // These hold schemas by names of any kind.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(named),
            ) => settle_all(named, id, &path)?,
            (_, value) => settle(value, id, &path)?,
        }
    }
    Ok(())
}

fn settle_all<'a, N: ToString>(
    schemas: impl IntoIterator<Item = (N, &'a mut Value)>,
    id: &str,
    path: &str,
) -> Result<(), SchemaError> {
    schemas.into_iter().try_for_each(|(name, schema)| {
        let name = crate::text::cut(&name.to_string(), 60);
        settle(schema, id, &format!("{path}/{name}"))
    })
}
