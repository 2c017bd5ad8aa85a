//! Measures how long calls and validation take, to compare with other runtimes. The last line of
//! output is one JSON object.
//!
//! ```text
//! bench_slots inproc SECONDS            {"us": …}: lookup, JSON parsing, validation and call of an echo tool
//! bench_slots schema SECONDS FIXTURES   {"valid_ns": …, "invalid_ns": …}: all errors of one realistic schema collected
//! ```

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{Schema, SchemaLimits, ToolCall, ToolExecutor, ToolManager, parse_json};

use crate::echo::{ARGUMENTS, Echo};

#[path = "../benches/echo/mod.rs"]
mod echo;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measured = match arguments.as_slice() {
        ["inproc", seconds] => inproc(seconds.parse()?)?,
        ["schema", seconds, fixtures] => schema(seconds.parse()?, &std::fs::read(fixtures)?)?,
        _ => return Err("usage: bench_slots inproc SECONDS | schema SECONDS FIXTURES".into()),
    };
    println(&measured);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the measurement is the output")]
fn println(measured: &Value) {
    println!("{measured}");
}

fn inproc(seconds: f64) -> Result<Value, Failure> {
    let manager = ToolManager::new();
    manager.add(Echo::named("echo")?);
    // As in production: the log is an observer, but its level is disabled.
    let executor = ToolExecutor::new(Arc::new(manager));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let call =
            || executor.execute(ToolCall::from_json("echo", black_box(ARGUMENTS.as_bytes())));
        let answer = call().await.to_envelope();
        if answer["result"] != "hello from the benchmark" {
            return Err(format!("unexpected answer: {answer}").into());
        }
        let mut mean = Duration::ZERO;
        for time in [seconds / 3.0, seconds] {
            let begin = Instant::now();
            let mut calls = 0_u32;
            while begin.elapsed().as_secs_f64() < time {
                for _ in 0..64 {
                    black_box(call().await);
                }
                calls += 64;
            }
            mean = begin.elapsed() / calls;
        }
        Ok(json!({ "us": mean.as_nanos() as f64 / 1000.0 }))
    })
}

fn schema(seconds: f64, fixtures: &[u8]) -> Result<Value, Failure> {
    let fixtures = parse_json(fixtures)?;
    let schema = Schema::compile(fixtures["schema"].clone(), &SchemaLimits::default())?;
    let mut measured = json!({});
    for (name, instance, is_valid) in [
        ("valid_ns", &fixtures["valid"], true),
        ("invalid_ns", &fixtures["invalid"], false),
    ] {
        let instance = Arc::new(instance.clone());
        if schema.check(Arc::clone(&instance)).is_ok() != is_valid {
            return Err(
                format!("validation gave the wrong result for this fixture: {instance}").into(),
            );
        }
        let mut mean = 0.0;
        for time in [seconds / 3.0, seconds] {
            let begin = Instant::now();
            let mut runs = 0_u32;
            while begin.elapsed().as_secs_f64() < time {
                for _ in 0..64 {
                    let verdict = schema.check(Arc::clone(black_box(&instance)));
                    black_box(verdict.is_ok());
                }
                runs += 64;
            }
            mean = begin.elapsed().as_secs_f64() * 1e9 / f64::from(runs);
        }
        measured[name] = mean.into();
    }
    Ok(measured)
}
