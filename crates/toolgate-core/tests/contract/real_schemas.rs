//! Schemas in the style of real tools: all of them must be accepted and work.

use serde_json::{Value, json};
use toolgate_core::{Schema, SchemaLimits};

/// Name, schema, arguments that fit, arguments that do not.
type Case = (&'static str, Value, Value, Value);

fn check(cases: impl IntoIterator<Item = Case>) {
    for (name, schema, good, bad) in cases {
        let schema = match Schema::compile(schema, &SchemaLimits::default()) {
            Ok(schema) => schema,
            Err(error) => panic!("{name}: {error}"),
        };
        if let Err(error) = schema.check(good) {
            panic!("{name}: {error}");
        }
        assert!(schema.check(bad).is_err(), "{name}");
    }
}

#[test]
fn schemas_made_by_pydantic() {
    check([
        (
            "search with optional fields",
            json!({
                "title": "search_arguments", "type": "object", "required": ["query"],
                "properties": {
                    "query": { "title": "Query", "type": "string" },
                    "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null, "title": "Limit" },
                    "tags": { "anyOf": [{ "items": { "type": "string" }, "type": "array" }, { "type": "null" }], "default": null },
                },
            }),
            json!({ "query": "x", "limit": null, "tags": ["a"] }),
            json!({ "query": "x", "limit": "ten" }),
        ),
        (
            "nested models in $defs",
            json!({
                "$defs": {
                    "Address": { "type": "object", "properties": { "street": { "type": "string" }, "zip": { "type": "string", "pattern": "^\\d{5}$" } }, "required": ["street"], "additionalProperties": false },
                    "Priority": { "enum": ["low", "high"], "title": "Priority", "type": "string" },
                },
                "type": "object", "required": ["customer"],
                "properties": {
                    "customer": { "$ref": "#/$defs/Address" },
                    "others": { "type": "array", "items": { "$ref": "#/$defs/Address" }, "default": [] },
                    "priority": { "anyOf": [{ "$ref": "#/$defs/Priority" }, { "type": "null" }], "default": null },
                },
            }),
            json!({ "customer": { "street": "a", "zip": "12345" }, "others": [{ "street": "b" }], "priority": "low" }),
            json!({ "customer": { "zip": "x" } }),
        ),
        (
            "a discriminated union",
            json!({
                "$defs": {
                    "Circle": { "type": "object", "properties": { "kind": { "const": "circle", "type": "string" }, "radius": { "type": "number", "exclusiveMinimum": 0 } }, "required": ["kind", "radius"] },
                    "Square": { "type": "object", "properties": { "kind": { "const": "square", "type": "string" }, "side": { "type": "number" } }, "required": ["kind", "side"] },
                },
                "type": "object", "required": ["shape"],
                "properties": { "shape": { "discriminator": { "propertyName": "kind", "mapping": { "circle": "#/$defs/Circle", "square": "#/$defs/Square" } }, "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }] } },
            }),
            json!({ "shape": { "kind": "circle", "radius": 1 } }),
            json!({ "shape": { "kind": "circle", "side": 1 } }),
        ),
        (
            "a mapping with any values",
            json!({ "type": "object", "properties": { "env": { "additionalProperties": { "type": "string" }, "type": "object" }, "payload": { "additionalProperties": true, "type": "object" } } }),
            json!({ "env": { "A": "b" }, "payload": { "x": [1] } }),
            json!({ "env": { "A": 1 } }),
        ),
    ]);
}

#[test]
fn schemas_made_by_zod() {
    let draft = "http://json-schema.org/draft-07/schema#";
    check([
        (
            "read_file",
            json!({
                "type": "object", "required": ["path"], "additionalProperties": false, "$schema": draft,
                "properties": { "path": { "type": "string" }, "tail": { "type": "number", "description": "…" }, "head": { "type": "number" } },
            }),
            json!({ "path": "/a", "head": 10 }),
            json!({ "path": 1 }),
        ),
        (
            "edit_file",
            json!({
                "type": "object", "required": ["path", "edits"], "additionalProperties": false, "$schema": draft,
                "properties": {
                    "path": { "type": "string" },
                    "edits": { "type": "array", "items": { "type": "object", "properties": { "oldText": { "type": "string" }, "newText": { "type": "string" } }, "required": ["oldText", "newText"], "additionalProperties": false } },
                    "dryRun": { "type": "boolean", "default": false },
                },
            }),
            json!({ "path": "/a", "edits": [{ "oldText": "a", "newText": "b" }] }),
            json!({ "path": "/a", "edits": [{ "oldText": "a" }] }),
        ),
        (
            "a knowledge graph",
            json!({
                "type": "object", "required": ["entities"], "$schema": draft,
                "properties": { "entities": { "type": "array", "items": { "type": "object", "required": ["name", "entityType", "observations"], "properties": { "name": { "type": "string" }, "entityType": { "type": "string" }, "observations": { "type": "array", "items": { "type": "string" } } } } } },
            }),
            json!({ "entities": [{ "name": "n", "entityType": "t", "observations": [] }] }),
            json!({ "entities": [{ "name": "n" }] }),
        ),
        (
            "references to an earlier property, as zod writes a schema that is used twice",
            json!({
                "type": "object", "additionalProperties": false, "$schema": draft,
                "properties": {
                    "from": { "type": "object", "properties": { "lat": { "type": "number", "minimum": -90, "maximum": 90 }, "lon": { "type": "number" } }, "required": ["lat", "lon"] },
                    "to": { "$ref": "#/properties/from" },
                    "via": { "type": "array", "items": { "$ref": "#/properties/from" } },
                },
                "required": ["from", "to"],
            }),
            json!({ "from": { "lat": 1, "lon": 2 }, "to": { "lat": 3, "lon": 4 }, "via": [] }),
            json!({ "from": { "lat": 1, "lon": 2 }, "to": { "lat": 300, "lon": 4 } }),
        ),
        (
            "a tuple and a record",
            json!({
                "type": "object", "$schema": draft,
                "properties": {
                    "range": { "type": "array", "minItems": 2, "maxItems": 2, "items": [{ "type": "number" }, { "type": "number" }] },
                    "headers": { "type": "object", "additionalProperties": { "type": "string" }, "propertyNames": { "pattern": "^[A-Za-z-]+$" } },
                },
            }),
            json!({ "range": [1, 2], "headers": { "X-A": "b" } }),
            json!({ "range": [1, "b"] }),
        ),
    ]);
}

#[test]
fn schemas_that_refer_to_themselves() {
    check([
        (
            "a tree",
            json!({
                "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } },
                "$defs": { "node": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
            }),
            json!({ "root": { "name": "a", "children": [{ "name": "b", "children": [] }] } }),
            json!({ "root": { "name": "a", "children": [{ "children": [] }] } }),
        ),
        (
            "a filter with and, or and not",
            json!({
                "type": "object", "properties": { "filter": { "$ref": "#/definitions/filter" } },
                "definitions": {
                    "filter": { "anyOf": [
                        { "type": "object", "properties": { "and": { "type": "array", "items": { "$ref": "#/definitions/filter" } } }, "required": ["and"] },
                        { "type": "object", "properties": { "or": { "type": "array", "items": { "$ref": "#/definitions/filter" } } }, "required": ["or"] },
                        { "type": "object", "properties": { "not": { "$ref": "#/definitions/filter" } }, "required": ["not"] },
                        { "type": "object", "properties": { "field": { "type": "string" }, "op": { "enum": ["eq", "lt", "gt"] }, "value": {} }, "required": ["field", "op"] },
                    ] },
                },
            }),
            json!({ "filter": { "and": [{ "field": "a", "op": "eq", "value": 1 }, { "not": { "or": [] } }] } }),
            json!({ "filter": { "and": [{ "field": "a", "op": "like" }] } }),
        ),
        (
            "JSON itself",
            json!({
                "type": "object", "properties": { "value": { "$ref": "#/$defs/json" } },
                "$defs": { "json": { "anyOf": [
                    { "type": ["string", "number", "boolean", "null"] },
                    { "type": "array", "items": { "$ref": "#/$defs/json" } },
                    { "type": "object", "additionalProperties": { "$ref": "#/$defs/json" } },
                ] } },
                "required": ["value"],
            }),
            json!({ "value": { "a": [1, { "b": null }] } }),
            json!({}),
        ),
    ]);
}

#[test]
fn schemas_of_large_services() {
    let rich_text =
        json!({ "type": "array", "maxItems": 100, "items": { "$ref": "#/$defs/richText" } });
    let block = |kind: &str| {
        json!({
            "type": "object",
            "properties": { "object": { "const": "block" }, "type": { "const": kind }, kind: { "type": "object", "properties": { "rich_text": rich_text, "color": { "enum": ["default", "red", "blue"] }, "children": { "type": "array", "items": { "$ref": "#/$defs/block" } } }, "required": ["rich_text"] } },
            "required": [kind],
        })
    };
    let kinds = [
        "paragraph",
        "heading_1",
        "heading_2",
        "heading_3",
        "bulleted_list_item",
        "numbered_list_item",
        "to_do",
        "toggle",
        "quote",
        "callout",
        "code",
    ];
    let blocks: Vec<Value> = kinds.iter().map(|kind| block(kind)).collect();
    let condition = |kind: &str, of: Value| json!({ "type": "object", "properties": { "property": { "type": "string" }, kind: { "anyOf": [{ "type": "object", "properties": { "equals": of } }, { "type": "object", "properties": { "is_empty": { "const": true } } }] } }, "required": ["property", kind] });
    check([
        (
            "an issue tracker",
            json!({
                "type": "object", "required": ["owner", "repo", "title"],
                "properties": {
                    "owner": { "type": "string", "description": "Repository owner" },
                    "repo": { "type": "string", "pattern": "^[\\w.-]{1,100}$" },
                    "title": { "type": "string", "minLength": 1, "maxLength": 256 },
                    "body": { "type": "string" },
                    "labels": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
                    "assignees": { "type": "array", "items": { "type": "string" }, "maxItems": 10 },
                    "milestone": { "type": ["integer", "null"], "minimum": 1 },
                    "state": { "type": "string", "enum": ["open", "closed"] },
                },
            }),
            json!({ "owner": "o", "repo": "r", "title": "t", "body": "x".repeat(500_000), "labels": ["bug"], "milestone": null }),
            json!({ "owner": "o", "repo": "r r", "title": "t" }),
        ),
        (
            "pages made of blocks",
            json!({
                "type": "object", "required": ["parent"],
                "properties": {
                    "parent": { "anyOf": [{ "type": "object", "properties": { "page_id": { "type": "string", "format": "uuid" } }, "required": ["page_id"] }, { "type": "object", "properties": { "database_id": { "type": "string" } }, "required": ["database_id"] }] },
                    "children": { "type": "array", "items": { "$ref": "#/$defs/block" } },
                },
                "$defs": {
                    "richText": { "anyOf": [
                        { "type": "object", "properties": { "type": { "const": "text" }, "text": { "type": "object", "properties": { "content": { "type": "string", "maxLength": 2000 }, "link": { "anyOf": [{ "type": "object", "properties": { "url": { "type": "string" } } }, { "type": "null" }] } }, "required": ["content"] } }, "required": ["text"] },
                        { "type": "object", "properties": { "type": { "const": "equation" }, "equation": { "type": "object", "properties": { "expression": { "type": "string" } } } }, "required": ["equation"] },
                    ] },
                    "block": { "anyOf": blocks },
                },
            }),
            json!({ "parent": { "page_id": "x" }, "children": [{ "object": "block", "type": "toggle", "toggle": { "rich_text": [{ "text": { "content": "a" } }], "children": [{ "paragraph": { "rich_text": [] } }] } }] }),
            json!({ "parent": { "page_id": "x" }, "children": [{ "paragraph": {} }] }),
        ),
        (
            "a query of a database with filters in filters",
            json!({
                "type": "object",
                "properties": { "filter": { "$ref": "#/$defs/filter" }, "sorts": { "type": "array", "items": { "type": "object", "properties": { "property": { "type": "string" }, "direction": { "enum": ["ascending", "descending"] } } } }, "page_size": { "type": "integer", "maximum": 100 } },
                "$defs": { "filter": { "anyOf": [
                    { "type": "object", "properties": { "and": { "type": "array", "items": { "$ref": "#/$defs/filter" } } }, "required": ["and"] },
                    { "type": "object", "properties": { "or": { "type": "array", "items": { "$ref": "#/$defs/filter" } } }, "required": ["or"] },
                    condition("title", json!({ "type": "string" })), condition("number", json!({ "type": "number" })),
                    condition("checkbox", json!({ "type": "boolean" })), condition("select", json!({ "type": "string" })),
                    condition("date", json!({ "type": "string" })), condition("people", json!({ "type": "string" })),
                ] } },
            }),
            json!({ "filter": { "or": [{ "and": [{ "property": "Done", "checkbox": { "equals": true } }] }] }, "page_size": 10 }),
            json!({ "filter": { "or": [{ "and": [{ "checkbox": { "equals": true } }] }] } }),
        ),
        (
            "OpenAPI 3.0 leftovers",
            json!({
                "type": "object",
                "properties": { "price": { "type": "number", "minimum": 0, "exclusiveMinimum": true, "example": 5, "nullable": true }, "file": { "type": "string", "format": "binary", "x-internal": true } },
            }),
            json!({ "price": 0.5, "file": "x" }),
            json!({ "price": 0 }),
        ),
        (
            "a browser with one action at a time",
            json!({
                "type": "object", "required": ["action"],
                "properties": { "action": { "enum": ["click", "type", "goto"] }, "selector": { "type": "string" }, "text": { "type": "string" }, "url": { "type": "string", "pattern": "^https?://[^\\s]+$" } },
                "allOf": [
                    { "if": { "properties": { "action": { "const": "goto" } } }, "then": { "required": ["url"] } },
                    { "if": { "properties": { "action": { "const": "type" } } }, "then": { "required": ["selector", "text"] } },
                ],
                "dependentRequired": { "text": ["selector"] },
            }),
            json!({ "action": "goto", "url": "https://example.org/" }),
            json!({ "action": "goto" }),
        ),
    ]);
}
