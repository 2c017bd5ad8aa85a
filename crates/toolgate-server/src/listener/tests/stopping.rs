//! Stopping the gateway while calls run.

use futures::future::join_all;

use super::*;

async fn running_requests(served: &TestListener, arguments: &str, count: usize) -> Vec<TcpStream> {
    let mut calls = Vec::new();
    for _ in 0..count {
        let mut stream = served.connect().await;
        let call = call("nap", arguments).replace("HOST", &served.at.to_string());
        stream.write_all(call.as_bytes()).await.unwrap();
        calls.push(stream);
    }
    calls
}

async fn all(calls: &mut [TcpStream]) -> Vec<String> {
    join_all(calls.iter_mut().map(rest)).await
}

#[tokio::test]
async fn j1_running_calls_finish_and_new_ones_are_refused() {
    let served = TestListener::start(json!({})).await;
    let mut idle = served.connect().await;
    assert!(served.is_well().await);
    let mut calls = running_requests(&served, r#"{"ms":2000}"#, 100).await;
    // A request after all of them has been answered: so they have all arrived.
    assert!(served.is_well().await);
    served.stop.cancel();
    assert_eq!(rest(&mut idle).await, "", "an idle connection ends at once");
    assert!(TcpStream::connect(served.at).await.is_err());
    for answer in all(&mut calls).await {
        assert!(answer.contains(r#""success":true"#), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    served.ended().await;
}

#[tokio::test(start_paused = true)]
async fn j1_calls_that_do_not_finish_are_cancelled_after_five_seconds() {
    let served = TestListener::start(json!({})).await;
    let mut calls = running_requests(&served, r#"{"ms":25000}"#, 100).await;
    assert!(served.is_well().await);
    let started = Instant::now();
    served.stop.cancel();
    for answer in all(&mut calls).await {
        assert!(
            answer.contains(r#""success":false"#) && answer.contains(r#""tool_name":"nap""#),
            "{answer}"
        );
    }
    let took = started.elapsed();
    served.ended().await;
    assert!(
        took >= SHUTDOWN_GRACE && took <= SHUTDOWN_GRACE + RESPONSE_GRACE,
        "{took:?}"
    );
}
