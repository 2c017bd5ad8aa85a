//! VA6: references never lead out of a schema, and never in circles.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::hostile_schemas::{blamed_keyword, chain, expect_harmless, expect_refused, object};

#[test]
fn va6_circular_references_are_refused() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#/anyOf/0" }] }),
        json!({ "properties": { "p": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "properties": { "p": { "not": { "$ref": "#/properties/p" } } } }),
    ] {
        expect_refused("$ref", schema);
    }
}

#[test]
fn va6_external_references_are_refused() {
    for reference in [
        "http://example.org/schema.json",
        "https://example.org/schema.json#/a",
        "file:///etc/passwd",
        "other.json",
        "/absolute.json",
        "//example.org/x",
        "urn:uuid:deadbeef-0000-0000-0000-000000000000",
        "http://json-schema.org/draft-07/schema#",
        "#nowhere",
        "#/$defs/nowhere",
        "#/properties/p/",
        "#%2fnowhere",
        "#/%ff",
        "",
        " #",
    ] {
        expect_refused(
            "$ref",
            json!({ "properties": { "p": { "$ref": reference } } }),
        );
    }
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        expect_refused(keyword, json!({ "properties": { "p": { keyword: "#" } } }));
    }
}

#[test]
fn va6_nothing_is_fetched_and_no_file_is_read() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", canary.local_addr().unwrap());
    // A file with a valid schema.
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("schema.json");
    std::fs::write(&file, r#"{"type":"object"}"#).unwrap();
    let path = format!("file://{}", file.display());
    for outside in [&url, &path] {
        for schema in [
            json!({ "$ref": outside }),
            json!({ "properties": { "p": { "$ref": format!("{outside}#/a") } } }),
            json!({ "$id": outside, "properties": { "p": { "$ref": "schema.json" } } }),
            json!({ "$defs": { "unused": { "$ref": outside } }, "properties": { "p": { "$ref": "#/$defs/unused" } } }),
            json!({ "properties": { "p": { "$id": outside, "type": "string" } } }),
        ] {
            assert!(
                blamed_keyword(schema.clone(), json!({ "p": 1 })).is_some(),
                "{schema}"
            );
        }
        // These need nothing from the file, so they are accepted.
        for schema in [
            json!({ "$schema": outside, "type": "object" }),
            json!({ "$id": outside, "type": "object" }),
            json!({ "properties": { "p": { "$schema": outside } } }),
            json!({ "properties": { "p": { "default": { "$ref": outside }, "examples": [{ "$ref": outside }] } } }),
        ] {
            expect_harmless(schema, json!({ "p": 1 }));
        }
    }
    let caught = canary.accept();
    assert_eq!(
        caught.unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "nobody called"
    );
}

#[test]
fn va6_a_reference_resolves_to_the_schema_that_was_measured() {
    let link = |next: Value| json!({ "allOf": [next.clone(), next] });
    let calm = object((0..=30).map(|i| (format!("d{i}"), json!({}))));
    let bomb = || chain(30, link, &json!({}));
    let with_anchor = |keyword: &str| {
        let mut defs = bomb();
        defs["d0"][keyword] = json!("a");
        json!({ "properties": { "p": { "$ref": "#a" }, "q": { "const": { "$anchor": "a" } } }, "$defs": defs })
    };
    let hidden =
        json!({ "id": "http://x.example/", "$defs": bomb(), "allOf": [{ "$ref": "#/$defs/d0" }] });
    let old = "http://json-schema.org/draft-04/schema#";
    let mut declared = hidden.clone();
    declared["$schema"] = json!(old);
    for (keyword, schema) in [
        (
            "$id",
            json!({ "$defs": calm, "properties": { "p": { "$id": "http://x.example/", "$defs": bomb(), "$ref": "#/$defs/d0" } } }),
        ),
        (
            "id",
            json!({ "$schema": old, "$defs": calm, "properties": { "p": hidden } }),
        ),
        (
            "$id",
            json!({
                "properties": { "p": { "$ref": "#/$defs/x/$defs/inner" } },
                "$defs": { "d0": {}, "x": { "$id": "http://x.example/", "$defs": { "inner": { "$ref": "#/$defs/d0" }, "d0": {} } } },
            }),
        ),
        (
            "$ref",
            json!({ "properties": { "p": { "$ref": "#/examples/0" } }, "examples": [{ "$id": "http://x.example/", "$ref": "#/$defs/d0" }], "$defs": calm }),
        ),
        ("$anchor", with_anchor("$anchor")),
        ("$dynamicAnchor", with_anchor("$dynamicAnchor")),
    ] {
        expect_refused(keyword, schema);
    }
    // A nested `$schema` is removed, so `id` has no meaning.
    expect_harmless(
        json!({ "$defs": calm, "properties": { "p": declared } }),
        json!({ "p": {} }),
    );
}
