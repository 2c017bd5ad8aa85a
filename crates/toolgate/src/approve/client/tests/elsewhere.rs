//! Who is asked when the client gives no answer.

use futures::future::{BoxFuture, pending, ready};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolgate_core::{Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver};

use super::*;
use crate::approve::client::{CLIENT_FIRST, ClientFirstApprover};

/// Stands for the dashboard.
#[derive(Clone)]
struct TestDashboard {
    // How long a person takes; `None` if none is there.
    answers_after: Option<Duration>,
    /// How it was asked, and how long after the call.
    asked: Arc<Mutex<Vec<(&'static str, Duration)>>>,
    began: Instant,
}

impl TestDashboard {
    fn new(answers_after: Option<u64>) -> Self {
        Self {
            answers_after: answers_after.map(Duration::from_secs),
            asked: Arc::default(),
            began: Instant::now(),
        }
    }

    fn record(&self, how: &'static str) {
        self.asked.lock().push((how, self.began.elapsed()));
    }

    fn asked(&self) -> Vec<(&'static str, u64)> {
        let asked = self.asked.lock();
        let asked = asked.iter().map(|(how, after)| (*how, after.as_secs()));
        asked.collect()
    }
}

impl Approver for TestDashboard {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.record("alone");
        match self.answers_after {
            Some(_) => self.grant(request),
            None => Box::pin(ready(Approval::Nobody)),
        }
    }

    fn ask_alongside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.record("alongside");
        self.grant(request)
    }
}

impl TestDashboard {
    fn grant<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            match self.answers_after {
                Some(after) => sleep(after).await,
                None => pending().await,
            }
            let by = ApprovalActor::new(ApprovalChannel::Browser);
            Approval::Granted(by)
        })
    }
}

fn door_with(dashboard: &TestDashboard, may_approve: bool) -> TestDoor {
    let approver = ClientFirstApprover {
        client: approver(),
        elsewhere: dashboard.clone(),
    };
    TestDoor::with_approver(approver, may_approve)
}

const HTTP: [ClientKind; 2] = [ClientKind::LegacyHttp, ClientKind::ModernHttp];

#[tokio::test(start_paused = true)]
async fn the_clients_answer_is_final() {
    for kind in HTTP {
        for (answer, expected) in [
            (ticked(), "granted by kitchen (client)"),
            (
                json!({ "action": "decline" }),
                "refused by kitchen (client)",
            ),
        ] {
            let dashboard = TestDashboard::new(Some(1));
            let door = door_with(&dashboard, true);
            let mut client = door.client(kind).await;
            let asked = client.call("unlock", json!({})).await;
            client.answer(&asked, answer).await;
            let (approval, _) = door.calls.wait_for_one().await;
            assert_eq!(approval.as_deref(), Some(expected), "{kind:?}");
            assert_eq!(dashboard.asked(), []);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dismissed_form_leads_to_the_dashboard() {
    for kind in HTTP {
        let dashboard = TestDashboard::new(Some(5));
        let door = door_with(&dashboard, true);
        let mut client = door.client(kind).await;
        let asked = client.call("unlock", json!({ "door": "front" })).await;
        let dismissed = json!({ "action": "cancel" });
        let done = client.answer(&asked, dismissed).await;
        assert_eq!(text_of(&done), "open", "{kind:?}");
        let (approval, _) = door.calls.wait_for_one().await;
        assert_eq!(approval.as_deref(), Some("granted by browser"));
        assert_eq!(dashboard.asked(), [("alone", 0)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_or_may_not_be_asked_is_answered_at_the_dashboard() {
    for kind in HTTP {
        for (may_approve, capabilities) in [
            (false, json!({ "elicitation": {} })),
            (true, json!({ "elicitation": { "url": {} } })),
            (true, json!({})),
        ] {
            let dashboard = TestDashboard::new(Some(5));
            let door = door_with(&dashboard, may_approve);
            let mut client = door.client_with(kind, capabilities).await;
            let done = client.call("unlock", json!({})).await;
            assert_eq!(text_of(&done), "open", "{kind:?}");
            assert_eq!(dashboard.asked(), [("alone", 0)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_both_are_asked_and_the_first_one_counts() {
    let first = CLIENT_FIRST.as_secs();
    for kind in HTTP {
        // At the dashboard somebody is faster.
        let dashboard = TestDashboard::new(Some(5));
        let door = door_with(&dashboard, true);
        let mut client = door.client(kind).await;
        let asked = client.call("unlock", json!({})).await;
        let (approval, _) = door.calls.wait_for_one().await;
        assert_eq!(approval.as_deref(), Some("granted by browser"));
        assert_eq!(dashboard.asked(), [("alongside", first)]);
        if !kind.is_modern() {
            let withdrawn = client.next().await;
            assert_eq!(withdrawn["method"], "notifications/cancelled");
            assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
        }
        // Whatever the client says now, the call has run.
        let done = client.answer(&asked, json!({ "action": "decline" })).await;
        assert_eq!(text_of(&done), "open", "{kind:?}");

        // Nobody is at the dashboard, and the client answers late.
        let dashboard = TestDashboard::new(None);
        let door = door_with(&dashboard, true);
        let mut client = door.client(kind).await;
        let asked: Value = client.call("unlock", json!({})).await;
        sleep(Duration::from_secs(60)).await;
        let done = client.answer(&asked, ticked()).await;
        assert_eq!(text_of(&done), "open", "{kind:?}");
        let (approval, _) = door.calls.wait_for_one().await;
        assert_eq!(approval.as_deref(), Some("granted by kitchen (client)"));
        assert_eq!(dashboard.asked(), [("alongside", first)]);
    }
}
