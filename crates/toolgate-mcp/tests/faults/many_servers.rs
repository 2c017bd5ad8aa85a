//! I4: a hundred servers, half of which are broken or slow.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::fault_test::FaultTestBuilder;

#[tokio::test]
async fn a_hundred_servers_half_of_them_broken_harm_no_healthy_one() {
    let bad: [&[&str]; 5] = [
        &["failing=1000:@/starts"],
        &["mute"],
        &["after:initialize=exit:1"],
        &["stdout=not a message\\n", "mute"],
        &["before=half ", "end="],
    ];
    let mut plan = FaultTestBuilder::new();
    for n in 0..50 {
        plan = plan
            .settings(&format!("bad{n}"), bad[n % bad.len()], |bad| {
                bad.start_timeout = Some(Duration::from_millis(1000));
            })
            .server(&format!("good{n}"), &[]);
    }
    let started = Instant::now();
    let test = plan.start();
    let healthy = |test: &crate::fault_test::FaultTest| {
        (0..50).all(|n| test.manager.find(&format!("good{n}__echo")).is_some())
    };
    test.wait_until("the healthy ones are up", healthy).await;
    assert!(
        started.elapsed() < Duration::from_secs(150),
        "{:?}",
        started.elapsed()
    );
    let calls = (0..50).map(|n| {
        let test = &test;
        async move {
            let server = format!("good{n}");
            let envelope = test
                .call_on(&server, "echo", json!({ "text": server }))
                .await;
            assert_eq!(envelope["result"], server, "{envelope}");
        }
    });
    futures::future::join_all(calls).await;
    test.finish().await;
}
