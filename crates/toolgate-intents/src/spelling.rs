//! Words that are nearly right.

use std::collections::HashMap;

fn tolerance(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// How many letters are wrong in a word, if it may be the other one.
pub(crate) fn edits(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return Some(0);
    }
    let (length, others) = (one.chars().count(), other.chars().count());
    let most = tolerance(length.min(others));
    // Numbers have no near misses.
    let is_number = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    if length.abs_diff(others) > most || most == 0 || is_number(one) || is_number(other) {
        return None;
    }
    let hopeless = one.is_ascii() && other.is_ascii() && differences(one, other) > 2 * most;
    let edits = if hopeless {
        usize::MAX
    } else {
        strsim::osa_distance(one, other)
    };
    (edits <= most).then_some(edits)
}

/// How many letters are in only one of two words: at most twice the edits between them, and far quicker to count.
fn differences(one: &str, other: &str) -> usize {
    let mut counts = [0_i16; 32];
    for byte in one.bytes() {
        counts[usize::from(byte % 32)] += 1;
    }
    for byte in other.bytes() {
        counts[usize::from(byte % 32)] -= 1;
    }
    counts
        .iter()
        .map(|count| usize::from(count.unsigned_abs()))
        .sum()
}

/// The one letter that is wrong in a name of several words written together, or in one that was written apart. Their digits are
/// the same.
pub(super) fn edit_of_joined(one: &str, other: &str) -> Option<usize> {
    const SHORTEST: usize = 8;
    let is_hopeless = one.len() < SHORTEST || one.len().abs_diff(other.len()) > 1;
    if is_hopeless || one.is_ascii() && other.is_ascii() && differences(one, other) > 2 {
        return None;
    }
    Some(strsim::osa_distance(one, other)).filter(|edits| *edits <= 1)
}

/// For words that were said, the words of one list that they may be, and the letters that are wrong.
#[derive(Default)]
pub(crate) struct NearWords(HashMap<String, Vec<(usize, usize)>>);

impl NearWords {
    /// Finds the near words of `spelt`, unless that was done before.
    pub(super) fn look_up(&mut self, word: &str, spelt: &[String]) {
        if self.0.contains_key(word) {
            return;
        }
        let near = spelt.iter().enumerate();
        let near = near.filter_map(|(place, known)| Some((place, edits(known, word)?)));
        self.0.insert(word.to_owned(), near.collect());
    }

    /// The places of near words in order, each with the letters that are wrong.
    pub(super) fn of(&self, word: &str) -> &[(usize, usize)] {
        self.0.get(word).map_or(&[], Vec::as_slice)
    }
}
