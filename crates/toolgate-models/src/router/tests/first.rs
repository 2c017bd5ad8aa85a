//! Sentences in front of a model.

use super::*;

#[tokio::test]
async fn sentences_first_answer_only_certain_requests() {
    let client = first();
    assert_eq!(
        (client.source(), client.model_name(), client.window()),
        (Provider::Ollama.into(), "big", 9999)
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
    let alone = SentenceRouter::new(Arc::new(CountingModel));
    assert!(!alone.understands("what is 2 plus 2").await);
}

#[tokio::test(start_paused = true)]
async fn slow_names_delay_a_turn_only_briefly() {
    let (tools, asked) = house_tools(Duration::from_secs(1));
    let sentences = sentences_of(toolbox_of(tools));
    let client = SentenceRouter::new(Arc::new(CountingModel)).sentences_first(sentences);
    let started = Instant::now();
    for turn in 1..=3 {
        assert_eq!(say(&client, "turn on the kitchen light").await, "the model");
        assert_eq!(started.elapsed(), SENTENCES_TIMEOUT * turn);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(say(&client, "turn on the kitchen light").await, LIGHT_ON);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "one reading serves all");
}

#[tokio::test]
async fn sentences_end_the_turn_they_begin() {
    let client = first();
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

    let history = vec![user("what is 2 plus 2"), model_call("math_eval", "")];
    let history = with_result(history, r#"{"result":4}"#, false);
    assert_eq!(shown(&ask(&client, &history).await), "the model");
}

#[tokio::test]
async fn several_requests_go_to_the_model_unless_all_are_certain() {
    let client = first();
    let half = "turn on the kitchen lamp and sing a song";
    assert_eq!(say(&client, half).await, "the model");
    let mut history = vec![user("turn on the kitchen lamp and what is 2 plus 2")];
    for expected in [
        r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"}"#,
        r#"math_eval {"expression":"2 + 2"}"#,
    ] {
        let reply = ask(&client, &history).await;
        assert_eq!(shown(&reply), expected);
        let done = r#"{"message":"It is done."}"#;
        history = with_result(with(history, &reply), done, false);
    }
    assert_ne!(ask(&client, &history).await.stop, StopReason::Calls);
}
