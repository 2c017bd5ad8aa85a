//! Schemas in the style of real tools: all of them must be accepted and work.

use serde_json::{Value, json};
use toolgate_core::{Schema, SchemaLimits};

struct SchemaCase {
    name: &'static str,
    schema: Value,
    valid: Value,
    invalid: Value,
}

fn assert_each_accepts_and_rejects(cases: impl IntoIterator<Item = SchemaCase>) {
    for case in cases {
        let name = case.name;
        let schema = Schema::compile(case.schema, &SchemaLimits::default())
            .unwrap_or_else(|error| panic!("{name}: the schema is not accepted: {error}"));
        if let Err(error) = schema.check(case.valid) {
            panic!("{name}: valid arguments are rejected: {error}");
        }
        let is_rejected = schema.check(case.invalid).is_err();
        assert!(is_rejected, "{name}: invalid arguments are accepted");
    }
}

#[test]
fn pydantic_schemas_are_accepted() {
    assert_each_accepts_and_rejects([
        SchemaCase {
            name: "search with optional fields",
            schema: json!({
                "title": "search_arguments", "type": "object", "required": ["query"],
                "properties": {
                    "query": { "title": "Query", "type": "string" },
                    "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null, "title": "Limit" },
                    "tags": { "anyOf": [{ "items": { "type": "string" }, "type": "array" }, { "type": "null" }], "default": null },
                },
            }),
            valid: json!({ "query": "x", "limit": null, "tags": ["a"] }),
            invalid: json!({ "query": "x", "limit": "ten" }),
        },
        SchemaCase {
            name: "nested models in $defs",
            schema: json!({
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
            valid: json!({ "customer": { "street": "a", "zip": "12345" }, "others": [{ "street": "b" }], "priority": "low" }),
            invalid: json!({ "customer": { "zip": "x" } }),
        },
        SchemaCase {
            name: "a discriminated union",
            schema: json!({
                "$defs": {
                    "Circle": { "type": "object", "properties": { "kind": { "const": "circle", "type": "string" }, "radius": { "type": "number", "exclusiveMinimum": 0 } }, "required": ["kind", "radius"] },
                    "Square": { "type": "object", "properties": { "kind": { "const": "square", "type": "string" }, "side": { "type": "number" } }, "required": ["kind", "side"] },
                },
                "type": "object", "required": ["shape"],
                "properties": { "shape": { "discriminator": { "propertyName": "kind", "mapping": { "circle": "#/$defs/Circle", "square": "#/$defs/Square" } }, "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }] } },
            }),
            valid: json!({ "shape": { "kind": "circle", "radius": 1 } }),
            invalid: json!({ "shape": { "kind": "circle", "side": 1 } }),
        },
        SchemaCase {
            name: "a mapping with any values",
            schema: json!({ "type": "object", "properties": { "env": { "additionalProperties": { "type": "string" }, "type": "object" }, "payload": { "additionalProperties": true, "type": "object" } } }),
            valid: json!({ "env": { "A": "b" }, "payload": { "x": [1] } }),
            invalid: json!({ "env": { "A": 1 } }),
        },
    ]);
}

#[test]
fn zod_schemas_are_accepted() {
    let draft = "http://json-schema.org/draft-07/schema#";
    assert_each_accepts_and_rejects([
        SchemaCase {
            name: "read_file",
            schema: json!({
                "type": "object", "required": ["path"], "additionalProperties": false, "$schema": draft,
                "properties": { "path": { "type": "string" }, "tail": { "type": "number", "description": "…" }, "head": { "type": "number" } },
            }),
            valid: json!({ "path": "/a", "head": 10 }),
            invalid: json!({ "path": 1 }),
        },
        SchemaCase {
            name: "edit_file",
            schema: json!({
                "type": "object", "required": ["path", "edits"], "additionalProperties": false, "$schema": draft,
                "properties": {
                    "path": { "type": "string" },
                    "edits": { "type": "array", "items": { "type": "object", "properties": { "oldText": { "type": "string" }, "newText": { "type": "string" } }, "required": ["oldText", "newText"], "additionalProperties": false } },
                    "dryRun": { "type": "boolean", "default": false },
                },
            }),
            valid: json!({ "path": "/a", "edits": [{ "oldText": "a", "newText": "b" }] }),
            invalid: json!({ "path": "/a", "edits": [{ "oldText": "a" }] }),
        },
        SchemaCase {
            name: "a knowledge graph",
            schema: json!({
                "type": "object", "required": ["entities"], "$schema": draft,
                "properties": { "entities": { "type": "array", "items": { "type": "object", "required": ["name", "entityType", "observations"], "properties": { "name": { "type": "string" }, "entityType": { "type": "string" }, "observations": { "type": "array", "items": { "type": "string" } } } } } },
            }),
            valid: json!({ "entities": [{ "name": "n", "entityType": "t", "observations": [] }] }),
            invalid: json!({ "entities": [{ "name": "n" }] }),
        },
        SchemaCase {
            name: "references to an earlier property, as zod writes a schema that is used twice",
            schema: json!({
                "type": "object", "additionalProperties": false, "$schema": draft,
                "properties": {
                    "from": { "type": "object", "properties": { "lat": { "type": "number", "minimum": -90, "maximum": 90 }, "lon": { "type": "number" } }, "required": ["lat", "lon"] },
                    "to": { "$ref": "#/properties/from" },
                    "via": { "type": "array", "items": { "$ref": "#/properties/from" } },
                },
                "required": ["from", "to"],
            }),
            valid: json!({ "from": { "lat": 1, "lon": 2 }, "to": { "lat": 3, "lon": 4 }, "via": [] }),
            invalid: json!({ "from": { "lat": 1, "lon": 2 }, "to": { "lat": 300, "lon": 4 } }),
        },
        SchemaCase {
            name: "a tuple and a record",
            schema: json!({
                "type": "object", "$schema": draft,
                "properties": {
                    "range": { "type": "array", "minItems": 2, "maxItems": 2, "items": [{ "type": "number" }, { "type": "number" }] },
                    "headers": { "type": "object", "additionalProperties": { "type": "string" }, "propertyNames": { "pattern": "^[A-Za-z-]+$" } },
                },
            }),
            valid: json!({ "range": [1, 2], "headers": { "X-A": "b" } }),
            invalid: json!({ "range": [1, "b"] }),
        },
    ]);
}

#[test]
fn recursive_schemas_are_accepted() {
    assert_each_accepts_and_rejects([
        SchemaCase {
            name: "a tree",
            schema: json!({
                "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } },
                "$defs": { "node": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
            }),
            valid: json!({ "root": { "name": "a", "children": [{ "name": "b", "children": [] }] } }),
            invalid: json!({ "root": { "name": "a", "children": [{ "children": [] }] } }),
        },
        SchemaCase {
            name: "a filter with and, or and not",
            schema: json!({
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
            valid: json!({ "filter": { "and": [{ "field": "a", "op": "eq", "value": 1 }, { "not": { "or": [] } }] } }),
            invalid: json!({ "filter": { "and": [{ "field": "a", "op": "like" }] } }),
        },
        SchemaCase {
            name: "any JSON value",
            schema: json!({
                "type": "object", "properties": { "value": { "$ref": "#/$defs/json" } },
                "$defs": { "json": { "anyOf": [
                    { "type": ["string", "number", "boolean", "null"] },
                    { "type": "array", "items": { "$ref": "#/$defs/json" } },
                    { "type": "object", "additionalProperties": { "$ref": "#/$defs/json" } },
                ] } },
                "required": ["value"],
            }),
            valid: json!({ "value": { "a": [1, { "b": null }] } }),
            invalid: json!({}),
        },
    ]);
}

#[test]
fn schemas_of_large_services_are_accepted() {
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
    let condition = |kind: &str, value_schema: Value| json!({ "type": "object", "properties": { "property": { "type": "string" }, kind: { "anyOf": [{ "type": "object", "properties": { "equals": value_schema } }, { "type": "object", "properties": { "is_empty": { "const": true } } }] } }, "required": ["property", kind] });
    assert_each_accepts_and_rejects([
        SchemaCase {
            name: "an issue tracker",
            schema: json!({
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
            valid: json!({ "owner": "o", "repo": "r", "title": "t", "body": "x".repeat(500_000), "labels": ["bug"], "milestone": null }),
            invalid: json!({ "owner": "o", "repo": "r r", "title": "t" }),
        },
        SchemaCase {
            name: "pages made of blocks",
            schema: json!({
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
            valid: json!({ "parent": { "page_id": "x" }, "children": [{ "object": "block", "type": "toggle", "toggle": { "rich_text": [{ "text": { "content": "a" } }], "children": [{ "paragraph": { "rich_text": [] } }] } }] }),
            invalid: json!({ "parent": { "page_id": "x" }, "children": [{ "paragraph": {} }] }),
        },
        SchemaCase {
            name: "a database query with nested filters",
            schema: json!({
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
            valid: json!({ "filter": { "or": [{ "and": [{ "property": "Done", "checkbox": { "equals": true } }] }] }, "page_size": 10 }),
            invalid: json!({ "filter": { "or": [{ "and": [{ "checkbox": { "equals": true } }] }] } }),
        },
        SchemaCase {
            name: "OpenAPI 3.0 leftovers",
            schema: json!({
                "type": "object",
                "properties": { "price": { "type": "number", "minimum": 0, "exclusiveMinimum": true, "example": 5, "nullable": true }, "file": { "type": "string", "format": "binary", "x-internal": true } },
            }),
            valid: json!({ "price": 0.5, "file": "x" }),
            invalid: json!({ "price": 0 }),
        },
        SchemaCase {
            name: "a browser with one action at a time",
            schema: json!({
                "type": "object", "required": ["action"],
                "properties": { "action": { "enum": ["click", "type", "goto"] }, "selector": { "type": "string" }, "text": { "type": "string" }, "url": { "type": "string", "pattern": "^https?://[^\\s]+$" } },
                "allOf": [
                    { "if": { "properties": { "action": { "const": "goto" } } }, "then": { "required": ["url"] } },
                    { "if": { "properties": { "action": { "const": "type" } } }, "then": { "required": ["selector", "text"] } },
                ],
                "dependentRequired": { "text": ["selector"] },
            }),
            valid: json!({ "action": "goto", "url": "https://example.org/" }),
            invalid: json!({ "action": "goto" }),
        },
    ]);
}
