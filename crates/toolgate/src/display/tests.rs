use super::*;

#[test]
fn only_words_that_were_seen_are_taken_back() {
    for (thinking, event, expected) in [
        (true, Event::Thinking("hm"), true),
        (true, Event::Thinking(" "), false),
        (false, Event::Thinking("hm"), false),
        (true, Event::Text("Half"), false),
    ] {
        let manner = Manner {
            streams: false,
            format: AnswerFormat::Plain,
            progress: true,
            thinking,
        };
        let mut display = Display::new(manner, Redactor::default(), Spinner::new(""));
        display.event(event);
        assert_eq!(display.screen().has_shown, expected);
        display.event(Event::Void);
        assert!(!display.screen().has_shown);
    }
}
