//! Loads the built-in sentences and those from the user's own files.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use toolgate_intents::{Pack, SentenceInterpreter};

use super::ModelSelectionError;
use crate::{ModelSettings, Toolbox};

// Far more than anyone writes by hand. Bounds what a wrong path can make us read.
const MAX_PACK_BYTES: u64 = 4 << 20;

/// Loads the built-in sentences and those in the files of `settings.intents`. The error names the
/// file that can't be used.
pub fn load_sentences(
    settings: &ModelSettings,
    toolbox: &Toolbox,
) -> Result<Arc<SentenceInterpreter>, ModelSelectionError> {
    let mut all = Pack::english();
    for file in &settings.intents {
        let text = read_file(file).map_err(|error| file_error(file, &error.to_string()))?;
        let pack = Pack::parse(&text).map_err(|error| file_error(file, &error.to_string()))?;
        all = all.with(pack);
        // Checked after each file, so that the error names the file that caused it.
        all.check()
            .map_err(|error| file_error(file, &error.to_string()))?;
    }
    let sentences = SentenceInterpreter::new(toolbox.clone(), all);
    let problem = |error| ModelSelectionError::Settings(format!("model.intents: {error}"));
    sentences.map(Arc::new).map_err(problem)
}

fn file_error(file: &Path, reason: &str) -> ModelSelectionError {
    let file = toolgate_core::text::escape(&file.to_string_lossy());
    ModelSelectionError::Settings(format!("model.intents: {file}: {reason}"))
}

fn read_file(file: &Path) -> std::io::Result<String> {
    // Checked before opening, because opening a FIFO waits for a writer.
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("is not a file"));
    }
    let mut text = String::new();
    std::fs::File::open(file)?
        .take(MAX_PACK_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PACK_BYTES {
        let most = MAX_PACK_BYTES >> 20;
        return Err(std::io::Error::other(format!("is larger than {most} MiB")));
    }
    Ok(text)
}
