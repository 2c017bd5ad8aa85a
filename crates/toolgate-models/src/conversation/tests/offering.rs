//! Which tools a model is offered.

use super::*;

fn described(name: &str, description: &str) -> Arc<dyn Tool> {
    let parameters = json!({ "type": "object" });
    let definition = ToolDefinition::builder(name, description, parameters);
    defined(definition, async |_| Ok(ToolOutput::text("ran")))
}

fn house() -> Vec<Arc<dyn Tool>> {
    vec![
        described("get_weather", "The weather in a city"),
        described("play_music", "Plays a song"),
        described("set_lamp", "Switches a lamp on or off"),
        described("set_timer", "Rings after some minutes"),
    ]
}

#[tokio::test(start_paused = true)]
async fn all_tools_are_offered_unless_there_are_too_many() {
    let script = ModelScript::new(Vec::<ModelReply>::new());
    let mut reported = ModelEventLog::default();
    let mut conversation = conversation(&script, house());
    conversation
        .turn("Is it raining?", &mut reported)
        .await
        .unwrap();
    assert_eq!(script.last_asked().tools.len(), 4);
    assert!(reported.notices().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tools_that_cannot_be_offered_are_named_once() {
    for (count, expected) in [
        (
            1,
            "openai can't be offered the tool 'bad_00' (its schema can't be expressed)",
        ),
        (
            2,
            "openai can't be offered the tool 'bad_00' (its schema can't be expressed), nor 'bad_01'",
        ),
        (13, "'bad_09', nor 'bad_10', nor 2 more"),
    ] {
        let script = ModelScript::new(Vec::<ModelReply>::new());
        let bad = (0..count).map(|n| described(&format!("bad_{n:02}"), "Unsayable"));
        let mut conversation = conversation(&script, house().into_iter().chain(bad));
        let mut reported = ModelEventLog::default();
        for _ in 0..2 {
            conversation
                .turn("Is it raining?", &mut reported)
                .await
                .unwrap();
        }
        assert_eq!(script.last_asked().tools.len(), 4);
        let notices = reported.notices();
        assert!(
            notices.len() == 1 && notices[0].ends_with(expected),
            "{notices:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_providers_tool_limit_is_kept() {
    for (wanted, offered) in [(0, 2), (1, 1), (3, 2)] {
        let script = Arc::new(ModelScript {
            tool_limit: Some(2),
            ..ModelScript::default()
        });
        let mut conversation =
            conversation_with(&script, house(), |settings| settings.max_tools = wanted);
        let mut reported = ModelEventLog::default();
        let turn = conversation.turn("Is it raining?", &mut reported);
        turn.await.unwrap();
        assert_eq!(script.last_asked().tools.len(), offered, "{wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_best_tools_are_offered_with_those_that_are_pinned_or_were_used() {
    let script = ModelScript::new([
        calls([call("a", "set_lamp", json!({}))]),
        words("It is on."),
        words("Bad."),
    ]);
    let mut conversation = conversation_with(&script, house(), |settings| {
        settings.max_tools = 3;
        settings.pinned_tools = vec!["set_timer".to_owned()];
    });
    let mut reported = ModelEventLog::default();
    conversation
        .turn("Switch the lamp on", &mut reported)
        .await
        .unwrap();
    let offered = script.last_asked().tools;
    assert!(offered.contains(&"set_lamp".to_owned()) && offered.contains(&"set_timer".to_owned()));
    assert_eq!(offered.len(), 3);

    conversation
        .turn("How is the weather in Oslo?", &mut reported)
        .await
        .unwrap();
    assert_eq!(
        script.last_asked().tools,
        ["get_weather", "set_lamp", "set_timer"]
    );
    let notices = reported.notices();
    assert_eq!(
        notices.len(),
        1,
        "told once for a list of tools: {notices:?}"
    );
    assert!(
        notices[0]
            == "Each question is sent with the 3 of 4 tools that fit it best (limited by model.maxTools).",
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn used_tools_count_towards_the_limit() {
    let names = ["get_weather", "play_music", "set_lamp"];
    let used = names.map(|name| call(name, name, json!({})));
    let script = ModelScript::new([calls(used), words("All done.")]);
    let mut conversation = conversation_with(&script, house(), |settings| settings.max_tools = 2);
    say(&mut conversation, "Lamp").await;
    say(&mut conversation, "And again").await;
    assert_eq!(script.last_asked().tools.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pinned_tools_beyond_the_providers_limit_are_named() {
    let script = Arc::new(ModelScript {
        tool_limit: Some(1),
        ..ModelScript::default()
    });
    let mut conversation = conversation_with(&script, house(), |settings| {
        settings.pinned_tools = vec!["set_timer".to_owned(), "set_lamp".to_owned()];
    });
    let mut reported = ModelEventLog::default();
    conversation.turn("Hi", &mut reported).await.unwrap();
    assert_eq!(script.last_asked().tools, ["set_timer"]);
    assert_eq!(
        reported.notices()[0],
        "openai accepts at most 1 tools at once, so these can't be offered although they are pinned: 'set_lamp' (model.pinnedTools)."
    );
    let last = reported.notices().pop().unwrap();
    assert!(
        last.ends_with("(openai accepts no more at once)."),
        "{last}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_offer_stays_the_same_within_a_turn() {
    let script = ModelScript::new([
        calls([call("a", "play_music", json!({}))]),
        calls([call("b", "set_lamp", json!({}))]),
    ]);
    let mut conversation = conversation_with(&script, house(), |settings| settings.max_tools = 1);
    say(&mut conversation, "Lamp").await;
    let offered: Vec<_> = script
        .asked()
        .into_iter()
        .map(|asked| asked.tools)
        .collect();
    assert!(
        offered.iter().all(|tools| *tools == ["set_lamp"]),
        "{offered:?}"
    );
    // Tools that were left out only for lack of room may still be used.
    let Message::Tool { results } = &conversation.history()[2] else {
        panic!("no results");
    };
    assert_eq!(results[0].text, "ran");
}

#[tokio::test(start_paused = true)]
async fn tools_take_at_most_half_of_the_window() {
    let many = (0..200).map(|n| described(&format!("tool_{n}"), &"many words ".repeat(20)));
    let script = ModelScript::with_window(4000, Vec::<ModelReply>::new());
    let mut reported = ModelEventLog::default();
    conversation(&script, many)
        .turn("Hello", &mut reported)
        .await
        .unwrap();
    let offered = script.last_asked().tools.len();
    assert!((5..100).contains(&offered), "{offered}");
    let notices = reported.notices();
    assert!(
        notices.len() == 1 && notices[0].contains("over half of the 4000 tokens"),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_offer_without_tools_is_explained() {
    let script = ModelScript::new(Vec::<ModelReply>::new());
    let mut conversation =
        conversation_with(&script, house(), |settings| settings.max_tool_tokens = 1);
    let mut reported = ModelEventLog::default();
    conversation.turn("Lamp", &mut reported).await.unwrap();
    assert!(script.last_asked().tools.is_empty());
    assert_eq!(
        reported.notices(),
        ["Questions are sent with none of the 4 tools (more would exceed model.maxToolTokens)."]
    );
}
