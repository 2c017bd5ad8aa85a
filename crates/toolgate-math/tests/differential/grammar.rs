//! Reads the grammar in `grammar.txt`.

/// A kind of value and the ways to write one.
pub(crate) struct GrammarKind {
    pub(crate) letter: char,
    /// Replaces such an expression when a failure is made smaller.
    pub(crate) simplest: Option<&'static str>,
    /// The rules that contain no other kind.
    pub(crate) plain: Vec<&'static str>,
    /// All rules, including the plain ones.
    pub(crate) rules: Vec<&'static str>,
}

pub(crate) struct RuleGrammar {
    kinds: Vec<GrammarKind>,
}

impl RuleGrammar {
    pub(crate) fn read() -> Self {
        let mut kinds: Vec<GrammarKind> = Vec::new();
        for line in include_str!("grammar.txt").lines() {
            if let Some(heading) = line.strip_prefix("=== ") {
                let letter = heading
                    .chars()
                    .next()
                    .expect("a heading starts with the letter");
                kinds.push(GrammarKind {
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

    pub(crate) fn kind(&self, letter: char) -> &GrammarKind {
        let found = self.kinds.iter().find(|kind| kind.letter == letter);
        found.unwrap_or_else(|| panic!("the grammar has no kind {letter}"))
    }
}

impl GrammarKind {
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
