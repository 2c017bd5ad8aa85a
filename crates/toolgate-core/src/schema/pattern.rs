//! Estimates what a regular expression costs per byte of input.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ErrorKind, Literal, RepetitionKind,
    RepetitionRange,
};

// The parser and `count_states` recurse this deep.
const MAX_DEPTH: u32 = 50;

// A character outside ASCII has several bytes, each with a state of its own.
const NON_ASCII: u64 = 8;

// A class such as `\p{L}` is an automaton of its own over UTF-8 bytes.
const UNICODE_CLASS: u64 = 300;

/// The approximate number of automaton states: one per character, with repetitions multiplied.
/// `Err` says why the pattern can't be used at all.
pub(super) fn state_count(pattern: &str) -> Result<u64, &'static str> {
    let parsed = ParserBuilder::new()
        .nest_limit(MAX_DEPTH)
        .build()
        .parse(pattern);
    match parsed.as_ref().map_err(regex_syntax::ast::Error::kind) {
        Ok(ast) => Ok(count_states(ast).unwrap_or_else(|| unparsed_cost(pattern))),
        Err(ErrorKind::UnsupportedLookAround) => Err("uses look-around, whose cost is unbounded"),
        Err(ErrorKind::UnsupportedBackreference) => {
            Err("uses a back-reference, whose cost is unbounded")
        }
        Err(ErrorKind::NestLimitExceeded(_)) => Err("is nested too deeply"),
        // It may be ECMA syntax, which is translated before compiling. If not, the compiler reports
        // the error.
        Err(_) => Ok(unparsed_cost(pattern)),
    }
}

// Translating ECMA syntax is quadratic: the translator starts over after each escape.
pub(super) fn translation_cost(pattern: &str) -> u64 {
    const BYTES_PER_STEP: u64 = 100;
    // The translation of a white-space class lists every character.
    const SPACE_CLASS_BYTES: u64 = 160;
    let count = |what: &str| pattern.matches(what).count() as u64;
    let length = pattern.len() as u64 + SPACE_CLASS_BYTES * (count(r"\s") + count(r"\S"));
    count(r"\").saturating_mul(length) / BYTES_PER_STEP
}

// `None` if ECMA reads this syntax differently, so that this isn't what will be compiled.
fn count_states(ast: &Ast) -> Option<u64> {
    Some(match ast {
        Ast::Dot(_) => NON_ASCII,
        Ast::ClassPerl(class) => perl_states(class),
        Ast::ClassUnicode(_) => UNICODE_CLASS,
        Ast::ClassBracketed(class) => match &class.kind {
            ClassSet::Item(item) => {
                count_item_states(item)? + if class.negated { NON_ASCII } else { 0 }
            }
            ClassSet::BinaryOp(_) => return None,
        },
        Ast::Literal(literal) => literal_states(literal),
        Ast::Repetition(repetition) => {
            copies(&repetition.op.kind).saturating_mul(count_states(&repetition.ast)?)
        }
        Ast::Group(group) => count_states(&group.ast)?,
        Ast::Alternation(alternation) => sum(alternation.asts.iter().map(count_states))?,
        Ast::Concat(concat) => sum(concat.asts.iter().map(count_states))?,
        _ => 1,
    })
}

fn count_item_states(item: &ClassSetItem) -> Option<u64> {
    Some(match item {
        ClassSetItem::Unicode(_) => UNICODE_CLASS,
        ClassSetItem::Perl(class) => perl_states(class),
        ClassSetItem::Literal(literal) => literal_states(literal),
        ClassSetItem::Range(range) => literal_states(&range.end),
        ClassSetItem::Bracketed(_) => return None,
        // Any set of ASCII characters is a single transition.
        ClassSetItem::Union(union) => match sum(union.items.iter().map(count_item_states))? {
            all if all == 1 + union.items.len() as u64 => 1,
            all => all,
        },
        _ => 1,
    })
}

fn perl_states(class: &ClassPerl) -> u64 {
    let is_ascii = !class.negated && !matches!(class.kind, ClassPerlKind::Space);
    if is_ascii { 1 } else { NON_ASCII }
}

fn literal_states(literal: &Literal) -> u64 {
    if literal.c.is_ascii() { 1 } else { NON_ASCII }
}

fn sum(mut parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.try_fold(1_u64, |sum, part| Some(sum.saturating_add(part?)))
}

fn copies(kind: &RepetitionKind) -> u64 {
    let copies = match kind {
        RepetitionKind::Range(RepetitionRange::Exactly(n) | RepetitionRange::Bounded(_, n)) => *n,
        RepetitionKind::Range(RepetitionRange::AtLeast(n)) => n.saturating_add(1),
        _ => 1,
    };
    u64::from(copies.max(1))
}

// Without a parse tree, assume that all repetitions are nested in each other.
fn unparsed_cost(pattern: &str) -> u64 {
    let each = if pattern.contains(['p', 'P']) {
        UNICODE_CLASS
    } else {
        NON_ASCII
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
            let size = state_count(pattern).unwrap();
            assert!((least..=most).contains(&size), "{pattern}: {size}");
        }
    }

    #[test]
    fn patterns_that_ecma_reads_differently_cost_the_maximum() {
        for pattern in [
            r"\cJ((a{100}){100}){100}",
            "[[](((a{100}){100}){100})]",
            "[a&&b](((a{100}){100}){100})",
        ] {
            assert!(state_count(pattern).unwrap() >= 1_000_000, "{pattern}");
        }
        assert!(state_count(r"^[^[\]]{1,64}$").unwrap() < 10_000);
    }

    #[test]
    fn translating_escapes_takes_quadratic_time() {
        assert!(translation_cost(r"^\d{4}-\d{2}-\d{2}\s\d+$") < 50);
        assert!(translation_cost(&r"\d".repeat(6_000)) > 100_000);
        assert!(translation_cost(&r"\s".repeat(1_000)) > 1_000_000);
    }

    #[test]
    fn errors_name_the_syntax_that_cannot_be_bounded() {
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        for (pattern, expected) in [
            ("^(a|a)*(?!b)$", "look-around"),
            (r"(a)\1", "back-reference"),
            (deep.as_str(), "nested"),
        ] {
            assert!(
                state_count(pattern).unwrap_err().contains(expected),
                "{pattern}"
            );
        }
    }
}
