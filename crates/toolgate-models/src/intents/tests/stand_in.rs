//! Instead of a model that can not be reached.

use super::fast_path::Model;
use super::talking::*;
use super::*;

/// A model that is there or not.
struct Fleeting {
    is_there: AtomicBool,
    asked: AtomicUsize,
}

impl Fleeting {
    fn away() -> Arc<Self> {
        Arc::new(Self {
            is_there: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl ModelClient for Fleeting {
    fn provider(&self) -> Provider {
        Model.provider()
    }

    fn model(&self) -> &str {
        "big"
    }

    fn window(&self) -> usize {
        Model.window()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        Model.catalog(tools)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_there.load(Ordering::Relaxed) {
            return Box::pin(async move { Model.reply(request, listener).await });
        }
        Box::pin(std::future::ready(Err(ModelError::Unreachable {
            provider: self.provider(),
            url: "http://nowhere".to_owned(),
            reason: "nobody answers".to_owned(),
        })))
    }
}

/// What comes of a sentence, behind the notices that were told.
async fn outcome(client: &StandIn, history: &[Message]) -> String {
    let offer = Offer::all(client.catalog(&Arc::new(ToolList::new(Vec::new()))));
    let deadline = Instant::now() + Duration::from_secs(60);
    let request = Request::new("", history, &offer, deadline);
    let mut told = String::new();
    let mut listener = |event: Event<'_>| {
        if let Event::Notice(notice) = event {
            told = format!("[{notice}] ");
        }
    };
    let reply = client.reply(request, &mut listener).await;
    let answer = reply.map_or_else(|error| error.to_string(), |reply| shown(&reply));
    told + &answer
}

const AWAY: &str = "[ollama can not be reached: what needs no model is answered without one] ";

#[tokio::test(start_paused = true)]
async fn what_needs_no_model_is_answered_while_it_is_away_and_the_rest_is_its_error() {
    let model = Fleeting::away();
    let client = StandIn::new(everything(), Arc::clone(&model) as Arc<dyn ModelClient>);
    let sum = || vec![user("what is 2 plus 2")];
    let call = format!("{AWAY}math_eval {{\"expression\":\"2 + 2\"}}");
    assert_eq!(outcome(&client, &sum()).await, call);
    let error = outcome(&client, &[user("tell me a story")]).await;
    assert!(error.contains("nobody answers"), "{error}");
    assert_eq!(model.asked(), 2);

    // It is not tried in vain for what needs none, until a minute has passed.
    assert_eq!(outcome(&client, &sum()).await, call);
    assert_eq!(model.asked(), 2);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(outcome(&client, &sum()).await, call);
    assert_eq!(model.asked(), 3);

    // Back again, it is asked everything.
    model.is_there.store(true, Ordering::Relaxed);
    assert_eq!(outcome(&client, &[user("a story")]).await, "the model");
    assert_eq!(outcome(&client, &sum()).await, "the model");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_began_without_a_model_ends_without_one() {
    let model = Fleeting::away();
    let client = StandIn::new(everything(), Arc::clone(&model) as Arc<dyn ModelClient>);
    for (sentence, result, is_error, expected) in [
        ("what is 2 plus 2", r#"{"result":4}"#, false, "2 + 2 = 4"),
        (
            "what is 7 divided by zero",
            "It is Infinity",
            true,
            "It is Infinity",
        ),
    ] {
        let history = vec![user(sentence)];
        let reply = ask(&client, &history).await;
        let history = with_result(with(history, &reply), result, is_error);
        assert_eq!(outcome(&client, &history).await, expected);
    }
    assert_eq!(model.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_model_is_not_taken_over() {
    let client = StandIn::new(everything(), Fleeting::away());
    let call = ModelCall {
        id: "call_1".to_owned(),
        name: "math_eval".to_owned(),
        arguments: CallArguments::read(""),
    };
    let parts = vec![Part::Call(call)];
    let called = Message::Assistant(AssistantMessage { parts });
    let history = with_result(vec![user("what is 2 plus 2"), called], "4", false);
    let error = outcome(&client, &history).await;
    assert!(error.contains("nobody answers"), "{error}");
}
