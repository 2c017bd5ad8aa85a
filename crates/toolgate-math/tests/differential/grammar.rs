//! The grammar of `grammar.txt`, read.

/// A kind of value and the ways to write one.
pub(crate) struct Kind {
    pub(crate) letter: char,
    /// What stands in for such an expression when a failure is made smaller.
    pub(crate) simplest: Option<&'static str>,
    /// The ways without any kind in them.
    pub(crate) plain: Vec<&'static str>,
    /// All ways, the plain ones among them.
    pub(crate) rules: Vec<&'static str>,
}

pub(crate) struct Grammar {
    kinds: Vec<Kind>,
}

impl Grammar {
    pub(crate) fn read() -> Self {
        let mut kinds: Vec<Kind> = Vec::new();
        for line in include_str!("grammar.txt").lines() {
            if let Some(heading) = line.strip_prefix("=== ") {
                let letter = heading
                    .chars()
                    .next()
                    .expect("a heading starts with the letter");
                kinds.push(Kind {
                    letter,
                    simplest: None,
                    plain: Vec::new(),
                    rules: Vec::new(),
                });
            } else if let Some(kind) = kinds.last_mut() {
                kind.read(line);
            }
        }
        Self { kinds }
    }

    pub(crate) fn kind(&self, letter: char) -> &Kind {
        let found = self.kinds.iter().find(|kind| kind.letter == letter);
        found.unwrap_or_else(|| panic!("the grammar has no kind {letter}"))
    }
}

impl Kind {
    fn read(&mut self, line: &'static str) {
        if let Some(simplest) = line.strip_prefix("simplest: ") {
            self.simplest = Some(simplest);
            return;
        }
        let plain = line.strip_prefix("plain: ");
        let rules = plain
            .unwrap_or(line)
            .split("  ")
            .filter(|rule| !rule.is_empty());
        if plain.is_some() {
            self.plain.extend(rules.clone());
        }
        self.rules.extend(rules);
    }
}
