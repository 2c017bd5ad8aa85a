//! How much a regular expression costs per byte it reads.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Ast, ErrorKind, RepetitionKind, RepetitionRange};

/// Nesting of groups; the parser and `size` below recurse this deep.
const DEEPEST: u32 = 50;

/// The states of the automaton, roughly: one per character, repetitions multiplied. `Err` says why it can not be used at all.
pub(super) fn size(pattern: &str, limit: u64) -> Result<u64, &'static str> {
    match ParserBuilder::new()
        .nest_limit(DEEPEST)
        .build()
        .parse(pattern)
    {
        Ok(ast) => Ok(states(&ast)),
        Err(error) => match error.kind() {
            ErrorKind::UnsupportedLookAround => Err("uses look-around, whose cost has no bound"),
            ErrorKind::UnsupportedBackreference => {
                Err("uses a back-reference, whose cost has no bound")
            }
            ErrorKind::NestLimitExceeded(_) => Err("is nested too deeply"),
            // Some spellings of ECMA are translated before they are compiled; what is then still wrong, the compiler says.
            _ => Ok(limit.min(pattern.len() as u64 * 10)),
        },
    }
}

fn states(ast: &Ast) -> u64 {
    /// A class such as `\p{L}` is an automaton of its own over UTF-8 bytes.
    const UNICODE_CLASS: u64 = 100;
    match ast {
        Ast::ClassUnicode(_) => UNICODE_CLASS,
        Ast::ClassBracketed(class) => (class.span.end.offset - class.span.start.offset) as u64,
        Ast::Repetition(repetition) => {
            times(&repetition.op.kind).saturating_mul(states(&repetition.ast))
        }
        Ast::Group(group) => states(&group.ast),
        Ast::Alternation(alternation) => sum(&alternation.asts),
        Ast::Concat(concat) => sum(&concat.asts),
        _ => 1,
    }
}

fn sum(parts: &[Ast]) -> u64 {
    parts.iter().map(states).fold(1, u64::saturating_add)
}

fn times(kind: &RepetitionKind) -> u64 {
    let copies = match kind {
        RepetitionKind::Range(RepetitionRange::Exactly(n) | RepetitionRange::Bounded(_, n)) => *n,
        RepetitionKind::Range(RepetitionRange::AtLeast(n)) => n.saturating_add(1),
        _ => 1,
    };
    u64::from(copies.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply() {
        for (pattern, least, most) in [
            ("abc", 3, 5),
            (r"^[\w.-]{1,128}$", 128, 2_000),
            ("((a{1,100}){1,100}){1,100}", 1_000_000, u64::MAX),
            (r"\p{L}{50}", 5_000, 6_000),
            ("^(a+)+$", 1, 10),
        ] {
            let size = size(pattern, 10_000).unwrap();
            assert!((least..=most).contains(&size), "{pattern}: {size}");
        }
    }

    #[test]
    fn what_can_not_be_bounded_is_named() {
        assert!(
            size("^(a|a)*(?!b)$", 10)
                .unwrap_err()
                .contains("look-around")
        );
        assert!(size(r"(a)\1", 10).unwrap_err().contains("back-reference"));
        assert!(
            size(&format!("{}a{}", "(".repeat(100), ")".repeat(100)), 10)
                .unwrap_err()
                .contains("nested")
        );
    }
}
