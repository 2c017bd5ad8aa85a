//! `toolgate calls`: lists recorded calls and their outcomes.

mod audit;
mod filter;
mod lines;
mod mock;
mod remote;
mod show;
mod source;

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_journal::{CallDetail, JournalError, JournalFilter, JournalReader};

use super::{block_on_interruptible, rendered};
use crate::cli::{CallsOptions, GlobalOptions};
use crate::config::{Config, SecretScope};
use crate::exit::Exit;
use crate::remote::RemoteGateway;
use crate::{journal, output, wiring};
pub(super) use audit::summary as verified_summary;
use lines::{CallPrinter, MoreCalls};
use source::CallPages;
pub(super) use source::{CallReadError, call_at};

// Poll interval while following.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const LAST: &str = "last";

pub(crate) fn run(global: &GlobalOptions, options: &CallsOptions) -> anyhow::Result<Exit> {
    let config = wiring::load_config(global, SecretScope::Names)?;
    let filter = filter::read(options)?;
    if options.verify || options.export.is_some() {
        return audit_journal(&config, options, &filter);
    }
    let remote = RemoteGateway::from_options(&options.remote)?;
    let shown = async {
        let pages = match remote {
            Some(remote) => CallPages::Remote(remote),
            None => match reader(&config, options.follow).await {
                Ok(reader) => CallPages::Local(reader),
                Err(error) => return Ok(unreadable(&error, options.id.is_none())),
            },
        };
        show_calls(global, &config, options, &pages, filter).await
    };
    block_on_interruptible(shown)?.unwrap_or(Ok(Exit::Interrupted))
}

fn audit_journal(
    config: &Config,
    options: &CallsOptions,
    filter: &JournalFilter,
) -> anyhow::Result<Exit> {
    let reader = match journal::reader(config) {
        Ok(reader) => reader,
        Err(error) => return Ok(unreadable(&error, true)),
    };
    match &options.export {
        Some(to) => audit::export(reader, filter, to),
        None => audit::verify(reader, options.expect.as_deref(), options.json),
    }
}

/// Opens the journal. With `waits`, a missing journal is awaited.
async fn reader(config: &Config, waits: bool) -> anyhow::Result<JournalReader> {
    let mut is_noted = false;
    loop {
        match journal::reader(config) {
            Err(error) if waits && is_missing(&error) => {
                if !std::mem::replace(&mut is_noted, true) {
                    output::print_note(&format!("{error}; waiting for the first one"));
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            reader => return reader,
        }
    }
}

async fn show_calls(
    global: &GlobalOptions,
    config: &Config,
    options: &CallsOptions,
    pages: &CallPages,
    filter: JournalFilter,
) -> anyhow::Result<Exit> {
    let shown = match &options.id {
        Some(id) => {
            let call = match pages.call(id).await {
                Ok(Some(call)) => call,
                Ok(None) => return Ok(report_unknown(id)),
                Err(unread) => return Ok(unread.report()),
            };
            if let Some(name) = &options.save_as_mock {
                return mock::save(global, config, &call, name, options.dry_run);
            }
            output::print_result(&match options.json {
                true => rendered(&call),
                false => show::detail(&call, output::stdout_width()),
            });
            return Ok(Exit::Success);
        }
        None if options.follow => follow(pages, filter, options.json).await,
        None => list(pages, filter, options.json).await,
    };
    Ok(shown.unwrap_or_else(CallReadError::report))
}

async fn list(
    pages: &CallPages,
    filter: JournalFilter,
    as_json: bool,
) -> Result<Exit, CallReadError> {
    let calls = pages.newest(filter).await?;
    if calls.is_empty() && !as_json {
        output::print_note(
            "no call matches; 'toolgate calls' shows the latest calls of every kind",
        );
    }
    let mut printer = CallPrinter::new(&calls, pages, as_json, MoreCalls::None);
    for call in &calls {
        printer.print(call);
    }
    Ok(Exit::Success)
}

async fn follow(
    pages: &CallPages,
    mut filter: JournalFilter,
    as_json: bool,
) -> Result<Exit, CallReadError> {
    let reader = match pages {
        CallPages::Local(reader) => reader,
        CallPages::Remote(remote) => return remote::follow(pages, remote, filter, as_json).await,
    };
    // Position first, then the list: a call that ends in between is in both, and is shown once.
    let mut position = reader.position()?;
    let (mut printer, mut shown) = print_last(pages, filter.clone(), as_json).await?;
    filter.limit = 1000;
    loop {
        for (place, call) in reader.finished_after(position, &filter)? {
            position = place;
            if !shown.contains(&call.id) {
                printer.print(&json!(call));
            }
        }
        // Only calls that ended between those two queries could appear twice.
        shown.clear();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn print_last(
    pages: &CallPages,
    filter: JournalFilter,
    as_json: bool,
) -> Result<(CallPrinter, Vec<String>), CallReadError> {
    let mut calls = pages.newest(filter).await?;
    calls.retain(|call| call["outcome"] != "running");
    calls.reverse();
    let mut printer = CallPrinter::new(&calls, pages, as_json, MoreCalls::Later);
    calls.iter().for_each(|call| printer.print(call));
    let id = |call: &Value| Some(call["id"].as_str()?.to_owned());
    Ok((printer, calls.iter().filter_map(id).collect()))
}

/// Finds a call by its id, a prefix of it, or `last`.
pub(super) fn find(reader: &JournalReader, id: &str) -> Result<Option<CallDetail>, JournalError> {
    if id != LAST {
        return reader.call(id);
    }
    let mut newest = JournalFilter::default();
    newest.limit = 1;
    match reader.calls(&newest)?.first() {
        Some(call) => reader.call(&call.id),
        None => Ok(None),
    }
}

pub(super) fn report_unknown(id: &str) -> Exit {
    let id = escape(id);
    Exit::failure(match id.as_str() {
        LAST => "no call has been recorded yet".to_owned(),
        id => format!("no call '{id}' is recorded; 'toolgate calls' lists them"),
    })
}

/// A missing journal counts as empty. An unreadable one is a failure.
fn unreadable(error: &anyhow::Error, may_be_empty: bool) -> Exit {
    if may_be_empty && is_missing(error) {
        output::print_note(&error.to_string());
        return Exit::Success;
    }
    Exit::failure(error)
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(JournalError::Missing(_)))
}
