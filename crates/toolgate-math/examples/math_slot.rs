//! `math_slot SECONDS FIXTURES`: mean microseconds to parse and evaluate each of the
//! fixtures' expressions, nothing cached.
#![expect(clippy::print_stdout, reason = "this program is its output")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate_math::{Budget, evaluate};

/// Mean microseconds of one evaluation, after a warm-up of a third of the time.
fn time(expression: &str, budget: &Budget, length: Duration) -> f64 {
    let run = |length: Duration| {
        let start = Instant::now();
        let mut count = 0u32;
        while start.elapsed() < length {
            for _ in 0..32 {
                let _answer = black_box(evaluate(black_box(expression), budget));
            }
            count += 32;
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
    };
    run(length / 3);
    run(length)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: math_slot SECONDS FIXTURES";
    let seconds: f64 = arguments.next().ok_or(usage)?.parse()?;
    let fixtures: Value = serde_json::from_slice(&std::fs::read(arguments.next().ok_or(usage)?)?)?;
    let expressions: Vec<&str> = fixtures["expressions"]
        .as_array()
        .ok_or("no expressions")?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let budget = Budget::default();
    for expression in &expressions {
        evaluate(expression, &budget).map_err(|error| format!("{expression}: {error}"))?;
    }
    let slot = Duration::from_secs_f64(seconds / expressions.len() as f64);
    let each: Map<String, Value> = expressions
        .iter()
        .map(|text| ((*text).to_owned(), json!(time(text, &budget, slot))))
        .collect();
    let mean = each.values().filter_map(Value::as_f64).sum::<f64>() / each.len() as f64;
    println!("{}", json!({ "us": mean, "each": each }));
    Ok(())
}
