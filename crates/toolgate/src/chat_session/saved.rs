//! Reads and writes saved conversations.

use std::path::Path;

use anyhow::{Context, bail};
use toolgate_core::text::escape;
use toolgate_models::{Conversation, SavedConversation};

use crate::file;

pub(crate) fn read_saved(path: &Path) -> anyhow::Result<SavedConversation> {
    let shown = escape(&path.to_string_lossy());
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !size.is_file() || size.len() > SavedConversation::MAX_FILE_BYTES as u64 {
        bail!("{shown} is not a saved conversation");
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    SavedConversation::parse(&bytes).with_context(|| format!("{shown} can't be resumed"))
}

/// Checks before the first turn whether the conversation can be saved there, so that a typo doesn't
/// cost an answer. Fails for an existing file of another kind.
pub(crate) fn check_savable(path: &Path) -> anyhow::Result<()> {
    let shown = escape(&path.to_string_lossy());
    file::check_replaceable(path).with_context(|| format!("cannot write {shown}"))?;
    let is_new = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
    if !is_new && read_saved(path).is_err() {
        bail!("{shown} exists and is not a saved conversation; choose another file");
    }
    Ok(())
}

pub(crate) fn save(conversation: &Conversation, path: &Path) -> anyhow::Result<()> {
    let text = conversation.save().to_json();
    file::replace(path, &text)
        .with_context(|| format!("cannot write {}", escape(&path.to_string_lossy())))
}
