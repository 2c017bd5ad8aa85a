use super::*;

#[test]
fn the_built_in_pack_is_consistent() {
    Pack::parse(include_str!("../en.json"))
        .unwrap()
        .check()
        .unwrap();
}

#[test]
fn packs_name_home_tools_by_role() {
    let pack = Pack::parse(
        r#"{ "slots": { "x": { "list": { "tool": "home.list_devices", "pointer": "/", "noun": "x", "nouns": "x" } } },
             "intents": [{ "tool": "home.control_device" }, { "tool": "home.other" }, { "tool": "echo" }] }"#,
    )
    .unwrap();
    let tools = pack.intents.iter().map(|intent| intent.tool.as_deref());
    let expected = ["control_zwave_device", "home.other", "echo"].map(Some);
    assert_eq!(tools.collect::<Vec<_>>(), expected);
    assert!(
        matches!(&pack.slots["x"], SlotKind::List(source) if source.tool == "list_zwave_devices")
    );
    let english = Pack::english().intents;
    let tools = english.iter().filter_map(|intent| intent.tool.as_deref());
    assert!(tools.into_iter().all(|tool| !tool.starts_with("home.")));
    let shipped = include_str!("../en.json");
    assert!(
        !shipped.contains("_zwave_"),
        "a protocol's tool in a sentence"
    );
}

#[test]
fn an_invalid_pack_is_rejected_with_position_and_reason() {
    for (json, expected) in [
        (
            "{\n \"intents\": 5 }",
            "line 2, column 13: invalid type: integer `5`, expected a sequence",
        ),
        (
            "{ \"intent\": [] }",
            "line 1, column 10: unknown field `intent`",
        ),
        (
            "{ \"slots\": { \"a\": \"numbr\" } }",
            "line 1, column 25: unknown variant `numbr`",
        ),
        (
            "{ \"slots\": { \"a\": { \"list\": { \"tool\": \"t\" } } } }",
            "line 1, column 43: missing field `pointer`",
        ),
        (
            r#"{ "intents": [{ "sentences": ["turn (on"] }] }"#,
            "line 1, column 41: the sentence 'turn (on' has an error at character 6",
        ),
    ] {
        let error = Pack::parse(json).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let long = " ".repeat(MAX_PACK_BYTES + 1);
    assert!(
        Pack::parse(&long)
            .unwrap_err()
            .to_string()
            .contains("bytes")
    );
}

#[test]
fn inconsistencies_are_named() {
    for (json, expected) in [
        (
            r#"{ "intents": [{ "sentences": ["do {x}"], "tool": "t" }] }"#,
            "the sentence 'do {x}' has an unknown slot 'x'",
        ),
        (
            r#"{ "intents": [{ "sentences": ["do"], "tool": "t", "arguments": { "a": "{y}" } }] }"#,
            "no sentence of the intent 'do' has the slot 'y' that its arguments use",
        ),
        (
            r#"{ "intents": [{ "sentences": ["do"] }] }"#,
            "the intent 'do' needs exactly one of `tool`, `say`, `ask` and `help`",
        ),
        (
            r#"{ "intents": [{ "tool": "t" }] }"#,
            "an intent for the tool 't' has no sentences",
        ),
        (
            r#"{ "intents": [{ "sentences": ["do"], "tool": "t", "any": "level" }] }"#,
            "`any` names 'level', but no slot of that name has a list",
        ),
        (
            r#"{ "slots": { "x": { "values": [] } } }"#,
            "the slot 'x' has no values",
        ),
    ] {
        let error = Pack::english()
            .with(Pack::parse(json).unwrap())
            .check()
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let bare = Pack::parse("{}").unwrap().check().unwrap_err();
    assert!(bare.to_string().starts_with("the text '"), "{bare}");
}

#[test]
fn an_added_pack_extends_the_words_between_requests() {
    let mine = Pack::parse(r#"{ "groups": { "then": ["afterwards"] } }"#).unwrap();
    let all = Pack::english().with(mine);
    assert_eq!(all.groups.then, ["then", "afterwards"]);
}
