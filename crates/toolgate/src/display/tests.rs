use super::*;

#[test]
fn only_words_that_were_seen_are_taken_back() {
    for (thinking, event, expected) in [
        (true, ModelEvent::Thinking("hm"), true),
        (true, ModelEvent::Thinking(" "), false),
        (false, ModelEvent::Thinking("hm"), false),
        (true, ModelEvent::Text("Half"), false),
    ] {
        let options = DisplayOptions {
            streams: false,
            format: AnswerFormat::Plain,
            progress: true,
            thinking,
        };
        let mut display = ChatDisplay::new(options, Redactor::default(), Spinner::new(""));
        display.event(event);
        assert_eq!(display.0.lock().has_shown, expected);
        display.event(ModelEvent::Void);
        assert!(!display.0.lock().has_shown);
    }
}
