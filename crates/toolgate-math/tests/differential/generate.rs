//! Random expressions from the grammar.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::grammar::RuleGrammar;

/// How deep rules nest before only plain ones are left.
const DEPTH: u32 = 4;

/// The digits after the point of a small decimal: some exact in binary, some not.
const DECIMALS: [&str; 8] = ["5", "25", "75", "1", "37", "2", "64", "9"];

/// An expression as its rule: `parts` are the texts around `children`, so there is
/// one more of them.
#[derive(Clone)]
pub(crate) struct RuleTree {
    pub(crate) kind: char,
    pub(crate) parts: Vec<String>,
    pub(crate) children: Vec<RuleTree>,
}

impl fmt::Display for RuleTree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.parts[0])?;
        for (child, part) in self.children.iter().zip(&self.parts[1..]) {
            write!(formatter, "{child}{part}")?;
        }
        Ok(())
    }
}

pub(crate) struct ExpressionGenerator {
    grammar: RuleGrammar,
    state: u64,
    /// Whether the variables `x` and `y` exist where the next expression goes.
    variables: bool,
}

impl ExpressionGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            grammar: RuleGrammar::read(),
            state: seed,
            variables: false,
        }
    }

    pub(crate) fn program(&mut self) -> RuleTree {
        self.expression('P', DEPTH + 1)
    }

    fn expression(&mut self, letter: char, depth: u32) -> RuleTree {
        if self.variables && letter == 'n' && self.below(3) == 0 {
            let name = if self.below(2) == 0 { "x" } else { "y" };
            return RuleTree {
                kind: letter,
                parts: vec![name.to_owned()],
                children: Vec::new(),
            };
        }
        let end = depth == 0 || self.below(5) == 0;
        let kind = self.grammar.kind(letter);
        let rules = if end && !kind.plain.is_empty() {
            kind.plain.clone()
        } else {
            kind.rules.clone()
        };
        let rule = rules[self.below(rules.len())];
        self.follow(letter, rule, depth.saturating_sub(1))
    }

    fn follow(&mut self, letter: char, rule: &str, depth: u32) -> RuleTree {
        let mut tree = RuleTree {
            kind: letter,
            parts: vec![String::new()],
            children: Vec::new(),
        };
        let mut rest = rule;
        while let Some((before, name, after)) = placeholder(rest) {
            push(&mut tree, &before.replace('⏎', "\n"));
            rest = after;
            if let Some(literal) = self.literal(name) {
                push(&mut tree, &literal);
            } else {
                let child = self.child(name, depth);
                tree.children.push(child);
                tree.parts.push(String::new());
            }
        }
        push(&mut tree, rest);
        tree
    }

    fn child(&mut self, name: &str, depth: u32) -> RuleTree {
        let before = self.variables;
        let letter = match name {
            "X" => {
                self.variables = true;
                ['n', 'n', 'n', 'v', 't', 'm'][self.below(6)]
            }
            _ => name.chars().next().expect("a placeholder has a name"),
        };
        let tree = self.expression(letter, depth);
        self.variables = before;
        tree
    }

    /// The text of a literal: a digit, a small decimal, an index or a unit. Nothing for
    /// the kinds of values.
    fn literal(&mut self, name: &str) -> Option<String> {
        let text = match name {
            "p" => (1 + self.below(9)).to_string(),
            "x" => (1 + self.below(3)).to_string(),
            "x2" => (1 + self.below(2)).to_string(),
            "r" => format!(
                "{}.{}",
                self.below(10),
                DECIMALS[self.below(DECIMALS.len())]
            ),
            "L" | "D" | "K" | "T" | "S" | "V" => {
                let units = self.grammar.kind(name.chars().next()?).plain.clone();
                units[self.below(units.len())].to_owned()
            }
            _ => return None,
        };
        Some(text)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// SplitMix64: short, and the same on every machine.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// A seed that differs from run to run.
pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    now.as_micros() as u64 % 1_000_000_000
}

/// The text before the first `<name>`, the name, and the text after it. A `<` of its own is
/// followed by a space or `=`.
fn placeholder(rule: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + rule[from..].find('<')?;
        let name_length =
            rule[start + 1..].find(|character: char| !character.is_ascii_alphanumeric())?;
        let end = start + 1 + name_length;
        if name_length > 0 && rule[end..].starts_with('>') {
            return Some((&rule[..start], &rule[start + 1..end], &rule[end + 1..]));
        }
        from = start + 1;
    }
}

fn push(tree: &mut RuleTree, text: &str) {
    if let Some(part) = tree.parts.last_mut() {
        part.push_str(text);
    }
}

#[test]
fn the_same_seed_gives_the_same_programs() {
    let programs = |seed| {
        let mut generator = ExpressionGenerator::new(seed);
        (0..50)
            .map(|_| generator.program().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(programs(7), programs(7));
    assert_ne!(programs(7), programs(8));
}

#[test]
fn plain_rules_have_no_children() {
    let grammar = RuleGrammar::read();
    for letter in "niatcvmwldksfbzqo".chars() {
        let kind = grammar.kind(letter);
        assert!(
            !kind.plain.is_empty(),
            "{letter} has no plain rule: expressions of it would not end"
        );
        for rule in &kind.plain {
            let tree = ExpressionGenerator::new(1).follow(letter, rule, 0);
            assert!(tree.children.is_empty(), "{rule}");
        }
    }
}
