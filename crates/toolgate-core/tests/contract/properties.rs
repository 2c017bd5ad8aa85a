//! Properties of all calls and all schemas, checked on generated ones.
//! Set `PROPTEST_CASES` for more.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_core::{
    ParameterNames, RenameMode, Schema, SchemaLimits, ToolCall, ToolOutcome, ToolOutput, ToolSource,
};

use crate::support::{
    Recorder, ScriptedTool, builder_of, echo, executor_of, open_definition, scripted, secs,
    with_schema,
};

/// `PROPTEST_CASES` if it is set, else fewer than proptest's own default: these run on every build.
fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if asked { config.cases } else { usual },
        failure_persistence: None,
        ..config
    }
}

fn run(tool: ScriptedTool, call: ToolCall) -> (ToolOutcome, Recorder) {
    let recorder = Recorder::default();
    let executor = builder_of([tool]).observer(recorder.clone()).build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    (runtime.block_on(executor.execute(call)), recorder)
}

/// Names that schemas and arguments share, so that they match often.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "a_b", "aB", "device_name", "deviceName", "_x", ""]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..6).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Value::from),
        prop::sample::select(vec!["", "a", "on", "off", "12"]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..5)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

pub(crate) fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), json_value()), 0..6)
        .prop_map(|all| Value::Object(all.into_iter().collect()))
}

/// Mostly valid schemas.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        prop::sample::select(vec![
            "string", "integer", "number", "boolean", "array", "object", "null"
        ])
        .prop_map(|kind| json!({ "type": kind })),
        prop::collection::vec(scalar(), 1..4).prop_map(|options| json!({ "enum": options })),
        (-3_i64..6).prop_map(|limit| json!({ "minimum": limit })),
        prop::sample::select(vec!["^a", "[0-9]+$", "^(on|off)$", ".*"])
            .prop_map(|pattern| json!({ "pattern": pattern })),
        (0_u64..4).prop_map(
            |limit| json!({ "maxLength": limit, "maxItems": limit, "minProperties": limit })
        ),
        Just(json!({ "uniqueItems": true })),
        Just(json!({ "$ref": "#/$defs/d" })),
        prop::collection::vec(name(), 1..3).prop_map(|names| {
            let mut names = names;
            names.sort();
            names.dedup();
            json!({ "required": names })
        }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let map = || prop::collection::vec((name(), inner.clone()), 0..4).prop_map(|all| Value::Object(all.into_iter().collect()));
        let list = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            3 => (map(), prop::option::of(inner.clone())).prop_map(|(properties, other)| match other {
                Some(other) => json!({ "properties": properties, "additionalProperties": other }),
                None => json!({ "properties": properties }),
            }),
            1 => list().prop_map(|all| json!({ "allOf": all })),
            1 => list().prop_map(|all| json!({ "anyOf": all })),
            1 => list().prop_map(|all| json!({ "oneOf": all })),
            1 => inner.clone().prop_map(|one| json!({ "not": one })),
            1 => inner.clone().prop_map(|one| json!({ "items": one })),
            1 => (list(), inner.clone()).prop_map(|(first, rest)| json!({ "prefixItems": first, "items": rest })),
            1 => inner.clone().prop_map(|one| json!({ "contains": one })),
            1 => inner.clone().prop_map(|one| json!({ "propertyNames": one })),
            1 => (list(), inner.clone()).prop_map(|(all, rest)| json!({ "anyOf": all, "unevaluatedProperties": rest })),
            1 => (list(), inner.clone()).prop_map(|(all, rest)| json!({ "allOf": all, "unevaluatedItems": rest })),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
            1 => map().prop_map(|all| json!({ "dependentSchemas": all })),
        ]
    })
}

/// A whole document: an object schema with something to refer to.
pub(crate) fn document() -> impl Strategy<Value = Value> {
    (schema(), schema()).prop_map(|(root, shared)| match root {
        Value::Object(mut root) => {
            root.insert("$defs".to_owned(), json!({ "d": shared }));
            Value::Object(root)
        }
        other => json!({ "properties": { "a": other }, "$defs": { "d": shared } }),
    })
}

/// The value without these top-level paths; names with dots or brackets aren't followed.
fn at_top_level_without(asked: &Value, dropped: &[String]) -> Value {
    let kept = asked.as_object().unwrap().iter();
    let kept = kept.filter(|(name, _)| !dropped.contains(name));
    Value::Object(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<_, _>>(),
    )
}

proptest! {
    #![proptest_config(cases(300))]

    /// The tool receives exactly what was validated, and what was requested except for
    /// what the record lists.
    #[test]
    fn pn7_validated_arguments_are_exactly_the_invoked_ones(asked in arguments(), closed in any::<bool>(), mode in 0_usize..3) {
        let schema = json!({
            "properties": { "a": { "type": "string" }, "b": { "type": ["integer", "null"] }, "deviceName": {}, "a_b": {} },
            "additionalProperties": !closed,
        });
        let mode = [RenameMode::Never, RenameMode::Undeclared, RenameMode::Always][mode];
        let mapped = HashMap::from([("c".to_owned(), "deviceName".to_owned())]);
        let received = Arc::new(Mutex::new(None));
        let receive = Arc::clone(&received);
        let definition = with_schema("t", schema.clone())
            .source(ToolSource::Mcp("s".to_owned()))
            .parameter_names(ParameterNames::new(mode, mapped));
        let tool = scripted(definition, move |arguments, _| {
            *receive.lock() = Some(arguments.as_value().to_string());
            async { Ok(ToolOutput::json(1)) }
        });
        let (outcome, recorder) = run(tool, ToolCall::new("t", asked.clone()));
        let record = recorder.only();
        prop_assert_eq!(&*record.requested, &asked);
        let received = received.lock().take();
        prop_assert_eq!(received.is_some(), outcome.is_success());
        let Some(received) = received else { return Ok(()) };
        // Including the order of the keys.
        prop_assert_eq!(&received, &record.executed.unwrap().to_string());
        let renamed: HashMap<_, _> = record.renamed.into_iter().collect();
        let expected = asked.as_object().unwrap().iter().map(|(name, value)| {
            (renamed.get(name).unwrap_or(name).clone(), value.clone())
        });
        let expected = at_top_level_without(&Value::Object(expected.collect()), &record.dropped);
        prop_assert_eq!(received, expected.to_string());
        // What is sent fits the schema, unless another spelling is sent than the declared one.
        if mode != RenameMode::Always {
            let plain = jsonschema::validator_for(&schema).unwrap();
            prop_assert!(plain.is_valid(&expected));
        }
    }

    /// Every call ends in an envelope.
    #[test]
    fn ex5_any_call_ends_in_an_envelope(name in prop_oneof![Just("echo".to_owned()), any::<String>()], value in json_value(), text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let calls = [
            ToolCall::new(name.as_str(), value.clone()),
            ToolCall::from_json(name.as_str(), value.to_string().as_bytes()),
            ToolCall::from_json(name.as_str(), text.as_bytes()),
            ToolCall::from_json(name.as_str(), &bytes),
        ];
        for call in calls {
            let (outcome, recorder) = run(echo(open_definition("echo")), call);
            recorder.only();
            let envelope = outcome.to_envelope();
            let success = envelope["success"].as_bool().unwrap();
            prop_assert_eq!(envelope.get("result").is_some(), success);
            prop_assert_eq!(envelope.get("error").is_some(), !success);
            prop_assert_eq!(envelope.get("error_kind").is_some(), !success);
            prop_assert_eq!(&envelope["tool_name"], name.as_str());
            prop_assert!(envelope["execution_time_ms"].as_f64().unwrap() >= 0.0);
            prop_assert_eq!(success, name == "echo" && outcome.result.is_ok());
            // Every rendering works, too.
            prop_assert!(!outcome.to_model_text().is_empty() && !outcome.to_speech().is_empty());
            prop_assert!(!outcome.to_operator_line().contains(char::is_control));
        }
    }

    /// Any JSON value at all as a schema.
    #[test]
    fn va6_any_value_as_a_schema_is_judged_quickly(schema in prop_oneof![json_value(), document()], arguments in arguments()) {
        let begin = Instant::now();
        if let Ok(schema) = Schema::compile(schema, &SchemaLimits::default()) {
            let _verdict = schema.check(arguments);
        }
        prop_assert!(begin.elapsed() < secs(20));
    }

    /// Dropping values that count as not given is our only difference from the underlying crate;
    /// `by_others.rs` compares that crate.
    #[test]
    fn only_dropped_arguments_are_judged_differently(schema in document(), arguments in arguments()) {
        let Ok(compiled) = Schema::compile(schema.clone(), &SchemaLimits::default()) else { return Ok(()) };
        let plain = jsonschema::options().should_validate_formats(false).build(&schema).unwrap();
        match compiled.check(arguments.clone()) {
            Ok(valid) => {
                prop_assert!(plain.is_valid(valid.as_value()));
                if valid.dropped().is_empty() {
                    prop_assert_eq!(valid.as_value(), &arguments);
                } else {
                    prop_assert!(!plain.is_valid(&arguments), "nothing is left out without need");
                }
            }
            Err(error) => {
                prop_assert!(!plain.is_valid(&arguments), "{}", error);
                prop_assert!(error.to_string().starts_with("Invalid parameters: "));
            }
        }
    }

    /// Nothing that is logged can hold a control character or a known secret.
    #[test]
    fn a_redacted_value_holds_no_secret(mut value in arguments(), path in name()) {
        let redactor = toolgate_core::Redactor::new(["S3NT1NEL".to_owned()]);
        value[path.as_str()] = json!(["xS3NT1NELx", { "password": "hunter2" }]);
        let (line, copy) = (redactor.json(&value, 100_000), redactor.value(&value).to_string());
        for shown in [&line, &copy] {
            prop_assert!(!shown.contains("S3NT1NEL") && !shown.contains("hunter2"));
        }
        prop_assert!(!line.contains(char::is_control));
        let short = redactor.json(&value, 20);
        prop_assert!(short.len() < 20 + 40);
    }
}

#[test]
fn the_tools_of_one_executor_do_not_mix_their_results() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let executor = executor_of([echo(open_definition("echo"))]);
        let calls = (0..500).map(|i| {
            let executor = executor.clone();
            tokio::spawn(async move {
                let call = ToolCall::new("echo", json!({ "i": i }));
                let id = call.id();
                let outcome = executor.execute(call).await;
                assert_eq!(outcome.call_id, id);
                assert_eq!(outcome.to_envelope()["result"]["i"], i);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
}
