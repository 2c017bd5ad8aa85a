//! Microphones and satellites controlled by the test, over a real socket, or over a
//! pipe where time matters.

use bytes::Bytes;
use fakewyoming::Port;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::wyoming::ServiceProgram;
use crate::wyoming::info::SatelliteInfo;

const HANG: Duration = Duration::from_secs(60);

fn microphone() -> ServiceInfo {
    ServiceInfo {
        mic: vec![ServiceProgram::default()],
        ..ServiceInfo::default()
    }
}

fn satellite() -> ServiceInfo {
    ServiceInfo {
        satellite: Some(SatelliteInfo {
            area: Some("Kitchen".to_owned()),
            ..SatelliteInfo::default()
        }),
        ..ServiceInfo::default()
    }
}

fn chunk(rate: u32, sample: i16, count: usize) -> WyomingEvent {
    WyomingEvent::AudioChunk {
        format: AudioFormat {
            rate,
            ..AudioFormat::CAPTURE
        },
        timestamp: None,
        bytes: sample.to_le_bytes().repeat(count).into(),
    }
}

/// The side of the test: what the gateway is connected to.
struct TestPeer(WyomingConnection);

impl TestPeer {
    async fn expect(&mut self) -> WyomingEvent {
        loop {
            let event = timeout(HANG, self.0.receive())
                .await
                .expect("no hang")
                .unwrap();
            match event.expect("still connected") {
                WyomingEvent::Ping { .. } => {}
                event => return event,
            }
        }
    }

    async fn send(&mut self, event: WyomingEvent) {
        self.0.send(&event).await.unwrap();
    }
}

/// A service on the loopback with this description, and our source of it.
async fn opened(info: ServiceInfo) -> (TestPeer, OpenInput) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let serving = async {
        let (read, write) = listener.accept().await.unwrap().0.into_split();
        let mut peer = TestPeer(WyomingConnection::from_streams(read, write, "the gateway"));
        assert_eq!(peer.expect().await, WyomingEvent::Describe);
        // A microphone streams without being asked.
        peer.send(chunk(16_000, 9, 10)).await;
        peer.send(WyomingEvent::Info(Box::new(info))).await;
        peer
    };
    let (peer, opened) = tokio::join!(serving, open(&address));
    (peer, opened.unwrap())
}

async fn next(opened: &mut OpenInput) -> Result<Option<CaptureEvent>, EngineError> {
    timeout(HANG, opened.source.next()).await.expect("no hang")
}

#[tokio::test]
async fn microphone_may_send_any_format() {
    let (mut peer, mut opened) = opened(microphone()).await;
    assert_eq!(opened.room.as_deref(), None);
    assert!(opened.link.is_none());
    peer.send(WyomingEvent::AudioStart {
        format: AudioFormat::CAPTURE,
        timestamp: None,
    })
    .await;
    peer.send(chunk(16_000, 7, 1_024)).await;
    assert_eq!(
        next(&mut opened).await,
        Ok(Some(CaptureEvent::Sound(vec![7; 1_024])))
    );
    peer.send(chunk(48_000, 7, 4_800)).await;
    let Ok(Some(CaptureEvent::Sound(sound))) = next(&mut opened).await else {
        panic!("no sound");
    };
    assert!((1_400..=1_600).contains(&sound.len()), "{}", sound.len());
    peer.send(chunk(16_000, 8, 3)).await;
    assert_eq!(
        next(&mut opened).await,
        Ok(Some(CaptureEvent::Sound(vec![8; 3])))
    );
}

#[tokio::test]
async fn satellite_is_started_and_reports_its_wake_word() {
    let (mut peer, mut opened) = opened(satellite()).await;
    assert_eq!(opened.room.as_deref(), Some("Kitchen"));
    assert_eq!(peer.expect().await, WyomingEvent::RunSatellite);
    let run = |start_stage, wake_word_name: Option<&str>| WyomingEvent::RunPipeline {
        start_stage,
        end_stage: PipelineStage::Tts,
        restart_on_end: false,
        wake_word_name: wake_word_name.map(str::to_owned),
        wake_word_names: None,
        announce_text: None,
    };
    let detection = |name: &str| WyomingEvent::Detection {
        name: Some(name.to_owned()),
        timestamp: None,
        speaker: None,
    };
    // Detecting the wake word is our own job here.
    peer.send(run(PipelineStage::Wake, None)).await;
    peer.send(detection("ok_nabu")).await;
    peer.send(run(PipelineStage::Asr, None)).await;
    peer.send(run(PipelineStage::Asr, None)).await;
    peer.send(detection("ok_nabu")).await;
    peer.send(run(PipelineStage::Asr, Some("hey_jarvis"))).await;
    peer.send(chunk(16_000, 3, 2)).await;
    peer.send(WyomingEvent::AudioStop { timestamp: None }).await;
    for expected in [
        CaptureEvent::Woken(Some("ok_nabu".to_owned())),
        CaptureEvent::Woken(None),
        CaptureEvent::Woken(Some("hey_jarvis".to_owned())),
        CaptureEvent::Sound(vec![3; 2]),
        CaptureEvent::Sound(vec![0; TRAILING_SILENCE]),
    ] {
        assert_eq!(next(&mut opened).await, Ok(Some(expected)));
    }
}

#[tokio::test]
async fn a_ping_is_answered_with_its_text() {
    let (mut peer, _opened) = opened(satellite()).await;
    assert_eq!(peer.expect().await, WyomingEvent::RunSatellite);
    let text = Some("x".to_owned());
    peer.send(WyomingEvent::Ping { text: text.clone() }).await;
    assert_eq!(peer.expect().await, WyomingEvent::Pong { text });
}

#[tokio::test]
async fn satellite_plays_sound_and_confirms_it() {
    let (mut peer, opened) = opened(satellite()).await;
    assert_eq!(peer.expect().await, WyomingEvent::RunSatellite);
    let link = opened.link.clone().unwrap();
    let start = WyomingEvent::AudioStart {
        format: AudioFormat::CAPTURE,
        timestamp: None,
    };
    link.send(start.clone()).await.unwrap();
    assert_eq!(peer.expect().await, start);
    let playing = tokio::spawn(async move { link.finish_playback(HANG).await });
    assert_eq!(
        peer.expect().await,
        WyomingEvent::AudioStop { timestamp: None }
    );
    assert!(!playing.is_finished());
    peer.send(WyomingEvent::Played).await;
    assert_eq!(playing.await.unwrap(), Ok(true));

    let link = opened.link.clone().unwrap();
    assert_eq!(
        link.finish_playback(Duration::from_millis(1)).await,
        Ok(false)
    );
    let transcript = WyomingEvent::Transcript {
        text: "turn on switch one".to_owned(),
        language: None,
        context: None,
    };
    link.notify(transcript.clone());
    let mut seen = [peer.expect().await, peer.expect().await];
    seen.sort_by_key(|event| *event == transcript);
    assert_eq!(seen[1], transcript);
}

#[tokio::test]
async fn disconnect_or_garbage_is_one_error() {
    for (what, expected) in [
        ("close", "closed the connection"),
        ("garbage", "violates the Wyoming protocol"),
        ("error", "says: no microphone"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let serving = async {
            let (read, mut write) = listener.accept().await.unwrap().0.into_split();
            let (out, mut pipe) = tokio::io::duplex(1 << 16);
            let mut peer = WyomingConnection::from_streams(read, out, "the gateway");
            assert_eq!(peer.receive().await.unwrap(), Some(WyomingEvent::Describe));
            peer.send(&WyomingEvent::Info(Box::new(satellite())))
                .await
                .unwrap();
            match what {
                "error" => {
                    let text = "no microphone".to_owned();
                    peer.send(&WyomingEvent::Error { text, code: None })
                        .await
                        .unwrap();
                }
                "garbage" => {
                    let mut bytes = vec![];
                    drop(peer);
                    tokio::io::AsyncReadExt::read_to_end(&mut pipe, &mut bytes)
                        .await
                        .unwrap();
                    bytes.extend(b"no json at all\n");
                    tokio::io::AsyncWriteExt::write_all(&mut write, &bytes)
                        .await
                        .unwrap();
                    return write;
                }
                _ => {}
            }
            drop(peer);
            tokio::io::copy(&mut pipe, &mut write).await.unwrap();
            write
        };
        let (write, opened) = tokio::join!(serving, open(&address));
        let mut opened = opened.unwrap();
        if what == "close" {
            drop(write);
        }
        let error = next(&mut opened).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
        assert_eq!(next(&mut opened).await, Ok(None), "{what}");
        let link = opened.link.unwrap();
        let lost = link.send(WyomingEvent::Played).await;
        assert!(matches!(lost, Err(EngineError::Closed { .. })), "{what}");
        assert!(link.finish_playback(HANG).await.is_err(), "{what}");
    }
}

#[tokio::test]
async fn input_without_sound_is_rejected() {
    let port = Port::reserve();
    let (listener, address) = (port.listen().await, port.address());
    let address: WyomingAddress = address.parse().unwrap();
    let serving = async {
        let (read, write) = listener.accept().await.unwrap().0.into_split();
        let mut peer = TestPeer(WyomingConnection::from_streams(read, write, "the gateway"));
        peer.expect().await;
        peer.send(WyomingEvent::Info(Box::default())).await;
        peer
    };
    let (_peer, opened) = tokio::join!(serving, open(&address));
    let error = opened.err().unwrap().to_string();
    assert!(
        error.ends_with(
            "offers neither a microphone nor a satellite: set 'input' of 'voice' to one that does"
        ),
        "{error}"
    );
    drop(listener);
    assert!(matches!(
        open(&address).await,
        Err(EngineError::Unreachable { .. })
    ));
}

#[tokio::test]
async fn the_connection_ends_with_the_source() {
    let (mut peer, opened) = opened(microphone()).await;
    drop(opened);
    let end = timeout(HANG, peer.0.receive()).await.expect("no hang");
    assert!(
        matches!(end, Ok(None) | Err(EngineError::Closed { .. })),
        "{end:?}"
    );
}

/// A service over a pipe, so that time can be paused.
fn piped(kind: SourceKind) -> (TestPeer, mpsc::Receiver<Result<CaptureEvent, EngineError>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(theirs);
    let peer = TestPeer(WyomingConnection::from_streams(read, write, "the gateway"));
    let (read, write) = tokio::io::split(ours);
    let (link, outgoing, played) = SatelliteLink::new("here");
    let (heard, source) = mpsc::channel(EVENT_CAPACITY);
    let service = WyomingSourceTask::new("here".to_owned(), kind, heard, link, played);
    tokio::spawn(service.run(
        WyomingConnection::from_streams(read, write, "here"),
        outgoing,
    ));
    (peer, source)
}

#[tokio::test(start_paused = true)]
async fn service_without_signs_of_life_is_lost() {
    for (kind, after) in [
        (SourceKind::Satellite, PONG_TIMEOUT),
        (SourceKind::Microphone, SILENCE_TIMEOUT),
    ] {
        let began = Instant::now();
        let (mut peer, mut source) = piped(kind);
        if kind == SourceKind::Satellite {
            peer.send(WyomingEvent::Pong { text: None }).await;
        }
        let at = "here".to_owned();
        let end = EngineError::TimedOut { at, after };
        assert_eq!(source.recv().await, Some(Err(end)));
        assert_eq!(began.elapsed(), after);
    }
}

#[tokio::test(start_paused = true)]
async fn old_satellite_without_pings_may_be_silent() {
    let (_peer, mut source) = piped(SourceKind::Satellite);
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, source.recv()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn satellite_that_answers_pings_stays_connected() {
    let (mut peer, mut source) = piped(SourceKind::Satellite);
    tokio::spawn(async move {
        while let Ok(Some(WyomingEvent::Ping { text })) = peer.0.receive().await {
            peer.send(WyomingEvent::Pong { text }).await;
        }
    });
    let hours = Duration::from_secs(2 * 3600);
    assert!(timeout(hours, source.recv()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn unread_sound_is_dropped_while_pings_are_answered() {
    let (mut peer, mut source) = piped(SourceKind::Satellite);
    for _ in 0..10 * EVENT_CAPACITY {
        peer.send(chunk(16_000, 1, 10)).await;
        sleep(Duration::from_millis(1)).await;
    }
    peer.send(WyomingEvent::Ping { text: None }).await;
    assert_eq!(peer.expect().await, WyomingEvent::Pong { text: None });
    let mut kept = 0;
    while let Ok(heard) = source.try_recv() {
        assert_eq!(heard, Ok(CaptureEvent::Sound(vec![1; 10])));
        kept += 1;
    }
    assert_eq!(kept, EVENT_CAPACITY);
    peer.send(chunk(16_000, 2, 1)).await;
    assert_eq!(source.recv().await, Some(Ok(CaptureEvent::Sound(vec![2]))));
}

#[test]
fn chunks_may_end_anywhere() {
    let (link, _outgoing, played) = SatelliteLink::new("here");
    let (heard, mut source) = mpsc::channel(EVENT_CAPACITY);
    let mut service = WyomingSourceTask::new(
        "here".to_owned(),
        SourceKind::Microphone,
        heard,
        link,
        played,
    );
    for bytes in [&[1_u8][..], &[0, 2, 0, 3], &[0]] {
        let bytes = Bytes::copy_from_slice(bytes);
        let event = WyomingEvent::AudioChunk {
            format: AudioFormat::CAPTURE,
            timestamp: None,
            bytes,
        };
        service.handle_event(event).unwrap();
    }
    let mut sound = Vec::new();
    while let Ok(Ok(CaptureEvent::Sound(samples))) = source.try_recv() {
        sound.extend(samples);
    }
    assert_eq!(sound, [1, 2, 3]);
}
