//! Over real sockets: a transcription engine that fails in every way, and our own latency.

use std::sync::Arc;
use std::time::Duration;

use crate::DropReason;
use crate::transcribe::WyomingAsr;
use crate::wyoming::WyomingAddress;
use fakewyoming::{FakeAsr, ServiceFault};
use toolgate_journal::TurnOutcome;

use super::support::{ModelStep, TestGateway, TestPlan, utterance};

/// Long enough for a working engine on a busy machine.
const DEADLINE: Duration = Duration::from_secs(3);

/// A gateway with this transcription engine.
fn gateway(asr: &FakeAsr) -> TestGateway {
    let address: WyomingAddress = asr.address().parse().unwrap();
    let mut plan = TestPlan::new([], [ModelStep::Words("Hi there, how are you?")]);
    plan.speech_to_text = Arc::new(WyomingAsr::new(address, "en", DEADLINE));
    plan.at_once = true;
    plan.build()
}

#[tokio::test]
async fn utterance_is_sent_unchanged() {
    for asr in [
        FakeAsr::start([" Hello there. "]).await,
        FakeAsr::start_streaming([" Hello there. "]).await,
    ] {
        let turn = gateway(&asr).turn().await;
        assert_eq!(
            (turn.heard.as_str(), turn.outcome),
            ("Hello there", TurnOutcome::Answered)
        );
        let samples = utterance().samples;
        let bytes: Vec<u8> = samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect();
        assert_eq!(asr.utterances(), [bytes]);
        assert_eq!(asr.received_of_kind("transcribe")[0].data["language"], "en");
        assert_eq!((asr.complaints().len(), asr.connections()), (0, 1));
    }
}

#[tokio::test]
async fn failing_engine_costs_one_turn() {
    let long = "word ".repeat(4000);
    for (fault, streaming) in [
        (ServiceFault::Hang, false),
        (ServiceFault::Close, false),
        (ServiceFault::Garbage, false),
        (ServiceFault::Giant, false),
        (ServiceFault::Endless, false),
        (ServiceFault::Half, false),
        (
            ServiceFault::Refuse("out of memory at 0x7f".to_owned()),
            false,
        ),
        (ServiceFault::CloseAfter(2), true),
        (ServiceFault::HangAfter(2), true),
        (ServiceFault::None, false),
    ] {
        let first = if fault == ServiceFault::None {
            long.as_str()
        } else {
            "lost"
        };
        let asr = match streaming {
            true => FakeAsr::start_streaming([first, "Hello"]).await,
            false => FakeAsr::start([first, "Hello"]).await,
        };
        asr.inject_fault(fault.clone());
        let gateway = gateway(&asr);
        let turn = gateway.turn().await;
        assert_eq!(
            (turn.outcome, turn.heard.as_str()),
            (TurnOutcome::Failed, ""),
            "{fault:?}"
        );
        let is_friendly = turn.answer.starts_with("Sorry") && !gateway.spoken().contains("0x7f");
        assert!(is_friendly, "{fault:?}: {}", gateway.spoken());
        assert!(turn.error.unwrap().contains("127.0.0.1"), "{fault:?}");
        let turn = gateway.turn().await;
        assert_eq!(
            (turn.outcome, turn.heard.as_str()),
            (TurnOutcome::Answered, "Hello"),
            "{fault:?}"
        );
        let refused = matches!(fault, ServiceFault::Refuse(_));
        assert_eq!(
            gateway.recorder.count("lost transcription"),
            usize::from(!refused),
            "{fault:?}"
        );
        assert_eq!(
            gateway.recorder.count("back transcription"),
            usize::from(!refused),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn engine_killed_while_speaking_is_used_again() {
    let mut asr = FakeAsr::start(["never told", "Hello"]).await;
    asr.inject_fault(ServiceFault::Hang);
    let gateway = gateway(&asr);
    gateway.transcriber.submit(utterance()).unwrap();
    asr.wait_for_events("audio-stop", 1).await;
    asr.kill().await;
    let turn = gateway.recorder.turn(0).await;
    assert!(turn.error.unwrap().contains("closed the connection"));
    assert_eq!(
        gateway.turn().await.outcome,
        TurnOutcome::Failed,
        "nobody is there"
    );
    assert_eq!(
        gateway.spoken().matches("can't understand speech").count(),
        1,
        "said once"
    );
    asr.restart().await;
    assert_eq!(gateway.turn().await.heard, "Hello");
    assert_eq!(gateway.recorder.count("lost transcription"), 1);
    assert_eq!(gateway.recorder.count("back transcription"), 1);
}

#[tokio::test]
async fn interruption_does_not_wait_for_the_engine() {
    let asr = FakeAsr::start(["never told", "Hello"]).await;
    asr.inject_fault(ServiceFault::Hang);
    let gateway = gateway(&asr);
    gateway.transcriber.submit(utterance()).unwrap();
    asr.wait_for_events("audio-stop", 1).await;
    gateway.transcriber.interrupt();
    assert_eq!(gateway.turn().await.heard, "Hello");
    assert_eq!(gateway.recorder.dropped(DropReason::GivenUp), 1);
    assert_eq!(gateway.recorder.count("lost transcription"), 0);
}

#[tokio::test]
async fn our_own_latency_to_the_first_sound_is_small() {
    const PROMISED_MS: f64 = 20.0;
    let asr = FakeAsr::start(["Hello"; 20]).await;
    let gateway = gateway(&asr);
    let mut times = Vec::new();
    for _ in 0..20 {
        let stages = gateway.turn().await.stages;
        times.push(stages.first_audio_ms.unwrap() - stages.speech_ended_ms.unwrap());
    }
    times.sort_by(f64::total_cmp);
    assert!(times[10] < 10.0 * PROMISED_MS, "{times:?}");
}
