use fakewyoming::Port;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

const HANG: Duration = Duration::from_secs(60);

/// A wake word service controlled by the test.
struct FakeWakeService {
    listener: TcpListener,
    address: WyomingAddress,
    port: Port,
}

impl FakeWakeService {
    async fn new() -> Self {
        Self::at(Port::reserve()).await
    }

    async fn at(port: Port) -> Self {
        Self {
            listener: port.listen().await,
            address: port.address().parse().unwrap(),
            port,
        }
    }

    /// The next connection, after it has said what it wants.
    async fn accept(&self) -> (WyomingConnection, Option<Vec<String>>) {
        let accepted = timeout(HANG, self.listener.accept())
            .await
            .expect("no hang");
        let (read, write) = accepted.unwrap().0.into_split();
        let mut client = WyomingConnection::from_streams(read, write, "the gateway");
        let WyomingEvent::Detect { names } = expect(&mut client).await else {
            panic!("first it says which words");
        };
        let start = WyomingEvent::AudioStart {
            format: AudioFormat::CAPTURE,
            timestamp: Some(0),
        };
        assert_eq!(expect(&mut client).await, start);
        assert_eq!(expect(&mut client).await, WyomingEvent::Describe);
        (client, names)
    }
}

async fn expect(client: &mut WyomingConnection) -> WyomingEvent {
    let event = timeout(HANG, client.receive()).await.expect("no hang");
    event.unwrap().expect("still connected")
}

async fn next_notice(receiver: &mut mpsc::Receiver<WakeNotice>) -> WakeNotice {
    timeout(HANG, receiver.recv())
        .await
        .expect("no hang")
        .expect("it runs")
}

// With configured words, the service is not asked for its list.
fn one_word() -> Vec<String> {
    vec!["hey_jarvis".to_owned()]
}

/// A sign of life.
fn info() -> WyomingEvent {
    WyomingEvent::Info(Box::default())
}

fn detection(name: &str, timestamp: Option<i64>) -> WyomingEvent {
    WyomingEvent::Detection {
        name: Some(name.to_owned()),
        timestamp,
        speaker: None,
    }
}

fn woken(notice: &WakeNotice) -> Option<&str> {
    match notice {
        WakeNotice::Woken { wake_word, .. } => wake_word.as_deref(),
        _ => None,
    }
}

#[tokio::test]
async fn sound_goes_to_the_service_in_order_and_wake_words_come_back() {
    let service = FakeWakeService::new().await;
    let (wake, mut receiver) = WakeWordClient::start(service.address.clone(), one_word());
    let (mut client, names) = service.accept().await;
    assert_eq!(names, Some(one_word()));
    for sample in 0..16 {
        wake.feed(&[sample; 160]);
    }
    let mut heard = Vec::new();
    for expected in [0, 64] {
        let WyomingEvent::AudioChunk {
            format,
            timestamp,
            bytes,
        } = expect(&mut client).await
        else {
            panic!("sound");
        };
        assert_eq!((format, timestamp), (AudioFormat::CAPTURE, Some(expected)));
        heard.extend(
            bytes
                .chunks(2)
                .map(|sample| i16::from_le_bytes([sample[0], sample[1]])),
        );
    }
    let sent: Vec<i16> = (0..16).flat_map(|sample| [sample; 160]).collect();
    assert_eq!(heard, sent[..2 * CHUNK_SAMPLES]);
    client
        .send(&detection("hey_jarvis", Some(100)))
        .await
        .unwrap();
    assert_eq!(woken(&next_notice(&mut receiver).await), Some("hey_jarvis"));
}

#[tokio::test]
async fn repeated_detection_is_reported_once() {
    let service = FakeWakeService::new().await;
    let (_wake, mut receiver) = WakeWordClient::start(service.address.clone(), one_word());
    let (mut client, names) = service.accept().await;
    assert_eq!(names, Some(one_word()));
    for name in ["one", "one", "two"] {
        client.send(&detection(name, None)).await.unwrap();
    }
    client
        .send(&WyomingEvent::Ping { text: None })
        .await
        .unwrap();
    // The ping is answered after all of them have been read.
    assert_eq!(expect(&mut client).await, WyomingEvent::Pong { text: None });
    assert_eq!(woken(&next_notice(&mut receiver).await), Some("one"));
    assert!(receiver.try_recv().is_err());
}

#[tokio::test]
async fn lost_service_is_reported_once_and_reconnected() {
    let service = FakeWakeService::new().await;
    let address = service.address.clone();
    let (wake, mut receiver) = WakeWordClient::start(address.clone(), one_word());
    let (client, _) = service.accept().await;
    drop((client, service.listener));
    let lost = next_notice(&mut receiver).await;
    assert!(matches!(lost, WakeNotice::Lost(_)), "{lost:?}");
    wake.feed(&[1; 4 * CHUNK_SAMPLES]);
    // It comes back only for a moment.
    let service = FakeWakeService::at(service.port).await;
    drop(service.accept().await);
    let (mut client, _) = service.accept().await;
    client.send(&info()).await.unwrap();
    assert_eq!(next_notice(&mut receiver).await, WakeNotice::Back);
    // Sound from before the connection is dropped.
    wake.feed(&[2; CHUNK_SAMPLES]);
    let WyomingEvent::AudioChunk {
        timestamp, bytes, ..
    } = expect(&mut client).await
    else {
        panic!("sound");
    };
    assert_eq!((timestamp, &bytes[..2]), (Some(0), &[2, 0][..]));
    client.send(&detection("again", None)).await.unwrap();
    assert_eq!(woken(&next_notice(&mut receiver).await), Some("again"));
}

#[tokio::test]
async fn unreachable_service_is_reported() {
    let port = Port::reserve();
    let (_wake, mut receiver) = WakeWordClient::start(port.address().parse().unwrap(), one_word());
    let lost = next_notice(&mut receiver).await;
    assert!(
        matches!(lost, WakeNotice::Lost(EngineError::Unreachable { .. })),
        "{lost:?}"
    );
}

#[tokio::test]
async fn service_that_keeps_closing_is_reported_once() {
    let service = FakeWakeService::new().await;
    let (_wake, mut receiver) = WakeWordClient::start(service.address.clone(), one_word());
    for _ in 0..4 {
        drop(service.accept().await);
    }
    assert!(matches!(receiver.try_recv(), Ok(WakeNotice::Lost(_))));
    assert!(receiver.try_recv().is_err());
}

/// A conversation over a pipe, so that time can be paused.
fn piped(lost: bool) -> (WyomingConnection, mpsc::Receiver<WakeNotice>) {
    let (service, receiver, _) = conversation(lost);
    (service, receiver)
}

/// Like `conversation`, with its result.
fn conversation(
    lost: bool,
) -> (
    WyomingConnection,
    mpsc::Receiver<WakeNotice>,
    tokio::task::JoinHandle<EngineError>,
) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(theirs);
    let service = WyomingConnection::from_streams(read, write, "the gateway");
    let (read, write) = tokio::io::split(ours);
    let (notices, receiver) = mpsc::channel(NOTICE_CAPACITY);
    let mut keeper = WakeConnector {
        address: "tcp://here:1".parse().unwrap(),
        wake_words: vec![],
        buffer: Arc::default(),
        notices,
        lost,
    };
    let conversation = tokio::spawn(async move {
        keeper
            .run_connection(
                WyomingConnection::from_streams(read, write, "here"),
                Vec::new(),
            )
            .await
    });
    (service, receiver, conversation)
}

#[tokio::test(start_paused = true)]
async fn repeated_detections_are_ignored_for_a_moment() {
    let (mut service, mut receiver) = piped(false);
    for (pause, name) in [(0, "one"), (1_900, "echo"), (200, "two"), (2_100, "three")] {
        sleep(Duration::from_millis(pause)).await;
        service.send(&detection(name, None)).await.unwrap();
    }
    for expected in ["one", "two", "three"] {
        assert_eq!(woken(&next_notice(&mut receiver).await), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn service_is_back_once_its_connection_is_stable() {
    let began = Instant::now();
    let (mut service, mut receiver) = piped(true);
    service.send(&detection("early", None)).await.unwrap();
    assert_eq!(woken(&next_notice(&mut receiver).await), Some("early"));
    assert_eq!(next_notice(&mut receiver).await, WakeNotice::Back);
    assert_eq!(began.elapsed(), STABLE_AFTER);
    assert_eq!(receiver.recv().await, None, "and that is told once");
}

#[tokio::test(start_paused = true)]
async fn frozen_service_is_lost_until_it_answers() {
    for (lost, answers) in [(false, 0), (false, 3), (true, 0)] {
        let began = Instant::now();
        let (mut service, mut receiver, conversation) = conversation(lost);
        for _ in 0..answers {
            while expect(&mut service).await != WyomingEvent::Describe {}
            service.send(&info()).await.unwrap();
        }
        let error = timeout(HANG, conversation).await.unwrap().unwrap();
        assert_eq!(error.to_string(), "tcp://here:1 did not answer within 10 s");
        let last_answer = PROBE_INTERVAL * u32::try_from(answers.max(1) - 1).unwrap();
        assert_eq!(began.elapsed(), last_answer + SILENCE_TIMEOUT);
        assert!(receiver.try_recv().is_err(), "{lost} {answers}");
    }
}

#[tokio::test]
async fn protocol_errors_lose_the_service() {
    for (sent, expected) in [
        (&b"garbage\n"[..], "violates the Wyoming protocol"),
        (
            b"{\"type\":\"error\",\"data\":{\"text\":\"no model\"}}\n",
            "says: no model",
        ),
        (
            b"{\"type\":\"detection\",\"data_length\":99999999}\n",
            "violates the Wyoming protocol",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let (_wake, mut receiver) = WakeWordClient::start(address.parse().unwrap(), one_word());
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, sent)
            .await
            .unwrap();
        let WakeNotice::Lost(error) = next_notice(&mut receiver).await else {
            panic!("{expected}");
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_connection_ends_with_the_client() {
    let service = FakeWakeService::new().await;
    let (wake, mut receiver) = WakeWordClient::start(service.address.clone(), one_word());
    let (mut client, _) = service.accept().await;
    drop(wake);
    let end = timeout(HANG, client.receive()).await.expect("no hang");
    assert!(
        matches!(end, Ok(None) | Err(EngineError::Closed { .. })),
        "{end:?}"
    );
    assert_eq!(receiver.recv().await, None);
}

#[test]
fn slow_service_receives_the_newest_sound() {
    let buffer = WakeBuffer::default();
    buffer.feed(&[1; CHUNK_SAMPLES]);
    assert!(buffer.sound.lock().samples.is_empty(), "nobody listens");
    buffer.set_connected(true);
    for sample in 0..100 {
        buffer.feed(&[sample; 1_000]);
    }
    buffer.feed(&[100; 3 * BUFFER_SAMPLES]);
    buffer.feed(&[101; 10]);
    let mut sound = buffer.sound.lock();
    assert_eq!(sound.samples.len(), BUFFER_SAMPLES);
    assert_eq!(sound.samples.back(), Some(&101));
    assert!(sound.samples.iter().all(|sample| *sample >= 100));
    // The sample clock keeps counting, so that lost sound is a gap and not a shift.
    let fed = 100_000 + 3 * BUFFER_SAMPLES as u64 + 10;
    let Some(WyomingEvent::AudioChunk { timestamp, .. }) = sound.take_chunk() else {
        panic!("sound");
    };
    assert_eq!(timestamp, Some(milliseconds(fed - BUFFER_SAMPLES as u64)));
}

#[tokio::test(start_paused = true)]
async fn wake_word_time_comes_from_its_sound() {
    let buffer = WakeBuffer::default();
    buffer.set_connected(true);
    buffer.feed(&[0; 3 * SAMPLE_RATE as usize]);
    let last = Instant::now();
    tokio::time::advance(Duration::from_millis(50)).await;
    let now = Instant::now();
    let sound = buffer.sound.lock();
    for (timestamp, expected) in [
        (Some(2_500), last - Duration::from_millis(500)),
        (Some(3_000), last),
        // Other clocks: unknown, none, the future, the past, nonsense.
        (None, now),
        (Some(0), now),
        (Some(3_001), now),
        (Some(500), now),
        (Some(i64::MAX), now),
        (Some(i64::MIN), now),
    ] {
        assert_eq!(sound.captured_at(timestamp), expected, "{timestamp:?}");
    }
}

#[test]
fn retry_delays_grow_to_their_limit() {
    assert!(retry_delay(0) <= FIRST_RETRY);
    for failures in [100, u32::MAX] {
        assert!((MAX_RETRY_DELAY / 2..=MAX_RETRY_DELAY).contains(&retry_delay(failures)));
    }
}
