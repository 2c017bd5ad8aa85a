//! The watcher with real processes: a program, its watcher, and its servers.

use std::io::Read;

use serde_json::json;

use super::super::processes::MARKER;
use super::*;

/// Only a hang takes longer, not a slow machine.
const HANG: Duration = Duration::from_secs(20);

/// The command line that runs one test of this binary.
fn this(test: &str) -> (PathBuf, [String; 4]) {
    let path = module_path!().split_once("::").unwrap().1;
    let words = [
        &format!("{path}::{test}"),
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    (std::env::current_exe().unwrap(), words.map(str::to_owned))
}

#[test]
#[ignore = "the watcher of the tests below: started by them, in a process of its own"]
fn as_watcher() {
    // Run as a normal test, stdin is not a pipe and there is nothing to do.
    run().ok();
}

/// Starts one server in its group and one that has left it, reports them, and waits to be killed.
#[test]
#[ignore = "the program of the tests below: started by them, in a process of its own"]
#[expect(
    clippy::zombie_processes,
    reason = "that they outlive this process is the point"
)]
fn as_program() {
    let (program, args) = this("as_watcher");
    let watcher = ServerWatcher::new(program, args);
    for script in ["trap '' TERM; sleep 1000", "setsid sleep 1000; true"] {
        let child = Command::new("sh")
            .args(["-c", script])
            .env(MARKER, watcher.new_marker())
            .process_group(0)
            .spawn()
            .unwrap();
        watcher.add(Pid::from_child(&child), None);
    }
    let process = watcher.0.state.lock().process.as_ref().unwrap().id();
    println!("ready {process} {}.", watcher.0.token);
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Kills what a failed test leaves behind.
struct ProcessCleanup(ProcessFamily);

impl Drop for ProcessCleanup {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
    }
}

/// True if the process has a handler of its own for each of the signals.
fn handles(pid: Pid, signals: &[Signal]) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let all = signals
        .iter()
        .fold(0, |all, signal| all | 1 << (signal.as_raw() - 1));
    caught.unwrap_or(0) & all == all
}

async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let wait = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(HANG, wait).await.is_ok(), "{what}");
}

#[tokio::test]
async fn servers_end_with_a_program_that_is_killed() {
    let (program, args) = this("as_program");
    let mut program = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = io::BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ready") {
        line.clear();
        assert_ne!(io::BufRead::read_line(&mut said, &mut line).unwrap(), 0);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let watcher = Pid::from_raw(words[1].parse().unwrap()).unwrap();
    let family = ProcessFamily {
        groups: Vec::new(),
        marker: Some(words[2].to_owned()),
        except: Vec::new(),
    };
    let _rest = ProcessCleanup(family.clone());
    until("no server has left its group", || {
        family.marked().len() >= 3
    })
    .await;
    // Signals that a terminal or a service manager sends to all processes must not end the watcher.
    let harmless = [Signal::INT, Signal::TERM, Signal::HUP];
    until("the watcher listens to no signals", || {
        handles(watcher, &harmless)
    })
    .await;
    for signal in harmless {
        rustix::process::kill_process(watcher, signal).unwrap();
    }
    program.kill().unwrap();
    program.wait().unwrap();
    until("servers are left", || !family.is_alive()).await;
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{watcher}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    until("the watcher is left", gone).await;
}

#[tokio::test]
async fn a_dead_watcher_is_replaced_with_the_whole_state() {
    let watcher = ServerWatcher::new("sh", ["-c", "cat >/dev/null"]);
    let process = |watcher: &ServerWatcher| {
        let mut state = watcher.0.state.lock();
        let watcher = state.process.as_mut().unwrap();
        (watcher.id(), watcher.try_wait().unwrap().is_some())
    };
    watcher.add(Pid::INIT, None);
    let (first, _) = process(&watcher);
    rustix::process::kill_process(
        Pid::from_raw(first.try_into().unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    until("the watcher does not die", || process(&watcher).1).await;
    watcher.new_marker();
    assert_ne!(process(&watcher), (first, true));
    assert_eq!(watcher.0.state.lock().groups.len(), 1);
    watcher.remove(Pid::INIT);
    assert!(watcher.0.state.lock().groups.is_empty());
    let mut state = watcher.0.state.lock();
    let mut last = state.process.take().unwrap();
    last.kill().unwrap();
    last.wait().unwrap();
}

#[tokio::test]
async fn the_watcher_parses_its_input() {
    let installing = |group: i32, marker: &str, asked: bool| {
        let installing = json!({ "marker": marker, "is_asked_to_end": asked });
        json!([group, { "installing": installing }]).to_string()
    };
    let lines = [
        "\"token\"",
        "[5,{}]",
        "[6,{}]",
        "nonsense",
        "[\"x\",{}]",
        "",
        "[5,null]",
        "[7,{}]",
        "[9,null]",
        &installing(8, "token.3.", false),
        &installing(9, "token.4.", false),
        "[9,{}]",
        &installing(10, "token.5.", false),
        "[10,null]",
        &installing(11, "token.6.", false),
        &installing(11, "token.6.", true),
    ];
    let told = lines.join("\n");
    let groups = |numbers: &[i32]| numbers.iter().filter_map(|n| Pid::from_raw(*n)).collect();
    let installing = ProcessFamily {
        groups: groups(&[8]),
        marker: Some("token.3.".to_owned()),
        except: Vec::new(),
    };
    let cleaning_up = ProcessFamily {
        groups: groups(&[11]),
        marker: Some("token.6.".to_owned()),
        except: Vec::new(),
    };
    let usual = ProcessFamily {
        groups: groups(&[6, 7, 9]),
        marker: Some("token.".to_owned()),
        except: vec!["token.3.".to_owned(), "token.6.".to_owned()],
    };
    assert_eq!(
        read_state(told.as_bytes()).await.0,
        [
            (installing, ShutdownPlan::INSTALLING),
            (cleaning_up, ShutdownPlan::CLEANING_UP),
            (usual, ShutdownPlan::NORMAL)
        ]
    );
    // Without the token, no marked process is looked for.
    assert_eq!(
        read_state(&b""[..]).await.0,
        [(ProcessFamily::default(), ShutdownPlan::NORMAL)]
    );
}

#[test]
fn a_missing_watcher_is_not_fatal() {
    let watcher = ServerWatcher::new("/no/such/program", [""; 0]);
    assert_ne!(watcher.new_marker(), watcher.new_marker());
    assert!(ServerWatcher::none().new_marker().ends_with(".0."));
}
