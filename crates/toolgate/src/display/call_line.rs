//! Formats a call and its duration on one line.

use std::time::Duration;

use toolgate_core::Redactor;
use toolgate_core::text::escape;
use toolgate_models::{CallArguments, ModelCall};
use unicode_width::UnicodeWidthStr;

use crate::spinner::truncate_to_width;

// How much of a call's arguments is shown.
pub(crate) const SHOWN_ARGUMENTS: usize = 120;

/// Title and elapsed time. The title is cut first, because the time is what changes.
pub(super) fn timed(frame: char, title: &str, elapsed: Duration, width: usize) -> String {
    let time = format!(" {:.1} s", elapsed.as_secs_f64());
    let room = width.saturating_sub(2 + time.width());
    if title.width() <= room {
        return format!("{frame} {title}{time}");
    }
    let shown = truncate_to_width(title, room.saturating_sub(1));
    format!("{frame} {shown}…{time}")
}

pub(super) fn title(call: &ModelCall, redactor: &Redactor) -> String {
    let name = escape(&call.name);
    let arguments = match &call.arguments {
        CallArguments::Object(object) if object.is_empty() => return name,
        CallArguments::Object(object) => {
            redactor.json(&serde_json::Value::Object(object.clone()), SHOWN_ARGUMENTS)
        }
        CallArguments::Unusable(text) => redactor.line(text, SHOWN_ARGUMENTS),
    };
    format!("{name} {arguments}")
}

pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line_without_secrets() {
        let redactor = Redactor::new(["hunter22".to_owned()]);
        for (arguments, expected) in [
            ("{}", "echo"),
            (r#"{"city": "Oslo"}"#, r#"echo {"city":"Oslo"}"#),
            (r#"{"a": "x hunter22"}"#, r#"echo {"a":"x [REDACTED]"}"#),
            ("{\"a\": \u{1b}", "echo {\"a\": \\u{1b}"),
        ] {
            let call = ModelCall {
                id: "1".to_owned(),
                name: "echo".to_owned(),
                arguments: CallArguments::parse(arguments),
            };
            assert_eq!(title(&call, &redactor), expected);
        }
    }

    #[test]
    fn arguments_are_cut_before_the_time_is() {
        for (title, width, expected) in [
            ("echo {\"a\":1}", 40, "⠋ echo {\"a\":1} 1.5 s"),
            ("echo {\"a\":1}", 20, "⠋ echo {\"a\":1} 1.5 s"),
            ("echo {\"a\":1}", 19, "⠋ echo {\"a\":… 1.5 s"),
            ("echo 日本語", 16, "⠋ echo 日… 1.5 s"),
            ("echo", 0, "⠋ … 1.5 s"),
        ] {
            let line = timed('⠋', title, Duration::from_millis(1500), width);
            assert_eq!(line, expected, "{width}");
        }
    }

    #[test]
    fn times_are_short() {
        for (millis, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (61_234, "61.2 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
