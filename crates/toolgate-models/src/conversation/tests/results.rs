//! What a model receives as a result.

use toolgate_core::ToolContent;

use super::*;

/// What the model receives for this output, within a limit.
async fn told(output: ToolOutput, most: usize) -> (ToolResult, Conversation) {
    let give = tool("give", move |_| {
        let output = output.clone();
        async move { Ok(output) }
    });
    let script = ModelScript::new([calls([call("a", "give", json!({}))])]);
    let mut conversation =
        conversation_with(&script, [give], |settings| settings.max_result = most);
    say(&mut conversation, "?").await;
    (last_results(&conversation).remove(0), conversation)
}

fn block(block: Value) -> ToolContent {
    ToolContent::from(block)
}

#[tokio::test(start_paused = true)]
async fn blocks_become_text_and_images_stay_images() {
    let link = json!({ "type": "resource_link", "uri": "file:///a.pdf", "name": "a", "description": "The manual" });
    let text =
        json!({ "type": "resource", "resource": { "uri": "file:///b.txt", "text": "inside" } });
    let blob =
        json!({ "type": "resource", "resource": { "uri": "file:///c.bin", "blob": "AAAA" } });
    for (blocks, expected, images) in [
        (vec![], "(no output)", 0),
        (vec![ToolContent::text("")], "(no output)", 0),
        (
            vec![ToolContent::text("a"), ToolContent::text("b")],
            "a\nb",
            0,
        ),
        (
            vec![
                ToolContent::text("look:"),
                block(json!({ "type": "image", "data": "aGkh", "mimeType": "image/png" })),
            ],
            "look:\n[image: image/png, 3 bytes]",
            1,
        ),
        (
            vec![block(
                json!({ "type": "image", "data": "aGkh", "mimeType": "image/tiff" }),
            )],
            "[image: image/tiff, 3 bytes, can't be shown]",
            0,
        ),
        (
            vec![block(
                json!({ "type": "image", "data": "not base64!", "mimeType": "image/png" }),
            )],
            "[image: image/png, 6 bytes, can't be shown]",
            0,
        ),
        (
            vec![block(
                json!({ "type": "audio", "data": "aGkh", "mimeType": "audio/wav" }),
            )],
            "[audio: audio/wav, 3 bytes, can't be played]",
            0,
        ),
        (vec![block(link)], "[resource file:///a.pdf: The manual]", 0),
        (vec![block(text)], "[resource file:///b.txt]\ninside", 0),
        (
            vec![block(blob)],
            "[resource file:///c.bin: 3 bytes, not text]",
            0,
        ),
        (
            vec![block(json!({ "type": "hologram", "x": 1 }))],
            r#"{"type":"hologram","x":1}"#,
            0,
        ),
    ] {
        let (result, _) = told(ToolOutput::blocks(blocks), 1000).await;
        assert_eq!(
            (result.text.as_str(), result.images.len()),
            (expected, images)
        );
        assert!(!result.is_error);
    }
}

#[tokio::test(start_paused = true)]
async fn d6_a_result_that_is_too_large_is_cut_visibly_and_kept_whole() {
    let long = "ä".repeat(500_000);
    let (result, conversation) = told(ToolOutput::text(long.clone()), 10_000).await;
    assert!(
        result.text.len() <= 10_000 && result.text.len() > 9_900,
        "{}",
        result.text.len()
    );
    let id = result.call_id.unwrap();
    let mark = format!(
        "ä\n… [cut: 990.1 kB of 1.0 MB left out; the full result is kept under call id {id}]"
    );
    assert!(result.text.ends_with(&mark), "{}", &result.text[9_800..]);
    let full = conversation.full_result(&id).unwrap();
    assert_eq!(full.to_model_text(), long);
    assert!(conversation.full_result("0").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_user_is_told_about_a_cut_result() {
    for (length, expected) in [
        (
            5000,
            &[
                "the model gets 1.0 kB of the result of 'give' (5.0 kB): the rest doesn't fit, or exceeds model.maxResult",
            ][..],
        ),
        (1000, &[]),
    ] {
        let give = tool("give", move |_| async move {
            Ok(ToolOutput::text("x".repeat(length)))
        });
        let script = ModelScript::new([calls([call("a", "give", json!({}))])]);
        let mut conversation =
            conversation_with(&script, [give], |settings| settings.max_result = 1000);
        assert_eq!(say(&mut conversation, "?").await.notices, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn d6_a_result_that_just_fits_is_not_cut() {
    let (result, conversation) = told(ToolOutput::text("x".repeat(1000)), 1000).await;
    assert_eq!(result.text.len(), 1000);
    assert!(conversation.full_result(&result.call_id.unwrap()).is_none());
    let (result, _) = told(ToolOutput::text("x".repeat(1000)), 0).await;
    assert!(
        result
            .text
            .starts_with("\n… [cut: 1.0 kB of 1.0 kB left out"),
        "{}",
        result.text
    );
}

#[tokio::test(start_paused = true)]
async fn d6_an_oversized_picture_is_described_and_nothing_is_sent_twice() {
    let data = "A".repeat(7_000_000);
    let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
    let (result, _) = told(ToolOutput::blocks(vec![block(image.clone())]), 1000).await;
    assert_eq!(result.text, "[image: image/png, 5.2 MB, can't be shown]");
    assert!(result.images.is_empty());

    let mut both = ToolOutput::blocks(vec![block(image)]);
    both.structured = Some(json!({ "data": "A".repeat(1_000_000) }));
    let (result, _) = told(both, 1000).await;
    assert!(result.text.len() <= 1000 && result.images.is_empty());
}

#[tokio::test(start_paused = true)]
async fn d6_ten_thousand_pictures_are_not_all_sent() {
    let image = block(json!({ "type": "image", "data": "aGkh", "mimeType": "image/png" }));
    let (result, _) = told(ToolOutput::blocks(vec![image; 10_000]), 1000).await;
    assert_eq!(result.images.len(), 8);
    assert!(result.text.len() <= 1000 && result.text.contains("[cut: "));
}

#[tokio::test(start_paused = true)]
async fn only_recent_large_results_are_kept() {
    let large = tool("large", async |_| {
        Ok(ToolOutput::text("x".repeat(7_000_000)))
    });
    let asked: Vec<MessagePart> = (0..12)
        .map(|n| call(&format!("id{n}"), "large", json!({ "n": n })))
        .collect();
    let script = ModelScript::new([calls(asked)]);
    let mut conversation = conversation(&script, [large]);
    let turn = say(&mut conversation, "?").await;
    let ids = turn.rounds[0]
        .calls
        .iter()
        .map(|used| used.outcome.call_id.to_string());
    let kept = ids.filter(|id| conversation.full_result(id).is_some());
    assert_eq!(kept.count(), 9, "64 MiB hold nine of them");
}

#[tokio::test(start_paused = true)]
async fn images_count_towards_the_size_of_kept_results() {
    let picture =
        json!({ "type": "image", "mimeType": "image/png", "data": "x".repeat(7_000_000) });
    let large = tool("large", move |_| {
        let picture = serde_json::from_value(picture.clone()).unwrap();
        let text = ToolContent::text("x".repeat(100_000));
        async { Ok(ToolOutput::blocks(vec![text, picture])) }
    });
    let asked: Vec<MessagePart> = (0..12)
        .map(|n| call(&format!("id{n}"), "large", json!({ "n": n })))
        .collect();
    let script = ModelScript::new([calls(asked)]);
    let mut conversation = conversation(&script, [large]);
    say(&mut conversation, "?").await;
    let kept = conversation.full_results().count();
    assert_eq!(kept, 9, "64 MiB hold nine of them");
}

#[tokio::test(start_paused = true)]
async fn d4_invisible_text_is_not_sent() {
    for (hidden, expected) in [
        ("plain\ntext\t!", "plain\ntext\t!"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}]0;title\u{7}text", "text"),
        ("\u{1b}]8;;http://a\u{1b}\\link", "link"),
        ("\u{1b}(Btext\u{1b}c", "text"),
        ("\u{1b}[", ""),
        ("\u{1b}[31", ""),
        ("\u{1b}", ""),
        ("\u{1b}[31ä", "ä"),
        ("\u{1b}ä", "ä"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a\u{202e}b\u{200b}c\u{feff}d", "abcd"),
        ("a\u{2028}b", "a\nb"),
        ("hi\u{e0069}\u{e0067}\u{e006e}\u{e006f}", "hi"),
        ("bell\u{7}, nul\u{0}", "bell, nul"),
    ] {
        let (result, _) = told(ToolOutput::text(hidden), 1000).await;
        assert_eq!(result.text, expected, "{hidden:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d4_errors_contain_no_invisible_text() {
    let fail = tool("fail", async |_| {
        Err(ToolError::failed("no\u{202e}pe \u{1b}[2J"))
    });
    let script = ModelScript::new([calls([call("a", "fail", json!({}))])]);
    let mut conversation = conversation(&script, [fail]);
    say(&mut conversation, "?").await;
    assert_eq!(last_results(&conversation)[0].text, "nope ");
}

#[tokio::test(start_paused = true)]
async fn a_shortened_result_is_kept_in_full() {
    let read = tool("read", async |_| Ok(ToolOutput::text("long ".repeat(480))));
    let script = ModelScript::with_window(
        2600,
        (0..4).map(|n| {
            let id = format!("call_{n}");
            calls([call(&id, "read", json!({ "page": n }))])
        }),
    );
    let mut conversation = conversation(&script, [read]);
    say(&mut conversation, "Read it all.").await;
    let first = match &conversation.history()[2] {
        Message::Tool { results } => &results[0],
        other => panic!("{other:?}"),
    };
    let id = first.call_id.as_deref().unwrap();
    let mark = format!("left out; the full result is kept under call id {id}]");
    assert!(
        first.text.contains("shortened to make room") && first.text.ends_with(&mark),
        "{}",
        first.text
    );
    let whole = conversation.full_result(id).unwrap();
    assert_eq!(whole.to_model_text(), "long ".repeat(480));
    let ids: HashSet<String> = conversation
        .full_results()
        .map(|outcome| outcome.call_id.to_string())
        .collect();
    assert_eq!(ids.len(), conversation.full_results().count(), "each once");
}
