//! `kill -9` under load: every acknowledged call is in the journal once; any other
//! is interrupted or absent.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::resource_use::{print_line, size};
use crate::support::{self, ServeProcess, get, marked_server, nobody_is_left, pause};

const CALLERS: usize = 8;

/// Calls until the gateway is gone; returns the ids that were answered.
fn call_until_gone(address: &str, is_gone: &AtomicBool, number: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let tool = ["echo", "house__echo"][number % 2];
    while !is_gone.load(Ordering::Relaxed) {
        let body = json!({ "text": format!("caller {number}") }).to_string();
        let path = format!("/api/tools/{tool}/call");
        let Ok((status, envelope)) = support::request(address, "POST", &path, &body) else {
            break;
        };
        assert_eq!(
            (status, &envelope["success"]),
            (200, &json!(true)),
            "{envelope}"
        );
        acknowledged.push(envelope["call_id"].as_str().unwrap().to_owned());
    }
    acknowledged
}

#[test]
fn a_hundred_kills_under_load_lose_no_acknowledged_call_and_double_none() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("kills-{}", std::process::id());
    let config = json!({ "mcpServers": { "house": marked_server(&mark) } });
    let mut acknowledged: Vec<String> = Vec::new();
    let kills = size("SOAK_KILLS", 100);
    for round in 0..kills {
        let gateway = ServeProcess::start(folder.path(), &config);
        gateway.ready();
        let address = gateway.address.clone();
        let is_gone = AtomicBool::new(false);
        let moment = fastrand::u64(5..60);
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|number| {
                    let (address, is_gone) = (&address, &is_gone);
                    scope.spawn(move || call_until_gone(address, is_gone, number))
                })
                .collect();
            pause(moment);
            gateway.kill();
            is_gone.store(true, Ordering::Relaxed);
            for caller in callers {
                acknowledged.extend(caller.join().unwrap());
            }
        });
        assert!(!acknowledged.is_empty() || round < 10, "nothing was called");
        nobody_is_left(&mark);
    }
    let gateway = ServeProcess::start(folder.path(), &config);
    let journalled = all_calls(&gateway.address);
    let ids: Vec<&str> = journalled
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "a call is in the journal twice");
    let succeeded: HashSet<&str> = journalled
        .iter()
        .filter(|call| call["outcome"] == "success")
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let lost: Vec<&String> = acknowledged
        .iter()
        .filter(|id| !succeeded.contains(id.as_str()))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} are lost: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    let running = journalled
        .iter()
        .filter(|call| call["outcome"] == "running");
    assert_eq!(running.count(), 0, "a call of a dead run still runs");
    let interrupted = journalled
        .iter()
        .filter(|call| call["outcome"] == "interrupted")
        .count();
    let (answered, all) = (acknowledged.len(), ids.len());
    print_line(&format!(
        "{kills} kills of the gateway: {answered} calls answered, {all} in the journal, {interrupted} of them interrupted"
    ));
}

/// All recorded calls, read page by page, newest first.
fn all_calls(address: &str) -> Vec<Value> {
    let mut calls: Vec<Value> = Vec::new();
    loop {
        let before = calls
            .last()
            .map(|call| call["id"].as_str().unwrap().to_owned());
        let before = before.map(|id| format!("&before={id}")).unwrap_or_default();
        let (status, page) = get(address, &format!("/api/calls?limit=1000{before}"));
        assert_eq!(status, 200, "{page}");
        let page = page.as_array().unwrap().clone();
        if page.is_empty() {
            return calls;
        }
        calls.extend(page);
    }
}
