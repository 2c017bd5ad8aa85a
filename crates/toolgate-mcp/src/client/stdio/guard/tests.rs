//! Real processes again: a program of its own, its watcher, its servers.

use std::io::Read;

use super::super::processes::MARKER;
use super::*;

/// A hang, not a slow machine.
const HANG: Duration = Duration::from_secs(20);

/// This test binary, to run one test of this file and nothing else.
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
fn as_guard() {
    // Run by hand there is no pipe, and nothing to do.
    run().ok();
}

/// Starts servers, one in its group and one that left it, says so, and waits to be killed.
#[test]
#[ignore = "the program of the tests below: started by them, in a process of its own"]
#[expect(
    clippy::zombie_processes,
    reason = "that they outlive this process is the point"
)]
fn as_program() {
    let (program, args) = this("as_guard");
    let guard = Guard::new(program, args);
    for script in ["trap '' TERM; sleep 1000", "setsid sleep 1000; true"] {
        let child = Command::new("sh")
            .args(["-c", script])
            .env(MARKER, guard.marker())
            .process_group(0)
            .spawn()
            .unwrap();
        guard.add(Pid::from_child(&child), None);
    }
    let watcher = guard.0.state.lock().watcher.as_ref().unwrap().id();
    println!("ready {watcher} {}.", guard.0.token);
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Whatever a failed test leaves behind.
struct Rest(Family);

impl Drop for Rest {
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
    let family = Family {
        groups: Vec::new(),
        marker: Some(words[2].to_owned()),
        except: Vec::new(),
    };
    let _rest = Rest(family.clone());
    until("no server has left its group", || {
        family.marked().len() >= 3
    })
    .await;
    // What a terminal or a service manager sends to everybody does not end the watcher.
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
    until("servers are left", || !family.lives()).await;
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{watcher}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    until("the watcher is left", gone).await;
}

#[tokio::test]
async fn a_watcher_that_died_is_replaced_and_told_everything() {
    let guard = Guard::new("sh", ["-c", "cat >/dev/null"]);
    let watcher = |guard: &Guard| {
        let mut state = guard.0.state.lock();
        let watcher = state.watcher.as_mut().unwrap();
        (watcher.id(), watcher.try_wait().unwrap().is_some())
    };
    guard.add(Pid::INIT, None);
    let (first, _) = watcher(&guard);
    rustix::process::kill_process(
        Pid::from_raw(first.try_into().unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    until("the watcher does not die", || watcher(&guard).1).await;
    guard.marker();
    assert_ne!(watcher(&guard), (first, true));
    assert_eq!(guard.0.state.lock().groups.len(), 1);
    guard.remove(Pid::INIT);
    assert!(guard.0.state.lock().groups.is_empty());
    let mut state = guard.0.state.lock();
    let mut last = state.watcher.take().unwrap();
    last.kill().unwrap();
    last.wait().unwrap();
}

#[tokio::test]
async fn the_watcher_knows_what_it_was_told() {
    let told: &[u8] = b"=token\n+5\n+6\nnonsense\n+x\n\n-5\n+7\n-9\n+8 token.3.\n+9 token.4.\n+9\n+10 token.5.\n-10\n+11 token.6.\n+11 token.6. asked";
    let groups = |numbers: &[i32]| numbers.iter().filter_map(|n| Pid::from_raw(*n)).collect();
    let installing = Family {
        groups: groups(&[8]),
        marker: Some("token.3.".to_owned()),
        except: Vec::new(),
    };
    let cleaning_up = Family {
        groups: groups(&[11]),
        marker: Some("token.6.".to_owned()),
        except: Vec::new(),
    };
    let usual = Family {
        groups: groups(&[6, 7, 9]),
        marker: Some("token.".to_owned()),
        except: vec!["token.3.".to_owned(), "token.6.".to_owned()],
    };
    assert_eq!(
        listen(told).await.0,
        [
            (installing, Ending::INSTALLING),
            (cleaning_up, Ending::CLEANING_UP),
            (usual, Ending::USUAL)
        ]
    );
    // A pipe that ends before the token came leaves nobody to be looked for.
    assert_eq!(
        listen(&b""[..]).await.0,
        [(Family::default(), Ending::USUAL)]
    );
}

#[test]
fn a_watcher_that_cannot_be_started_is_no_reason_to_fail() {
    let guard = Guard::new("/no/such/program", [""; 0]);
    assert_ne!(guard.marker(), guard.marker());
    assert!(Guard::none().marker().ends_with(".0."));
}
