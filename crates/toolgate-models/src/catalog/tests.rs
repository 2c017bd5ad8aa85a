use std::cell::RefCell;

use serde_json::json;
use toolgate_core::{CallContext, ToolFuture, ToolSource, ValidArguments};

use super::*;

struct CatalogTestTool(ToolDefinition);

impl Tool for CatalogTestTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        unreachable!("no conversion calls a tool")
    }
}

fn tool(name: &str, original: Option<&str>) -> Arc<dyn Tool> {
    let mut builder = ToolDefinition::builder(name, "Does something", json!({ "type": "object" }));
    if let Some(original) = original {
        builder = builder
            .original_name(original)
            .source(ToolSource::Mcp("s".to_owned()));
    }
    Arc::new(CatalogTestTool(builder.build().unwrap()))
}

fn tools(names: &[&str]) -> Vec<Arc<dyn Tool>> {
    names.iter().map(|name| tool(name, None)).collect()
}

const SHORT: ToolDialect = ToolDialect {
    longest_name: 64,
    original_names: false,
    convert: |_, name| serde_json::value::to_raw_value(name).map_err(|error| error.to_string()),
};

/// The wire name of each tool, by its listed name.
fn names(catalog: &Catalog) -> Vec<(&str, &str)> {
    let mut names: Vec<(&str, &str)> = catalog
        .tools()
        .iter()
        .map(|tool| (tool.tool.definition().name(), tool.wire_name.as_str()))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn legal_names_stay_and_others_are_made_legal() {
    let catalog = Catalog::build(
        &tools(&["echo", "house.lights", "a/b:c", "get-time_2"]),
        &SHORT,
    );
    let expected = [
        ("a/b:c", "a_b_c"),
        ("echo", "echo"),
        ("get-time_2", "get-time_2"),
        ("house.lights", "house_lights"),
    ];
    assert_eq!(names(&catalog), expected);
    for (listed, wire) in expected {
        assert_eq!(catalog.wire_name(listed), wire);
        let found = catalog.by_wire_name(wire).unwrap();
        assert_eq!(found.tool.definition().name(), listed);
    }
}

#[test]
fn a_legal_name_wins_a_clash() {
    let catalog = Catalog::build(&tools(&["a.b", "a/b", "a_b"]), &SHORT);
    let expected = [
        ("a.b", "a_b_e27bcb35"),
        ("a/b", "a_b_e2480c78"),
        ("a_b", "a_b"),
    ];
    assert_eq!(
        names(&catalog),
        expected,
        "these stand in saved conversations"
    );
    let turned = Catalog::build(&tools(&["a_b", "a/b", "a.b"]), &SHORT);
    assert_eq!(names(&turned), expected, "whatever their order");
    let without = Catalog::build(&tools(&["a.b", "a/b"]), &SHORT);
    assert_eq!(
        names(&without),
        expected[..2],
        "none has more right to it than the other"
    );
}

#[test]
fn a_generated_name_avoids_existing_ones() {
    let catalog = Catalog::build(&tools(&["a_b", "a.b", "a_b_e27bcb35"]), &SHORT);
    let names = names(&catalog);
    assert_eq!(
        (names[1], names[2]),
        (("a_b", "a_b"), ("a_b_e27bcb35", "a_b_e27bcb35"))
    );
    assert!(
        names[0].1.starts_with("a_b_") && names[0].1 != "a_b_e27bcb35",
        "{names:?}"
    );
}

#[test]
fn long_names_are_cut_and_stay_unique() {
    let long = "x".repeat(70);
    let (one, other) = (format!("{long}.one"), format!("{long}.two"));
    let catalog = Catalog::build(&tools(&[&one, &other, &"y".repeat(64)]), &SHORT);
    let names = names(&catalog);
    assert!(names.iter().all(|(_, wire)| wire.len() == 64), "{names:?}");
    assert_ne!(names[0].1, names[1].1);
    assert_eq!(names[2].1, "y".repeat(64));
}

#[test]
fn every_wire_name_is_legal_unique_and_resolves() {
    let odd: Vec<String> = (0..2_000)
        .map(|i| {
            let separator = ["_", ".", "/", ":", "-"][i % 5];
            format!("s{}{separator}t{}{}", i % 7, i / 10, "long".repeat(i % 40))
        })
        .filter(|name| name.len() <= 128)
        .collect();
    let odd: HashSet<&str> = odd.iter().map(String::as_str).collect();
    let odd: Vec<&str> = odd.into_iter().collect();
    for longest_name in [64, 128] {
        let dialect = ToolDialect {
            longest_name,
            ..SHORT
        };
        let catalog = Catalog::build(&tools(&odd), &dialect);
        assert_eq!(catalog.tools().len(), odd.len());
        let wire: HashSet<&str> = catalog
            .tools()
            .iter()
            .map(|tool| tool.wire_name.as_str())
            .collect();
        assert_eq!(wire.len(), odd.len());
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(
            wire.iter()
                .all(|name| name.len() <= longest_name && name.chars().all(legal))
        );
        for listed in &odd {
            let wire = catalog.wire_name(listed);
            assert_eq!(
                catalog
                    .by_wire_name(&wire)
                    .unwrap()
                    .tool
                    .definition()
                    .name(),
                *listed
            );
        }
        assert!(catalog.tools().is_sorted_by_key(|tool| &tool.wire_name));
    }
}

#[test]
fn qw2_the_name_on_the_server_is_used_where_only_one_tool_has_it() {
    let qwen = ToolDialect {
        original_names: true,
        ..SHORT
    };
    let tools = [
        tool("house_lights", Some("lights")),
        tool("one_search", Some("search")),
        tool("two_search", Some("search")),
        tool("time", None),
        tool("clock_time", Some("time")),
        tool("notes", Some("read")),
        tool("other_notes", Some("notes")),
        tool("odd", Some("read.me")),
    ];
    let catalog = Catalog::build(&tools, &qwen);
    let expected = [
        ("clock_time", "clock_time"),
        ("house_lights", "lights"),
        ("notes", "read"),
        ("odd", "read_me"),
        ("one_search", "one_search"),
        ("other_notes", "other_notes"),
        ("time", "time"),
        ("two_search", "two_search"),
    ];
    assert_eq!(names(&catalog), expected);
}

#[test]
fn a_tool_that_cannot_be_converted_costs_only_itself() {
    let picky = ToolDialect {
        convert: |definition, name| match definition.name() {
            "bad" => Err("its parameters can't be expressed".to_owned()),
            "worse" => panic!("a bug"),
            _ => (SHORT.convert)(definition, name),
        },
        ..SHORT
    };
    let catalog = Catalog::build(&tools(&["worse", "good", "bad", "good"]), &picky);
    assert_eq!(names(&catalog), [("good", "good")]);
    let excluded: Vec<(&str, &str)> = catalog
        .excluded()
        .iter()
        .map(|left| (left.name.as_str(), left.reason.as_str()))
        .collect();
    let expected = [
        ("bad", "its parameters can't be expressed"),
        ("good", "another tool is listed under the same name"),
        ("worse", "converting it failed unexpectedly"),
    ];
    assert_eq!(excluded, expected);
}

#[test]
fn qw4_no_tools_make_an_empty_list() {
    let offer = OfferedTools::all(Arc::new(Catalog::build(&[], &SHORT)));
    assert_eq!(serde_json::to_string(&offer).unwrap(), "[]");
    assert!(offer.is_empty() && offer.tokens() == 0);
}

#[test]
fn a_removed_tool_gets_a_legal_unused_name() {
    let catalog = Catalog::build(&tools(&["a_b"]), &SHORT);
    assert_eq!(catalog.wire_name("gone"), "gone");
    assert_eq!(catalog.wire_name("gone.tool"), "gone_tool");
    assert_eq!(catalog.wire_name("a.b"), "a_b_e27bcb35");
    assert_eq!(catalog.wire_name(&"é".repeat(100)).len(), 64);
    assert_eq!(catalog.wire_name(""), "_");
}

#[test]
fn nearly_correct_tool_names_are_resolved() {
    let catalog = Catalog::build(
        &tools(&["house.lights", "getTime", "GETTIME", "echo"]),
        &SHORT,
    );
    for (said, meant) in [
        ("echo", Some("echo")),
        ("Echo", Some("echo")),
        (" echo\n", Some("echo")),
        ("house_lights", Some("house.lights")),
        ("house.lights", Some("house.lights")),
        ("House.Lights", Some("house.lights")),
        ("functions.echo", Some("echo")),
        ("default_api:echo", Some("echo")),
        ("default_api.House_Lights", Some("house.lights")),
        ("tools/echo", Some("echo")),
        ("getTime", Some("getTime")),
        ("gettime", None),
        ("ech", None),
        ("functionsecho", None),
        ("functions.", None),
        ("", None),
    ] {
        let found = catalog
            .resolve_name(said)
            .map(|tool| tool.tool.definition().name());
        assert_eq!(found, meant, "{said:?}");
    }
    assert!(catalog.by_wire_name("Echo").is_none());
}

#[test]
fn an_offer_keeps_the_catalogs_order() {
    let catalog = Arc::new(Catalog::build(&tools(&["c", "a", "b"]), &SHORT));
    let all = OfferedTools::all(Arc::clone(&catalog));
    assert_eq!(serde_json::to_string(&all).unwrap(), r#"["a","b","c"]"#);
    let some = OfferedTools::subset(catalog, vec![2, 0, 2]);
    assert_eq!(serde_json::to_string(&some).unwrap(), r#"["a","c"]"#);
    assert_eq!((some.len(), some.tokens()), (2, 6));
}

#[test]
fn only_new_tools_are_converted() {
    thread_local!(static CONVERTED: RefCell<Vec<String>> = RefCell::default());
    let counting = ToolDialect {
        convert: |definition, name| {
            CONVERTED.with_borrow_mut(|names| names.push(name.to_owned()));
            (SHORT.convert)(definition, name)
        },
        ..SHORT
    };
    let cache = CatalogCache::default();
    let mut list = tools(&["b", "d", "f.g", "h"]);
    let check = |list: &[Arc<dyn Tool>], expected: &[&str]| {
        CONVERTED.with_borrow_mut(Vec::clear);
        let changed = cache.get(&Arc::new(ToolList::new(list.to_vec())), &counting);
        CONVERTED.with_borrow(|names| assert_eq!(names, expected));
        let rebuilt = Catalog::build(list, &SHORT);
        assert_eq!(names(&changed), names(&rebuilt));
        let sent = |catalog| serde_json::to_string(&OfferedTools::all(catalog)).unwrap();
        let tokens = |catalog: &Arc<Catalog>| OfferedTools::all(Arc::clone(catalog)).tokens();
        let rebuilt = Arc::new(rebuilt);
        assert_eq!(tokens(&changed), tokens(&rebuilt));
        assert_eq!(sent(changed), sent(rebuilt));
    };
    check(&list, &["b", "d", "f_g", "h"]);
    check(&list, &[]);
    list.remove(1);
    list.extend(tools(&["c", "a", "z"]));
    check(&list, &["a", "c", "z"]);
    // A different tool takes an old name, and an old tool takes another's name.
    list[0] = tool("b", None);
    list.push(tool("f_g", None));
    check(&list, &["b", "f_g", "f_g_221a5ace"]);
    list.clear();
    check(&list, &[]);
}
