//! Finds the best tools for a request, because small models drown in tools. Words of the
//! request are looked up in the tools' own texts. No service is asked, and the same request
//! always finds the same tools.

#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;

use serde_json::Value;
use toolgate_core::ToolDefinition;

use crate::Catalog;
use words::NormalizedWords;

#[derive(Debug, Clone, Copy)]
pub(crate) struct RankingOptions<'a> {
    /// At most this many tools; 0 means no limit.
    pub(crate) most: usize,
    /// At most this many tokens in total; 0 means no limit.
    pub(crate) tokens: usize,
    /// The most that the provider accepts, pinned tools included.
    pub(crate) limit: Option<usize>,
    pub(crate) pinned: &'a [String],
    /// Preferred to others while there is room, the last first.
    pub(crate) remembered: &'a [String],
}

/// The best tools for a request, as sorted positions in the catalog. `None` if all of them fit.
pub(crate) fn choose_tools(
    catalog: &Catalog,
    request: &str,
    choice: &RankingOptions<'_>,
) -> Option<Vec<usize>> {
    let or_all = |limit: usize| if limit == 0 { usize::MAX } else { limit };
    let limit = choice.limit.unwrap_or(usize::MAX);
    let (most, budget) = (or_all(choice.most).min(limit), or_all(choice.tokens));
    let tools = catalog.tools();
    let total: usize = tools.iter().map(|tool| tool.tokens).sum();
    if tools.len() <= most && total <= budget {
        return None;
    }
    let mut chosen = Vec::new();
    let mut is_chosen = vec![false; tools.len()];
    for place in catalog.positions_of(choice.pinned) {
        if chosen.len() < limit && !std::mem::replace(&mut is_chosen[place], true) {
            chosen.push(place);
        }
    }
    let mut spent: usize = chosen.iter().map(|place| tools[*place].tokens).sum();
    let remembered: Vec<usize> = catalog.positions_of(choice.remembered).collect();
    let best = catalog.index().rank(request);
    for place in remembered.into_iter().rev().chain(best) {
        if chosen.len() >= most {
            break;
        }
        let fits = spent.saturating_add(tools[place].tokens) <= budget;
        if fits && !std::mem::replace(&mut is_chosen[place], true) {
            spent += tools[place].tokens;
            chosen.push(place);
        }
    }
    chosen.sort_unstable();
    Some(chosen)
}

/// For each word, the tools that contain it and its weight there.
pub(crate) struct ToolIndex {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

// A name says more than a sentence.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;
const PARAMETER: f64 = 1.0;
const VALUE: f64 = 0.5;

// More words of a tool, or bytes of a text, would only make it match everything.
const MAX_WORDS: usize = 1_000;
const MAX_BYTES: usize = 4 << 10;

impl ToolIndex {
    pub(crate) fn build<'a>(definitions: impl Iterator<Item = &'a ToolDefinition>) -> Self {
        let mut index = Self {
            postings: HashMap::new(),
            lengths: Vec::new(),
            average: 1.0,
        };
        for (place, definition) in definitions.enumerate() {
            let words = WeightedWords::from_definition(definition);
            index.lengths.push(words.length);
            for (word, weight) in words.weights {
                index
                    .postings
                    .entry(word)
                    .or_default()
                    .push((place, weight));
            }
        }
        let tools = index.lengths.len().max(1);
        index.average = (index.lengths.iter().sum::<f64>() / tools as f64).max(1.0);
        index
    }

    /// All tools, best first. Ties keep the catalog's order.
    fn rank(&self, request: &str) -> Vec<usize> {
        let scores = self.scores(request);
        let mut places: Vec<usize> = (0..scores.len()).collect();
        places.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        places
    }

    // BM25: a word counts more the rarer it is, the more weight it has in a tool, and the less else
    // the tool is about.
    fn scores(&self, request: &str) -> Vec<f64> {
        const MANY: f64 = 1.2;
        const LONG: f64 = 0.6;
        let mut scores = vec![0.0; self.lengths.len()];
        let tools = self.lengths.len() as f64;
        let mut asked =
            NormalizedWords::from_text(&request[..request.floor_char_boundary(MAX_BYTES)])
                .distinct();
        asked.truncate(MAX_WORDS);
        for word in asked {
            let Some(postings) = self.postings.get(&word) else {
                continue;
            };
            let having = postings.len() as f64;
            let rarity = (1.0 + (tools - having + 0.5) / (having + 0.5)).ln();
            for (place, weight) in postings {
                let length = 1.0 - LONG + LONG * self.lengths[*place] / self.average;
                scores[*place] += rarity * weight * (MANY + 1.0) / (weight + MANY * length);
            }
        }
        scores
    }
}

#[derive(Default)]
struct WeightedWords {
    weights: HashMap<String, f64>,
    length: f64,
    count: usize,
}

impl WeightedWords {
    fn from_definition(definition: &ToolDefinition) -> Self {
        let mut words = Self::default();
        words.add(NormalizedWords::from_text(definition.name()), NAME);
        words.add_text(definition.title().unwrap_or_default(), TITLE);
        words.add_text(definition.description(), DESCRIPTION);
        words.add_parameters(definition.parameters());
        words
    }

    fn add(&mut self, words: NormalizedWords, weight: f64) {
        for word in words.distinct() {
            self.count += 1;
            if self.count > MAX_WORDS {
                return;
            }
            *self.weights.entry(word).or_default() += weight;
            self.length += weight;
        }
    }

    fn add_text(&mut self, text: &str, weight: f64) {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        self.add(NormalizedWords::from_text(text), weight);
    }

    // Includes parameters within other parameters.
    fn add_parameters(&mut self, schema: &Value) {
        let mut ahead = vec![schema];
        while let Some(schema) = ahead.pop() {
            if self.count > MAX_WORDS {
                return;
            }
            let values = schema.get("enum").and_then(Value::as_array);
            for value in values
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .take(50)
            {
                self.add_text(value, VALUE);
            }
            let Value::Object(keywords) = schema else {
                continue;
            };
            for (name, property) in keywords
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                self.add(NormalizedWords::from_text(name), PARAMETER);
                let description = property.get("description").and_then(Value::as_str);
                self.add_text(description.unwrap_or_default(), VALUE);
                ahead.push(property);
            }
            ahead.extend(keywords.get("items"));
            let lists = ["anyOf", "oneOf", "allOf"].into_iter();
            let lists = lists.filter_map(|keyword| keywords.get(keyword)?.as_array());
            ahead.extend(lists.flatten());
        }
    }
}
