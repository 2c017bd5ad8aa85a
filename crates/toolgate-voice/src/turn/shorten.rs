//! Shortens text that arrives all at once, such as a list of devices. The screen shows the rest.

use std::borrow::Cow;

use crate::speak::SentenceSplitter;

// In characters: twenty seconds of speech. Nobody listens for longer.
const MAX_CHARS: usize = 300;
/// At least this many short items are a list.
const MIN_LIST_ITEMS: usize = 6;
const MAX_ITEM_WORDS: usize = 5;
const REST_ON_SCREEN: &str = "The rest is on the screen.";

/// The beginning of a long text, up to the end of a sentence or list item, and how
/// much is left out.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    let Some((limit, _)) = text.char_indices().nth(MAX_CHARS) else {
        return Cow::Borrowed(text);
    };
    let (end, next) = sentences(text, limit);
    let (mut said, rest) = match first_of_list(&text[end..next], limit - end) {
        Some((first, more)) => (
            format!("{}{first} and {more} more.", &text[..end]),
            &text[next..],
        ),
        // No sentence ends before the limit.
        None if end == 0 => {
            let blank = text[..limit].rfind(char::is_whitespace);
            let cut = blank.unwrap_or(limit);
            (format!("{}…", text[..cut].trim_end()), &text[cut..])
        }
        None => (text[..end].to_owned(), &text[end..]),
    };
    let lines = rest.lines().filter(|line| !line.trim().is_empty()).count();
    match lines {
        0 => {}
        _ if said.ends_with('\n') => said.push_str(&format!("And {lines} more.")),
        _ => said = format!("{} {REST_ON_SCREEN}", said.trim_end()),
    }
    Cow::Owned(said)
}

/// The first sentence of a refusal, because hints and details are meant to be read. Text of several
/// lines is about several things and is shortened instead.
pub(super) fn refusal_sentence(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    match text.contains('\n') {
        true => shorten(text),
        false => shorten(&text[..sentences(text, 0).1]),
    }
}

fn sentences(text: &str, limit: usize) -> (usize, usize) {
    let mut sentences = SentenceSplitter::default();
    let mut pieces = sentences.push(text);
    pieces.extend(sentences.finish_round());
    let (mut end, mut at) = (0, 0);
    for piece in pieces {
        at += piece.words.len();
        let is_whole =
            piece.words.ends_with('\n') || piece.words.trim_end().ends_with(['.', '!', '?', '…']);
        match is_whole {
            true if at > limit => return (end, at),
            true => end = at,
            false => {}
        }
    }
    (end, text.len())
}

fn first_of_list(sentence: &str, room: usize) -> Option<(&str, usize)> {
    let items: Vec<&str> = sentence.split(", ").collect();
    let is_short = |item: &&str| item.split_whitespace().count() <= MAX_ITEM_WORDS;
    // The first and the last item may carry a few words about the whole list.
    let is_list = items.len() >= MIN_LIST_ITEMS && items[1..items.len() - 1].iter().all(is_short);
    let cut = sentence[..room].rfind(", ").filter(|_| is_list)?;
    let left = &sentence[cut + 2..];
    let last = left.rsplit(", ").next().unwrap_or(left);
    let more = left.split(", ").count() + usize::from(last.contains(" and "));
    Some((&sentence[..cut], more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(count: usize) -> String {
        let names: Vec<String> = (1..count).map(|number| format!("Lamp {number}")).collect();
        format!("{} and Lamp {count}.", names.join(", "))
    }

    #[test]
    fn short_text_is_unchanged() {
        for text in ["", "The light is on.", &devices(20)] {
            assert_eq!(shorten(text), text);
        }
    }

    #[test]
    fn list_is_cut_between_items_and_the_rest_counted() {
        for (before, behind, expected) in [
            ("I know ", "", " more."),
            ("There are 60. These are: ", "", " more."),
            (
                "I know ",
                " Ask for one of them.",
                " more. The rest is on the screen.",
            ),
        ] {
            let text = format!("{before}{}{behind}", devices(60));
            let said = shorten(&text);
            assert!(
                said.starts_with(before) && said.ends_with(expected),
                "{said}"
            );
            let (list, more) = said.split_once(" and ").unwrap();
            let (_, last) = list.rsplit_once("Lamp ").unwrap();
            let (more, _) = more.split_once(' ').unwrap();
            let count = last.parse::<usize>().unwrap() + more.parse::<usize>().unwrap();
            assert_eq!(count, 60, "{said}");
            assert!(said.chars().count() < MAX_CHARS + 50, "{said}");
        }
    }

    #[test]
    fn long_text_is_cut_between_lines_and_the_rest_counted() {
        let text: String = (1..=40).map(|n| format!("Lamp {n} is off.\n")).collect();
        let said = shorten(&text);
        let lines: Vec<&str> = said.lines().collect();
        let (last, lamps) = lines.split_last().unwrap();
        assert_eq!(*last, format!("And {} more.", 40 - lamps.len()));
        assert_eq!(
            lamps.last().unwrap(),
            &format!("Lamp {} is off.", lamps.len())
        );
    }

    #[test]
    fn only_the_first_sentence_of_a_refusal_is_spoken() {
        for (text, expected) in [
            ("", ""),
            ("I can't do that.", "I can't do that."),
            (
                "I did not understand that. You could say “what time is it”; “help” tells more.",
                "I did not understand that. ",
            ),
            ("No.\nAnd why. It is.", "No.\nAnd why. It is."),
        ] {
            assert_eq!(refusal_sentence(text), expected);
        }
    }

    #[test]
    fn other_text_is_cut_after_a_sentence_or_word() {
        let sentence = "The broker is not there, nothing listens on that port, so start it, or correct the address.";
        let text = [sentence; 5].join(" ");
        assert_eq!(
            shorten(&text),
            format!("{} {REST_ON_SCREEN}", [sentence; 3].join(" "))
        );
        let endless = "word ".repeat(100);
        let said = shorten(&endless);
        assert_eq!(
            said,
            format!("{}… {REST_ON_SCREEN}", "word ".repeat(60).trim_end())
        );
        let letters = "é".repeat(1000);
        assert!(shorten(&letters).ends_with(REST_ON_SCREEN));
    }
}
