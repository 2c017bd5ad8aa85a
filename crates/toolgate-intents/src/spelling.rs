//! Compares words with tolerance for wrong letters.

use std::collections::HashMap;

// The most wrong letters in a word. A short word that differs by one letter is usually another
// word: `fan` is not `van`.
fn tolerance(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// The number of wrong letters, if one word may be a misspelling of the other.
pub(crate) fn count_edits(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return Some(0);
    }
    let (length, others) = (one.chars().count(), other.chars().count());
    let most = tolerance(length.min(others));
    // Numbers must match exactly: `lamp 2` is not a misspelling of `lamp 3`.
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

// The number of letters that are in only one of the words. It is at most twice the edit distance,
// and much faster to compute.
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

// Finds at most one wrong letter in a name whose words were joined or separated. The caller has
// compared the digits.
pub(super) fn edit_of_joined(one: &str, other: &str) -> Option<usize> {
    const MIN_LEN: usize = 8;
    let is_hopeless = one.len() < MIN_LEN || one.len().abs_diff(other.len()) > 1;
    if is_hopeless || one.is_ascii() && other.is_ascii() && differences(one, other) > 2 {
        return None;
    }
    Some(strsim::osa_distance(one, other)).filter(|edits| *edits <= 1)
}

/// For each word that was said, the indices of similar known words and the number of wrong letters.
#[derive(Default)]
pub(crate) struct NearWords(HashMap<String, Vec<(usize, usize)>>);

impl NearWords {
    pub(super) fn look_up(&mut self, word: &str, spelt: &[String]) {
        if self.0.contains_key(word) {
            return;
        }
        let near = spelt.iter().enumerate();
        let near = near.filter_map(|(id, known)| Some((id, count_edits(known, word)?)));
        self.0.insert(word.to_owned(), near.collect());
    }

    pub(super) fn get(&self, word: &str) -> &[(usize, usize)] {
        self.0.get(word).map_or(&[], Vec::as_slice)
    }
}
