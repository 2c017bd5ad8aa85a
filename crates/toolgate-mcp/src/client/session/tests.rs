use serde_json::json;
use toolgate_core::{FunctionTool, Redactor, ToolCall, ToolError, ToolExecutor, ToolManager};

use super::*;
use crate::client::diagnostics::ServerDiagnostics;
use crate::client::message::{OutgoingMessage, RpcError, RpcMessage};
use crate::client::subscriptions::ResourceSubscriptions;
use crate::client::transport::{TransportError, UnreadableAnswer};
use futures::future::BoxFuture;

mod logging;
mod own_tasks;

/// A transport that records what is sent.
#[derive(Default)]
pub(super) struct RecordingTransport {
    closed: std::sync::atomic::AtomicBool,
    sent: Mutex<Vec<Value>>,
    forgotten: Mutex<Vec<u64>>,
    broken: bool,
}

impl RecordingTransport {
    pub(super) fn sent(&self) -> Vec<Value> {
        self.sent.lock().clone()
    }
}

impl Transport for RecordingTransport {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<(), TransportError>> {
        assert_eq!(message.body.last(), Some(&b'\n'));
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        self.sent.lock().push(body);
        let answer = match self.broken {
            true => Err(TransportError::NotSent("the pipe is closed".into())),
            false => Ok(()),
        };
        Box::pin(async { answer })
    }
    fn drop_request(&self, id: u64) {
        self.forgotten.lock().push(id);
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.store(true, Ordering::Relaxed);
        Box::pin(async {})
    }
}

type Connected = (
    Arc<ClientSession>,
    Arc<RecordingTransport>,
    Arc<dyn TransportInbox>,
);

pub(super) fn connected(broken: bool) -> Connected {
    connected_with(broken, Redactor::default())
}

fn connected_with(broken: bool, redactor: Redactor) -> Connected {
    let session = ClientSession::new(
        ServerDiagnostics::new("house", redactor),
        Arc::default(),
        ResourceSubscriptions::new(),
    );
    let recorder = Arc::new(RecordingTransport {
        broken,
        ..RecordingTransport::default()
    });
    session.set_transport(Arc::clone(&recorder) as Arc<dyn Transport>);
    let inbox = session.inbox();
    (session, recorder, inbox)
}

fn ask(session: &Arc<ClientSession>) -> tokio::task::JoinHandle<Result<Value, SessionError>> {
    let session = Arc::clone(session);
    tokio::spawn(async move {
        session
            .request(SessionRequest::new("tools/list", json!({})))
            .await
    })
}

/// Lets all ready tasks run.
pub(super) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub(super) fn response(id: impl Into<Value>, result: Value) -> RpcMessage {
    RpcMessage::Response {
        id: id.into(),
        answer: Ok(result),
    }
}

#[tokio::test]
async fn responses_reach_their_requests_in_any_order() {
    let (session, recorder, inbox) = connected(false);
    let (first, second) = (ask(&session), ask(&session));
    settle().await;
    assert_eq!(
        recorder.sent()[0],
        json!({ "jsonrpc": "2.0", "id": FIRST_ID, "method": "tools/list", "params": {} })
    );
    let text = FIRST_ID.to_string();
    for stray in [json!(text), json!(null), json!(99), json!(-1), json!(1.5)] {
        inbox.on_message(response(stray, json!("wrong")), None);
    }
    inbox.on_message(response(FIRST_ID + 1, json!("two")), None);
    inbox.on_message(response(FIRST_ID + 1, json!("two again")), None);
    inbox.on_message(
        RpcMessage::Response {
            id: json!(FIRST_ID),
            answer: Err(RpcError::new(-1, "no")),
        },
        None,
    );
    assert_eq!(second.await.unwrap(), Ok(json!("two")));
    assert_eq!(
        first.await.unwrap(),
        Err(SessionError::Rpc(RpcError::new(-1, "no")))
    );
    assert_eq!(
        recorder.sent().len(),
        2,
        "nothing is sent back because of stray answers"
    );
}

#[tokio::test]
async fn a_dropped_request_is_cancelled_and_its_late_answer_is_discarded() {
    let (session, recorder, inbox) = connected(false);
    let dropped = ask(&session);
    settle().await;
    dropped.abort();
    settle().await;
    let cancelled = &recorder.sent()[1];
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], FIRST_ID);
    assert_eq!(*recorder.forgotten.lock(), [FIRST_ID]);
    let next = ask(&session);
    settle().await;
    inbox.on_message(response(FIRST_ID, json!("late")), None);
    inbox.on_message(response(FIRST_ID + 1, json!("in time")), None);
    assert_eq!(next.await.unwrap(), Ok(json!("in time")));
}

#[tokio::test]
async fn initialize_is_never_cancelled() {
    let (session, recorder, _inbox) = connected(false);
    let greeting = Arc::clone(&session);
    let task = tokio::spawn(async move {
        greeting
            .request(SessionRequest::new("initialize", json!({})))
            .await
    });
    settle().await;
    task.abort();
    settle().await;
    assert_eq!(recorder.sent().len(), 1);
}

#[tokio::test]
async fn the_end_fails_every_open_request_and_all_later_ones() {
    let (session, recorder, inbox) = connected(false);
    let open = [ask(&session), ask(&session)];
    settle().await;
    let end = SessionEnd {
        status: "exit status 3".into(),
        stderr: vec!["boom".to_owned()],
    };
    inbox.on_closed(end.clone());
    for request in open {
        assert_eq!(
            request.await.unwrap(),
            Err(SessionError::Stopped(end.clone()))
        );
    }
    assert_eq!(session.ended().await, end);
    assert!(matches!(
        ask(&session).await.unwrap(),
        Err(SessionError::NotSent(_))
    ));
    assert_eq!(recorder.sent().len(), 2);
}

#[tokio::test]
async fn unsent_requests_are_distinguished() {
    let (session, _recorder, _inbox) = connected(true);
    let failure = ask(&session).await.unwrap().unwrap_err();
    assert_eq!(failure, SessionError::NotSent("the pipe is closed".into()));
}

#[tokio::test]
async fn a_lost_answer_fails_its_request_at_once() {
    let (session, _recorder, inbox) = connected(false);
    let lost = UnreadableAnswer::TooLarge { bytes: 9, limit: 8 };
    let (first, second) = (ask(&session), ask(&session));
    settle().await;
    inbox.on_unreadable(None, lost.clone()); // Nobody's: two are open.
    inbox.on_unreadable(Some(FIRST_ID + 1), lost.clone());
    assert_eq!(
        second.await.unwrap(),
        Err(SessionError::Unreadable(lost.clone()))
    );
    inbox.on_unreadable(None, lost.clone()); // The only one that is left.
    assert_eq!(first.await.unwrap(), Err(SessionError::Unreadable(lost)));
}

#[tokio::test]
async fn server_requests_are_answered_with_their_id() {
    let (session, recorder, inbox) = connected(false);
    for (id, method) in [
        (json!("a-1"), "ping"),
        (json!(0), "sampling/createMessage"),
        (json!(1), "nonsense"),
    ] {
        inbox.on_message(
            RpcMessage::Request {
                id,
                method: method.to_owned(),
                params: Value::Null,
            },
            None,
        );
    }
    settle().await;
    let sent = recorder.sent();
    assert_eq!(
        sent[0],
        json!({ "jsonrpc": "2.0", "id": "a-1", "result": {} })
    );
    assert_eq!(
        (&sent[1]["id"], &sent[1]["error"]["code"]),
        (&json!(0), &json!(-1))
    );
    assert_eq!(
        (&sent[2]["id"], &sent[2]["error"]["code"]),
        (&json!(1), &json!(-32601))
    );
    drop(session);
}

#[tokio::test]
async fn server_requests_are_bounded() {
    struct SilentPerson;
    impl super::super::questions::ElicitationHandler for SilentPerson {
        fn elicit<'a>(
            &'a self,
            _: &'a super::super::questions::Elicitation,
        ) -> BoxFuture<'a, super::super::questions::ElicitationAnswer> {
            Box::pin(std::future::pending())
        }
    }
    let questions = ServerQuestions {
        elicitation_handler: Some(Arc::new(SilentPerson)),
        ..ServerQuestions::default()
    };
    let session = ClientSession::new(
        ServerDiagnostics::new("house", Redactor::default()),
        Arc::new(questions),
        ResourceSubscriptions::new(),
    );
    let recorder = Arc::new(RecordingTransport::default());
    session.set_transport(Arc::clone(&recorder) as Arc<dyn Transport>);
    for id in 0..100 {
        let method = "elicitation/create".to_owned();
        session.inbox().on_message(
            RpcMessage::Request {
                id: json!(id),
                method,
                params: json!({}),
            },
            None,
        );
    }
    settle().await;
    assert_eq!(recorder.sent().len(), 0, "the rest is dropped");
    assert_eq!(session.open_questions.available_permits(), 0);
}

/// Progress resets the idle limit and reaches listeners; a call without progress times out.
#[tokio::test(start_paused = true)]
async fn progress_keeps_a_call_alive_and_changes_of_tools_are_heard() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    let (session, _recorder, inbox) = connected(false);
    let manager = Arc::new(ToolManager::new());
    let asking = Arc::clone(&session);
    let tool = FunctionTool::new("slow", "Slow", move |_: Nothing, context: CallContext| {
        let session = Arc::clone(&asking);
        async move {
            let request = SessionRequest {
                call: Some(&context),
                ..SessionRequest::new("tools/call", json!({ "name": "slow" }))
            };
            session
                .request(request)
                .await
                .map_err(|_| ToolError::failed("lost"))
        }
    });
    manager.add(tool.unwrap());
    let executor = ToolExecutor::new(manager);
    let call =
        tokio::spawn(async move { executor.execute(ToolCall::new("slow", json!({}))).await });
    for step in 1..=3 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        inbox.on_message(
            RpcMessage::Notification {
                method: "notifications/progress".to_owned(),
                params: json!({ "progressToken": FIRST_ID, "progress": step }),
            },
            None,
        );
    }
    inbox.on_message(response(FIRST_ID, json!("done")), None);
    assert_eq!(call.await.unwrap().to_envelope()["result"], "done");

    inbox.on_message(
        RpcMessage::Notification {
            method: "notifications/tools/list_changed".to_owned(),
            params: Value::Null,
        },
        None,
    );
    session.lists_changed().await;
}

/// After three silent timeouts in a row, the server is pinged and then closed.
#[tokio::test(start_paused = true)]
async fn a3_a_server_that_is_stuck_is_ended_and_one_that_is_busy_is_not() {
    for (answers_pings, closed) in [(true, false), (false, true)] {
        let (session, recorder, inbox) = connected(false);
        for _ in 0..MAX_UNANSWERED_IN_A_ROW {
            assert!(!recorder.closed.load(Ordering::Relaxed));
            let request = session.request(SessionRequest::new("tools/call", json!({})));
            drop(tokio::time::timeout(Duration::from_secs(30), request).await);
            settle().await;
        }
        let ping = recorder.sent().pop().unwrap();
        assert_eq!(ping["method"], "ping");
        if answers_pings {
            inbox.on_message(response(ping["id"].clone(), json!({})), None);
        }
        tokio::time::sleep(PING_TIMEOUT * 2).await;
        assert_eq!(recorder.closed.load(Ordering::Relaxed), closed);
    }
}
