//! From words for the eye to words for the ear, in English.
//!
//! `markdown` takes the marks away, `numbers` says what stands around a number, `symbols` names or drops the rest.

mod markdown;
mod numbers;
mod symbols;
mod units;

/// What is longer is cut: nobody listens for that long. In bytes.
const LONGEST: usize = 16 << 10;

/// What of a text can be said, in words: no Markdown, no code, no addresses of links, no emoji, and numbers with the names of
/// their units. Empty if nothing is left.
///
/// ```
/// use toolgate_voice::speakable;
///
/// assert_eq!(speakable("**Kitchen**: 21.5 °C, 40% 🌡️"), "Kitchen: 21.5 degrees Celsius, 40 percent");
/// assert_eq!(speakable("---"), "");
/// ```
pub fn speakable(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut spoken = String::new();
    for line in markdown::lines(text) {
        let line = numbers::words(&markdown::inline(&sums(line)));
        let line = symbols::words(&line);
        if !line.contains(char::is_alphanumeric) {
            continue;
        }
        // A line is a breath of its own.
        if spoken.ends_with(|last: char| !last.is_ascii_punctuation()) {
            spoken.push('.');
        }
        if !spoken.is_empty() {
            spoken.push(' ');
        }
        spoken.push_str(&line);
    }
    spoken
}

/// Signs between numbers, which are marks elsewhere: `15 * 17` is a sum and no Markdown.
fn sums(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['*', '^']) {
        let (before, sign) = rest.split_at(at);
        let after = &sign[1..];
        let is_number = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
        let stands_between = is_number(before.trim_end().trim_end_matches(')').chars().next_back())
            && is_number(
                after
                    .trim_start()
                    .trim_start_matches(['(', '-'])
                    .chars()
                    .next(),
            );
        out.push_str(before);
        out.push_str(match (&sign[..1], stands_between) {
            ("*", true) => "×",
            ("^", true) => " to the power of ",
            (sign, _) => sign,
        });
        rest = after;
    }
    out.push_str(rest);
    out.replace("Etc/UTC", "UTC")
}

#[cfg(test)]
mod tests;
