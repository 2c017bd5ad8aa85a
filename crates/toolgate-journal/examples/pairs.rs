//! Measures what recording a call costs: `cargo run --profile dist -p toolgate-journal
//! --example pairs [SECONDS [SETTING]]`.
//!
//! For each setting, makes calls one after another and 32 at a time, and the same calls without a
//! journal. A pair is the start and end of one call, including their way into the database.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement that fails should stop, and its figures are for stdout"
)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::Instant;
use toolgate_core::{Redactor, ToolCall, ToolExecutor, ToolManager};
use toolgate_journal::{Journal, JournalSettings, SyncMode};

use crate::echo::{ARGUMENTS, Echo};

#[path = "../../toolgate-core/benches/echo/mod.rs"]
mod echo;

fn executor(journal: Option<&Journal>) -> ToolExecutor {
    let manager = ToolManager::new();
    manager.add(Echo::named("echo").unwrap());
    let builder = ToolExecutor::builder(Arc::new(manager));
    match journal {
        Some(journal) => builder.observer(journal.observer()).build(),
        None => builder.without_observers().build(),
    }
}

/// The wall-clock and processor time of one call, in microseconds, with this many tasks that
/// call one after another.
async fn times(executor: &ToolExecutor, tasks: usize, time: Duration) -> (f64, f64) {
    let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap();
    let (begin, processor) = (Instant::now(), processor_time());
    let callers: Vec<_> = (0..tasks)
        .map(|_| {
            let (executor, arguments) = (executor.clone(), arguments.clone());
            tokio::spawn(async move {
                let mut calls = 0_u64;
                while begin.elapsed() < time {
                    let call = ToolCall::new("echo", arguments.clone());
                    let outcome = executor.execute(call).await;
                    assert!(outcome.is_success());
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.unwrap();
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
    (each(begin.elapsed()), each(processor_time() - processor))
}

/// The processor time of this process so far. On a busy machine only this shows what a call costs.
fn processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    let ticks = after_name.split(' ').skip(11).take(2);
    TICK * ticks
        .map(|ticks| ticks.parse::<u32>().unwrap())
        .sum::<u32>()
}

async fn measure(label: &str, executor: &ToolExecutor, time: Duration) {
    let (one, one_cpu) = times(executor, 1, time).await;
    let (many, many_cpu) = times(executor, 32, time).await;
    println!(
        "{label:<8} one at a time {one:>7.1} µs ({one_cpu:>5.1} µs cpu)   32 at a time {:>7.0} pairs/s ({many_cpu:>5.1} µs cpu each)",
        1e6 / many
    );
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(3, |text| text.parse().unwrap());
    let time = Duration::from_secs(seconds);
    let only = std::env::args().nth(2);
    let is_wanted = |sync: &SyncMode| {
        only.as_ref()
            .is_none_or(|only| format!("{sync:?}") == *only)
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, runtime) in [
        (
            "one thread",
            Builder::new_current_thread().enable_all().build(),
        ),
        (
            "two threads",
            Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build(),
        ),
    ] {
        println!("{name}");
        runtime.unwrap().block_on(async {
            measure("none", &executor(None), time).await;
            for sync in [SyncMode::Relaxed, SyncMode::Normal, SyncMode::Full]
                .into_iter()
                .filter(is_wanted)
            {
                let file = folder.path().join(format!("{name} {sync:?}.db"));
                let mut settings = JournalSettings::default();
                settings.sync = sync;
                let journal =
                    Journal::open(&file, &settings, Redactor::default(), "pairs").unwrap();
                measure(&format!("{sync:?}"), &executor(Some(&journal)), time).await;
                println!("         {:?}", journal.health());
                journal.close().await;
            }
        });
    }
}
