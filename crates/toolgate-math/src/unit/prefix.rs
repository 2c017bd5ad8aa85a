//! The prefixes, and which of them go in front of which kind of unit: one set a line in `prefixes.tsv`.

use std::sync::LazyLock;

use crate::hash::NameMap;

#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// Whether the format may choose it: not centi, deci, deca and hecto.
    pub(crate) scientific: bool,
}

const MINOR: [&str; 8] = ["da", "h", "d", "c", "deca", "hecto", "deci", "centi"];

pub(super) static PLAIN: [Prefix; 1] = [Prefix {
    name: "",
    value: 1.0,
    scientific: true,
}];

static SETS: LazyLock<NameMap<Vec<Prefix>>> = LazyLock::new(|| {
    let sets = include_str!("prefixes.tsv").lines();
    sets.filter_map(|line| line.split_once('\t'))
        .map(|(set, prefixes)| (set, read(prefixes)))
        .collect()
});

fn read(prefixes: &'static str) -> Vec<Prefix> {
    let words: Vec<&str> = prefixes.split(' ').collect();
    let pairs = words.chunks_exact(2).filter_map(|pair| {
        Some(Prefix {
            name: pair[0],
            value: pair[1].parse().ok()?,
            scientific: !MINOR.contains(&pair[0]),
        })
    });
    pairs.collect()
}

/// The sets under these names, after the missing prefix: `short+long`.
pub(super) fn named(sets: &str) -> Vec<&'static [Prefix]> {
    let found = sets.split('+').filter_map(|set| SETS.get(set));
    std::iter::once(PLAIN.as_slice())
        .chain(found.map(Vec::as_slice))
        .collect()
}
