use parking_lot::Mutex;
use std::time::Duration;

use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::wyoming::{WyomingAddress, WyomingConnection, WyomingListener, describe};

const PATIENCE: Duration = Duration::from_secs(30);

/// Repeats every request, and refuses those that say so.
#[derive(Default)]
struct EchoHandler(Mutex<Vec<HandleRequest>>);

impl RequestHandler for EchoHandler {
    fn respond(
        &self,
        request: HandleRequest,
        _: Arc<AnswerScript>,
    ) -> BoxFuture<'_, HandleResponse> {
        let ok = !request.text.starts_with("do not");
        let text = format!("You said: {}", request.text);
        self.0.lock().push(request);
        async move { HandleResponse { text, ok } }.boxed()
    }
}

async fn start(handler: &Arc<EchoHandler>) -> (WyomingAddress, CancellationToken) {
    serve(Arc::<EchoHandler>::clone(handler)).await
}

async fn serve(handler: Arc<dyn RequestHandler>) -> (WyomingAddress, CancellationToken) {
    let server = WyomingListener::bind(&"tcp://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = server.address().clone();
    let stop = CancellationToken::new();
    let service = Arc::new(HandleService::new(handler, Vec::new()));
    tokio::spawn(server.serve(service, stop.clone()));
    (address, stop)
}

fn transcript(text: &str, context: Option<HandleContext>) -> WyomingEvent {
    WyomingEvent::Transcript {
        text: text.to_owned(),
        language: Some("en".to_owned()),
        context,
    }
}

fn chunk(text: &str) -> WyomingEvent {
    let text = text.to_owned();
    WyomingEvent::TranscriptChunk { text }
}

const BEGIN: WyomingEvent = WyomingEvent::TranscriptStart {
    language: None,
    context: None,
};

fn handled(text: &str, context: Option<HandleContext>) -> WyomingEvent {
    let text = Some(text.to_owned());
    WyomingEvent::Handled { text, context }
}

/// The replies to these events, up to the end of the connection or the last expected event.
async fn talk(address: &WyomingAddress, sent: &[WyomingEvent], count: usize) -> Vec<WyomingEvent> {
    let mut connection = WyomingConnection::connect(address, PATIENCE).await.unwrap();
    for event in sent {
        connection.send(event).await.unwrap();
    }
    let mut answers = Vec::new();
    while answers.len() < count {
        answers.push(connection.receive().await.unwrap().unwrap());
    }
    // Only the reply to this may follow.
    connection
        .send(&WyomingEvent::Ping { text: None })
        .await
        .unwrap();
    assert_eq!(
        connection.receive().await,
        Ok(Some(WyomingEvent::Pong { text: None }))
    );
    answers
}

#[tokio::test]
async fn answer_returns_the_context_of_home_assistant() {
    let handler = Arc::new(EchoHandler::default());
    let (address, stop) = start(&handler).await;
    let Value::Object(context) = json!({
        "conversation_id": "01J", "device_id": "d1", "satellite_id": "assist_satellite.kitchen", "more": [1],
    }) else {
        unreachable!();
    };
    let sent = [transcript(" Turn on the light. ", Some(context.clone()))];
    let answers = talk(&address, &sent, 1).await;
    assert_eq!(
        answers,
        [handled("You said: Turn on the light.", Some(context))]
    );
    let asked = handler.0.lock().pop().unwrap();
    let text = |text: &str| Some(text.to_owned());
    let expected = HandleRequest {
        text: "Turn on the light.".to_owned(),
        conversation_id: text("01J"),
        device_id: text("d1"),
        satellite_id: text("assist_satellite.kitchen"),
        connection: 0,
    };
    assert_eq!(asked, expected);
    stop.cancel();
}

#[tokio::test]
async fn requests_of_one_connection_share_its_number() {
    let handler = Arc::new(EchoHandler::default());
    let (address, stop) = start(&handler).await;
    for _ in 0..2 {
        let sent = [transcript("One", None), transcript("Two", None)];
        talk(&address, &sent, 2).await;
    }
    let asked = handler.0.lock();
    let connections: Vec<u64> = asked.iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1]);
    stop.cancel();
}

#[tokio::test]
async fn unhandled_request_is_not_handled() {
    let (address, stop) = start(&Arc::default()).await;
    let expected = WyomingEvent::NotHandled {
        text: Some("You said: do not do it".to_owned()),
        context: None,
    };
    let whole = [transcript("do not do it", None)];
    let pieces = [
        BEGIN,
        chunk("do not "),
        chunk("do it"),
        WyomingEvent::TranscriptStop,
    ];
    for sent in [&whole[..], &pieces] {
        assert_eq!(
            talk(&address, sent, 1).await,
            std::slice::from_ref(&expected)
        );
    }
    stop.cancel();
}

#[test]
fn ids_must_be_text_of_bounded_length() {
    let id = |value: Value| {
        let context = Some([("device_id".to_owned(), value)].into_iter().collect());
        let request = BufferedRequest {
            context,
            ..BufferedRequest::default()
        };
        request.to_handle_request(0).device_id
    };
    let longest = "x".repeat(MAX_ID_LEN);
    assert_eq!(id(json!(longest)), Some(longest.clone()));
    for unfit in [json!(null), json!(7), json!(format!("{longest}x"))] {
        assert_eq!(id(unfit), None);
    }
}

#[tokio::test]
async fn empty_request_is_not_passed_to_the_handler() {
    let handler = Arc::new(EchoHandler::default());
    let (address, stop) = start(&handler).await;
    let expected = WyomingEvent::NotHandled {
        text: Some("I didn't hear anything.".to_owned()),
        context: None,
    };
    for sent in [
        vec![transcript(" \n", None)],
        vec![BEGIN, WyomingEvent::TranscriptStop],
    ] {
        assert_eq!(
            talk(&address, &sent, 1).await,
            std::slice::from_ref(&expected)
        );
    }
    assert!(handler.0.lock().is_empty());
    stop.cancel();
}

#[tokio::test]
async fn streamed_request_gets_a_streamed_answer() {
    let (address, stop) = start(&Arc::default()).await;
    let expected = [
        WyomingEvent::HandledStart { context: None },
        WyomingEvent::HandledChunk {
            text: "You said: one two".to_owned(),
        },
        handled("You said: one two", None),
        WyomingEvent::HandledStop,
    ];
    let pieces = [
        BEGIN,
        chunk("one "),
        chunk("two"),
        WyomingEvent::TranscriptStop,
    ];
    assert_eq!(talk(&address, &pieces, 4).await, expected);
    // The whole text among the pieces counts, and only once.
    let both = [
        BEGIN,
        chunk("on"),
        transcript("one two", None),
        WyomingEvent::TranscriptStop,
    ];
    assert_eq!(talk(&address, &both, 4).await, expected);
    stop.cancel();
}

/// Streams these words at once, and answers once notified.
struct StreamingHandler(
    &'static [&'static str],
    HandleResponse,
    Arc<tokio::sync::Notify>,
);

impl RequestHandler for StreamingHandler {
    fn respond(
        &self,
        _: HandleRequest,
        script: Arc<AnswerScript>,
    ) -> BoxFuture<'_, HandleResponse> {
        async move {
            for words in self.0 {
                script.push(words);
                script.flush();
            }
            self.2.notified().await;
            self.1.clone()
        }
        .boxed()
    }
}

#[tokio::test]
async fn words_are_sent_before_there_is_an_answer() {
    let said = |text: &str| WyomingEvent::HandledChunk {
        text: text.to_owned(),
    };
    let not_handled = |text: &str| WyomingEvent::NotHandled {
        text: Some(text.to_owned()),
        context: None,
    };
    // The streamed words, the answer, and the events after the first chunk.
    for (words, answered, rest) in [
        (
            &["Let me see.", "It is noon."][..],
            HandleResponse::done("It is noon."),
            vec![
                said(" It is noon."),
                handled("Let me see. It is noon.", None),
            ],
        ),
        (
            &["It is "],
            HandleResponse::done("It is noon."),
            vec![said("It is noon."), handled("It is It is noon.", None)],
        ),
        (
            &["It is"],
            HandleResponse::failed("Sorry."),
            vec![said(" Sorry."), not_handled("It is Sorry.")],
        ),
        (
            &["I did not get that."],
            HandleResponse::failed("I did not get that."),
            vec![not_handled("I did not get that.")],
        ),
    ] {
        let answer = Arc::new(tokio::sync::Notify::new());
        let teller = StreamingHandler(words, answered, Arc::clone(&answer));
        let (address, stop) = serve(Arc::new(teller)).await;
        let mut connection = WyomingConnection::connect(&address, PATIENCE)
            .await
            .unwrap();
        for event in [BEGIN, chunk("when is it"), WyomingEvent::TranscriptStop] {
            connection.send(&event).await.unwrap();
        }
        let mut next = async || timeout(PATIENCE, connection.receive()).await.unwrap();
        let start = WyomingEvent::HandledStart { context: None };
        for expected in [start, said(words[0])] {
            assert_eq!(next().await, Ok(Some(expected)));
        }
        answer.notify_one();
        for expected in rest.into_iter().chain([WyomingEvent::HandledStop]) {
            assert_eq!(next().await, Ok(Some(expected)));
        }
        stop.cancel();
    }
}

#[tokio::test]
async fn request_for_another_service_gets_an_error() {
    let (address, stop) = start(&Arc::default()).await;
    let text = WyomingEvent::Synthesize {
        text: "Hello.".to_owned(),
        voice: None,
        text_format: None,
    };
    let answers = talk(&address, &[text], 1).await;
    let WyomingEvent::Error { text, .. } = &answers[0] else {
        panic!("{answers:?}");
    };
    assert!(text.ends_with("does not offer speech"), "{text}");
    stop.cancel();
}

/// Never answers. Reports when it was asked and when the client is gone.
struct HangingHandler(mpsc::UnboundedSender<&'static str>);

impl RequestHandler for HangingHandler {
    fn respond(&self, _: HandleRequest, _: Arc<AnswerScript>) -> BoxFuture<'_, HandleResponse> {
        self.0.send("asked").unwrap();
        let gone = AbandonedHandler(self.0.clone());
        async move {
            let _gone = gone;
            std::future::pending().await
        }
        .boxed()
    }
}

struct AbandonedHandler(mpsc::UnboundedSender<&'static str>);

impl Drop for AbandonedHandler {
    fn drop(&mut self) {
        self.0.send("gone").unwrap();
    }
}

#[tokio::test]
async fn request_is_dropped_when_its_client_disconnects() {
    let (tell, mut calls) = mpsc::unbounded_channel();
    let (address, stop) = serve(Arc::new(HangingHandler(tell))).await;
    let whole = [transcript("one", None)];
    let pieces = [BEGIN, transcript("one", None), WyomingEvent::TranscriptStop];
    for sent in [&whole[..], &pieces] {
        let mut connection = WyomingConnection::connect(&address, PATIENCE)
            .await
            .unwrap();
        for event in sent {
            connection.send(event).await.unwrap();
        }
        assert_eq!(calls.recv().await, Some("asked"));
        // A waiting client may still send a ping.
        connection
            .send(&WyomingEvent::Ping { text: None })
            .await
            .unwrap();
        let pong = connection.receive().await.unwrap();
        assert_eq!(pong, Some(WyomingEvent::Pong { text: None }));
        drop(connection);
        let gone = timeout(PATIENCE, calls.recv()).await;
        assert_eq!(gone.unwrap(), Some("gone"));
    }
    stop.cancel();
}

#[tokio::test]
async fn other_events_are_ignored_and_requests_may_follow() {
    let handler = Arc::new(EchoHandler::default());
    let (address, stop) = start(&handler).await;
    let sent = [
        WyomingEvent::Played,
        chunk("lost"),
        WyomingEvent::TranscriptStop,
        transcript("one", Some(Map::new())),
        transcript("two", None),
    ];
    let expected = [
        handled("You said: one", Some(Map::new())),
        handled("You said: two", None),
    ];
    assert_eq!(talk(&address, &sent, 2).await, expected);
    assert_eq!(handler.0.lock().len(), 2);
    stop.cancel();
}

#[tokio::test]
async fn overlong_request_is_rejected_whole_or_streamed() {
    let handler = Arc::new(EchoHandler::default());
    let (address, stop) = start(&handler).await;
    let text = |length: usize| "x".repeat(length);
    let mut pieces = vec![BEGIN];
    pieces.extend((0..1000).map(|_| chunk(&text(MAX_REQUEST_BYTES))));
    pieces.push(WyomingEvent::TranscriptStop);
    for sent in [vec![transcript(&text(MAX_REQUEST_BYTES + 1), None)], pieces] {
        let answers = talk(&address, &sent, 1).await;
        assert!(
            matches!(&answers[0], WyomingEvent::Error { text, .. } if text == "a request can have at most 4096 bytes")
        );
    }
    assert!(handler.0.lock().is_empty());
    let longest = [transcript(&text(MAX_REQUEST_BYTES), None)];
    assert!(matches!(
        talk(&address, &longest, 1).await[0],
        WyomingEvent::Handled { .. }
    ));
    stop.cancel();
}

#[tokio::test]
async fn info_says_that_it_controls_the_home() {
    let (address, stop) = start(&Arc::default()).await;
    let info = describe(&address, PATIENCE).await.unwrap();
    let program = &info.handle[0];
    assert!(program.artifact.installed && program.models().all(|model| model.artifact.installed));
    for supported in ["supports_home_control", "supports_handled_streaming"] {
        assert_eq!(program.more[supported], true);
    }
    assert_eq!(program.models().next().unwrap().languages, ["en"]);
    stop.cancel();
}
