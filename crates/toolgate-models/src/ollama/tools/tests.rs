use std::io;

use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::ModelClient;
use crate::ollama::OllamaClient;
use crate::ollama::tests::samples::{local, remote, weather};
use crate::{AnthropicClient, ModelSettings, OpenAiClient, SchemaForm, ToolList};

/// The converted functions, one by one.
fn functions(tools: &[Arc<dyn Tool>]) -> Vec<Value> {
    let converted = to_qwen(tools).into_iter();
    converted.map(|mut tool| tool["function"].take()).collect()
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let functions = functions(tools).into_iter();
    functions
        .map(|function| function["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn qw1_a_tool_is_a_function_with_three_fields_and_nothing_leaks() {
    let expected = json!([{ "type": "function", "function": {
        "name": "weather",
        "description": "What weather does",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
    } }]);
    assert_eq!(json!(to_qwen(&[weather()])), expected);
    let [tool] = &to_qwen(&[remote("house__lamp", "house", "lamp")])[..] else {
        panic!("one tool in, one tool out");
    };
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(tool), ["type", "function"]);
    assert_eq!(
        keys(&tool["function"]),
        ["name", "description", "parameters"]
    );
}

#[test]
fn qw2_the_name_is_the_one_on_its_own_server() {
    assert_eq!(
        names(&[remote("house__set_lamp", "house", "setLamp")]),
        ["setLamp"]
    );
    assert_eq!(names(&[weather()]), ["weather"]);
}

#[test]
fn qw2_clashing_names_become_unique_and_resolve_to_their_tools() {
    let tools = [
        remote("garden__list", "garden", "list"),
        remote("house__list", "house", "list"),
        local("list", json!({ "type": "object" })),
        weather(),
    ];
    let mut unique = names(&tools);
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), tools.len());
    let catalog = Catalog::build(&tools, &QWEN);
    for tool in &tools {
        let listed = tool.definition().name();
        let wire = catalog.wire_name(listed);
        let back = catalog.by_wire_name(&wire).unwrap();
        assert_eq!(back.tool.definition().name(), listed);
    }
}

#[test]
fn qw3_parameters_are_always_an_object_with_properties() {
    for schema in [
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    ] {
        let [function] = &functions(&[local("dice", schema)])[..] else {
            panic!("one tool in, one tool out");
        };
        let parameters = &function["parameters"];
        assert_eq!(
            (&parameters["type"], &parameters["properties"]),
            (&json!("object"), &json!({}))
        );
    }
}

#[test]
fn qw3_schema_parts_that_ollama_drops_are_described() {
    let schema = json!({ "type": "object", "properties": {
        "level": { "type": "integer", "minimum": 0, "maximum": 99, "description": "How bright" },
        "lamp": { "$ref": "#/$defs/lamp" },
    }, "$defs": { "lamp": { "type": "string", "enum": ["desk", "door"], "minLength": 4 } } });
    let [function] = &functions(&[local("dim", schema)])[..] else {
        panic!("one tool in, one tool out");
    };
    let level = &function["parameters"]["properties"]["level"];
    let said = level["description"].as_str().unwrap();
    assert!(
        said.starts_with("How bright") && said.contains('0') && said.contains("99"),
        "{said}"
    );
    let lamp = &function["parameters"]["properties"]["lamp"];
    assert_eq!(
        (&lamp["type"], &lamp["enum"]),
        (&json!("string"), &json!(["desk", "door"]))
    );
    let known = [
        "anyOf",
        "type",
        "items",
        "description",
        "enum",
        "properties",
        "required",
    ];
    for property in [level, lamp] {
        let unknown = property
            .as_object()
            .unwrap()
            .keys()
            .find(|key| !known.contains(&key.as_str()));
        assert_eq!(unknown, None);
    }
}

/// What each provider is sent for these tools.
fn sent(tools: &[Arc<dyn Tool>], schemas: SchemaForm) -> [(Arc<Catalog>, Vec<Value>); 3] {
    let settings = ModelSettings {
        schemas,
        key: "k".to_owned(),
        ..ModelSettings::default()
    };
    let clients: [Box<dyn ModelClient>; 3] = [
        Box::new(OllamaClient::new(&settings).unwrap()),
        Box::new(AnthropicClient::new(&settings).unwrap()),
        Box::new(OpenAiClient::new(&settings).unwrap()),
    ];
    clients.map(|client| {
        let catalog = client.catalog(&Arc::new(ToolList::new(tools.to_vec())));
        let json = catalog.tools().iter().map(|tool| tool.json.get());
        let json = json
            .map(|json| serde_json::from_str(json).unwrap())
            .collect();
        (catalog, json)
    })
}

fn parameters(sent: &Value) -> &Value {
    match sent.get("input_schema") {
        Some(schema) => schema,
        None => &sent["function"]["parameters"],
    }
}

#[test]
fn qw3_original_schemas_are_sent_as_stored() {
    let stored: Value = serde_json::from_str(
        r##"{"required":["lamp"],"type":"object","$schema":"http://json-schema.org/draft-07/schema#","additionalProperties":false,
            "oneOf":[{"required":["a"]},{"required":["lamp"]}],"properties":{"lamp":{"$ref":"#/definitions/lamp"},
            "a b":{"type":["integer","null"],"minimum":0,"x-own":{"z":1,"a":2}}},"definitions":{"lamp":{"type":"string","minLength":4}}}"##,
    )
    .unwrap();
    let tools = [local("dim", stored.clone())];
    for (_, original) in sent(&tools, SchemaForm::Original) {
        assert_eq!(parameters(&original[0]).to_string(), stored.to_string());
    }
    for (_, lowered) in sent(&tools, SchemaForm::default()) {
        assert_ne!(parameters(&lowered[0]).to_string(), stored.to_string());
    }
    // Always an object with properties.
    for (_, original) in sent(&[local("dice", json!({}))], SchemaForm::Original) {
        let expected = json!({ "type": "object", "properties": {} });
        assert_eq!(parameters(&original[0]), &expected);
    }
    assert_eq!(*tools[0].definition().parameters(), stored, "unchanged");
}

#[test]
fn qw2_wire_names_are_legal_unique_and_reversible() {
    let long = "a long name of a tool, in words ".repeat(20);
    let other = format!("{long}!");
    let odd = [
        "get weather",
        "get_weather",
        "get.weather",
        "größe",
        "日本",
        "天気",
        "a+b",
        "a_b",
        "a@b",
        "tool(1)",
        "a$b,c",
        "🔦",
        "-",
        &long,
        &other,
        "un\u{200b}lock",
    ];
    let tools = odd.map(|name| remote(name, "odd", name));
    for (catalog, sent) in sent(&tools, SchemaForm::default()) {
        assert!(catalog.excluded().is_empty());
        let mut unique = std::collections::HashSet::new();
        for (tool, sent) in catalog.tools().iter().zip(&sent) {
            let name = sent.get("name").unwrap_or(&sent["function"]["name"]);
            assert_eq!(*name, *tool.wire_name);
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(
                (1..=128).contains(&tool.wire_name.len()) && tool.wire_name.chars().all(legal),
                "{name}"
            );
            assert!(unique.insert(tool.wire_name.clone()), "{name}");
            let back = catalog.resolve_name(&tool.wire_name).unwrap();
            let listed = tool.tool.definition().name();
            assert_eq!(back.tool.definition().name(), listed);
            assert_eq!(catalog.wire_name(listed), tool.wire_name);
        }
        assert_eq!(unique.len(), odd.len());
        assert_eq!(catalog.wire_name("get_weather"), "get_weather");
        assert_eq!(catalog.wire_name("größe"), "grosse");
    }
}

#[test]
fn qw4_the_conversion_is_pure_and_empty_stays_empty() {
    let tools = [weather(), remote("house__lamp", "house", "lamp")];
    let before: Vec<String> = tools
        .iter()
        .map(|tool| format!("{:?}", tool.definition()))
        .collect();
    let (once, twice) = (to_qwen(&tools), to_qwen(&tools));
    let after: Vec<String> = tools
        .iter()
        .map(|tool| format!("{:?}", tool.definition()))
        .collect();
    assert_eq!((once, before), (twice, after));
    assert_eq!(to_qwen(&[]), Vec::<Value>::new());
}

#[test]
fn qw4_the_order_does_not_depend_on_the_order_of_the_tools() {
    let (one, two) = (weather(), remote("house__lamp", "house", "lamp"));
    let forwards = to_qwen(&[Arc::clone(&one), Arc::clone(&two)]);
    assert_eq!(forwards, to_qwen(&[two, one]));
}

#[test]
fn qw5_the_conversion_is_logged() {
    let (_, log) = logged(|| to_qwen(&[weather(), remote("house__lamp", "house", "lamp")]));
    assert_eq!(
        log,
        ["DEBUG 🔧 Converted 2 tools from LangChain to Qwen format"]
    );
    let (_, log) = logged(|| to_qwen(&[]));
    assert_eq!(
        log,
        ["DEBUG 🔧 Converted 0 tools from LangChain to Qwen format"]
    );
}

#[test]
fn qw5_a_client_converts_a_list_of_tools_once() {
    let client = OllamaClient::new(&ModelSettings::default()).unwrap();
    let list = |tool| Arc::new(ToolList::new(vec![tool]));
    let (one, two) = (
        list(weather()),
        list(remote("house__lamp", "house", "lamp")),
    );
    let ((), log) = logged(|| {
        for tools in [&one, &one, &two, &two] {
            client.catalog(tools);
        }
    });
    assert_eq!(
        log,
        ["DEBUG 🔧 Converted 1 tools from LangChain to Qwen format"; 2]
    );
}

#[test]
fn qw6_only_the_ollama_client_converts() {
    let settings = ModelSettings {
        key: "k".to_owned(),
        url: "http://127.0.0.1:1".to_owned(),
        ..ModelSettings::default()
    };
    let clients: [(Box<dyn ModelClient>, usize, &str); 3] = [
        (Box::new(OllamaClient::new(&settings).unwrap()), 1, "lamp"),
        (
            Box::new(AnthropicClient::new(&settings).unwrap()),
            0,
            "house__lamp",
        ),
        (
            Box::new(OpenAiClient::new(&settings).unwrap()),
            0,
            "house__lamp",
        ),
    ];
    let list = Arc::new(ToolList::new(vec![remote("house__lamp", "house", "lamp")]));
    for (client, converted, name) in clients {
        let (catalog, log) = logged(|| client.catalog(&list));
        let lines = log.iter().filter(|line| line.contains("Qwen"));
        let provider = client.provider();
        assert_eq!(lines.count(), converted, "{provider}");
        assert_eq!(catalog.tools()[0].wire_name, name, "{provider}");
    }
}

#[test]
fn qw6_stored_tools_stay_unconverted() {
    let tools = [remote("house__lamp", "house", "lamp")];
    to_qwen(&tools);
    let definition = tools[0].definition();
    assert_eq!(definition.name(), "house__lamp");
    assert_eq!(
        *definition.parameters(),
        json!({ "type": "object", "properties": { "on": { "type": "boolean" } } })
    );
}

/// What this crate logs meanwhile: level and text.
fn logged<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let written = Arc::<Mutex<Vec<u8>>>::default();
    let sink = Arc::clone(&written);
    let format = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || Sink(Arc::clone(&sink)));
    let value = tracing::subscriber::with_default(format.finish(), work);
    let written = written.lock();
    let lines = String::from_utf8(written.clone()).unwrap();
    (
        value,
        lines.lines().map(|line| line.trim().to_owned()).collect(),
    )
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
