//! Compares our answers with those of the real mathjs, on a curated table
//! and on random expressions.
//!
//! `table.txt` is the table, `known-differences.txt` explains its known differences, and
//! `mathjs.mjs` runs mathjs. The test needs node and mathjs, which `./test.sh` installs; without
//! them it is skipped, and with `CI=true` it fails.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot continue says where"
)]

mod compare;
mod generate;
mod grammar;
mod mathjs;
mod ours;
mod shrink;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use generate::{ExpressionGenerator, RuleTree};
use mathjs::MathjsProcess;
use table::TableEntry;

/// The seed of the random expressions, unless `MATH_SEED` sets another.
const USUAL_SEED: u64 = 20_261_115;

/// The number of random expressions, unless `MATH_RANDOM_CASES` sets another.
const RANDOM_CASES: usize = 8000;

/// The random test ends early after this many kinds of failures.
const ENOUGH_FAILURES: usize = 20;

#[test]
fn the_table_agrees_with_mathjs_but_for_the_known_differences() {
    let Some(mut mathjs) = MathjsProcess::start() else {
        return;
    };
    let (entries, known) = (table::entries(), table::known_differences());
    let differences = differences(&entries, &mut mathjs);
    print_agreement(&entries, &differences);

    let mut failures = Vec::new();
    for (entry, difference) in entries.iter().zip(&differences) {
        let shown = entry.table_text();
        match (difference, known.contains_key(&shown)) {
            (Some(why), false) => failures.push(format!("{shown}\n  {} · {why}", entry.class)),
            (None, true) => failures.push(format!("{shown}\n  agrees now, yet is listed as known")),
            _ => {}
        }
    }
    let shown: BTreeSet<String> = entries.iter().map(TableEntry::table_text).collect();
    let strays = known.keys().filter(|key| !shown.contains(*key));
    failures.extend(strays.map(|key| format!("{key}\n  listed as known, yet not in the table")));
    assert!(
        failures.is_empty(),
        "{} lines fail:\n\n{}\n",
        failures.len(),
        failures.join("\n")
    );

    let (differing, all) = (differences.iter().flatten().count(), entries.len());
    assert!(
        differing * 50 <= all,
        "{differing} of {all} differ: more than 2 %"
    );
}

/// The difference in each line of the table, if any. Excluded lines are not sent to mathjs, because
/// some of them change mathjs itself.
fn differences(entries: &[TableEntry], mathjs: &mut MathjsProcess) -> Vec<Option<String>> {
    let asked: Vec<&str> = entries
        .iter()
        .filter(|entry| !entry.is_excluded())
        .map(|entry| entry.expression.as_str())
        .collect();
    let mut replies = mathjs.ask(&asked).into_iter();
    entries
        .iter()
        .map(|entry| {
            let ours = ours::answer(&entry.expression);
            if entry.is_excluded() {
                return compare::excluded(&ours);
            }
            let theirs = replies.next().expect("one reply for each expression");
            table::misplaced(entry, &theirs).or_else(|| compare::difference(&theirs, &ours))
        })
        .collect()
}

fn print_agreement(entries: &[TableEntry], differences: &[Option<String>]) {
    let mut classes: Vec<(&str, usize, usize)> = Vec::new();
    for (entry, difference) in entries.iter().zip(differences) {
        if classes
            .last()
            .is_none_or(|(class, ..)| *class != entry.class)
        {
            classes.push((&entry.class, 0, 0));
        }
        if let Some((_, agreeing, all)) = classes.last_mut() {
            *agreeing += usize::from(difference.is_none());
            *all += 1;
        }
    }
    let sum = |number: fn(&(&str, usize, usize)) -> usize| classes.iter().map(number).sum();
    classes.push(("all", sum(|class| class.1), sum(|class| class.2)));
    for (class, agreeing, all) in classes {
        println!("{class:<32} {agreeing:>5} of {all:>4} agree");
    }
}

#[test]
fn the_table_is_large_and_has_no_duplicate_lines() {
    let entries = table::entries();
    let rejected = entries.iter().filter(|entry| entry.is_rejected()).count();
    assert!(entries.len() >= 450, "{} expressions", entries.len());
    assert!(rejected >= 60, "{rejected} rejected expressions");
    let mut seen = BTreeSet::new();
    let twice: Vec<&str> = entries
        .iter()
        .map(|entry| entry.expression.as_str())
        .filter(|text| !seen.insert(*text))
        .collect();
    assert!(twice.is_empty(), "twice in the table: {twice:?}");
}

#[test]
fn every_known_difference_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/math.md");
    let documentation = std::fs::read_to_string(&path).expect("docs/math.md can be read");
    for (expression, reason) in table::known_differences() {
        assert!(!reason.is_empty(), "`{expression}` has no reason");
        assert!(
            documentation.contains(&format!("`{expression}`")),
            "docs/math.md does not mention `{expression}`"
        );
    }
}

#[test]
fn random_expressions_agree_with_mathjs() {
    let Some(mut mathjs) = MathjsProcess::start() else {
        return;
    };
    let cases = from_environment("MATH_RANDOM_CASES").map_or(RANDOM_CASES, |cases| cases as usize);
    // The same seed every time: a run of the tests must not fail by chance. `./test.sh
    // soak` draws new ones.
    let seed = match std::env::var("MATH_SEED").as_deref() {
        Ok("new") => generate::fresh_seed(),
        _ => from_environment("MATH_SEED").unwrap_or(USUAL_SEED),
    };
    println!("{cases} random expressions; again with MATH_SEED={seed}");

    let mut generator = ExpressionGenerator::new(seed);
    let mut failures = BTreeMap::new();
    let (mut accepted, mut asked) = (0, 0);
    while asked < cases && failures.len() < ENOUGH_FAILURES {
        let programs: Vec<RuleTree> = (0..500.min(cases - asked))
            .map(|_| generator.program())
            .collect();
        let texts: Vec<String> = programs.iter().map(ToString::to_string).collect();
        let replies = mathjs.ask(&texts);
        asked += texts.len();
        accepted += replies.iter().filter(|reply| reply.is_ok()).count();
        for ((program, text), reply) in programs.into_iter().zip(texts).zip(&replies) {
            if compare::difference(reply, &ours::answer(&text)).is_some() {
                let (smallest, why) = shrink::smallest(program, &mut mathjs);
                let report = format!("{smallest}\n  {why}\n  found in: {text}");
                failures.entry(without_digits(&smallest)).or_insert(report);
            }
        }
    }

    println!("mathjs accepts {accepted} of {asked}");
    let reports: Vec<String> = failures.into_values().collect();
    assert!(
        reports.is_empty(),
        "with MATH_SEED={seed} differ:\n\n{}\n",
        reports.join("\n")
    );
    assert!(
        accepted * 10 >= asked * 9,
        "the grammar strays: mathjs accepts only {accepted} of {asked}"
    );
}

/// Removes the digits, so that failures that differ only in their numbers are reported once.
fn without_digits(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_ascii_digit())
        .collect()
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
