//! Units and money after a number.

/// The written form, singular and plural. If one is a prefix of another, the longer one comes
/// first. A unit marked `apart` needs a blank before it, because `5m` may be five minutes. One
/// marked `behind a fraction` is a unit in `0.5 A` but not in `room 5 A`.
const UNITS: &str = include_str!("units.txt");

/// Currency signs with their singular, plural, and the singular and plural of a hundredth.
const MONEY: &[(char, &str, &str, &str, &str)] = &[
    ('$', "dollar", "dollars", "cent", "cents"),
    ('€', "euro", "euros", "cent", "cents"),
    ('£', "pound", "pounds", "penny", "pence"),
    ('¥', "yen", "yen", "sen", "sen"),
];

// In "5 million dollars" the currency comes last.
const POWERS: [&str; 4] = [" thousand", " million", " billion", " trillion"];

pub(super) fn parse_unit<'a>(number: &str, text: &'a str) -> Option<(&'static str, &'a str)> {
    let blank = text
        .chars()
        .next()
        .filter(|first| matches!(first, ' ' | '\u{a0}' | '\u{202f}'));
    let after_blank = &text[blank.map_or(0, char::len_utf8)..];
    UNITS.lines().find_map(|line| {
        let mut parts = line.split('|');
        let rest = after_blank.strip_prefix(parts.next()?)?;
        let (one, several) = (parts.next()?, parts.next()?);
        let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || "²³/°".contains(next));
        let fits = match parts.next() {
            None => true,
            Some("apart") => blank.is_some(),
            Some(_) => number.contains('.'),
        };
        (ends && fits).then_some((if number == "1" { one } else { several }, rest))
    })
}

pub(super) fn spell_money<'a>(
    sign: char,
    number: &str,
    rest: &'a str,
) -> Option<(String, &'a str)> {
    let (_, one, several, cent, cents) = MONEY.iter().find(|(known, ..)| *known == sign)?;
    for power in POWERS {
        if let Some(rest) = rest.strip_prefix(power) {
            return Some((format!("{number}{power} {several}"), rest));
        }
    }
    let (whole, hundredths) = number.split_once('.').unwrap_or((number, ""));
    let name = |number: &str, one: &'static str, several: &'static str| {
        if number == "1" { one } else { several }
    };
    let small = hundredths.trim_start_matches('0');
    let said = match (whole, hundredths.len()) {
        (_, 2) if small.is_empty() => format!("{whole} {}", name(whole, one, several)),
        ("0", 2) => format!("{small} {}", name(small, cent, cents)),
        (_, 2) => format!(
            "{whole} {} and {small} {}",
            name(whole, one, several),
            name(small, cent, cents)
        ),
        _ => format!("{number} {}", name(number, one, several)),
    };
    Some((said, rest))
}

pub(super) fn is_money(sign: char) -> bool {
    MONEY.iter().any(|(known, ..)| *known == sign)
}
