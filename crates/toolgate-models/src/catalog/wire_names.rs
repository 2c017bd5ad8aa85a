//! Names that a provider accepts: legal, unique, and the same on every run and machine.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use toolgate_core::ToolDefinition;

/// Length of what makes a name unique: an underscore and eight digits.
const SUFFIX: usize = 9;

/// A name for each of these tools, in their order.
pub(super) fn assign(
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
pub(super) fn legal(name: &str, longest: usize) -> Cow<'_, str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.len() <= longest && !name.is_empty() && name.bytes().all(is_legal) {
        return Cow::Borrowed(name);
    }
    let replaced = name.chars().map(|c| match u8::try_from(c) {
        Ok(byte) if is_legal(byte) => c,
        _ => '_',
    });
    let replaced: String = replaced.collect();
    match replaced.len() {
        0 => Cow::Borrowed("_"),
        length if length <= longest => Cow::Owned(replaced),
        _ => Cow::Owned(with_suffix(&replaced, name, longest)),
    }
}

/// A name that nobody has yet. The first try is nearly always the one.
pub(super) fn free(
    legal: &str,
    listed: &str,
    longest: usize,
    taken: &mut HashSet<String>,
) -> String {
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
pub(super) fn with_suffix(legal: &str, seed: &str, longest: usize) -> String {
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
