//! Measures the overhead of a call. Run with `cargo bench -p toolgate-core`. Each benchmark's doc
//! comment states its target.

#![expect(clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use divan::Bencher;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_core::{Schema, SchemaLimits, Tool, ToolCall, ToolExecutor, ToolManager};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;

use crate::echo::{ARGUMENTS, Echo};

mod echo;

fn main() {
    divan::main();
}

fn arguments() -> Value {
    serde_json::from_str(ARGUMENTS).unwrap()
}

fn manager_of(count: usize) -> Arc<ToolManager> {
    let manager = ToolManager::new();
    let tool = |i| Arc::new(Echo::named(&format!("echo_{i}")).unwrap()) as Arc<dyn Tool>;
    manager.add_all((0..count).map(tool));
    Arc::new(manager)
}

fn execute(bencher: Bencher<'_, '_>, subscriber: impl Subscriber + Send + Sync + 'static) {
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let executor = ToolExecutor::new(manager_of(1));
    tracing::subscriber::with_default(subscriber, || {
        bencher
            .with_inputs(|| ToolCall::new("echo_0", arguments()))
            .bench_local_values(|call| runtime.block_on(executor.execute(call)));
    });
}

// Target: 2 µs.
#[divan::bench(sample_size = 100)]
fn execute_with_the_record_filtered_out(bencher: Bencher<'_, '_>) {
    let format = tracing_subscriber::fmt().with_max_level(LevelFilter::WARN);
    execute(bencher, format.with_writer(io::sink).finish());
}

// Target: 6 µs.
#[divan::bench(sample_size = 100)]
fn execute_with_the_record_as_text(bencher: Bencher<'_, '_>) {
    let format = tracing_subscriber::fmt().with_ansi(false);
    execute(bencher, format.with_writer(io::sink).finish());
}

// Target: 6 µs.
#[divan::bench(sample_size = 100)]
fn execute_with_the_record_as_json(bencher: Bencher<'_, '_>) {
    let format = tracing_subscriber::fmt().json();
    execute(bencher, format.with_writer(io::sink).finish());
}

// Target: 100 ns.
#[divan::bench(sample_size = 1_000)]
fn lookup_among_10_000_tools(bencher: Bencher<'_, '_>) {
    let manager = manager_of(10_000);
    let names: Vec<String> = (0..64).map(|i| format!("echo_{}", i * 151)).collect();
    let mut next = 0;
    bencher.bench_local(|| {
        next = (next + 1) % names.len();
        manager.find(black_box(&names[next]))
    });
}

/// A mistyped name costs more, but not much.
#[divan::bench]
fn not_found_among_1_000_tools(bencher: Bencher<'_, '_>) {
    let executor = ToolExecutor::builder(manager_of(1_000))
        .without_observers()
        .build();
    let call = ToolCall::new("ecko_12", json!({}));
    bencher.bench_local(|| executor.dry_run(black_box(&call)).err());
}

/// A realistic schema of a device with a schedule.
fn device() -> Schema {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["deviceName", "action"],
        "properties": {
            "deviceName": { "type": "string", "minLength": 1, "maxLength": 64 },
            "action": { "type": "string", "enum": ["on", "off", "toggle", "dim", "set_temperature"] },
            "level": { "type": "integer", "minimum": 0, "maximum": 99 },
            "temperature": { "type": "number", "minimum": 5, "maximum": 35 },
            "schedule": {
                "type": "object",
                "required": ["at"],
                "properties": {
                    "at": { "type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$" },
                    "days": { "type": "array", "maxItems": 7, "items": { "enum": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] } },
                },
            },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
    });
    Schema::compile(schema, &SchemaLimits::default()).unwrap()
}

#[divan::bench(sample_size = 100)]
fn validation_of_valid_arguments(bencher: Bencher<'_, '_>) {
    let schema = device();
    bencher
        .with_inputs(|| {
            json!({
                "deviceName": "Living room lamp", "action": "dim", "level": 40,
                "schedule": { "at": "21:30", "days": ["mon", "fri"] }, "tags": ["evening", "lights"],
            })
        })
        .bench_local_values(|arguments| schema.check(arguments));
}

#[divan::bench(sample_size = 100)]
fn validation_of_invalid_arguments(bencher: Bencher<'_, '_>) {
    let schema = device();
    bencher
        .with_inputs(|| {
            json!({ "action": "blink", "level": 140, "schedule": { "days": ["funday"] }, "colour": "red" })
        })
        .bench_local_values(|arguments| schema.check(arguments));
}

#[divan::bench]
fn compilation_of_a_schema() -> Schema {
    device()
}
