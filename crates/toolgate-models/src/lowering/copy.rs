//! Copies a schema so that it is self-contained: references inlined, keywords of old drafts
//! rewritten, malformed keywords and invisible text removed, and the size bounded.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::keywords::{
    KeywordKind, is_type_name, is_well_formed, keyword_kind, names_type, only_describes, size,
};
use super::references::ReferenceResolver;
use super::text::{add, is_visible, strip_invisible};
use super::{SchemaRules, phrase, sentences};

// More JSON than this for one tool would fill the context window of many models.
pub(super) const MAX_SCHEMA_BYTES: usize = 64 << 10;

pub(super) struct SchemaCopier<'a> {
    rules: &'a SchemaRules,
    references: ReferenceResolver<'a>,
    // How often a schema may occur within itself.
    max_repeats: usize,
    max_depth: usize,
    // The reference targets that are being copied, from the outside in.
    open_targets: Vec<&'a Value>,
    depth: usize,
    // Estimated size of the copy so far, in bytes.
    estimated_size: usize,
}

impl<'a> SchemaCopier<'a> {
    /// `None` if the copy would be too large.
    pub(super) fn copy(
        document: &'a Value,
        rules: &'a SchemaRules,
        max_repeats: usize,
        max_depth: usize,
    ) -> Option<Map<String, Value>> {
        let mut copier = Self {
            rules,
            references: ReferenceResolver::new(document),
            max_repeats,
            max_depth,
            open_targets: vec![document],
            depth: 0,
            estimated_size: 0,
        };
        let copy = copier.copy_schema(document);
        (copier.estimated_size <= MAX_SCHEMA_BYTES).then_some(copy)
    }

    fn copy_schema(&mut self, schema: &'a Value) -> Map<String, Value> {
        // Even an empty schema counts for its brackets. Otherwise references to empty schemas could
        // multiply without end.
        self.estimated_size += 4;
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return single_keyword("not", json!({})),
            _ => return Map::new(),
        };
        if self.estimated_size > MAX_SCHEMA_BYTES {
            return Map::new();
        }
        if self.depth > self.max_depth {
            return self.outline(keywords, "Its details are left out.");
        }
        self.depth += 1;
        let copy = match keywords.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.copy_reference(keywords, reference),
            None => self.copy_keywords(keywords),
        };
        self.depth -= 1;
        copy
    }

    fn copy_reference(
        &mut self,
        keywords: &'a Map<String, Value>,
        reference: &str,
    ) -> Map<String, Value> {
        let mut own = self.copy_keywords(keywords);
        if self.references.ignore_siblings() {
            own.retain(|keyword, _| only_describes(keyword));
        }
        let inlined = match self.references.resolve(reference) {
            Some(target) => self.copy_target(target),
            None => single_keyword("description", json!("Anything: its schema is not known.")),
        };
        merge_siblings(inlined, own)
    }

    fn copy_target(&mut self, target: &'a Value) -> Map<String, Value> {
        const MAX_INLINE_DEPTH: usize = 32;
        let same = |outer: &&&Value| std::ptr::eq(**outer, target);
        let occurrences = self.open_targets.iter().filter(same).count();
        if (occurrences >= self.max_repeats || self.open_targets.len() > MAX_INLINE_DEPTH)
            && let Value::Object(keywords) = target
        {
            return self.outline(keywords, "Nested in the same way.");
        }
        self.open_targets.push(target);
        let copy = self.copy_schema(target);
        self.open_targets.pop();
        copy
    }

    fn outline(&mut self, keywords: &'a Map<String, Value>, note: &str) -> Map<String, Value> {
        let mut outline = Map::new();
        if let Some(value) = keywords
            .get("type")
            .filter(|value| is_well_formed(KeywordKind::Type, value))
        {
            outline.insert("type".to_owned(), value.clone());
        }
        let description = keywords.get("description").and_then(Value::as_str);
        let mut description = strip_invisible(description.unwrap_or_default()).into_owned();
        add(&mut description, note);
        self.estimated_size += description.len() + 40;
        outline.insert("description".to_owned(), description.into());
        if names_type(&outline, "array") {
            outline.insert("items".to_owned(), json!({}));
        }
        outline
    }

    fn copy_keywords(&mut self, keywords: &'a Map<String, Value>) -> Map<String, Value> {
        let mut copy = Map::with_capacity(keywords.len());
        for (keyword, value) in keywords {
            let kept = match keyword_kind(keyword) {
                KeywordKind::Schema => self.copy_part(value),
                KeywordKind::SchemaOrFlag => match value {
                    Value::Bool(_) => Some(value.clone()),
                    Value::Array(tuple) if keyword == "items" => {
                        self.copy_legacy_tuple(keywords, tuple, &mut copy);
                        None
                    }
                    _ => self.copy_part(value),
                },
                KeywordKind::SchemaList => self.copy_list(value),
                KeywordKind::SchemasByName => self.copy_named(keyword, value),
                KeywordKind::Reference | KeywordKind::Metadata => None,
                KeywordKind::Legacy => {
                    self.copy_legacy(keyword, value, &mut copy);
                    None
                }
                holds => self.copy_leaf(keywords, keyword, holds, value),
            };
            if let Some(value) = kept {
                self.estimated_size += keyword.len() + 4;
                copy.insert(keyword.clone(), value);
            }
        }
        if names_type(&copy, "array") && !copy.contains_key("items") {
            // One provider refuses the whole request without it.
            copy.insert("items".to_owned(), json!({}));
        }
        self.remove_illegal_names(&mut copy);
        copy
    }

    fn copy_part(&mut self, value: &'a Value) -> Option<Value> {
        let is_schema = value.is_object() || value.is_boolean();
        is_schema.then(|| self.copy_schema(value).into())
    }

    fn copy_list(&mut self, value: &'a Value) -> Option<Value> {
        let list = value.as_array().filter(|list| !list.is_empty())?;
        let list = list.iter().map(|schema| self.copy_schema(schema).into());
        Some(Value::Array(list.collect()))
    }

    fn copy_named(&mut self, keyword: &str, value: &'a Value) -> Option<Value> {
        let mut copy = Map::with_capacity(value.as_object()?.len());
        let is_kept = |name: &str| keyword == "properties" || is_visible(name);
        for (name, schema) in value.as_object()?.iter().filter(|(name, _)| is_kept(name)) {
            self.estimated_size += name.len() + 4;
            copy.insert(name.clone(), self.copy_schema(schema).into());
        }
        Some(copy.into())
    }

    // Values are never changed: one with invisible text is left out.
    fn copy_leaf(
        &mut self,
        keywords: &Map<String, Value>,
        keyword: &str,
        holds: KeywordKind,
        value: &Value,
    ) -> Option<Value> {
        let kept = match (holds, value) {
            _ if is_well_formed(holds, value) => value.clone(),
            (KeywordKind::Prose, Value::String(text)) => strip_invisible(text).into(),
            (KeywordKind::Type, Value::Array(list)) => {
                let mut list: Vec<&Value> = list.iter().collect();
                list.retain(|name| name.as_str().is_some_and(is_type_name));
                Some(unique(&list)).filter(|list| !list.is_empty())?.into()
            }
            (KeywordKind::Names, Value::Array(names)) => unique(&visible_names(names)).into(),
            (KeywordKind::NamesByName, Value::Object(all)) => {
                let sound = all.iter().filter(|(name, _)| is_visible(name));
                let sound = sound.filter(|(_, names)| is_well_formed(KeywordKind::Names, names));
                let sound = sound.map(|(name, names)| (name.clone(), names.clone()));
                Value::Object(sound.collect())
            }
            // Draft 4 used a flag to make the number beside it exclusive.
            (KeywordKind::Number, Value::Bool(true)) => {
                let beside = match keyword {
                    "exclusiveMinimum" => "minimum",
                    _ => "maximum",
                };
                keywords
                    .get(beside)
                    .filter(|number| number.is_number())?
                    .clone()
            }
            _ => return None,
        };
        self.estimated_size += size(&kept);
        Some(kept)
    }

    fn copy_legacy(&mut self, keyword: &str, value: &'a Value, copy: &mut Map<String, Value>) {
        let ("dependencies", Value::Object(all)) = (keyword, value) else {
            return;
        };
        for (name, value) in all.iter().filter(|(name, _)| is_visible(name)) {
            self.estimated_size += name.len() + 24;
            let (keyword, value) = match value {
                Value::Array(names) => {
                    let names = unique(&visible_names(names));
                    ("dependentRequired", Value::Array(names))
                }
                _ => ("dependentSchemas", self.copy_schema(value).into()),
            };
            let all = copy.entry(keyword).or_insert_with(|| json!({}));
            if let Value::Object(all) = all {
                all.insert(name.clone(), value);
            }
        }
    }

    // Older drafts write a tuple as a list in `items`, with `additionalItems` for the rest.
    fn copy_legacy_tuple(
        &mut self,
        keywords: &'a Map<String, Value>,
        tuple: &'a [Value],
        copy: &mut Map<String, Value>,
    ) {
        if keywords.contains_key("prefixItems") {
            return;
        }
        let list = tuple.iter().map(|schema| self.copy_schema(schema).into());
        let list: Vec<Value> = list.collect();
        if !list.is_empty() {
            copy.insert("prefixItems".to_owned(), list.into());
        }
        let rest = match keywords.get("additionalItems") {
            Some(Value::Bool(any)) => Some(Value::Bool(*any)),
            Some(schema) => self.copy_part(schema),
            None => None,
        };
        if let Some(rest) = rest {
            copy.insert("items".to_owned(), rest);
        }
    }

    // Describes properties in words if the provider would refuse their names. The model can still
    // pass them, as long as the schema doesn't forbid undeclared arguments.
    fn remove_illegal_names(&self, copy: &mut Map<String, Value>) {
        let legal = |name: &str| is_visible(name) && (self.rules.is_parameter_name)(name);
        let Some(Value::Object(properties)) = copy.get_mut("properties") else {
            return;
        };
        if properties.keys().all(|name| legal(name)) {
            return;
        }
        let (kept, illegal): (Map<_, _>, Map<_, _>) = std::mem::take(properties)
            .into_iter()
            .partition(|(name, _)| legal(name));
        *properties = kept;
        let is_required = |name: &str| {
            let names = copy.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|other| other == name))
        };
        let told: Vec<String> = illegal
            .iter()
            .filter(|(name, _)| is_visible(name))
            .map(|(name, schema)| phrase::describe_parameter(name, schema, is_required(name)))
            .collect();
        if let Some(Value::Array(required)) = copy.get_mut("required") {
            required.retain(|name| !name.as_str().is_some_and(|name| illegal.contains_key(name)));
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            copy.shift_remove(keyword);
        }
        if !told.is_empty() {
            sentences::add_description(copy, &format!("Also takes {}.", told.join("; ")));
        }
    }
}

fn single_keyword(keyword: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(keyword.to_owned(), value)])
}

fn visible_names(names: &[Value]) -> Vec<&Value> {
    let shown = |name: &&Value| name.as_str().is_some_and(is_visible);
    names.iter().filter(shown).collect()
}

fn unique(texts: &[&Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let first = texts.iter().filter(|text| seen.insert(text.as_str()));
    first.map(|text| (*text).clone()).collect()
}

// Both the target of a reference and the keywords next to `$ref` apply. Descriptive keywords next
// to `$ref` win.
fn merge_siblings(mut target: Map<String, Value>, own: Map<String, Value>) -> Map<String, Value> {
    let (said, ruled): (Map<_, _>, Map<_, _>) = own
        .into_iter()
        .partition(|(keyword, _)| only_describes(keyword));
    let clash = |(keyword, value): (&String, &Value)| {
        let bound = ["if", "then", "else", "minContains", "maxContains"];
        bound.contains(&keyword.as_str()) || target.get(keyword).is_some_and(|has| has != value)
    };
    if ruled.iter().any(clash) {
        let mut both = said;
        let parts = vec![target.into(), ruled.into()];
        both.insert("allOf".to_owned(), Value::Array(parts));
        return both;
    }
    target.extend(ruled);
    target.extend(said);
    target
}
