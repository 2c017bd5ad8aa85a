//! How much a regular expression costs per byte it reads.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ErrorKind, Literal, RepetitionKind,
    RepetitionRange,
};

/// Nesting of groups; the parser and `states` below recurse this deep.
const DEEPEST: u32 = 50;

/// What a character outside of ASCII costs: each of its bytes is a state of its own, and so are its neighbours.
const WIDE: u64 = 8;

/// A class such as `\p{L}` is an automaton of its own over UTF-8 bytes.
const UNICODE_CLASS: u64 = 300;

/// The states of the automaton, roughly: one per character, repetitions multiplied. `Err` says why it can not be used at all.
pub(super) fn size(pattern: &str) -> Result<u64, &'static str> {
    let parsed = ParserBuilder::new()
        .nest_limit(DEEPEST)
        .build()
        .parse(pattern);
    match parsed.as_ref().map_err(regex_syntax::ast::Error::kind) {
        Ok(ast) => Ok(states(ast).unwrap_or_else(|| unread(pattern))),
        Err(ErrorKind::UnsupportedLookAround) => Err("uses look-around, whose cost has no bound"),
        Err(ErrorKind::UnsupportedBackreference) => {
            Err("uses a back-reference, whose cost has no bound")
        }
        Err(ErrorKind::NestLimitExceeded(_)) => Err("is nested too deeply"),
        // Some spellings of ECMA are translated before they are compiled; what is then still wrong, the compiler says.
        Err(_) => Ok(unread(pattern)),
    }
}

/// What it costs to translate a pattern from ECMA's syntax: the translator starts anew after each escape.
pub(super) fn translation(pattern: &str) -> u64 {
    const BYTES_AT_ONCE: u64 = 100;
    /// A class for white space is spelt out.
    const SPACE: u64 = 160;
    let count = |what: &str| pattern.matches(what).count() as u64;
    let length = pattern.len() as u64 + SPACE * (count(r"\s") + count(r"\S"));
    count(r"\").saturating_mul(length) / BYTES_AT_ONCE
}

/// `None` for syntax that ECMA reads in another way, so that this is not what will be compiled.
fn states(ast: &Ast) -> Option<u64> {
    Some(match ast {
        Ast::Dot(_) => WIDE,
        Ast::ClassPerl(class) => perl_states(class),
        Ast::ClassUnicode(_) => UNICODE_CLASS,
        Ast::ClassBracketed(class) => match &class.kind {
            ClassSet::Item(item) => item_states(item)? + if class.negated { WIDE } else { 0 },
            ClassSet::BinaryOp(_) => return None,
        },
        Ast::Literal(literal) => literal_states(literal),
        Ast::Repetition(repetition) => {
            times(&repetition.op.kind).saturating_mul(states(&repetition.ast)?)
        }
        Ast::Group(group) => states(&group.ast)?,
        Ast::Alternation(alternation) => sum(alternation.asts.iter().map(states))?,
        Ast::Concat(concat) => sum(concat.asts.iter().map(states))?,
        _ => 1,
    })
}

fn item_states(item: &ClassSetItem) -> Option<u64> {
    Some(match item {
        ClassSetItem::Unicode(_) => UNICODE_CLASS,
        ClassSetItem::Perl(class) => perl_states(class),
        ClassSetItem::Literal(literal) => literal_states(literal),
        ClassSetItem::Range(range) => literal_states(&range.end),
        ClassSetItem::Bracketed(_) => return None,
        // Any part of ASCII is one step from state to state.
        ClassSetItem::Union(union) => match sum(union.items.iter().map(item_states))? {
            all if all == 1 + union.items.len() as u64 => 1,
            all => all,
        },
        _ => 1,
    })
}

fn perl_states(class: &ClassPerl) -> u64 {
    let is_ascii = !class.negated && !matches!(class.kind, ClassPerlKind::Space);
    if is_ascii { 1 } else { WIDE }
}

fn literal_states(literal: &Literal) -> u64 {
    if literal.c.is_ascii() { 1 } else { WIDE }
}

fn sum(mut parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.try_fold(1_u64, |sum, part| Some(sum.saturating_add(part?)))
}

fn times(kind: &RepetitionKind) -> u64 {
    let copies = match kind {
        RepetitionKind::Range(RepetitionRange::Exactly(n) | RepetitionRange::Bounded(_, n)) => *n,
        RepetitionKind::Range(RepetitionRange::AtLeast(n)) => n.saturating_add(1),
        _ => 1,
    };
    u64::from(copies.max(1))
}

/// At worst every repetition is inside of every other.
fn unread(pattern: &str) -> u64 {
    let each = if pattern.contains(['p', 'P']) {
        UNICODE_CLASS
    } else {
        WIDE
    };
    let repetitions = pattern
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .flat_map(|(counts, _)| counts.split(','))
        .filter_map(|count| count.trim().parse::<u64>().ok());
    repetitions.fold(pattern.len() as u64 * each, |all, count| {
        all.saturating_mul(count.max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply() {
        for (pattern, least, most) in [
            ("abc", 3, 5),
            (r"^[\w.-]{1,128}$", 128, 200),
            ("^[0-9a-f]{40}$", 40, 50),
            ("((a{1,100}){1,100}){1,100}", 1_000_000, u64::MAX),
            (r"\p{L}{50}", 15_000, 16_000),
            ("^(a+)+$", 1, 10),
            ("é{10}", 80, 90),
            (".{100}", 800, 900),
        ] {
            let size = size(pattern).unwrap();
            assert!((least..=most).contains(&size), "{pattern}: {size}");
        }
    }

    #[test]
    fn what_ecma_reads_in_another_way_costs_the_most_it_could() {
        for pattern in [
            r"\cJ((a{100}){100}){100}",
            "[[](((a{100}){100}){100})]",
            "[a&&b](((a{100}){100}){100})",
        ] {
            assert!(size(pattern).unwrap() >= 1_000_000, "{pattern}");
        }
        assert!(size(r"^[^[\]]{1,64}$").unwrap() < 10_000);
    }

    #[test]
    fn many_escapes_cost_more_than_their_number() {
        assert!(translation(r"^\d{4}-\d{2}-\d{2}\s\d+$") < 50);
        assert!(translation(&r"\d".repeat(6_000)) > 100_000);
        assert!(translation(&r"\s".repeat(1_000)) > 1_000_000);
    }

    #[test]
    fn what_can_not_be_bounded_is_named() {
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        for (pattern, expected) in [
            ("^(a|a)*(?!b)$", "look-around"),
            (r"(a)\1", "back-reference"),
            (deep.as_str(), "nested"),
        ] {
            assert!(size(pattern).unwrap_err().contains(expected), "{pattern}");
        }
    }
}
