//! Speech services that work or fail.

use fakewyoming::{FakeTts, ServiceFault};
use futures::TryStreamExt;

use super::*;

async fn all(engine: &WyomingTts, text: &str) -> Result<Vec<u8>, EngineError> {
    let stream = engine.synthesize(text).await?;
    let chunks: Vec<Bytes> = stream.chunks.try_collect().await?;
    Ok(chunks.concat())
}

fn bytes_of(text: &str) -> Vec<u8> {
    FakeTts::samples_of(text)
        .into_iter()
        .flat_map(i16::to_le_bytes)
        .collect()
}

#[tokio::test]
async fn service_speaks_with_the_configured_voice() {
    let fake = FakeTts::start().await;
    for voice in ["", "en_US-amy"] {
        let engine = WyomingTts::new(fake.address().parse().unwrap(), voice);
        assert_eq!(
            all(&engine, "It is on.").await.unwrap(),
            bytes_of("It is on.")
        );
    }
    let asked = fake.received_of_kind("synthesize");
    assert!(asked[0].data["voice"].is_null());
    assert_eq!(asked[1].data["voice"]["name"], "en_US-amy");
    assert_eq!(fake.complaints(), [""; 0]);
}

#[tokio::test]
async fn every_failure_is_reported() {
    let fake = FakeTts::start().await;
    let at = fake.address();
    let engine = WyomingTts::new(at.parse().unwrap(), "");
    for (fault, expected) in [
        (
            ServiceFault::Close,
            "closed the connection before answering",
        ),
        (
            ServiceFault::CloseAfter(2),
            "closed the connection before answering",
        ),
        (
            ServiceFault::Refuse("no such voice".to_owned()),
            "says: no such voice",
        ),
        (ServiceFault::Garbage, "violates the Wyoming protocol: "),
        (ServiceFault::Giant, "violates the Wyoming protocol: "),
        (ServiceFault::Endless, "violates the Wyoming protocol: "),
    ] {
        fake.inject_fault(fault.clone());
        let error = all(&engine, "It is on.").await.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{at} {expected}")),
            "{fault:?}: {error}"
        );
    }
    assert_eq!(
        all(&engine, "It is on.").await.unwrap(),
        bytes_of("It is on."),
        "and then it works again"
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_service_times_out() {
    let fake = FakeTts::start().await;
    let at = fake.address();
    let engine = WyomingTts::new(at.parse().unwrap(), "");
    for fault in [ServiceFault::Hang, ServiceFault::HangAfter(2)] {
        fake.inject_fault(fault.clone());
        let error = all(&engine, "It is on.").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{at} did not answer within 15 s"),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn killed_service_is_used_again_after_its_restart() {
    let mut fake = FakeTts::start().await;
    let engine = WyomingTts::new(fake.address().parse().unwrap(), "");
    fake.kill().await;
    let error = all(&engine, "It is on.").await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
    fake.restart().await;
    assert_eq!(
        all(&engine, "It is on.").await.unwrap(),
        bytes_of("It is on.")
    );
}
