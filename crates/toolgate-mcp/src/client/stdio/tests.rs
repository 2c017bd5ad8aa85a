//! Real processes: what is started is spoken to, and nothing of it is left.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_core::Redactor;

use super::*;
use crate::Connection;
use crate::client::message::Message;
use crate::client::transport::{End, Lost};

/// A hang, not a slow machine.
const HANG: Duration = Duration::from_secs(20);

/// What came out of a transport.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Message(Message),
    Lost(Option<u64>, Lost),
    Closed(End),
}

pub(super) struct Channel(pub(super) mpsc::UnboundedSender<Event>);

impl Inbox for Channel {
    fn message(&self, message: Message) {
        self.0.send(Event::Message(message)).ok();
    }
    fn lost(&self, id: Option<u64>, problem: Lost) {
        self.0.send(Event::Lost(id, problem)).ok();
    }
    fn failed(&self, id: u64, error: TransportError) {
        panic!("{id}: {error}");
    }
    fn closed(&self, end: End) {
        self.0.send(Event::Closed(end)).ok();
    }
}

struct Server {
    stdio: Arc<Stdio>,
    events: mpsc::UnboundedReceiver<Event>,
    diagnostics: Arc<Diagnostics>,
}

impl Server {
    fn sh(script: &str) -> Self {
        Self::start(&sh(script), |_| {})
    }

    fn start(program: &Program, adjust: impl FnOnce(&mut ServerSettings)) -> Self {
        let shared = Shared {
            guard: Guard::none(),
            max_message: 1024 * 1024,
        };
        let mut settings = ServerSettings::new("test", Connection::Stdio(program.clone()));
        adjust(&mut settings);
        let (sender, events) = mpsc::unbounded_channel();
        let diagnostics = Diagnostics::new("test", Redactor::new(["hunter2".to_owned()]));
        let stdio = Stdio::start(
            &settings,
            program,
            &shared,
            Arc::clone(&diagnostics),
            Arc::new(Channel(sender)),
        );
        Self {
            stdio: stdio.unwrap(),
            events,
            diagnostics,
        }
    }

    async fn next(&mut self) -> Event {
        let event = timeout(HANG, self.events.recv()).await;
        event.expect("no event").expect("no end")
    }

    /// The method of the next notification.
    async fn told(&mut self) -> String {
        match self.next().await {
            Event::Message(Message::Notification { method, .. }) => method,
            other => panic!("{other:?}"),
        }
    }

    async fn end(&mut self) -> End {
        match self.next().await {
            Event::Closed(end) => end,
            other => panic!("{other:?}"),
        }
    }

    async fn send(&self, text: &str) -> Result<(), TransportError> {
        let message = Outgoing {
            id: None,
            method: None,
            name: None,
            headers: Vec::new(),
            body: format!("{text}\n").into_bytes(),
        };
        self.stdio.send(message).await
    }

    /// Closes it; after that nothing is left.
    async fn close(self) {
        timeout(HANG, self.stdio.close()).await.unwrap();
        assert!(!self.stdio.group.lives(), "processes are left");
    }
}

fn sh(script: &str) -> Program {
    Program {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        ..Program::default()
    }
}

#[tokio::test]
async fn messages_go_there_and_back() {
    let mut server = Server::sh("cat");
    for number in 0..100 {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m{number}"}}"#);
        server.send(&text).await.unwrap();
    }
    for number in 0..100 {
        assert_eq!(server.told().await, format!("m{number}"));
    }
    let closing = Instant::now();
    timeout(HANG, server.stdio.close()).await.unwrap();
    assert!(
        closing.elapsed() < Duration::from_secs(2),
        "was not asked to end by the end of its stdin"
    );
    assert_eq!(server.end().await.status, "exit status 0");
    assert_eq!(
        server.send("{}").await,
        Err(TransportError::NotSent(
            "MCP server 'test' is not running any more".to_owned()
        ))
    );
    server.close().await;
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// A script that says a method, then does something.
fn says(method: &str, then: &str) -> String {
    format!("echo '{}'; {then}", note(method))
}

#[tokio::test]
async fn a2_an_end_is_told_once_with_status_and_stderr_after_what_was_said_before() {
    for (then, status) in [
        ("exit 3", "exit status 3"),
        ("exit 0", "exit status 0"),
        ("kill -9 $$", "signal 9 (killed)"),
        ("kill -SEGV $$", "signal 11 (segmentation fault)"),
    ] {
        let mut server = Server::sh(&says("last", &format!("echo 'why hunter2' >&2; {then}")));
        assert_eq!(server.told().await, "last");
        let End {
            status: said,
            stderr,
        } = server.end().await;
        assert_eq!(
            (said.as_str(), &stderr[..]),
            (status, &["why [REDACTED]".to_owned()][..])
        );
        timeout(HANG, server.stdio.close()).await.unwrap();
        assert_eq!(server.diagnostics.stderr_tail(), stderr);
        assert!(
            server.events.try_recv().is_err(),
            "something was told after the end"
        );
        server.close().await;
    }
}

#[tokio::test]
async fn a8_the_death_of_a_server_is_seen_although_others_hold_its_pipes() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 &"] {
        let mut server = Server::sh(&says("ready", &format!("{hold} sleep 0.1; exit 4")));
        assert_eq!(server.told().await, "ready");
        assert_eq!(server.end().await.status, "exit status 4", "{hold}");
        server.close().await;
    }
}

#[tokio::test]
async fn a8_a_server_that_closes_a_pipe_is_ended() {
    let mut server = Server::sh("exec >&-; exec sleep 1000");
    assert_eq!(server.end().await.status, "closed its stdout");
    server.close().await;

    let mut server = Server::sh(&format!("exec <&-; {}", says("ready", "exec sleep 1000")));
    assert_eq!(server.told().await, "ready");
    let sent = server.send("{}").await;
    assert_eq!(
        sent,
        Err(TransportError::NotSent(
            "MCP server 'test' does not read its stdin any more".to_owned()
        ))
    );
    assert_eq!(server.end().await.status, "closed its stdin");
    server.close().await;
}

#[tokio::test]
async fn a8_a_server_that_never_reads_blocks_only_those_who_wait_for_it() {
    let mut server = Server::sh(&says("ready", "exec sleep 1000"));
    assert_eq!(server.told().await, "ready");
    let much = "x".repeat(1024 * 1024);
    for _ in 0..3 {
        let sent = timeout(Duration::from_millis(50), server.send(&much)).await;
        assert!(sent.is_err(), "{sent:?}");
    }
    // Whoever still waits when it dies is told.
    let stdio = Arc::clone(&server.stdio);
    let waiting = tokio::spawn(async move { stdio.stdin.send(vec![b'y'; 10]).await });
    tokio::task::yield_now().await;
    kill_process(server.stdio.group.leader(), Signal::KILL).unwrap();
    assert_eq!(server.end().await.status, "signal 9 (killed)");
    let told = timeout(HANG, waiting).await.unwrap().unwrap();
    assert!(matches!(told, Err(TransportError::NotSent(_))), "{told:?}");
    server.close().await;
}

#[tokio::test]
async fn a_sender_that_nobody_polls_does_not_keep_a_server_alive() {
    let mut server = Server::sh(&says("ready", "exec sleep 1000"));
    assert_eq!(server.told().await, "ready");
    let much = "x".repeat(1024 * 1024);
    let mut held = Box::pin(server.send(&much));
    assert!(timeout(Duration::from_millis(50), &mut held).await.is_err());
    timeout(HANG, server.stdio.close()).await.unwrap();
    let told = held.await;
    assert!(
        matches!(told, Err(TransportError::Interrupted(_))),
        "{told:?}"
    );
    assert!(matches!(
        server.send("{}").await,
        Err(TransportError::NotSent(_))
    ));
    assert_eq!(server.end().await.status, "signal 15 (terminated)");
    server.close().await;
}

#[tokio::test]
async fn a_sender_that_gives_up_half_way_leaves_the_stream_whole() {
    // Reads nothing until a file appears, then everything.
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "until test -e '{}'; do sleep 0.01; done; exec cat",
        go.display()
    );
    let mut server = Server::sh(&script);
    let half = format!(
        r#"{{"jsonrpc":"2.0","method":"half","params":["{}"]}}"#,
        "x".repeat(200_000)
    );
    let sent = timeout(Duration::from_millis(50), server.send(&half)).await;
    assert!(sent.is_err());
    let never = timeout(Duration::from_millis(50), server.send(&note("never"))).await;
    assert!(never.is_err());
    std::fs::write(&go, "").unwrap();
    server.send(&note("next")).await.unwrap();
    assert_eq!(server.told().await, "half");
    assert_eq!(server.told().await, "next");
    server.close().await;
}

#[tokio::test]
async fn messages_of_many_senders_are_not_mixed() {
    let mut server = Server::sh("exec cat");
    let send = |number: usize| {
        let stdio = Arc::clone(&server.stdio);
        let filler = "x".repeat(number * 1000);
        let text =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m{number}\",\"params\":[\"{filler}\"]}}\n");
        tokio::spawn(async move { stdio.stdin.send(text.into_bytes()).await })
    };
    let senders: Vec<_> = (0..100).map(send).collect();
    let mut told = BTreeSet::new();
    for _ in 0..100 {
        told.insert(server.told().await);
    }
    assert_eq!(told.len(), 100);
    for sender in senders {
        sender.await.unwrap().unwrap();
    }
    assert_eq!(server.diagnostics.polluted_lines(), 0);
    server.close().await;
}

#[tokio::test]
async fn a4_a_server_that_will_not_end_is_killed_with_its_grandchildren() {
    let stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done";
    let script = format!("sh -c \"{stubborn}\" & {}", says("ready", stubborn));
    let mut server = Server::sh(&script);
    assert_eq!(server.told().await, "ready");
    let (mut first, second) = (server.stdio.close(), server.stdio.close());
    // Whoever gives up waiting does not stop the stopping.
    assert!(
        timeout(Duration::from_millis(10), &mut first)
            .await
            .is_err()
    );
    drop(first);
    timeout(HANG, second).await.unwrap();
    assert_eq!(server.end().await.status, "signal 9 (killed)");
    server.close().await;
}

#[tokio::test]
async fn a4_grandchildren_that_outlive_an_orderly_server_are_ended() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 >/dev/null 2>&1 &"] {
        let mut server = Server::sh(&format!("{hold} {}", says("ready", "exec cat")));
        assert_eq!(server.told().await, "ready");
        assert!(server.stdio.group.lives());
        server.close().await;
    }
}

#[test]
fn a_dropped_server_is_killed_without_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(async {
        let mut server = Server::sh(&says("ready", "setsid sleep 1000 & exec sleep 1000"));
        assert_eq!(server.told().await, "ready");
        server
    });
    let group = Arc::clone(&server.stdio.group);
    runtime.shutdown_background();
    server.events.close();
    assert!(group.lives());
    drop(server);
    let begun = Instant::now();
    while group.lives() {
        assert!(begun.elapsed() < HANG, "processes are left");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a9_a_server_has_the_environment_it_was_given_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = format!(
        "env > '{0}'; pwd > '{0}.cwd'; {1}",
        seen.display(),
        says("ready", "exec cat")
    );
    let program = Program {
        env: [("GIVEN".to_owned(), "x".to_owned())].into(),
        cwd: Some(folder.path().to_owned()),
        ..sh(&script)
    };
    let expected = environment::environment(&program, std::env::vars_os());
    let mut server = Server::start(&program, |_| {});
    assert_eq!(server.told().await, "ready");
    let read = |end: &str| std::fs::read_to_string(format!("{}{end}", seen.display())).unwrap();
    let names: BTreeSet<String> = read("")
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()))
        .collect();
    let mut expected: BTreeSet<String> = expected
        .keys()
        .map(|name| name.display().to_string())
        .filter(|name| name != "PWD")
        .collect();
    expected.insert(processes::MARKER.to_owned());
    assert_eq!(names, expected);
    assert!(expected.contains("GIVEN") && !expected.contains("CARGO_PKG_NAME"));
    assert_eq!(read(".cwd").trim(), folder.path().display().to_string());
    server.close().await;
}

#[tokio::test]
async fn a9_a_server_has_three_open_files() {
    let other = Server::sh("exec cat");
    let program = Program {
        command: "cat".to_owned(),
        ..Program::default()
    };
    let mut server = Server::start(&program, |_| {});
    server.send(&note("ready")).await.unwrap();
    assert_eq!(server.told().await, "ready");
    let leader = server.stdio.group.leader();
    let files = std::fs::read_dir(format!("/proc/{leader}/fd")).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["0", "1", "2"].map(Into::into).into());
    server.close().await;
    other.close().await;
}

#[tokio::test]
async fn a9_a_server_that_takes_too_much_memory_is_killed() {
    let eats = says(
        "ready",
        "x=$(head -c 60000000 /dev/zero | tr '\\0' x); while :; do sleep 1; done",
    );
    let mut server = Server::start(&sh(&eats), |settings| {
        settings.max_memory = Some(30 * 1024 * 1024);
    });
    assert_eq!(server.told().await, "ready");
    assert_eq!(server.end().await.status, "killed: memory limit (30 MiB)");
    server.close().await;
}

#[tokio::test]
async fn a1_a_flood_on_stderr_delays_nothing() {
    for flood in [
        "head -c 100000000 /dev/zero >&2",
        "yes 'some line' | head -c 100000000 >&2",
    ] {
        let mut server = Server::sh(&format!(
            "{flood}; echo end >&2; {}",
            says("ready", "exec cat")
        ));
        assert_eq!(server.told().await, "ready", "{flood}");
        timeout(HANG, server.stdio.close()).await.unwrap();
        let end = server.end().await;
        assert!(
            end.stderr.last().unwrap().ends_with("end") || flood.contains("zero"),
            "{end:?}"
        );
        server.close().await;
    }
}

#[tokio::test]
async fn b2_a_gigabyte_without_an_end_is_read_in_bounded_memory() {
    let script = format!(
        "printf '{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"'; head -c 200000000 /dev/zero; echo; {}",
        says("ready", "exec cat")
    );
    let mut server = Server::sh(&script);
    assert!(matches!(
        server.next().await,
        Event::Lost(Some(5), Lost::TooLarge { .. })
    ));
    assert_eq!(server.told().await, "ready");
    server.close().await;
}

#[tokio::test]
async fn a6_what_cannot_be_started_leaves_nothing() {
    let (sender, _events) = mpsc::unbounded_channel();
    let shared = Shared {
        guard: Guard::none(),
        max_message: MAX_MESSAGE,
    };
    let program = Program {
        command: "no-such-command".to_owned(),
        env: [("PATH".to_owned(), "/nowhere".to_owned())].into(),
        ..Program::default()
    };
    let settings = ServerSettings::new("test", Connection::Stdio(program.clone()));
    let diagnostics = Diagnostics::new("test", Redactor::default());
    let inbox = Arc::new(Channel(sender));
    let started = Stdio::start(&settings, &program, &shared, diagnostics, inbox);
    assert_eq!(
        started.err().unwrap().to_string(),
        "command 'no-such-command' was not found on the PATH (/nowhere): install it, or give its full path as 'command'"
    );
}
