//! Log messages of servers reach the caller they are about, and nobody else.

use super::*;
use crate::SoleClientLog;
use toolgate_core::{LogHandler, LogLevel, LogMessage};

struct TestLog {
    caller: u64,
    level: Option<LogLevel>,
    taken: Mutex<Vec<LogMessage>>,
}

impl TestLog {
    fn new(caller: u64, level: impl Into<Option<LogLevel>>) -> Arc<Self> {
        Arc::new(Self {
            caller,
            level: level.into(),
            taken: Mutex::default(),
        })
    }

    fn take(&self) -> Vec<Value> {
        let taken = std::mem::take(&mut *self.taken.lock());
        taken.into_iter().map(|message| message.data).collect()
    }
}

impl LogHandler for TestLog {
    fn level(&self) -> Option<LogLevel> {
        self.level
    }

    fn caller(&self) -> u64 {
        self.caller
    }

    fn log(&self, message: LogMessage) {
        self.taken.lock().push(message);
    }
}

/// Starts calls that never end, one for each log; `None` is a call whose caller takes no messages.
async fn start_calls(session: &Arc<ClientSession>, logs: &[Option<&Arc<TestLog>>]) {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    let manager = Arc::new(ToolManager::new());
    let asking = Arc::clone(session);
    let tool = FunctionTool::new("slow", "Slow", move |_: Nothing, context: CallContext| {
        let session = Arc::clone(&asking);
        async move {
            session.prepare_logging(&context).await;
            let request = SessionRequest {
                call: Some(&context),
                ..SessionRequest::new("tools/call", json!({ "name": "slow" }))
            };
            let answer = session.request(request).await;
            answer.map_err(|_| ToolError::failed("lost"))
        }
    });
    manager.add(tool.unwrap());
    let executor = ToolExecutor::new(manager);
    for log in logs {
        let mut call = ToolCall::new("slow", json!({}));
        if let Some(log) = log {
            call = call.on_log(Arc::clone(log) as _);
        }
        let executor = executor.clone();
        tokio::spawn(async move { executor.execute(call).await });
        settle().await;
    }
}

fn say(inbox: &Arc<dyn TransportInbox>, level: &str, data: impl Into<Value>, request: Option<u64>) {
    let data: Value = data.into();
    let message = RpcMessage::Notification {
        method: "notifications/message".to_owned(),
        params: json!({ "level": level, "data": data }),
    };
    inbox.on_message(message, request);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_request_goes_to_the_only_caller() {
    let (session, _recorder, inbox) = connected(false);
    say(&inbox, "error", json!("nobody calls"), None);
    let mine = TestLog::new(1, LogLevel::Warning);
    let mine_too = TestLog::new(1, LogLevel::Warning);
    start_calls(&session, &[Some(&mine), Some(&mine_too)]).await;
    say(&inbox, "error", json!({ "a": 1 }), None);
    say(&inbox, "info", json!("not wanted"), None);
    say(&inbox, "loud", json!("no level"), None);
    let taken = [mine.take(), mine_too.take()].concat();
    assert_eq!(taken, [json!({ "a": 1 })], "one caller gets it once");

    let stranger = TestLog::new(2, LogLevel::Debug);
    start_calls(&session, &[Some(&stranger)]).await;
    say(&inbox, "error", json!("whose?"), None);
    let taken = [mine.take(), mine_too.take(), stranger.take()].concat();
    assert!(taken.is_empty(), "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_log_makes_the_receiver_ambiguous() {
    let (session, _recorder, inbox) = connected(false);
    let mine = TestLog::new(1, LogLevel::Debug);
    start_calls(&session, &[Some(&mine), None]).await;
    say(&inbox, "error", json!("whose?"), None);
    assert!(mine.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_on_the_stream_of_a_request_goes_to_its_caller() {
    let (session, _recorder, inbox) = connected(false);
    let (first, second) = (
        TestLog::new(1, LogLevel::Debug),
        TestLog::new(2, LogLevel::Debug),
    );
    let silent = TestLog::new(3, None);
    start_calls(&session, &[Some(&first), Some(&second), Some(&silent)]).await;
    for number in 0..3 {
        say(&inbox, "info", json!(number), Some(FIRST_ID + number));
    }
    say(&inbox, "info", json!("too late"), Some(FIRST_ID + 9));
    assert_eq!(first.take(), [json!(0)]);
    assert_eq!(second.take(), [json!(1)]);
    assert!(silent.take().is_empty());
    let long = "x".repeat(1 << 20);
    say(&inbox, "info", json!(long), Some(FIRST_ID));
    assert!(first.take()[0].to_string().len() < 70_000);
}

#[tokio::test(start_paused = true)]
async fn secrets_and_control_characters_are_removed() {
    let redactor = Redactor::new(["geheim-123".to_owned()]);
    let (session, _recorder, inbox) = connected_with(false, redactor);
    let log = TestLog::new(1, LogLevel::Debug);
    start_calls(&session, &[Some(&log)]).await;
    let message = RpcMessage::Notification {
        method: "notifications/message".to_owned(),
        params: json!({
            "level": "info", "logger": "of geheim-123\u{1b}[2J",
            "data": { "token": "x", "note": ["it is geheim-123"] },
        }),
    };
    inbox.on_message(message, None);
    let taken = std::mem::take(&mut *log.taken.lock());
    let shown = format!("{:?} {}", taken[0].logger, taken[0].data);
    assert!(
        !shown.contains("geheim") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    assert!(shown.contains("it is "), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn an_older_server_is_told_the_most_verbose_level_that_is_wanted() {
    for offers_logging in [true, false] {
        let (session, recorder, _inbox) = connected(false);
        if offers_logging {
            session.set_offer(&json!({ "capabilities": { "logging": {} } }));
        }
        let logs = [LogLevel::Warning, LogLevel::Debug, LogLevel::Error];
        let logs = logs.map(|level| TestLog::new(1, level));
        for log in &logs {
            start_calls(&session, &[Some(log)]).await;
            // It doesn't confirm the level, but the call still begins.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let sent = recorder.sent();
        let levels = sent
            .iter()
            .filter(|sent| sent["method"] == "logging/setLevel");
        let levels: Vec<&Value> = levels.map(|sent| &sent["params"]["level"]).collect();
        let expected: &[&str] = if offers_logging {
            &["warning", "debug"]
        } else {
            &[]
        };
        assert_eq!(levels, expected);
        let calls = sent.iter().filter(|sent| sent["method"] == "tools/call");
        assert_eq!(calls.count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_learns_the_level_from_each_request() {
    let (session, recorder, inbox) = connected(false);
    let meta = Map::from_iter([("x".to_owned(), json!(1))]);
    session.set_protocol(ProtocolEra::Modern, "2026-07-28", meta);
    let log = TestLog::new(1, LogLevel::Notice);
    start_calls(&session, &[Some(&log), None]).await;
    let sent = recorder.sent();
    let level = |at: usize| &sent[at]["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
    assert_eq!([level(0), level(1)], [&json!("notice"), &Value::Null]);
    // The other request asked for none, so it must be about the first.
    say(&inbox, "error", json!("mine"), None);
    assert_eq!(log.take(), [json!("mine")]);
}

/// A session in a process with one client, and the level that this client wants.
fn sole_client(
    session: &Arc<ClientSession>,
    log: &Arc<TestLog>,
) -> watch::Sender<Option<LogLevel>> {
    let level = watch::Sender::new(log.level);
    session.set_sole_client_log(SoleClientLog {
        handler: Arc::clone(log) as _,
        levels: level.subscribe(),
    });
    level
}

#[tokio::test(start_paused = true)]
async fn what_is_about_no_call_goes_to_the_only_client_of_the_process() {
    let (session, _recorder, inbox) = connected(false);
    let client = TestLog::new(1, LogLevel::Warning);
    let _level = sole_client(&session, &client);
    for (level, data, request) in [
        ("error", "by itself", None),
        ("error", "after its request", Some(FIRST_ID + 9)),
        ("info", "not wanted", None),
        ("loud", "no level", None),
    ] {
        say(&inbox, level, json!(data), request);
    }
    assert_eq!(client.take(), ["by itself", "after its request"]);
    // Every call is the client's own, so none of them makes the receiver ambiguous.
    let calls = [1, 2].map(|caller| TestLog::new(caller, LogLevel::Debug));
    start_calls(&session, &[Some(&calls[0]), None, Some(&calls[1])]).await;
    say(&inbox, "error", json!("of one of them"), None);
    say(&inbox, "error", json!("of the last"), Some(FIRST_ID + 2));
    say(
        &inbox,
        "error",
        json!("of the silent one"),
        Some(FIRST_ID + 1),
    );
    assert_eq!(client.take(), ["of one of them", "of the silent one"]);
    assert_eq!(calls[1].take(), ["of the last"]);
}

#[tokio::test(start_paused = true)]
async fn an_older_server_follows_the_level_of_the_only_client() {
    let (session, recorder, _inbox) = connected(false);
    assert!(
        session.follow_log_level().is_none(),
        "there is no such client"
    );
    session.set_offer(&json!({ "capabilities": { "logging": {} } }));
    let client = TestLog::new(1, None);
    let level = sole_client(&session, &client);
    let following = session.follow_log_level();
    settle().await;
    for wanted in [LogLevel::Warning, LogLevel::Debug, LogLevel::Error] {
        level.send_replace(Some(wanted));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let sent = recorder.sent();
    let asked = sent
        .iter()
        .filter(|sent| sent["method"] == "logging/setLevel");
    let levels: Vec<&Value> = asked.map(|sent| &sent["params"]["level"]).collect();
    // A quieter level is only a saving, since what isn't wanted is left out here anyway.
    assert_eq!(levels, ["warning", "debug"]);
    drop(following);
}
