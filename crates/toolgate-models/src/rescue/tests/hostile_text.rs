//! Text that no one writes in good faith.

use proptest::prelude::*;

use super::*;
use crate::reply_buffer::ReplyBuffer;

#[test]
fn a_flood_of_calls_is_bounded() {
    let call = r#"{"name":"datetime","arguments":{}}"#;
    let many = format!("<tool_call>{call}</tool_call>").repeat(200);
    assert_eq!(rescue(&many, &offer()).unwrap().calls.len(), MAX_CALLS);
    let list = format!("[{}]", vec![call; 200].join(","));
    assert_eq!(rescue(&list, &offer()), None);
    let lines = vec![call; 200].join("\n");
    assert_eq!(
        rescue(&lines, &offer()),
        None,
        "what is left is not a call, so they are examples"
    );
}

#[test]
fn hostile_text_takes_linear_time() {
    let mebibyte = |text: &str| text.repeat((1 << 20) / text.len());
    let started = tokio::time::Instant::now();
    for piece in [
        "<",
        "{",
        "[",
        "`",
        "```",
        "{\n",
        "[\n",
        "\"",
        "{\"\n",
        "\\\"",
        " ",
        "\n",
        "```\n{",
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>[{\"",
        "<function=weather>",
        "<function=weather><parameter=a>",
        "<function=x>",
        "<tools>[",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]weather{",
        "{\"name\":\n",
        "{\"name\":\"weather\",\"arguments\":{}}\n",
        "<tool_call>{\"name\":\"weather\"}",
        "<|python_tag|>{\"a\":[",
        "<function=weather></function>",
        "\u{1f600}<",
    ] {
        let text = mebibyte(piece);
        let _calls = rescue(&text, &offer());
        let mut reported = 0;
        let mut listener = |event: crate::ModelEvent<'_>| {
            if let crate::ModelEvent::Text(text) = event {
                reported += text.len();
            }
        };
        let mut buffer = ReplyBuffer::new(&mut listener);
        buffer.begin(true);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = (0..=rest.len().min(64))
                .rev()
                .find(|end| rest.is_char_boundary(*end))
                .unwrap();
            buffer.push_text(&rest[..end]);
            rest = &rest[end..];
        }
        let (kept, _) = buffer.finish_text(None);
        assert_eq!((kept.len(), reported), (text.len(), text.len()), "{piece}");
    }
    // Takes about ten seconds without optimization. Quadratic time for a mebibyte would be hours.
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}

fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        prop::sample::select(vec![
            "<tool_call>",
            "</tool_call>",
            "<function=weather>",
            "<function=",
            "</function>",
            "<parameter=city>",
            "</parameter>",
            "<tools>",
            "</tools>",
            "```",
            "```json\n",
            "\n",
            "{",
            "}",
            "[",
            "]",
            "\"",
            ",",
            ":",
            "\"name\"",
            "\"weather\"",
            "\"arguments\"",
            "\"parameters\"",
            "\"function\"",
            "{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}",
            "{\"name\":\"datetime\"}",
            "<|python_tag|>",
            "[TOOL_CALLS]",
            "[ARGS]",
            "weather",
            " ",
            "\\",
            "Oslo",
            "é",
            "\u{1f600}",
            ";",
            "`",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    prop::collection::vec(scrap, 0..40).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn any_text_is_handled_without_a_panic(text in scraps()) {
        if let Some(rescued) = rescue(&text, &offer()) {
            prop_assert!(!rescued.calls.is_empty());
            prop_assert!(rescued.text.len() <= text.len());
            for call in &rescued.calls {
                prop_assert!(offer().catalog().tools().iter().any(|tool| tool.tool.definition().name() == call.name));
            }
        }
    }

    #[test]
    fn holding_back_neither_loses_nor_repeats_text(text in scraps(), size in 1_usize..9) {
        for with_offer in [false, true] {
            let offer = offer();
            let mut reported = String::new();
            let mut listener = |event: crate::ModelEvent<'_>| if let crate::ModelEvent::Text(text) = event { reported.push_str(text) };
            let mut buffer = ReplyBuffer::new(&mut listener);
            buffer.begin(true);
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                buffer.push_text(&piece.iter().collect::<String>());
            }
            let (kept, calls) = buffer.finish_text(with_offer.then_some(&offer));
            if calls.is_empty() {
                prop_assert_eq!(&reported, &text);
                prop_assert_eq!(&kept, &text);
            } else {
                prop_assert_eq!(&kept, &rescue(&text, &offer).unwrap().text);
                prop_assert!(reported.len() <= text.len());
            }
        }
    }
}
