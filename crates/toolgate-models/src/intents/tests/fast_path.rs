//! In front of a model, and instead of one.

use super::talking::*;
use super::*;
use crate::{Conversation, ModelSettings};

/// A model that only says that it was asked.
pub(super) struct Model;

impl ModelClient for Model {
    fn provider(&self) -> Provider {
        Provider::Ollama
    }

    fn model(&self) -> &str {
        "big"
    }

    fn window(&self) -> usize {
        99
    }

    fn catalog(&self, _: &Arc<ToolList>) -> Arc<Catalog> {
        CatalogCache::default().get(&Arc::new(ToolList::new(Vec::new())), &DIALECT)
    }

    fn reply<'a>(
        &'a self,
        _: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            Ok(reply(
                AssistantMessage::text("the model"),
                Stop::End,
                listener,
            ))
        })
    }
}

#[tokio::test]
async fn in_front_of_a_model_only_what_is_certain_is_answered() {
    let client = FastPath::new(everything(), Arc::new(Model));
    assert_eq!(
        (client.provider(), client.model(), client.window()),
        (Provider::Ollama, "big", 99)
    );
    for (text, expected) in [
        (
            "turn on the kitchen light",
            r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#,
        ),
        ("what is 2 plus 2", r#"math_eval {"expression":"2 + 2"}"#),
        (
            "unlock the front door",
            r#"control_lock {"deviceName":"Front Door","action":"unlock"}"#,
        ),
        ("turn on the kitchen", "the model"),
        ("turn on the lamp", "the model"),
        ("turn on the kichen light", "the model"),
        ("unlock the frnt door", "the model"),
        ("search for cats", "the model"),
        ("negative five squared", "the model"),
        ("set the volume to 150", "the model"),
        ("turn it off", "the model"),
        ("turn everything off", "the model"),
        ("help", "the model"),
        ("thanks", "the model"),
        ("what is the weather", "the model"),
        ("turn on the garage fountain", "the model"),
        ("", "the model"),
    ] {
        assert_eq!(say(&client, text).await, expected, "{text}");
        let understands = client.understands(text).await;
        assert_eq!(understands, expected != "the model", "{text}");
    }
    assert!(!Model.understands("what is 2 plus 2").await);
}

#[tokio::test(start_paused = true)]
async fn a_slow_list_holds_up_a_turn_for_a_moment_only_and_is_there_for_a_later_one() {
    let (intents, asked) = slow_house(Duration::from_secs(1));
    let client = FastPath::new(intents, Arc::new(Model));
    let started = Instant::now();
    for turn in 1..=3 {
        assert_eq!(say(&client, "turn on the kitchen light").await, "the model");
        assert_eq!(started.elapsed(), fast::PATIENCE * turn);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        say(&client, "turn on the kitchen light").await,
        r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1, "one reading serves all");
}

#[tokio::test]
async fn who_begins_a_turn_ends_it() {
    let client = FastPath::new(everything(), Arc::new(Model));
    let history = vec![user("what is 2 plus 2")];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), r#"{"result":4}"#, false);
    assert_eq!(shown(&ask(&client, &history).await), "2 + 2 = 4");

    let history = vec![user("what is 7 divided by zero")];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), "It is Infinity", true);
    assert_eq!(
        shown(&ask(&client, &history).await),
        "the model",
        "a call that failed is for the model to explain"
    );

    let call = ModelCall {
        id: "call_1".to_owned(),
        name: "math_eval".to_owned(),
        arguments: CallArguments::read(""),
    };
    let history = vec![
        user("what is 2 plus 2"),
        Message::Assistant(AssistantMessage {
            parts: vec![Part::Call(call)],
        }),
    ];
    let history = with_result(history, r#"{"result":4}"#, false);
    assert_eq!(shown(&ask(&client, &history).await), "the model");
}

#[tokio::test]
async fn a_whole_conversation_needs_no_model() {
    let client = everything();
    let toolbox = client.toolbox.clone();
    let mut conversation = Conversation::new(Arc::new(client), toolbox, ModelSettings::default());
    for (text, answer, calls) in [
        ("What is 12 percent of 80?", "12% of 80 is 9.6", 1),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3", 1),
        ("17% of 340", "17% of 340 is 57.8", 1),
        ("what is 5!", "5! = 120", 1),
        ("5!", "5! = 120", 1),
        ("100!", "100! = about 9.33262154439e157", 1),
        (
            "123456789 times 987654321",
            "123456789 * 987654321 = about 1.21932631113e17",
            1,
        ),
        ("2^64", "2 ^ 64 = about 1.84467440737e19", 1),
        ("2^53 - 1", "2 ^ 53 - 1 = 9007199254740991", 1),
        ("10 percent off 50", "50 - 10% = 45", 1),
        ("three quarters of 80", "3 / 4 * 80 = 60", 1),
        ("2 to the 8th", "2 ^ 8 = 256", 1),
        ("negative five squared", "(-5)^2 = 25", 1),
        ("sin 90", "sin(90 radians) is 0.893996663601", 1),
        ("100 F in C", "100 degF to degC = 37.78 °C", 1),
        ("how many inches in a foot", "1 ft to inch = 12 inches", 1),
        ("how many grams in 2 pounds", "2 lb to g = 907.18 g", 1),
        (
            "what is 7 divided by zero",
            "7 / 0 has no finite result.",
            1,
        ),
        (
            "what weekday was 2000-02-29",
            "February 29, 2000 was a Tuesday.",
            1,
        ),
        (
            "turn on the kitchen light and the bedroom light",
            "It is done.",
            2,
        ),
        (
            "turn on the kitchen",
            "Which one: Kitchen Light or Kitchen Lamp?",
            0,
        ),
        ("the lamp", "It is done.", 1),
        ("thanks", "You are welcome.", 0),
    ] {
        let turn = conversation
            .turn(text, &mut |_: Event<'_>| {})
            .await
            .unwrap();
        let called: usize = turn.rounds.iter().map(|round| round.calls.len()).sum();
        assert_eq!(called, calls, "{text}: {}", turn.answer);
        assert_eq!(turn.answer, answer, "{text}");
    }
}
