//! `beside_mathjs NODE_MODULES [ROUNDS]`: how long we and mathjs take for the expressions of the
//! table that the differential test compares, by class, as a table in Markdown.
//!
//! Both sides parse and evaluate each expression every time. One round gives every expression a
//! slot on either side in turn, so that other load hits both. The first round warms up and doesn't
//! count. An expression's time is the median of its rounds.
#![expect(clippy::print_stdout, reason = "this program is its output")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_math::{Budget, evaluate};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLE: &str = include_str!("../tests/differential/table.txt");

/// How long one side computes one expression in one round.
const SLOT: Duration = Duration::from_micros(500);

/// An expression, and its microseconds in each round.
struct TimingRow {
    class: &'static str,
    expression: String,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let modules = arguments
        .next()
        .ok_or("usage: beside_mathjs NODE_MODULES [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |rounds| rounds.parse())?;
    let mut mathjs = MathjsTimer::start(&modules)?;
    let mut rows = rows();
    for round in 0..=rounds {
        for row in &mut rows {
            let (Some(ours), Some(theirs)) = (time(&row.expression), mathjs.time(&row.expression)?)
            else {
                continue;
            };
            if round > 0 {
                row.ours.push(ours);
                row.theirs.push(theirs);
            }
        }
    }
    rows.retain(|row| !row.ours.is_empty());
    print_table(&mut rows);
    Ok(())
}

/// The expressions for both sides, without the classes that are rejected or excluded.
fn rows() -> Vec<TimingRow> {
    let mut class = "rejected";
    let mut rows = Vec::new();
    for line in TABLE.lines() {
        if let Some(heading) = line.strip_prefix("=== ") {
            class = heading;
        } else if !line.is_empty() && !class.starts_with("rejected") && class != "excluded" {
            rows.push(TimingRow {
                class,
                expression: line.replace('⏎', "\n"),
                ours: Vec::new(),
                theirs: Vec::new(),
            });
        }
    }
    rows
}

/// Mean microseconds of one evaluation; `None` for an expression without an answer.
fn time(expression: &str) -> Option<f64> {
    let budget = Budget::default();
    evaluate(expression, &budget).ok()?;
    let start = Instant::now();
    let mut count = 0u32;
    while start.elapsed() < SLOT {
        for _ in 0..8 {
            let _answer = black_box(evaluate(black_box(expression), &budget));
        }
        count += 8;
    }
    Some(start.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

struct MathjsTimer {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl MathjsTimer {
    fn start(modules: &str) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/beside_mathjs.mjs");
        let mut process = Command::new("node")
            .arg(script)
            .arg(modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            questions: process.stdin.take().ok_or("node has no stdin")?,
            answers: BufReader::new(process.stdout.take().ok_or("node has no stdout")?),
            process,
        })
    }

    fn time(&mut self, expression: &str) -> Result<Option<f64>> {
        let question =
            json!({ "expression": expression, "milliseconds": SLOT.as_secs_f64() * 1e3 });
        writeln!(self.questions, "{question}")?;
        self.questions.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Drop for MathjsTimer {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _status = self.process.wait();
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_table(rows: &mut [TimingRow]) {
    let times: Vec<(&str, f64, f64)> = rows
        .iter_mut()
        .map(|row| (row.class, median(&mut row.ours), median(&mut row.theirs)))
        .collect();
    println!("| class | expressions | mathjs, µs | Toolgate, µs | times faster |");
    println!("|---|---|---|---|---|");
    for class in times.chunk_by(|a, b| a.0 == b.0) {
        print_line(class[0].0, class);
    }
    print_line("**all**", &times);
}

/// Means over the expressions, and how they compare.
fn print_line(name: &str, times: &[(&str, f64, f64)]) {
    let count = times.len() as f64;
    let ours = times.iter().map(|(_, ours, _)| ours).sum::<f64>() / count;
    let theirs = times.iter().map(|(.., theirs)| theirs).sum::<f64>() / count;
    println!(
        "| {name} | {count} | {theirs:.1} | {ours:.2} | {:.0} |",
        theirs / ours
    );
}
