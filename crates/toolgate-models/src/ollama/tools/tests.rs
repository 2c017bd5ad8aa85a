use std::io;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::*;
use crate::ModelClient;
use crate::ollama::OllamaClient;
use crate::ollama::samples::{local, remote, weather};
use crate::{AnthropicClient, ModelSettings, OpenAiClient, ToolList};

/// The functions that tools become, one by one.
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
fn qw2_names_that_clash_are_made_unique_and_lead_back_to_their_tools() {
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
fn qw3_what_ollama_would_lose_of_a_schema_is_said_in_words() {
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

#[test]
fn qw4_the_conversion_is_pure_and_nothing_gives_nothing() {
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
fn qw5_the_conversion_is_logged_in_these_words() {
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
fn qw6_only_ollamas_client_converts_so() {
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
fn qw6_tools_as_stored_know_nothing_of_this_form() {
    let tools = [remote("house__lamp", "house", "lamp")];
    to_qwen(&tools);
    let definition = tools[0].definition();
    assert_eq!(definition.name(), "house__lamp");
    assert_eq!(
        *definition.parameters(),
        json!({ "type": "object", "properties": { "on": { "type": "boolean" } } })
    );
}

/// What is logged meanwhile by this crate, level and words.
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
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = String::from_utf8(written.clone()).unwrap();
    (
        value,
        lines.lines().map(|line| line.trim().to_owned()).collect(),
    )
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
