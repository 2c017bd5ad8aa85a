//! The unit prefixes, in the sets that units accept: one set per line in `prefixes.tsv`.

use std::sync::LazyLock;

use crate::name_map::NameMap;

#[derive(Debug)]
pub(crate) struct UnitPrefix {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// True if the format may choose it, which excludes centi, deci, deca and hecto.
    pub(crate) scientific: bool,
}

const NEVER_CHOSEN: [&str; 8] = ["da", "h", "d", "c", "deca", "hecto", "deci", "centi"];

pub(super) static PLAIN: [UnitPrefix; 1] = [UnitPrefix {
    name: "",
    value: 1.0,
    scientific: true,
}];

static SETS: LazyLock<NameMap<Vec<UnitPrefix>>> = LazyLock::new(|| {
    let sets = include_str!("prefixes.tsv").lines();
    sets.filter_map(|line| line.split_once('\t'))
        .map(|(set, prefixes)| (set, parse_prefixes(prefixes)))
        .collect()
});

fn parse_prefixes(prefixes: &'static str) -> Vec<UnitPrefix> {
    let words: Vec<&str> = prefixes.split(' ').collect();
    let pairs = words.chunks_exact(2).filter_map(|pair| {
        Some(UnitPrefix {
            name: pair[0],
            value: pair[1].parse().ok()?,
            scientific: !NEVER_CHOSEN.contains(&pair[0]),
        })
    });
    pairs.collect()
}

/// The prefix sets with these names (`short+long`), preceded by the empty prefix.
pub(super) fn find_sets(sets: &str) -> Vec<&'static [UnitPrefix]> {
    let found = sets.split('+').filter_map(|set| SETS.get(set));
    std::iter::once(PLAIN.as_slice())
        .chain(found.map(Vec::as_slice))
        .collect()
}
