use fakewyoming::{FakeAsr, FakeTts, ServiceFault};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);
/// Stands for a peer that hangs forever.
const GUARD: Duration = Duration::from_secs(100);

fn address(text: &str) -> WyomingAddress {
    text.parse().unwrap()
}

/// A connection in memory, and the other end of it.
fn pair() -> (WyomingConnection, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (read, write) = tokio::io::split(ours);
    (
        WyomingConnection::from_streams(read, write, "tcp://peer:1"),
        theirs,
    )
}

fn synthesize(text: &str) -> WyomingEvent {
    WyomingEvent::Synthesize {
        text: text.to_owned(),
        voice: None,
        text_format: None,
    }
}

/// What a client sees of a speech service with this fault.
async fn says(fault: ServiceFault) -> Result<usize, EngineError> {
    let tts = FakeTts::start().await;
    tts.inject_fault(fault);
    let mut connection = WyomingConnection::connect(&address(&tts.address()), PATIENCE).await?;
    connection.send(&synthesize("hello")).await?;
    let mut heard = 0;
    loop {
        match connection.receive_answer().await? {
            WyomingEvent::AudioChunk { bytes, .. } => heard += bytes.len(),
            WyomingEvent::AudioStop { .. } => return Ok(heard),
            _ => {}
        }
    }
}

#[tokio::test]
async fn events_go_both_ways_over_tcp() {
    let whole = 2 * FakeTts::samples_of("hello").len();
    assert_eq!(says(ServiceFault::None).await, Ok(whole));
}

#[tokio::test]
async fn every_fault_of_a_service_is_an_error_that_names_it() {
    for (fault, problem) in [
        (
            ServiceFault::Close,
            "closed the connection before answering",
        ),
        (ServiceFault::CloseAfter(2), "closed the connection"),
        (
            ServiceFault::Garbage,
            "violates the Wyoming protocol: a header line cannot be used",
        ),
        (
            ServiceFault::Giant,
            "'audio-chunk' has 1099511627776 bytes of payload",
        ),
        (
            ServiceFault::Endless,
            "a header line is longer than 65536 bytes",
        ),
        (
            ServiceFault::Refuse("no\u{1b}voice".to_owned()),
            "says: no\\u{1b}voice",
        ),
    ] {
        let answer = tokio::time::timeout(GUARD, says(fault.clone())).await;
        let error = answer.unwrap().unwrap_err().to_string();
        let named = error.starts_with("tcp://127.0.0.1:");
        assert!(named && error.contains(problem), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn refused_connection_is_reported_at_once() {
    let mut asr = FakeAsr::start([]).await;
    let gone = address(&asr.address());
    asr.kill().await;
    let error = WyomingConnection::connect(&gone, PATIENCE)
        .await
        .err()
        .unwrap();
    assert!(matches!(&error, EngineError::Unreachable { at, .. } if *at == gone.to_string()));
    let missing = address("unix:///nowhere/at/all.sock");
    let error = WyomingConnection::connect(&missing, PATIENCE)
        .await
        .err()
        .unwrap();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn describe_succeeds_or_fails_in_time() {
    let mut tts = FakeTts::start().await;
    let at = address(&tts.address());
    let info = describe(&at, PATIENCE).await.unwrap();
    assert_eq!(
        info.tts[0].models().next().unwrap().artifact.name,
        "fake-voice"
    );
    tts.kill().await;
    describe(&at, PATIENCE).await.unwrap_err();
    tts.restart().await;
    assert_eq!(describe(&at, PATIENCE).await, Ok(info));

    // One that takes the connection and is silent.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = address(&format!("tcp://{}", silent.local_addr().unwrap()));
    let after = Duration::from_millis(50);
    let expected = EngineError::TimedOut {
        at: at.to_string(),
        after,
    };
    assert_eq!(describe(&at, after).await, Err(expected));
}

#[tokio::test(start_paused = true)]
async fn incomplete_event_times_out_but_silence_does_not() {
    for frame_started in [
        "{\"type\"",
        "{\"type\": \"a\", \"payload_length\": 9}\n1234",
    ] {
        let (mut connection, mut peer) = pair();
        let day = Duration::from_secs(86_400);
        timeout(day, connection.receive()).await.unwrap_err();
        peer.write_all(frame_started.as_bytes()).await.unwrap();
        let before = Instant::now();
        let error = connection.receive().await.unwrap_err();
        assert!(matches!(error, EngineError::TimedOut { .. }), "{error}");
        assert_eq!(before.elapsed(), ARRIVAL_TIMEOUT);
    }
}

#[tokio::test(start_paused = true)]
async fn dripping_event_times_out_even_across_calls() {
    let (mut connection, mut peer) = pair();
    let dripping = tokio::spawn(async move {
        while peer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    });
    let before = Instant::now();
    let error = loop {
        // As in a `select!` loop, the call is dropped again and again.
        match timeout(Duration::from_secs(1), connection.receive()).await {
            Ok(received) => break received.unwrap_err(),
            Err(_) => assert!(before.elapsed() < 2 * ARRIVAL_TIMEOUT),
        }
    };
    assert!(matches!(error, EngineError::TimedOut { .. }), "{error}");
    drop(connection);
    dripping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn receive_is_cancel_safe() {
    let (mut connection, mut peer) = pair();
    let sending = tokio::spawn(async move {
        for byte in b"{\"type\": \"ping\", \"data_length\": 14}\n{\"text\": \"hi\"}" {
            peer.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        peer
    });
    let event = loop {
        if let Ok(event) = timeout(Duration::from_millis(30), connection.receive()).await {
            break event.unwrap();
        }
    };
    let text = Some("hi".to_owned());
    assert_eq!(event, Some(WyomingEvent::Ping { text }));
    drop(sending.await.unwrap());
    assert_eq!(connection.receive().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn peer_that_does_not_read_times_out() {
    let (mut connection, _peer) = pair();
    let before = Instant::now();
    let error = loop {
        if let Err(error) = connection.send(&synthesize("hello")).await {
            break error;
        }
    };
    let at = "tcp://peer:1".to_owned();
    assert_eq!(
        error,
        EngineError::TimedOut {
            at,
            after: SEND_TIMEOUT
        }
    );
    assert_eq!(before.elapsed(), SEND_TIMEOUT);
}

#[tokio::test]
async fn disconnect_within_an_event_is_an_error() {
    for (sent, expected) in [
        (&b"{\"type\": \"played\"}\n"[..], Ok(None)),
        (
            b"{\"type\": \"played\"}\n{",
            Err(EngineError::Closed {
                at: "tcp://peer:1".to_owned(),
            }),
        ),
    ] {
        let (mut connection, mut peer) = pair();
        peer.write_all(sent).await.unwrap();
        drop(peer);
        assert_eq!(connection.receive().await, Ok(Some(WyomingEvent::Played)));
        assert_eq!(connection.receive().await, expected);
    }
}

#[tokio::test]
async fn oversized_events_are_not_sent() {
    let (mut connection, mut peer) = pair();
    let error = connection.send(&synthesize(&"x".repeat(2 << 20))).await;
    assert!(matches!(error, Err(EngineError::Protocol { .. })));
    drop(connection);
    let mut nothing = Vec::new();
    peer.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty());
}

#[tokio::test]
async fn sending_and_receiving_are_independent() {
    let asr = FakeAsr::start(["one"]).await;
    let connection = WyomingConnection::connect(&address(&asr.address()), PATIENCE).await;
    let (mut sender, mut receiver) = connection.unwrap().into_split();
    let sending = tokio::spawn(async move {
        let format = crate::audio::AudioFormat::CAPTURE;
        let timestamp = None;
        sender
            .send(&WyomingEvent::AudioStart { format, timestamp })
            .await?;
        sender.send(&WyomingEvent::AudioStop { timestamp }).await?;
        Ok::<_, EngineError>(sender)
    });
    let answer = receiver.receive_answer().await.unwrap();
    assert!(matches!(answer, WyomingEvent::Transcript { text, .. } if text == "one"));
    sending.await.unwrap().unwrap();
    assert!(asr.complaints().is_empty());
}
