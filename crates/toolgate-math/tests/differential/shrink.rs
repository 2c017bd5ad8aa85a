//! Makes a failing expression small enough to read.

use crate::generate::RuleTree;
use crate::grammar::RuleGrammar;
use crate::mathjs::MathjsProcess;
use crate::{compare, ours};

/// Rounds of shrinking after which the expression is small enough.
const ROUNDS: usize = 60;

/// The smallest expression found that still fails, and its difference.
pub(crate) fn smallest(failing: RuleTree, mathjs: &mut MathjsProcess) -> (String, String) {
    let grammar = RuleGrammar::read();
    let mut smallest = failing;
    for _ in 0..ROUNDS {
        let mut candidates = smaller(&smallest, &grammar);
        candidates.sort_by_key(|candidate| candidate.to_string().len());
        candidates.truncate(200);
        let texts: Vec<String> = candidates.iter().map(ToString::to_string).collect();
        let replies = mathjs.ask(&texts);
        let fails =
            |at: &usize| compare::difference(&replies[*at], &ours::answer(&texts[*at])).is_some();
        let Some(found) = (0..candidates.len()).find(fails) else {
            break;
        };
        smallest = candidates.swap_remove(found);
    }
    let text = smallest.to_string();
    let reply = mathjs.ask(&[&text]);
    let difference = compare::difference(&reply[0], &ours::answer(&text));
    (
        text,
        difference.unwrap_or_else(|| "differs no more on a second try".to_owned()),
    )
}

/// Every tree that is shorter by one step: a sub-expression alone, one in place of its parent of
/// the same kind, or the simplest of its kind in its place.
fn smaller(tree: &RuleTree, grammar: &RuleGrammar) -> Vec<RuleTree> {
    let mut found: Vec<RuleTree> = tree.children.clone();
    let length = tree.to_string().len();
    if let Some(simplest) = grammar
        .kind(tree.kind)
        .simplest
        .filter(|simplest| simplest.len() < length)
    {
        found.push(RuleTree {
            kind: tree.kind,
            parts: vec![simplest.to_owned()],
            children: Vec::new(),
        });
    }
    for (at, child) in tree.children.iter().enumerate() {
        for shorter in smaller(child, grammar)
            .into_iter()
            .filter(|shorter| shorter.kind == child.kind)
        {
            let mut changed = tree.clone();
            changed.children[at] = shorter;
            found.push(changed);
        }
    }
    found
}

#[test]
fn smaller_trees_are_shorter() {
    let leaf = |text: &str| RuleTree {
        kind: 'n',
        parts: vec![text.to_owned()],
        children: Vec::new(),
    };
    let sum = RuleTree {
        kind: 'n',
        parts: vec![String::new(), " + ".into(), String::new()],
        children: vec![leaf("12"), leaf("3")],
    };
    let mut texts: Vec<String> = smaller(&sum, &RuleGrammar::read())
        .iter()
        .map(ToString::to_string)
        .collect();
    texts.sort();
    assert_eq!(texts, ["1", "1 + 3", "12", "3"]);
}
