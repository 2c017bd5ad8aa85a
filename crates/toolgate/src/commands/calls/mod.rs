//! `toolgate calls`: what was called, by whom, and what came of it.

mod audit;
mod filter;
mod lines;
mod mock;
mod remote;
mod show;
mod source;

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use toolgate_core::escape;
use toolgate_journal::{CallDetail, Filter, JournalError, Reader};

use super::{rendered, runtime};
use crate::cli::{CallsOptions, Global};
use crate::config::{Config, Uses};
use crate::exit::{self, Exit};
use crate::remote::Remote;
use crate::{journal, say, wiring};
pub(super) use audit::summary as verified_summary;
use lines::{Lines, More};
use source::Pages;
pub(super) use source::{Unread, call_at};

/// How often new calls are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// Stands for the newest call.
const LAST: &str = "last";

pub(crate) fn run(global: &Global, options: &CallsOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global, Uses::Names)?;
    let filter = filter::read(options)?;
    if options.verify || options.export.is_some() {
        return audited(&config, options, &filter);
    }
    let remote = Remote::of(&options.remote)?;
    let runtime = runtime().context("cannot start")?;
    let looked = async {
        let pages = match remote {
            Some(remote) => Pages::Remote(remote),
            None => match reader(&config, options.follow).await {
                Ok(reader) => Pages::Local(reader),
                Err(error) => return Ok(unreadable(&error, options.id.is_none())),
            },
        };
        look(global, &config, options, &pages, filter).await
    };
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = looked => exit,
            () = exit::interrupted() => Ok(Exit::Interrupted),
        }
    });
    runtime.shutdown_background();
    exit
}

/// What is done with the whole journal of this machine.
fn audited(config: &Config, options: &CallsOptions, filter: &Filter) -> anyhow::Result<Exit> {
    let reader = match journal::reader(config) {
        Ok(reader) => reader,
        Err(error) => return Ok(unreadable(&error, true)),
    };
    match &options.export {
        Some(to) => audit::export(reader, filter, to),
        None => audit::verify(reader, options.expect.as_deref(), options.json),
    }
}

/// The journal; whoever follows it waits for one that is not there yet.
async fn reader(config: &Config, waits: bool) -> anyhow::Result<Reader> {
    let mut is_told = false;
    loop {
        match journal::reader(config) {
            Err(error) if waits && is_missing(&error) => {
                if !std::mem::replace(&mut is_told, true) {
                    say::note(&format!("{error}; the first one is waited for"));
                }
                tokio::time::sleep(LOOK).await;
            }
            reader => return reader,
        }
    }
}

async fn look(
    global: &Global,
    config: &Config,
    options: &CallsOptions,
    pages: &Pages,
    filter: Filter,
) -> anyhow::Result<Exit> {
    let looked = match &options.id {
        Some(id) => {
            let call = match pages.call(id).await {
                Ok(Some(call)) => call,
                Ok(None) => {
                    tell_unknown(id);
                    return Ok(Exit::Failure);
                }
                Err(unread) => return Ok(unread.told()),
            };
            if let Some(name) = &options.save_as_mock {
                return mock::save(global, config, &call, name, options.dry_run);
            }
            say::result(&match options.json {
                true => rendered(&call),
                false => show::detail(&call, say::width()),
            });
            return Ok(Exit::Success);
        }
        None if options.follow => follow(pages, filter, options.json).await,
        None => list(pages, filter, options.json).await,
    };
    Ok(looked.unwrap_or_else(Unread::told))
}

async fn list(pages: &Pages, filter: Filter, as_json: bool) -> Result<Exit, Unread> {
    let calls = pages.newest(filter).await?;
    if calls.is_empty() && !as_json {
        say::note("no call is like that; 'toolgate calls' shows the last ones of all kinds");
    }
    let mut lines = Lines::new(&calls, pages, as_json, More::None);
    for call in &calls {
        lines.print(call);
    }
    Ok(Exit::Success)
}

/// The last calls and then every one that ends, until somebody has enough of it.
async fn follow(pages: &Pages, mut filter: Filter, as_json: bool) -> Result<Exit, Unread> {
    let reader = match pages {
        Pages::Local(reader) => reader,
        Pages::Remote(remote) => return remote::follow(pages, remote, filter, as_json).await,
    };
    // First the place, then the list: what ends in between is shown once all the same.
    let mut position = reader.position()?;
    let (mut lines, mut shown) = begin(pages, filter.clone(), as_json).await?;
    filter.limit = 1000;
    loop {
        for (place, call) in reader.finished_after(position, &filter)? {
            position = place;
            if !shown.contains(&call.id) {
                lines.print(&json!(call));
            }
        }
        // Only what ended between the first two questions could come twice.
        shown.clear();
        tokio::time::sleep(LOOK).await;
    }
}

/// Prints the last calls that have ended, the oldest first, and says which they are.
async fn begin(
    pages: &Pages,
    filter: Filter,
    as_json: bool,
) -> Result<(Lines, Vec<String>), Unread> {
    let mut calls = pages.newest(filter).await?;
    calls.retain(|call| call["outcome"] != "running");
    calls.reverse();
    let mut lines = Lines::new(&calls, pages, as_json, More::Later);
    calls.iter().for_each(|call| lines.print(call));
    let id = |call: &Value| Some(call["id"].as_str()?.to_owned());
    Ok((lines, calls.iter().filter_map(id).collect()))
}

/// One recorded call by its id, the beginning of it, or `last`.
pub(super) fn find(reader: &Reader, id: &str) -> Result<Option<CallDetail>, JournalError> {
    if id != LAST {
        return reader.call(id);
    }
    let mut newest = Filter::default();
    newest.limit = 1;
    match reader.calls(&newest)?.first() {
        Some(call) => reader.call(&call.id),
        None => Ok(None),
    }
}

pub(super) fn tell_unknown(id: &str) {
    let id = escape(id);
    let text = match id.as_str() {
        LAST => "no call has been recorded yet".to_owned(),
        id => format!("no call '{id}' is recorded; 'toolgate calls' shows which there are"),
    };
    say::error(&anyhow::anyhow!(text));
}

/// A journal that is not there yet is empty; one that can not be read is a failure.
fn unreadable(error: &anyhow::Error, may_be_empty: bool) -> Exit {
    if may_be_empty && is_missing(error) {
        say::note(&error.to_string());
        return Exit::Success;
    }
    say::error(&anyhow::anyhow!(error.to_string()));
    Exit::Failure
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(JournalError::Missing(_)))
}
