use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Fails this often before it delivers.
struct FlakyChannel {
    failures: usize,
    may_retry: bool,
    attempts: AtomicUsize,
}

impl NotificationChannel for FlakyChannel {
    fn describe(&self) -> String {
        "flaky".to_owned()
    }

    fn send<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let result = match attempt < self.failures {
            true => Err(DeliveryError {
                text: "no".to_owned(),
                may_retry: self.may_retry,
            }),
            false => Ok(()),
        };
        Box::pin(std::future::ready(result))
    }
}

fn flaky(failures: usize, may_retry: bool) -> Arc<FlakyChannel> {
    Arc::new(FlakyChannel {
        failures,
        may_retry,
        attempts: AtomicUsize::new(0),
    })
}

fn notification() -> Notification {
    Notification {
        event: "approval",
        id: "1".to_owned(),
        text: "Something waits.".to_owned(),
        tool: "lock".to_owned(),
        server: None,
        origin: "http".to_owned(),
        caller: None,
        arguments: None,
        question: None,
        asked_at: String::new(),
        expires_at: String::new(),
        link: String::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_delivery_is_tried_again_where_that_may_help() {
    for (failures, may_retry, attempts, is_delivered) in [
        (0, true, 1, true),
        (2, true, 3, true),
        (3, true, 3, false),
        (1, false, 1, false),
    ] {
        let channel = flaky(failures, may_retry);
        let notifier = Notifier::new(vec![channel.clone()], Redactor::default());
        assert_eq!(notifier.notify(&notification()).await, is_delivered);
        assert_eq!(channel.attempts.load(Ordering::Relaxed), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn one_channel_is_enough_and_a_flood_is_cut() {
    let (broken, works) = (flaky(usize::MAX, false), flaky(0, true));
    let notifier = Notifier::new(vec![broken, works.clone()], Redactor::default());
    for _ in 0..MAX_PER_MINUTE {
        assert!(notifier.notify(&notification()).await);
    }
    assert!(!notifier.notify(&notification()).await);
    assert_eq!(works.attempts.load(Ordering::Relaxed), MAX_PER_MINUTE);
    tokio::time::advance(MINUTE).await;
    assert!(notifier.notify(&notification()).await);
}
