//! Assigns tool names for protocols that accept only letters, digits, `_` and `-`.
//! Changed names are unique, and the same on every run and machine. Model providers and
//! our MCP server share them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::ToolDefinition;

// An underscore and eight digits.
const SUFFIX_LEN: usize = 9;

/// Assigns a legal name of at most `max_bytes` to each tool, in order. Illegal characters are
/// replaced; a hash is appended only if two tools would get the same name. With `original_names`,
/// a tool keeps its server's name if no other tool has it. For models, which receive the whole
/// list with every request.
pub fn assign(
    definitions: &[&ToolDefinition],
    max_bytes: usize,
    original_names: bool,
) -> Vec<String> {
    let wanted = wanted_names(definitions, original_names);
    let legal: Vec<Cow<'_, str>> = wanted
        .iter()
        .map(|name| to_legal(name, max_bytes))
        .collect();
    // The wanted names are unique, so if all of them are legal, nothing has to change.
    if legal
        .iter()
        .zip(&wanted)
        .all(|(legal, wanted)| legal == wanted)
    {
        return legal.into_iter().map(Cow::into_owned).collect();
    }
    let mut shared: HashMap<&str, usize> = HashMap::with_capacity(legal.len());
    for name in &legal {
        *shared.entry(name).or_default() += 1;
    }
    let keeps =
        |index: usize| *wanted[index] == *legal[index] || shared.get(&*legal[index]) == Some(&1);
    let kept: Vec<bool> = (0..legal.len()).map(keeps).collect();
    let kept_names = kept.iter().zip(&legal).filter(|(kept, _)| **kept);
    let mut taken: HashSet<String> = kept_names.map(|(_, name)| name.to_string()).collect();
    let mut names: Vec<String> = Vec::with_capacity(legal.len());
    for (index, kept) in kept.iter().enumerate() {
        names.push(match kept {
            true => legal[index].to_string(),
            false => unique_name(
                &legal[index],
                definitions[index].name(),
                max_bytes,
                &mut taken,
            ),
        });
    }
    names
}

/// Assigns a legal name of at most `max_bytes` to each of `names`, in order. A name that has to
/// change ends in its own hash, so it doesn't depend on the other names. For clients that keep the
/// list, so that an old name never runs another tool.
pub fn assign_stable(names: &[&str], max_bytes: usize) -> Vec<String> {
    let is_legal = |name: &&str| matches!(to_legal(name, max_bytes), Cow::Borrowed(_));
    let legal_ones = names.iter().filter(|name| is_legal(name));
    let mut taken: HashSet<String> = legal_ones.map(|name| (*name).to_owned()).collect();
    let mut one = |name: &&str| match is_legal(name) {
        true => (*name).to_owned(),
        false => unique_name(&replace_illegal(name), name, max_bytes, &mut taken),
    };
    names.iter().map(&mut one).collect()
}

// The original name is easier to read, but only safe if it can't mean another tool.
fn wanted_names<'a>(definitions: &[&'a ToolDefinition], original_names: bool) -> Vec<&'a str> {
    let mut named = definitions.iter();
    if !original_names || named.all(|definition| definition.name() == definition.original_name()) {
        let listed = definitions.iter().map(|definition| definition.name());
        return listed.collect();
    }
    let mut count: HashMap<&str, usize> = HashMap::with_capacity(definitions.len());
    for definition in definitions {
        let (listed, original) = (definition.name(), definition.original_name());
        *count.entry(original).or_default() += 1;
        if listed != original {
            *count.entry(listed).or_default() += 1;
        }
    }
    let wanted = |definition: &&'a ToolDefinition| match count.get(definition.original_name()) {
        Some(1) => definition.original_name(),
        _ => definition.name(),
    };
    definitions.iter().map(wanted).collect()
}

/// Replaces illegal characters. A name longer than `max_bytes` is shortened and gets a hash.
pub fn to_legal(name: &str, max_bytes: usize) -> Cow<'_, str> {
    if name.len() <= max_bytes && !name.is_empty() && name.bytes().all(is_legal) {
        return Cow::Borrowed(name);
    }
    let replaced = replace_illegal(name);
    match replaced.len() {
        _ if name.is_empty() => Cow::Borrowed("_"),
        length if length <= max_bytes && replaced != UNREADABLE => Cow::Owned(replaced),
        _ => Cow::Owned(with_suffix(&replaced, name, max_bytes)),
    }
}

// Stands in for a name without a single readable character.
const UNREADABLE: &str = "tool";

fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Strips accents, and replaces everything else that is illegal with `_`.
fn replace_illegal(name: &str) -> String {
    let mut replaced = String::with_capacity(name.len());
    let mut folded = String::new();
    for c in name.chars() {
        folded.clear();
        if !c.is_ascii() {
            crate::text::fold_char(c, &mut folded);
        }
        match u8::try_from(c) {
            Ok(byte) if is_legal(byte) => replaced.push(c),
            _ if !folded.is_empty() && folded.bytes().all(is_legal) => replaced.push_str(&folded),
            _ => replaced.push('_'),
        }
    }
    if !replaced.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        return UNREADABLE.to_owned();
    }
    replaced
}

// The first try nearly always succeeds.
fn unique_name(legal: &str, listed: &str, max_bytes: usize, taken: &mut HashSet<String>) -> String {
    let mut seed = listed.to_owned();
    loop {
        let name = with_suffix(legal, &seed, max_bytes);
        if taken.insert(name.clone()) {
            return name;
        }
        seed.push('+');
    }
}

/// Appends a hash of `seed`, and shortens the legal name so that both fit into `max_bytes`.
pub fn with_suffix(legal: &str, seed: &str, max_bytes: usize) -> String {
    let room = legal.len().min(max_bytes.saturating_sub(SUFFIX_LEN));
    format!("{}_{:08x}", &legal[..room], hash(seed))
}

// FNV-1a, folded to half its width. It must never change, because saved conversations contain the
// names.
fn hash(text: &str) -> u32 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let hash = text.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}
