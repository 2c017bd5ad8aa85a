//! Sentences in place of a model that can't be reached.

use super::*;

/// A model that is sometimes away.
struct UnreliableModel {
    is_there: AtomicBool,
    asked: AtomicUsize,
    /// How long its further attempts take.
    attempts: Duration,
}

impl UnreliableModel {
    fn away() -> Arc<Self> {
        Self::away_after(Duration::ZERO)
    }

    fn away_after(attempts: Duration) -> Arc<Self> {
        Arc::new(Self {
            is_there: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            attempts,
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl ModelClient for UnreliableModel {
    fn provider(&self) -> Provider {
        CountingModel.provider()
    }

    fn model(&self) -> &str {
        "big"
    }

    fn window(&self) -> usize {
        CountingModel.window()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        CountingModel.catalog(tools)
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_there.load(Ordering::Relaxed) {
            return Box::pin(async move { CountingModel.reply(request, listener).await });
        }
        let error = ModelError::Unreachable {
            provider: self.provider(),
            url: "http://nowhere".to_owned(),
            reason: "nobody answers".to_owned(),
        };
        Box::pin(async move {
            if !self.attempts.is_zero() {
                let (error, after) = (&error, self.attempts);
                listener.event(ModelEvent::Retrying { error, after });
                tokio::time::sleep(after).await;
            }
            Err(error)
        })
    }
}

fn last(model: Arc<UnreliableModel>) -> SentenceRouter {
    SentenceRouter::new(model).sentences_last(sentences_of(all_tools()))
}

/// The reply to a sentence, after the notices.
async fn outcome(client: &SentenceRouter, history: &[Message]) -> String {
    let offer = offer(client);
    let request = request(history, &offer);
    let mut told = String::new();
    let mut listener = |event: ModelEvent<'_>| {
        if let ModelEvent::Notice(notice) = event {
            told = format!("[{notice}] ");
        }
    };
    let reply = client.reply(request, &mut listener).await;
    let answer = reply.map_or_else(|error| error.to_string(), |reply| shown(&reply));
    told + &answer
}

const AWAY: &str = "[ollama can't be reached; requests that need no model are still answered] ";

#[tokio::test(start_paused = true)]
async fn sentences_answer_while_the_model_is_unavailable() {
    let model = UnreliableModel::away();
    let client = last(Arc::clone(&model));
    let sum = || vec![user("what is 2 plus 2")];
    let call = format!("{AWAY}math_eval {{\"expression\":\"2 + 2\"}}");
    assert_eq!(outcome(&client, &sum()).await, call);
    let error = outcome(&client, &[user("tell me a story")]).await;
    assert!(error.contains("nobody answers"), "{error}");
    assert_eq!(model.asked(), 2);

    // What needs no model must not try it in vain.
    assert_eq!(outcome(&client, &sum()).await, call);
    assert_eq!(model.asked(), 2);

    // Once it's back, it's asked everything.
    model.is_there.store(true, Ordering::Relaxed);
    assert_eq!(outcome(&client, &[user("a story")]).await, "the model");
    assert_eq!(outcome(&client, &sum()).await, "the model");
}

#[tokio::test(start_paused = true)]
async fn a_turn_begun_by_sentences_is_ended_by_them() {
    let model = UnreliableModel::away();
    let client = last(Arc::clone(&model));
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
async fn sentences_do_not_continue_the_models_calls() {
    let client = last(UnreliableModel::away());
    let called = model_call("math_eval", "");
    let history = with_result(vec![user("what is 2 plus 2"), called], "4", false);
    let error = outcome(&client, &history).await;
    assert!(error.contains("nobody answers"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn further_attempts_are_awaited_only_without_a_sentence() {
    let attempts = Duration::from_secs(20);
    for (sentence, is_understood) in [("what is 2 plus 2", true), ("tell me a story", false)] {
        let client = last(UnreliableModel::away_after(attempts));
        let started = Instant::now();
        let answer = outcome(&client, &[user(sentence)]).await;
        assert_eq!(answer.contains("math_eval"), is_understood, "{answer}");
        assert_eq!(started.elapsed() < attempts, is_understood, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_must_end_reports_its_results() {
    let client = last(UnreliableModel::away());
    let history = vec![user("what is 2 plus 2")];
    let reply = ask(&client, &history).await;
    let mut history = with_result(with(history, &reply), r#"{"result":4}"#, false);
    history.push(user("(No more tools can be used in this turn.)"));
    let offer = offer(&client);
    let mut request = request(&history, &offer);
    request.forbid_tools = true;
    let reply = client
        .reply(request, &mut |_: ModelEvent<'_>| {})
        .await
        .unwrap();
    assert_eq!(shown(&reply), "2 + 2 = 4");
}

#[tokio::test(start_paused = true)]
async fn the_models_last_call_is_not_a_sentences_context() {
    let client = last(UnreliableModel::away());
    let history = vec![user("turn on switch one")];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), "{}", false);
    let reply = ask(&client, &history).await;
    let mut history = with(history, &reply);
    let it = [history.clone(), vec![user("turn it off")]].concat();
    let answer = outcome(&client, &it).await;
    assert!(answer.contains("Switch 1"), "{answer}");

    let arguments = r#"{"deviceName":"Fan","action":"on"}"#;
    let called = model_call("control_zwave_device", arguments);
    history.extend([user("the fan, too"), called]);
    let mut history = with_result(history, "{}", false);
    history.push(user("turn it off"));
    let answer = outcome(&client, &history).await;
    assert!(!answer.contains("Switch 1"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_model_is_always_reported() {
    for (sentence, expected) in [
        ("what is 2 plus 2", ["away", "notice"].as_slice()),
        ("tell me a story", &["away"]),
    ] {
        let client = last(UnreliableModel::away());
        let history = [user(sentence)];
        let offer = offer(&client);
        let mut told = Vec::new();
        let mut listener = |event: ModelEvent<'_>| match event {
            ModelEvent::ModelUnavailable { .. } => told.push("away"),
            ModelEvent::Notice(_) => told.push("notice"),
            _ => {}
        };
        let reply = client.reply(request(&history, &offer), &mut listener).await;
        assert_eq!(reply.is_ok(), expected.len() == 2, "{sentence}");
        assert_eq!(told, expected, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn sentences_do_not_wait_for_all_tools() {
    let sum = "what is 2 plus 2";
    let client = last(UnreliableModel::away());
    assert!(!client.understands(sum).await, "the model would be asked");
    assert!(client.needs_all_tools("tell me a story").await);
    ask(&client, &[user(sum)]).await;
    assert!(client.understands(sum).await);
    assert!(!client.needs_all_tools("tell me a story").await);
    // Clones learn what someone else noticed.
    client.clone().set_available();
    assert!(!client.understands(sum).await);
}

#[tokio::test(start_paused = true)]
async fn a_failed_sentence_is_explained_by_an_available_model() {
    for is_there in [true, false] {
        let model = UnreliableModel::away();
        model.is_there.store(is_there, Ordering::Relaxed);
        let sentences = sentences_of(all_tools());
        let client = SentenceRouter::new(model)
            .sentences_first(Arc::clone(&sentences))
            .sentences_last(sentences);
        let history = vec![user("what is 7 divided by zero")];
        let reply = ask(&client, &history).await;
        let history = with_result(with(history, &reply), "It broke", true);
        let expected = if is_there { "the model" } else { "It broke" };
        assert_eq!(outcome(&client, &history).await, expected);
    }
}

/// Says one word and then disappears.
struct VanishingModel;

impl ModelClient for VanishingModel {
    fn provider(&self) -> Provider {
        CountingModel.provider()
    }

    fn model(&self) -> &str {
        "big"
    }

    fn window(&self) -> usize {
        CountingModel.window()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        CountingModel.catalog(tools)
    }

    fn reply<'a>(
        &'a self,
        _: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        listener.event(ModelEvent::Text("Well, "));
        let error = ModelError::TimedOut {
            provider: self.provider(),
            what: FINISH,
            after: Duration::from_secs(1),
        };
        Box::pin(std::future::ready(Err(error)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_has_sent_text_is_not_interrupted() {
    let sentences = sentences_of(all_tools());
    let client = SentenceRouter::new(Arc::new(VanishingModel)).sentences_last(sentences);
    let sum = [user("what is 2 plus 2")];
    let error = outcome(&client, &sum).await;
    assert!(!error.contains("math_eval"), "{error}");
    // From then on it counts as away.
    let answer = outcome(&client, &sum).await;
    assert!(answer.contains("math_eval"), "{answer}");
}
