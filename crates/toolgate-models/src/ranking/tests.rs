use std::fmt::Write;
use std::sync::Arc;

use serde_json::json;
use toolgate_core::{CallContext, Tool, ToolFuture, ValidArguments};

use super::*;
use crate::catalog::ToolDialect;

struct RankingTestTool(ToolDefinition);

impl Tool for RankingTestTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        unreachable!("ranking calls no tool")
    }
}

fn tool(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, description, parameters);
    Arc::new(RankingTestTool(definition.build().unwrap()))
}

fn catalog(tools: &[Arc<dyn Tool>]) -> Catalog {
    let dialect = ToolDialect {
        longest_name: 64,
        original_names: false,
        convert: |definition, _| {
            serde_json::value::to_raw_value(definition.parameters())
                .map_err(|error| error.to_string())
        },
    };
    Catalog::build(tools, &dialect)
}

/// Topics of tools, with a word or two that people use for them.
const THINGS: [(&str, &str, &str); 34] = [
    (
        "light",
        "lights in the house: lamps and bulbs",
        "brightness",
    ),
    (
        "thermostat",
        "the heating: temperature of a room",
        "temperature",
    ),
    ("door_lock", "locks of doors", "door"),
    ("blind", "blinds, shutters and curtains", "position"),
    ("vacuum", "the robot that cleans the floor", "room"),
    ("camera", "security cameras and their pictures", "camera"),
    ("speaker", "loudspeakers: music and volume", "volume"),
    ("tv", "television sets and channels", "channel"),
    ("alarm", "alarms that wake people up", "wakeTime"),
    ("timer", "kitchen timers that count down", "minutes"),
    ("shopping_list", "groceries to buy", "item"),
    (
        "calendarEvent",
        "appointments and meetings in a calendar",
        "startsAt",
    ),
    ("email", "electronic mail messages", "recipient"),
    ("sms", "text messages to a phone", "phoneNumber"),
    ("contact", "people in the address book", "person"),
    ("note", "short notes", "text"),
    ("file", "files on the disk", "path"),
    ("folder", "folders and directories", "directory"),
    (
        "git_commit",
        "commits in a version control repository",
        "branch",
    ),
    ("git_branch", "branches of a repository", "branch"),
    (
        "pull_request",
        "pull requests and their reviews on a forge",
        "reviewer",
    ),
    (
        "issue",
        "bug reports and feature requests on a forge",
        "label",
    ),
    ("container", "docker containers", "image"),
    (
        "database_row",
        "rows of a relational database table, with SQL",
        "query",
    ),
    ("web_page", "pages of the web by their address", "url"),
    ("weather", "weather: rain, wind and sunshine", "city"),
    ("stock_quote", "prices of shares at the exchange", "symbol"),
    ("currency", "exchange rates between currencies", "amount"),
    (
        "translation",
        "translations of text from one language into another",
        "language",
    ),
    ("recipe", "recipes for cooking meals", "ingredient"),
    ("flight", "flights between airports", "airport"),
    ("hotel", "hotel rooms for travellers", "nights"),
    ("train", "trains between stations", "station"),
    (
        "invoice",
        "invoices to customers and their payment",
        "customer",
    ),
];

const ACTIONS: [(&str, &str); 6] = [
    ("list", "Lists"),
    ("get", "Shows the details of one of the"),
    ("create", "Adds a new one to the"),
    ("update", "Changes one of the"),
    ("delete", "Removes one of the"),
    ("search", "Finds by words among the"),
];

fn two_hundred() -> Catalog {
    let mut tools = Vec::new();
    for (thing, about, parameter) in THINGS {
        for (action, does) in ACTIONS {
            let parameters = json!({
                "type": "object",
                "properties": { parameter: { "type": "string" }, "id": { "type": "string", "description": "Which one" } },
            });
            tools.push(tool(
                &format!("{action}_{thing}"),
                &format!("{does} {about}."),
                parameters,
            ));
        }
    }
    tools.push(tool(
        "control_zwave_device",
        "Switches a device",
        json!({ "type": "object", "properties": { "action": { "enum": ["on", "off", "toggle"] }, "deviceName": { "type": "string" } } }),
    ));
    assert!(tools.len() > 200);
    catalog(&tools)
}

fn chosen<'a>(catalog: &'a Catalog, request: &str, choice: RankingOptions<'_>) -> Vec<&'a str> {
    let positions = choose_tools(catalog, request, &choice).unwrap();
    assert!(positions.is_sorted());
    let tools = positions
        .into_iter()
        .map(|position| &catalog.tools()[position]);
    tools.map(|tool| tool.wire_name.as_str()).collect()
}

fn at_most(most: usize) -> RankingOptions<'static> {
    RankingOptions {
        max_tools: most,
        max_tokens: 0,
        provider_limit: None,
        pinned: &[],
        remembered: &[],
    }
}

#[test]
fn relevant_tools_are_ranked_among_the_best() {
    let catalog = two_hundred();
    for (request, expected) in [
        ("What is the weather in Oslo?", "get_weather"),
        ("Please delete the file report.txt", "delete_file"),
        ("Show me my appointments for tomorrow", "list_calendarEvent"),
        ("send an email to Ada: create a message", "create_email"),
        ("is it raining? search for rain in Rome", "search_weather"),
        (
            "Create a new pull request for this branch",
            "create_pull_request",
        ),
        ("list all docker containers", "list_container"),
        ("toggle the zwave device", "control_zwave_device"),
        ("Find recipes with that ingredient", "search_recipe"),
        (
            "changing the temperature of the bedroom",
            "update_thermostat",
        ),
        ("which trains go from this station", "list_train"),
        ("translate this into another language", "get_translation"),
        ("removed the timers", "delete_timer"),
        ("SQL: query the database", "search_database_row"),
        ("open the shutters", "list_blind"),
    ] {
        let names = chosen(&catalog, request, at_most(8));
        assert_eq!(names.len(), 8);
        assert!(names.contains(&expected), "{request}: {names:?}");
    }
}

#[test]
fn all_tools_are_offered_if_they_fit() {
    let catalog = two_hundred();
    for (most, tokens) in [
        (0, 0),
        (1_000, 0),
        (0, 1_000_000),
        (catalog.tools().len(), 1_000_000),
    ] {
        let choice = RankingOptions {
            max_tools: most,
            max_tokens: tokens,
            provider_limit: None,
            pinned: &[],
            remembered: &[],
        };
        assert_eq!(choose_tools(&catalog, "weather", &choice), None);
    }
}

#[test]
fn the_budget_is_kept_and_pinned_tools_are_always_included() {
    let catalog = two_hundred();
    let message_tokens = |names: &[&str]| -> usize {
        let tools = catalog
            .tools()
            .iter()
            .filter(|tool| names.contains(&tool.wire_name.as_str()));
        tools.map(|tool| tool.tokens).sum()
    };
    let pinned = [
        "search_note".to_owned(),
        "not there".to_owned(),
        "get_tv".to_owned(),
        "get_tv".to_owned(),
    ];
    for (most, tokens) in [(5, 0), (0, 400), (3, 400), (10, 150)] {
        let choice = RankingOptions {
            max_tools: most,
            max_tokens: tokens,
            provider_limit: None,
            pinned: &pinned,
            remembered: &[],
        };
        let names = chosen(&catalog, "what is the weather", choice);
        assert!(
            names.contains(&"search_note") && names.contains(&"get_tv"),
            "{names:?}"
        );
        assert!(most == 0 || names.len() <= most);
        assert!(tokens == 0 || message_tokens(&names) <= tokens);
        assert!(
            names.len() > 2,
            "there is room for more than what is pinned"
        );
    }
    let choice = RankingOptions {
        max_tools: 1,
        max_tokens: 1,
        provider_limit: None,
        pinned: &pinned,
        remembered: &[],
    };
    assert_eq!(
        chosen(&catalog, "weather", choice),
        ["get_tv", "search_note"]
    );
}

#[test]
fn used_tools_come_first_while_there_is_room() {
    let catalog = two_hundred();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let remembered: Vec<String> = names(&["get_tv", "get_note", "get_sms"]);
    let pinned: Vec<String> = names(&["delete_file", "list_blind"]);
    for (most, limit, expected) in [
        (3, None, &["delete_file", "get_sms", "list_blind"][..]),
        (2, None, &["delete_file", "list_blind"]),
        (1, None, &["delete_file", "list_blind"]),
        (0, Some(3), &["delete_file", "get_sms", "list_blind"]),
        (3, Some(1), &["delete_file"]),
    ] {
        let choice = RankingOptions {
            max_tools: most,
            max_tokens: 0,
            provider_limit: limit,
            pinned: &pinned,
            remembered: &remembered,
        };
        let mut chosen = chosen(&catalog, "weather", choice);
        chosen.sort_unstable();
        assert_eq!(chosen, expected, "{most} {limit:?}");
    }
    let choice = RankingOptions {
        max_tools: 0,
        max_tokens: 1,
        provider_limit: None,
        pinned: &[],
        remembered: &remembered,
    };
    assert_eq!(chosen(&catalog, "weather", choice), [""; 0]);
}

#[test]
fn the_same_request_finds_the_same_tools_in_the_catalogs_order() {
    let first = two_hundred();
    let again = two_hundred();
    for request in [
        "list the lights and the blinds",
        "",
        "the of and",
        "完全不同的东西",
        "🙂",
    ] {
        let names = chosen(&first, request, at_most(7));
        assert_eq!(names, chosen(&first, request, at_most(7)));
        assert_eq!(names, chosen(&again, request, at_most(7)));
        assert_eq!(names.len(), 7);
    }
    let nothing_matches = chosen(&first, "qqq", at_most(3));
    let in_order: Vec<&str> = first.tools()[..3]
        .iter()
        .map(|tool| tool.wire_name.as_str())
        .collect();
    assert_eq!(nothing_matches, in_order);
}

#[test]
fn words_are_found_in_names_values_and_other_forms() {
    let schema = |name: &str, value: &str| json!({ "type": "object", "properties": { name: { "enum": [value] } } });
    let tools = [
        tool("HTTPServerStatus", "x", json!({ "type": "object" })),
        tool("a", "x", schema("deviceName", "k")),
        tool("b", "x", schema("k", "dehumidifier")),
        tool("c", "Turns categories", json!({ "type": "object" })),
        tool("d", "播放音乐", json!({ "type": "object" })),
        tool(
            "e",
            "x",
            json!({ "type": "object", "anyOf": [{ "properties": { "glasses": {} } }] }),
        ),
    ];
    let catalog = catalog(&tools);
    for (request, expected) in [
        ("server", "HTTPServerStatus"),
        ("devices", "a"),
        ("the dehumidifiers!", "b"),
        ("turning", "c"),
        ("category", "c"),
        ("音乐", "d"),
        ("glass", "e"),
    ] {
        assert_eq!(
            chosen(&catalog, request, at_most(1)),
            [expected],
            "{request}"
        );
    }
}

#[test]
fn endless_texts_are_indexed_in_part() {
    let mut words = String::new();
    for i in 0..200_000 {
        let _written = write!(words, "word{i}Camel ");
    }
    let huge = "x".repeat(2_000_000);
    let tools: Vec<Arc<dyn Tool>> = (0..20)
        .map(|i| {
            let name = format!("tool_{i}");
            let text = if i % 2 == 0 { &words } else { &huge };
            tool(&name, text, json!({ "type": "object" }))
        })
        .collect();
    let catalog = catalog(&tools);
    for request in [&words, &huge, &"é".repeat(1_000_000)] {
        assert_eq!(chosen(&catalog, request, at_most(3)).len(), 3);
    }
    assert!(catalog.index().postings.len() < 2_000);
}
