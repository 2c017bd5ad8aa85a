//! Where answers are cut, however they arrive.

use proptest::prelude::*;

use super::*;

/// The pieces of a text that arrives letter by letter.
fn pieces(text: &str) -> Vec<String> {
    let mut sentences = SentenceSplitter::default();
    let mut letter = [0; 4];
    let mut pieces: Vec<AnswerPiece> = text
        .chars()
        .flat_map(|next| sentences.push(next.encode_utf8(&mut letter)))
        .collect();
    pieces.extend(sentences.finish_round());
    pieces.into_iter().map(|piece| piece.words).collect()
}

/// Cuts are written as `|`.
#[track_caller]
fn check(table: &[&str]) {
    for expected in table {
        let text = expected.replace('|', "");
        assert_eq!(pieces(&text).join("|"), *expected);
    }
}

#[test]
fn sentences_end_where_people_end_them() {
    check(&[
        "The light is on. |It is warm.",
        "Done! |What else? |Nothing.",
        "Really?! |Yes.",
        "He said \"on.\" |Then it went off.",
        "(It is on.) |Good.",
        "**It is on.** |Good.",
        "Line one\n|Line two\n",
        "Wait… |Now.",
        "すぐに点けます。|はい。",
        "¿Qué? |Nada.",
        "It is 5. |Then 6.",
        "One.\n|\n|Two.",
    ]);
}

#[test]
fn numbers_and_abbreviations_do_not_end_a_sentence() {
    check(&[
        "It is 21.5 degrees. |Good.",
        "Dr. Smith and Mr. Jones vs. Mrs. Hall are here. |Good.",
        "Use it, e.g. Switch One i.e. the first. |Good.",
        "At 3 p.m. it rains. |Good.",
        "At 3 p.m. Tuesday it rains. |Good.",
        "It ends at 3 p.m. |The rest is free.",
        "J. R. R. Tolkien wrote it. |Good.",
        "In the U.S. Army it is so. |Good.",
        "See No. 5 and fig. 3 there. |Good.",
        "No. |That is wrong.",
        "I think it was I. |Good.",
        "1. Open it.\n|2. Close it.\n",
        "Version 1.2.3 of toolgate.json is at example.com. |Good.",
        "Well... maybe. |Good.",
        "It is approx. Five. |Good.",
        "That is all etc. |Good.",
    ]);
}

#[test]
fn the_first_piece_is_a_clause_and_later_ones_are_sentences() {
    check(&[
        "Here is the weather: |it is warm: very. |Yes: so.",
        "I have turned on the kitchen light, |and the hall light, too. |Also, as you may know, the door.",
        "Yes, I did. |Good.",
        "It costs 1,000 dollars in all, |plus tax.",
        "At 15:30 it is on.",
    ]);
}

#[test]
fn a_new_round_begins_with_a_clause_again() {
    let mut sentences = SentenceSplitter::default();
    assert_eq!(sentences.push("Let me look. ").len(), 0);
    assert_eq!(sentences.finish_round().unwrap().words, "Let me look. ");
    assert_eq!(sentences.finish_round(), None);
    let first = sentences.push("I have found the kitchen light, and");
    assert_eq!(first[0].words, "I have found the kitchen light, ");
}

#[test]
fn clear_forgets_pending_words() {
    let mut sentences = SentenceSplitter::default();
    sentences.push("```\ncode and a half");
    sentences.clear();
    let pieces = sentences.push("Hello there. Yes");
    assert_eq!(
        (pieces[0].words.as_str(), pieces[0].code),
        ("Hello there. ", false)
    );
}

#[test]
fn code_is_separated_from_words() {
    for (text, expected) in [
        (
            "Run this:\n```sh\nrm -rf / . Yes. No!\n```\nDone. Good.",
            vec![
                "Run this:\n",
                "!```sh\n",
                "!rm -rf / . Yes. No!\n",
                "!```\n",
                "Done. ",
                "Good.",
            ],
        ),
        (
            "  ~~~\nx\n  ~~~\nDone",
            vec!["!  ~~~\n", "!x\n", "!  ~~~\n", "Done"],
        ),
        ("Use `a. B` or ``` so", vec!["Use `a. ", "B` or ``` so"]),
        ("``", vec!["``"]),
        ("```", vec!["!```"]),
    ] {
        let mut sentences = SentenceSplitter::default();
        let mut letter = [0; 4];
        let mut pieces: Vec<AnswerPiece> = text
            .chars()
            .flat_map(|next| sentences.push(next.encode_utf8(&mut letter)))
            .collect();
        pieces.extend(sentences.finish_round());
        let found: Vec<String> = pieces
            .iter()
            .map(|piece| format!("{}{}", if piece.code { "!" } else { "" }, piece.words))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn endless_text_is_cut_after_a_word() {
    let endless = "word ".repeat(100);
    let found = pieces(&endless);
    assert!(
        found.len() > 1
            && found
                .iter()
                .all(|piece| piece.chars().count() <= MAX_PIECE_BYTES && piece.ends_with(' '))
    );
    let one_word = "é".repeat(1000);
    assert_eq!(pieces(&one_word).concat(), one_word);
    assert!(
        pieces(&one_word)
            .iter()
            .all(|piece| piece.chars().count() <= MAX_PIECE_BYTES)
    );
}

#[test]
fn flood_of_output_is_rejected_quickly() {
    for seed in [".", "a. ", "p.m. A", "\n", "``", "```\n", ",", "é", "1. "] {
        let text = seed.repeat((1 << 18) / seed.len());
        let began = tokio::time::Instant::now();
        let mut sentences = SentenceSplitter::default();
        let mut found: String = sentences
            .push(&text)
            .into_iter()
            .map(|piece| piece.words)
            .collect();
        found.extend(sentences.finish_round().map(|piece| piece.words));
        assert!(found == text, "{seed:?} loses words");
        assert!(
            began.elapsed().as_secs() < 20,
            "{seed:?} takes {:?}",
            began.elapsed()
        );
    }
}

proptest! {
    #[test]
    fn splitting_loses_nothing_and_ignores_chunk_boundaries(
        text in "[A-Ca-c0-2 .,:;!?\\n`*\"é。]{0,80}", sizes in prop::collection::vec(1_usize..9, 1..9)
    ) {
        let mut sentences = SentenceSplitter::default();
        let letters: Vec<char> = text.chars().collect();
        let (mut rest, mut found) = (&letters[..], Vec::new());
        for size in sizes.iter().cycle() {
            let (now, later) = rest.split_at((*size).min(rest.len()));
            found.extend(sentences.push(&now.iter().collect::<String>()));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        found.extend(sentences.finish_round());
        let found: Vec<String> = found.into_iter().map(|piece| piece.words).collect();
        prop_assert_eq!(found.concat(), text.clone());
        prop_assert_eq!(found, pieces(&text));
    }
}
