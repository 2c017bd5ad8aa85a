//! Names for those that accept only some: letters, digits, `_` and `-`, up to a length. Made legal and unique where a tool's
//! own name isn't, the same on every run and machine, and each leads back to its tool.
//!
//! Here, because two edges need it: the model providers, and the clients of our MCP server.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::ToolDefinition;

/// Length of what makes a name unique: an underscore and eight digits.
const SUFFIX: usize = 9;

/// A name for each of these tools, in their order. A name that had to change stays readable as far as no other tool has it:
/// for a model, which gets the list again with every question.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{ToolDefinition, wire_names};
///
/// let tool = |name: &str| ToolDefinition::builder(name, "…", json!({ "type": "object" })).build();
/// let (odd, plain) = (tool("get weather")?, tool("echo")?);
/// assert_eq!(wire_names::assign(&[&odd, &plain], 64, false), ["get_weather", "echo"]);
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
pub fn assign(
    definitions: &[&ToolDefinition],
    longest: usize,
    original_names: bool,
) -> Vec<String> {
    let wanted = wanted(definitions, original_names);
    let legal: Vec<Cow<'_, str>> = wanted.iter().map(|name| legal(name, longest)).collect();
    // No two tools want the same name: those whose wish is legal have it by right.
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
            false => free(
                &legal[index],
                definitions[index].name(),
                longest,
                &mut taken,
            ),
        });
    }
    names
}

/// A name for each of these, in their order. A name that had to change always ends in a number made of it, so that it depends
/// on nothing else: for a client that keeps a list, and must not run another tool once that list is old.
///
/// ```
/// use toolgate_core::wire_names;
///
/// assert_eq!(wire_names::fixed(&["get weather", "get_weather"], 64), ["get_weather_90c99821", "get_weather"]);
/// ```
pub fn fixed(names: &[&str], longest: usize) -> Vec<String> {
    let is_legal = |name: &&str| matches!(legal(name, longest), Cow::Borrowed(_));
    let legal_ones = names.iter().filter(|name| is_legal(name));
    let mut taken: HashSet<String> = legal_ones.map(|name| (*name).to_owned()).collect();
    let mut one = |name: &&str| match is_legal(name) {
        true => (*name).to_owned(),
        false => free(&readable(name), name, longest, &mut taken),
    };
    names.iter().map(&mut one).collect()
}

/// The name on the tool's own server where that is wanted and can mean no other tool, else the one it is listed under.
fn wanted<'a>(definitions: &[&'a ToolDefinition], original_names: bool) -> Vec<&'a str> {
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

/// The name with other characters replaced and not too long.
///
/// ```
/// use toolgate_core::wire_names::legal;
///
/// assert_eq!((legal("house.lights", 64), legal("Größe", 64)), ("house_lights".into(), "Grosse".into()));
/// ```
pub fn legal(name: &str, longest: usize) -> Cow<'_, str> {
    if name.len() <= longest && !name.is_empty() && name.bytes().all(is_legal) {
        return Cow::Borrowed(name);
    }
    let replaced = readable(name);
    match replaced.len() {
        _ if name.is_empty() => Cow::Borrowed("_"),
        length if length <= longest && replaced != UNREADABLE => Cow::Owned(replaced),
        _ => Cow::Owned(with_suffix(&replaced, name, longest)),
    }
}

/// Stands for a name of which nothing could be kept.
const UNREADABLE: &str = "tool";

fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// What a name looks like in legal characters: without accents, and with `_` for the rest.
fn readable(name: &str) -> String {
    let mut replaced = String::with_capacity(name.len());
    let mut folded = String::new();
    for c in name.chars() {
        folded.clear();
        if !c.is_ascii() {
            crate::fold(c, &mut folded);
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

/// A name that nobody has yet. The first try is nearly always the one.
fn free(legal: &str, listed: &str, longest: usize, taken: &mut HashSet<String>) -> String {
    let mut seed = listed.to_owned();
    loop {
        let name = with_suffix(legal, &seed, longest);
        if taken.insert(name.clone()) {
            return name;
        }
        seed.push('+');
    }
}

/// The name as far as there is room, and a number made of the seed.
///
/// ```
/// assert_eq!(toolgate_core::wire_names::with_suffix("lamp", "the lamp", 64), "lamp_5b76f765");
/// ```
pub fn with_suffix(legal: &str, seed: &str, longest: usize) -> String {
    let room = legal.len().min(longest.saturating_sub(SUFFIX));
    format!("{}_{:08x}", &legal[..room], hash(seed))
}

/// FNV-1a, folded to half its width. Its numbers are in saved conversations: it must never change.
fn hash(text: &str) -> u32 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let hash = text.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}
