use parking_lot::Mutex;
use std::time::Duration;

use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::wyoming::{Address, Connection, Listener, describe};

const PATIENCE: Duration = Duration::from_secs(30);

/// Repeats every request, and does what it is not told not to.
#[derive(Default)]
struct Parrot(Mutex<Vec<Asked>>);

impl Respond for Parrot {
    fn respond(&self, asked: Asked, _: Arc<Script>) -> BoxFuture<'_, Answered> {
        let ok = !asked.text.starts_with("do not");
        let text = format!("You said: {}", asked.text);
        self.0.lock().push(asked);
        async move { Answered { text, ok } }.boxed()
    }
}

async fn start(parrot: &Arc<Parrot>) -> (Address, CancellationToken) {
    serve(Arc::<Parrot>::clone(parrot)).await
}

async fn serve(respond: Arc<dyn Respond>) -> (Address, CancellationToken) {
    let server = Listener::bind(&"tcp://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = server.address().clone();
    let stop = CancellationToken::new();
    let service = Arc::new(HandleService::new(respond, Vec::new()));
    tokio::spawn(server.serve(service, stop.clone()));
    (address, stop)
}

fn transcript(text: &str, context: Option<Context>) -> Event {
    Event::Transcript {
        text: text.to_owned(),
        language: Some("en".to_owned()),
        context,
    }
}

fn chunk(text: &str) -> Event {
    let text = text.to_owned();
    Event::TranscriptChunk { text }
}

const BEGIN: Event = Event::TranscriptStart {
    language: None,
    context: None,
};

fn handled(text: &str, context: Option<Context>) -> Event {
    let text = Some(text.to_owned());
    Event::Handled { text, context }
}

/// What comes back for these events, up to the end of the connection or the last event that is expected.
async fn talk(address: &Address, sent: &[Event], count: usize) -> Vec<Event> {
    let mut connection = Connection::connect(address, PATIENCE).await.unwrap();
    for event in sent {
        connection.send(event).await.unwrap();
    }
    let mut answers = Vec::new();
    while answers.len() < count {
        answers.push(connection.receive().await.unwrap().unwrap());
    }
    // Nothing comes after them but the answer to this.
    connection.send(&Event::Ping { text: None }).await.unwrap();
    assert_eq!(
        connection.receive().await,
        Ok(Some(Event::Pong { text: None }))
    );
    answers
}

#[tokio::test]
async fn home_assistant_asks_and_is_answered_with_its_context() {
    let parrot = Arc::new(Parrot::default());
    let (address, stop) = start(&parrot).await;
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
    let asked = parrot.0.lock().pop().unwrap();
    let text = |text: &str| Some(text.to_owned());
    let expected = Asked {
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
async fn requests_of_one_connection_are_known_as_such() {
    let parrot = Arc::new(Parrot::default());
    let (address, stop) = start(&parrot).await;
    for _ in 0..2 {
        let sent = [transcript("One", None), transcript("Two", None)];
        talk(&address, &sent, 2).await;
    }
    let asked = parrot.0.lock();
    let connections: Vec<u64> = asked.iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1]);
    stop.cancel();
}

#[tokio::test]
async fn what_was_not_done_is_not_handled() {
    let (address, stop) = start(&Arc::default()).await;
    let expected = Event::NotHandled {
        text: Some("You said: do not do it".to_owned()),
        context: None,
    };
    let whole = [transcript("do not do it", None)];
    let pieces = [
        BEGIN,
        chunk("do not "),
        chunk("do it"),
        Event::TranscriptStop,
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
fn ids_are_texts_of_a_sane_length() {
    let id = |value: Value| {
        let context = Some([("device_id".to_owned(), value)].into_iter().collect());
        let request = Request {
            context,
            ..Request::default()
        };
        request.asked(0).device_id
    };
    let longest = "x".repeat(LONGEST_ID);
    assert_eq!(id(json!(longest)), Some(longest.clone()));
    for unfit in [json!(null), json!(7), json!(format!("{longest}x"))] {
        assert_eq!(id(unfit), None);
    }
}

#[tokio::test]
async fn nobody_is_asked_about_nothing() {
    let parrot = Arc::new(Parrot::default());
    let (address, stop) = start(&parrot).await;
    let expected = Event::NotHandled {
        text: Some("I did not hear anything.".to_owned()),
        context: None,
    };
    for sent in [
        vec![transcript(" \n", None)],
        vec![BEGIN, Event::TranscriptStop],
    ] {
        assert_eq!(
            talk(&address, &sent, 1).await,
            std::slice::from_ref(&expected)
        );
    }
    assert!(parrot.0.lock().is_empty());
    stop.cancel();
}

#[tokio::test]
async fn a_client_that_sends_pieces_gets_pieces() {
    let (address, stop) = start(&Arc::default()).await;
    let expected = [
        Event::HandledStart { context: None },
        Event::HandledChunk {
            text: "You said: one two".to_owned(),
        },
        handled("You said: one two", None),
        Event::HandledStop,
    ];
    let pieces = [BEGIN, chunk("one "), chunk("two"), Event::TranscriptStop];
    assert_eq!(talk(&address, &pieces, 4).await, expected);
    // The whole text among the pieces counts, and only once.
    let both = [
        BEGIN,
        chunk("on"),
        transcript("one two", None),
        Event::TranscriptStop,
    ];
    assert_eq!(talk(&address, &both, 4).await, expected);
    stop.cancel();
}

/// Says these words at once, and comes to this answer once it is told to.
struct Teller(&'static [&'static str], Answered, Arc<tokio::sync::Notify>);

impl Respond for Teller {
    fn respond(&self, _: Asked, script: Arc<Script>) -> BoxFuture<'_, Answered> {
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
    let said = |text: &str| Event::HandledChunk {
        text: text.to_owned(),
    };
    let not_handled = |text: &str| Event::NotHandled {
        text: Some(text.to_owned()),
        context: None,
    };
    // What is told, what it comes to, and the events after the first chunk.
    for (words, answered, rest) in [
        (
            &["Let me see.", "It is noon."][..],
            Answered::done("It is noon."),
            vec![
                said(" It is noon."),
                handled("Let me see. It is noon.", None),
            ],
        ),
        (
            &["It is "],
            Answered::done("It is noon."),
            vec![said("It is noon."), handled("It is It is noon.", None)],
        ),
        (
            &["It is"],
            Answered::failed("Sorry."),
            vec![said(" Sorry."), not_handled("It is Sorry.")],
        ),
        (
            &["I did not get that."],
            Answered::failed("I did not get that."),
            vec![not_handled("I did not get that.")],
        ),
    ] {
        let answer = Arc::new(tokio::sync::Notify::new());
        let teller = Teller(words, answered, Arc::clone(&answer));
        let (address, stop) = serve(Arc::new(teller)).await;
        let mut connection = Connection::connect(&address, PATIENCE).await.unwrap();
        for event in [BEGIN, chunk("when is it"), Event::TranscriptStop] {
            connection.send(&event).await.unwrap();
        }
        let mut next = async || timeout(PATIENCE, connection.receive()).await.unwrap();
        let start = Event::HandledStart { context: None };
        for expected in [start, said(words[0])] {
            assert_eq!(next().await, Ok(Some(expected)));
        }
        answer.notify_one();
        for expected in rest.into_iter().chain([Event::HandledStop]) {
            assert_eq!(next().await, Ok(Some(expected)));
        }
        stop.cancel();
    }
}

#[tokio::test]
async fn whoever_wants_another_service_is_told_that_it_is_not_here() {
    let (address, stop) = start(&Arc::default()).await;
    let text = Event::Synthesize {
        text: "Hello.".to_owned(),
        voice: None,
        text_format: None,
    };
    let answers = talk(&address, &[text], 1).await;
    let Event::Error { text, .. } = &answers[0] else {
        panic!("{answers:?}");
    };
    assert!(text.contains("no speech"), "{text}");
    stop.cancel();
}

/// Never has an answer; tells when it was asked, and when nobody waits any more.
struct Slow(mpsc::UnboundedSender<&'static str>);

impl Respond for Slow {
    fn respond(&self, _: Asked, _: Arc<Script>) -> BoxFuture<'_, Answered> {
        self.0.send("asked").unwrap();
        let gone = Gone(self.0.clone());
        async move {
            let _gone = gone;
            std::future::pending().await
        }
        .boxed()
    }
}

struct Gone(mpsc::UnboundedSender<&'static str>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.send("gone").unwrap();
    }
}

#[tokio::test]
async fn a_client_that_goes_away_is_not_answered_any_more() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (address, stop) = serve(Arc::new(Slow(tell))).await;
    let whole = [transcript("one", None)];
    let pieces = [BEGIN, transcript("one", None), Event::TranscriptStop];
    for sent in [&whole[..], &pieces] {
        let mut connection = Connection::connect(&address, PATIENCE).await.unwrap();
        for event in sent {
            connection.send(event).await.unwrap();
        }
        assert_eq!(told.recv().await, Some("asked"));
        // Whoever waits may still ask whether anybody is there.
        connection.send(&Event::Ping { text: None }).await.unwrap();
        let pong = connection.receive().await.unwrap();
        assert_eq!(pong, Some(Event::Pong { text: None }));
        drop(connection);
        let gone = timeout(PATIENCE, told.recv()).await;
        assert_eq!(gone.unwrap(), Some("gone"));
    }
    stop.cancel();
}

#[tokio::test]
async fn what_is_not_for_it_is_ignored_and_requests_may_follow_each_other() {
    let parrot = Arc::new(Parrot::default());
    let (address, stop) = start(&parrot).await;
    let sent = [
        Event::Played,
        chunk("lost"),
        Event::TranscriptStop,
        transcript("one", Some(Map::new())),
        transcript("two", None),
    ];
    let expected = [
        handled("You said: one", Some(Map::new())),
        handled("You said: two", None),
    ];
    assert_eq!(talk(&address, &sent, 2).await, expected);
    assert_eq!(parrot.0.lock().len(), 2);
    stop.cancel();
}

#[tokio::test]
async fn a_request_that_is_too_long_is_refused_whole_or_in_pieces() {
    let parrot = Arc::new(Parrot::default());
    let (address, stop) = start(&parrot).await;
    let text = |length: usize| "x".repeat(length);
    let mut pieces = vec![BEGIN];
    pieces.extend((0..1000).map(|_| chunk(&text(LONGEST))));
    pieces.push(Event::TranscriptStop);
    for sent in [vec![transcript(&text(LONGEST + 1), None)], pieces] {
        let answers = talk(&address, &sent, 1).await;
        assert!(
            matches!(&answers[0], Event::Error { text, .. } if text == "a request has at most 4096 bytes")
        );
    }
    assert!(parrot.0.lock().is_empty());
    let longest = [transcript(&text(LONGEST), None)];
    assert!(matches!(
        talk(&address, &longest, 1).await[0],
        Event::Handled { .. }
    ));
    stop.cancel();
}

#[tokio::test]
async fn it_says_that_it_controls_the_home() {
    let (address, stop) = start(&Arc::default()).await;
    let info = describe(&address, PATIENCE).await.unwrap();
    let program = &info.handle[0];
    assert!(program.artifact.installed && program.models[0].artifact.installed);
    assert!(program.supports_home_control && program.supports_handled_streaming);
    assert_eq!(program.models[0].languages, ["en"]);
    stop.cancel();
}
