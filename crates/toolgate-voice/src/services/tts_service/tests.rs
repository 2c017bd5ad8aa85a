use parking_lot::Mutex;
use std::time::Duration;

use futures::stream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::speak::SoundStream;
use crate::wyoming::{WyomingAddress, WyomingConnection, WyomingListener, describe};

const PATIENCE: Duration = Duration::from_secs(30);
const STEREO: AudioFormat = AudioFormat {
    rate: 22_050,
    width: 2,
    channels: 2,
};

/// Speaks each letter as three bytes, which are not whole frames, and long texts in larger pieces.
/// Fails for some texts.
#[derive(Default)]
struct LetterEngine(Mutex<Vec<String>>);

impl SpeechSynthesizer for LetterEngine {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        self.0.lock().push(text.to_owned());
        let problem = || EngineError::Program {
            program: "letters".to_owned(),
            why: "at tcp://secret:1".to_owned(),
        };
        let letters = if text.len() < 100 { 1 } else { 999 };
        let mut pieces: Vec<_> = text
            .as_bytes()
            .chunks(letters)
            .map(|piece| Ok(Bytes::from(piece.repeat(3))))
            .collect();
        if text.contains("half") {
            pieces.push(Err(problem()));
        }
        let sound = SoundStream {
            format: STEREO,
            chunks: stream::iter(pieces).boxed(),
        };
        let made = if text.contains("none") {
            Err(problem())
        } else {
            Ok(sound)
        };
        async move { made }.boxed()
    }
}

async fn start(letters: &Arc<LetterEngine>) -> (WyomingAddress, CancellationToken) {
    let server = WyomingListener::bind(&"tcp://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = server.address().clone();
    let stop = CancellationToken::new();
    let engine: Arc<dyn SpeechSynthesizer> = Arc::<LetterEngine>::clone(letters);
    let service = Arc::new(TtsService::new(engine, "anna", vec!["de".to_owned()]));
    tokio::spawn(server.serve(service, stop.clone()));
    (address, stop)
}

fn whole(text: &str, text_format: Option<&str>) -> WyomingEvent {
    WyomingEvent::Synthesize {
        text: text.to_owned(),
        voice: None,
        text_format: text_format.map(str::to_owned),
    }
}

fn chunk(text: &str) -> WyomingEvent {
    let text = text.to_owned();
    WyomingEvent::SynthesizeChunk { text }
}

const BEGIN: WyomingEvent = WyomingEvent::SynthesizeStart {
    voice: None,
    text_format: None,
};

/// The replies to these events up to `last` or the end: sound as `<bytes>`, other events by type.
async fn talk(address: &WyomingAddress, sent: &[WyomingEvent], last: &str) -> String {
    let mut connection = WyomingConnection::connect(address, PATIENCE).await.unwrap();
    for event in sent {
        connection.send(event).await.unwrap();
    }
    let mut seen = Vec::new();
    while let Ok(Some(event)) = connection.receive().await {
        seen.push(match &event {
            WyomingEvent::AudioStart { format, .. } => format!("start {}", format.rate),
            WyomingEvent::AudioChunk { bytes, .. } => format!("<{}>", bytes.len()),
            WyomingEvent::AudioStop { .. } => "stop".to_owned(),
            WyomingEvent::Error { text, .. } => text.clone(),
            other => other.to_frame().unwrap().kind,
        });
        if seen.last().is_some_and(|seen| seen == last) {
            break;
        }
    }
    seen.join(" ")
}

#[tokio::test]
async fn text_becomes_one_run_of_whole_frames() {
    let letters = Arc::new(LetterEngine::default());
    let (address, stop) = start(&letters).await;
    // Five letters are 15 bytes and arrive as three whole frames of four: 3, 6→4, 9→8, 12, 15→12.
    let seen = talk(&address, &[whole("Hello", None)], "stop").await;
    assert_eq!(seen, "start 22050 <4> <4> <4> stop");
    assert_eq!(*letters.0.lock(), ["Hello"]);
    stop.cancel();
}

#[tokio::test]
async fn text_in_pieces_is_spoken_sentence_by_sentence() {
    let letters = Arc::new(LetterEngine::default());
    let (address, stop) = start(&letters).await;
    let sent = [
        BEGIN,
        chunk("It is after"),
        chunk(" 9. The "),
        chunk("light is on."),
        whole("It is after 9. The light is on.", None),
        WyomingEvent::SynthesizeStop,
    ];
    let seen = talk(&address, &sent, "synthesize-stopped").await;
    assert!(seen.ends_with("stop synthesize-stopped"), "{seen}");
    assert_eq!(seen.matches("start 22050").count(), 2, "{seen}");
    let spoken = letters.0.lock().join("|");
    assert!(
        spoken.starts_with("It is after") && spoken.ends_with("|The light is on."),
        "{spoken}"
    );
    stop.cancel();
}

#[tokio::test]
async fn endless_sentence_is_spoken_in_parts() {
    let letters = Arc::new(LetterEngine::default());
    let (address, stop) = start(&letters).await;
    let mut sent = vec![BEGIN];
    sent.extend((0..100).map(|_| chunk(&"and on ".repeat(70))));
    sent.push(WyomingEvent::SynthesizeStop);
    let seen = talk(&address, &sent, "synthesize-stopped").await;
    assert!(seen.ends_with("stop synthesize-stopped"), "{seen}");
    let spoken = letters.0.lock().clone();
    assert_eq!(spoken.join(" ").matches("and").count(), 7000);
    let longest = MAX_SENTENCE_LEN + 490;
    assert!(spoken.iter().all(|part| part.len() <= longest));
    stop.cancel();
}

#[tokio::test]
async fn empty_text_still_ends_the_sound() {
    let (address, stop) = start(&Arc::default()).await;
    let seen = talk(&address, &[whole(" \n", None)], "stop").await;
    assert_eq!(seen, "start 16000 stop");
    let nothing = [BEGIN, WyomingEvent::SynthesizeStop];
    assert_eq!(
        talk(&address, &nothing, "synthesize-stopped").await,
        "synthesize-stopped"
    );
    stop.cancel();
}

#[tokio::test]
async fn unspeakable_request_gets_an_error_without_secrets() {
    let (address, stop) = start(&Arc::default()).await;
    let failed = "the speech engine failed; Toolgate's log says why";
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    let mut endless = vec![BEGIN];
    endless.extend((0..80).map(|_| chunk(&"x".repeat(1024))));
    for (sent, expected) in [
        (vec![whole("none", None)], failed.to_owned()),
        (
            vec![whole("<speak/>", Some("ssml"))],
            "only plain text is supported, not SSML".to_owned(),
        ),
        (vec![whole(&long, None)], "the text is too long".to_owned()),
        (endless, "the text is too long".to_owned()),
    ] {
        assert!(talk(&address, &sent, "").await.ends_with(&expected));
    }
    let seen = talk(&address, &[whole("half", Some("text"))], "").await;
    assert_eq!(seen, format!("start 22050 <4> <4> <4> {failed}"));
    stop.cancel();
}

#[tokio::test]
async fn info_lists_the_voice() {
    let (address, stop) = start(&Arc::default()).await;
    let info = describe(&address, PATIENCE).await.unwrap();
    assert_eq!(info.tts[0].more["supports_synthesize_streaming"], true);
    let voice = info.tts[0].models().next().unwrap();
    assert_eq!(
        (
            voice.artifact.name.as_str(),
            voice.languages.join(" ").as_str()
        ),
        ("anna", "de")
    );
    let nameless = TtsService::new(Arc::new(LetterEngine::default()), "", Vec::new()).info();
    assert_eq!(
        nameless.tts[0].models().next().unwrap().artifact.name,
        "toolgate"
    );
    stop.cancel();
}
