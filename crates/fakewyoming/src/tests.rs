use std::io::ErrorKind;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::frame::{self, encode_audio, encode_event, pcm_bytes};
use crate::{FakeAsr, FakeMic, FakeSatellite, FakeTts, FakeWake, ReceivedEvent, ServiceFault};

/// A bare client without any helpers.
struct TestClient(BufReader<TcpStream>);

impl TestClient {
    async fn connect(address: &str) -> Self {
        let address = address.strip_prefix("tcp://").unwrap();
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    async fn send(&mut self, events: Vec<Vec<u8>>) {
        self.0.write_all(&events.concat()).await.unwrap();
    }

    async fn next(&mut self) -> ReceivedEvent {
        frame::read_event(&mut self.0).await.unwrap().unwrap()
    }

    async fn until(&mut self, kind: &str) -> Vec<ReceivedEvent> {
        let mut events = Vec::new();
        loop {
            events.push(self.next().await);
            if events.last().unwrap().kind == kind {
                return events;
            }
        }
    }
}

fn bare(kind: &str) -> Vec<Vec<u8>> {
    vec![encode_event(kind, &json!({}), &[])]
}

#[tokio::test]
async fn fake_asr_follows_its_script_and_records_the_sound() {
    let asr = FakeAsr::start_streaming(["turn it on"]).await;
    asr.push_text("off");
    let mut client = TestClient::connect(&asr.address()).await;
    client
        .send(encode_audio(16_000, &pcm_bytes(&[1, 2, 3]), 4))
        .await;
    let events = client.until("transcript-stop").await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = "transcript-start transcript-chunk transcript-chunk transcript-chunk transcript transcript-stop";
    assert_eq!(kinds.join(" "), expected);
    for text in ["off", ""] {
        client.send(encode_audio(16_000, &pcm_bytes(&[4]), 4)).await;
        let events = client.until("transcript").await;
        assert_eq!(events.last().unwrap().data["text"], text);
        client.until("transcript-stop").await;
    }
    assert_eq!(asr.utterances()[0], pcm_bytes(&[1, 2, 3]));
    assert!(asr.complaints().is_empty());
}

#[tokio::test]
async fn protocol_errors_are_recorded_and_answered_with_error() {
    let asr = FakeAsr::start([]).await;
    for (wrong, complaint) in [
        (bare("audio-stop"), "'audio-stop' came before 'audio-start'"),
        (bare("audio-start"), "'audio-start' has no format"),
        (
            bare("detect"),
            "a transcription service doesn't take 'detect'",
        ),
        (
            vec![
                encode_event("audio-start", &frame::audio_format(16_000), &[]),
                encode_event("audio-chunk", &frame::audio_format(16_000), &[0; 3]),
            ],
            "'audio-chunk' ends within a sample",
        ),
    ] {
        let mut client = TestClient::connect(&asr.address()).await;
        client.send(wrong).await;
        assert_eq!(client.next().await.data["text"], complaint);
    }
    assert_eq!(asr.complaints().len(), 4);
}

#[tokio::test]
async fn fake_tts_speaks_whole_and_streamed_text() {
    let tts = FakeTts::start().await;
    let mut client = TestClient::connect(&tts.address()).await;
    let say = |kind: &str, text: &str| encode_event(kind, &json!({ "text": text }), &[]);
    client.send(vec![say("synthesize", "hello")]).await;
    let events = client.until("audio-stop").await;
    let heard: Vec<u8> = events.into_iter().flat_map(|event| event.payload).collect();
    assert_eq!(heard, pcm_bytes(&FakeTts::samples_of("hello")));
    let mut pieces = bare("synthesize-start");
    pieces.extend(["one ", "two"].map(|text| say("synthesize-chunk", text)));
    pieces.push(say("synthesize", "one two"));
    pieces.extend(bare("synthesize-stop"));
    client.send(pieces).await;
    client.until("synthesize-stopped").await;
    assert_eq!(tts.texts(), ["hello", "one two"]);
}

#[tokio::test]
async fn faults_apply_in_order_and_only_to_answers() {
    let tts = FakeTts::start().await;
    tts.inject_fault(ServiceFault::Refuse("no voice".to_owned()));
    tts.inject_fault(ServiceFault::CloseAfter(2));
    let mut client = TestClient::connect(&tts.address()).await;
    let say = || vec![encode_event("synthesize", &json!({ "text": "hello" }), &[])];
    client.send(bare("describe")).await;
    assert_eq!(client.next().await.data["tts"][0]["name"], "fake-tts");
    client.send(say()).await;
    assert_eq!(client.next().await.data["text"], "no voice");
    client.send(say()).await;
    client.until("audio-chunk").await;
    assert_eq!(frame::read_event(&mut client.0).await.unwrap(), None);
    tts.inject_permanent_fault(ServiceFault::Giant);
    let mut client = TestClient::connect(&tts.address()).await;
    client.send(say()).await;
    let mut line = [0; 57];
    client.0.read_exact(&mut line).await.unwrap();
    assert!(line.ends_with(b"1099511627776}\n"));
}

#[tokio::test]
async fn fake_wake_detects_for_clients_that_send_sound() {
    let wake = FakeWake::start().await;
    wake.detect("hey_jarvis");
    let mut client = TestClient::connect(&wake.address()).await;
    client
        .send(encode_audio(16_000, &pcm_bytes(&[0; 8]), 16))
        .await;
    assert_eq!(client.next().await.data["name"], "hey_jarvis");
    assert_eq!(client.next().await.kind, "not-detected");
    wake.detect("ok_nabu");
    assert_eq!(client.next().await.data["name"], "ok_nabu");
}

#[tokio::test]
async fn fake_microphone_keeps_its_sound_for_the_first_client() {
    let mut mic = FakeMic::start().await;
    mic.send_sound(&[7; 1025]);
    mic.send_audio_stop();
    mic.restart().await;
    let mut client = TestClient::connect(&mic.address()).await;
    let events = client.until("audio-stop").await;
    let lengths: Vec<_> = events.iter().map(|event| event.payload.len()).collect();
    assert_eq!(lengths, [0, 2048, 2, 0]);
}

#[tokio::test]
async fn fake_satellite_waits_for_its_server_and_confirms_playback() {
    let satellite = FakeSatellite::start("kitchen").await;
    satellite.wake("hey_jarvis");
    satellite.send_sound(&[1, 2]);
    let mut client = TestClient::connect(&satellite.address()).await;
    client.send(bare("describe")).await;
    assert_eq!(client.next().await.data["satellite"]["area"], "kitchen");
    client.send(bare("run-satellite")).await;
    let events = client.until("audio-chunk").await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = "detection run-pipeline streaming-started audio-chunk";
    assert_eq!(kinds.join(" "), expected);
    client.send(encode_audio(22_050, &[1, 2, 3, 4], 2)).await;
    client.until("played").await;
    assert_eq!(satellite.heard(), [[1, 2, 3, 4]]);
}

#[tokio::test]
async fn killed_fake_restarts_on_its_port() {
    let mut asr = FakeAsr::start(["one"]).await;
    let address = asr.address();
    let mut client = TestClient::connect(&address).await;
    client.send(bare("describe")).await;
    client.next().await;
    asr.kill().await;
    assert!(matches!(
        frame::read_event(&mut client.0).await,
        Ok(None) | Err(_)
    ));
    let port = address.strip_prefix("tcp://").unwrap();
    assert!(TcpStream::connect(port).await.is_err());
    asr.restart().await;
    let mut client = TestClient::connect(&address).await;
    client.send(encode_audio(16_000, &[0; 2], 2)).await;
    assert_eq!(client.next().await.data["text"], "one");
    assert_eq!(asr.connections(), 2);
    asr.wait_for_events("audio-stop", 1).await;
}

#[tokio::test]
async fn port_of_a_killed_fake_stays_reserved() {
    let mut asr = FakeAsr::start([]).await;
    let port = asr.address().strip_prefix("tcp://").unwrap().parse();
    let port = port.unwrap();
    asr.kill().await;
    let other = TcpSocket::new_v4().unwrap();
    let taken = other.bind(port).map_err(|error| error.kind());
    assert_eq!(taken, Err(ErrorKind::AddrInUse));
    let refused = TcpStream::connect(port).await.map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
    asr.restart().await;
    TcpStream::connect(port).await.unwrap();
}
