//! Reads single columns by number or name, without failing on what a damaged file holds there.

use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) fn text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

pub(crate) fn number(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

pub(crate) fn millis(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<f64>> {
    Ok(number(row, column)?.map(|micros| micros as f64 / 1000.0))
}

pub(crate) fn json(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Value>> {
    Ok(text(row, column)?.map(|text| parse_or_text(&text)))
}

pub(crate) fn list<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Vec<T>> {
    let text = text(row, column)?.unwrap_or_default();
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Returns the text itself if it isn't JSON.
pub(crate) fn parse_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
