//! Conversations that are kept in files.

use std::path::Path;

use anyhow::{Context, bail};
use toolgate_core::escape;
use toolgate_models::{Conversation, Saved};

use crate::file;

pub(crate) fn read(path: &Path) -> anyhow::Result<Saved> {
    let shown = escape(&path.to_string_lossy());
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !size.is_file() || size.len() > Saved::LARGEST_FILE as u64 {
        bail!("{shown} is no saved conversation");
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    Saved::read(&bytes).with_context(|| format!("{shown} can not be resumed"))
}

/// Whether a conversation can be kept there: asked before there is one, as nobody should lose an answer to a typing error.
/// What else a file holds is not overwritten.
pub(crate) fn expect_savable(path: &Path) -> anyhow::Result<()> {
    let shown = escape(&path.to_string_lossy());
    file::expect_replaceable(path).with_context(|| format!("cannot write {shown}"))?;
    let is_new = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
    if !is_new && read(path).is_err() {
        bail!("{shown} is there and holds no saved conversation; choose another file");
    }
    Ok(())
}

pub(crate) fn save(conversation: &Conversation, path: &Path) -> anyhow::Result<()> {
    let text = conversation.save().to_json();
    file::replace(path, &text)
        .with_context(|| format!("cannot write {}", escape(&path.to_string_lossy())))
}
