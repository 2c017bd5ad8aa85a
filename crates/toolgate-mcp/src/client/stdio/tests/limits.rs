//! The environment and the limits of servers.

use std::collections::BTreeSet;

use super::*;

#[tokio::test]
async fn a9_a_server_has_the_environment_it_was_given_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = format!(
        "env > '{0}'; pwd > '{0}.cwd'; {1}",
        seen.display(),
        says("ready", "exec cat")
    );
    let program = ServerProgram {
        env: [("GIVEN".to_owned(), "x".to_owned())].into(),
        cwd: Some(folder.path().to_owned()),
        ..sh(&script)
    };
    let expected = environment::build(&program, std::env::vars_os());
    let mut server = TestStdioServer::start(&program, |_| {});
    assert_eq!(server.next_method().await, "ready");
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
    expected.extend([processes::MARKER, start_chain::VARIABLE].map(str::to_owned));
    assert_eq!(names, expected);
    assert!(expected.contains("GIVEN") && !expected.contains("CARGO_PKG_NAME"));
    assert_eq!(read(".cwd").trim(), folder.path().display().to_string());
    server.close().await;
}

#[tokio::test]
async fn a9_a_server_has_three_open_files() {
    let other = TestStdioServer::sh("exec cat");
    let program = ServerProgram {
        command: "cat".to_owned(),
        ..ServerProgram::default()
    };
    let mut server = TestStdioServer::start(&program, |_| {});
    server.send(&note("ready")).await.unwrap();
    assert_eq!(server.next_method().await, "ready");
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
    let mut server = TestStdioServer::start(&sh(&eats), |settings| {
        settings.max_memory = Some(30 * 1024 * 1024);
    });
    assert_eq!(server.next_method().await, "ready");
    assert_eq!(
        server.end().await.status.to_string(),
        "killed: memory limit (30 MiB)"
    );
    server.close().await;
}

#[tokio::test]
async fn a9_a_fork_bomb_is_killed_for_the_memory_of_all_its_processes() {
    let forks = says(
        "ready",
        "i=0; while [ $i -lt 1000 ]; do sleep 600 & i=$((i+1)); done; wait",
    );
    let mut server = TestStdioServer::start(&sh(&forks), |settings| {
        settings.max_memory = Some(100 * 1024 * 1024);
    });
    assert_eq!(server.next_method().await, "ready");
    assert_eq!(
        server.end().await.status.to_string(),
        "killed: memory limit (100 MiB)"
    );
    server.close().await;
}

#[tokio::test]
async fn a1_a_flood_on_stderr_delays_nothing() {
    for flood in [
        "head -c 100000000 /dev/zero >&2",
        "yes 'some line' | head -c 100000000 >&2",
    ] {
        let mut server = TestStdioServer::sh(&format!(
            "{flood}; echo end >&2; {}",
            says("ready", "exec cat")
        ));
        assert_eq!(server.next_method().await, "ready", "{flood}");
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
async fn b2_a_message_that_never_ends_fails_its_call_and_the_server_stays_usable() {
    let script = format!(
        "printf '{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"'; head -c 200000000 /dev/zero; echo; {}",
        says("ready", "exec cat")
    );
    let mut server = TestStdioServer::sh(&script);
    assert!(matches!(
        server.next().await,
        TransportEvent::Unreadable(Some(5), UnreadableAnswer::TooLarge { .. })
    ));
    assert_eq!(server.next_method().await, "ready");
    server.close().await;
}

#[tokio::test]
async fn a6_a_failed_start_leaves_nothing_behind() {
    let (sender, _events) = mpsc::unbounded_channel();
    let shared = StdioOptions {
        launcher: super::sandbox::SandboxLauncher::none(),
        chain: String::new(),
        watcher: ServerWatcher::none(),
        max_message: MAX_MESSAGE,
    };
    let program = ServerProgram {
        command: "no-such-command".to_owned(),
        env: [("PATH".to_owned(), "/nowhere".to_owned())].into(),
        ..ServerProgram::default()
    };
    let settings = ServerSettings::new("test", ServerConnection::Stdio(program.clone()));
    let diagnostics = ServerDiagnostics::new("test", Redactor::default());
    let inbox = Arc::new(ChannelInbox(sender));
    let started = StdioTransport::start(&settings, &program, &shared, diagnostics, inbox, false);
    assert_eq!(
        started.err().unwrap().to_string(),
        "command 'no-such-command' was not found on the PATH: install it, or give its full path as 'command' (the PATH is /nowhere)"
    );
}
