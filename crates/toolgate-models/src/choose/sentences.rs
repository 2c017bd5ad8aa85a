//! The sentences that ship, with those of a person's own files.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use toolgate_intents::{Pack, SentenceInterpreter};

use super::ChooseError;
use crate::{ModelSettings, Toolbox};

/// Nobody writes so many sentences.
const LARGEST_PACK: u64 = 4 << 20;

/// The sentences that ship, and those of the person.
pub fn sentences(
    settings: &ModelSettings,
    toolbox: &Toolbox,
) -> Result<Arc<SentenceInterpreter>, ChooseError> {
    let mut all = Pack::english();
    for file in &settings.intents {
        let text = read(file).map_err(|error| unusable(file, &error.to_string()))?;
        let pack = Pack::read(&text).map_err(|error| unusable(file, &error.to_string()))?;
        all = all.with(pack);
        // What does not fit together is the fault of the file that was added last.
        all.check()
            .map_err(|error| unusable(file, &error.to_string()))?;
    }
    let sentences = SentenceInterpreter::new(toolbox.clone(), all);
    let problem = |error| ChooseError::Settings(format!("model.intents: {error}"));
    sentences.map(Arc::new).map_err(problem)
}

fn unusable(file: &Path, reason: &str) -> ChooseError {
    let file = toolgate_core::escape(&file.to_string_lossy());
    ChooseError::Settings(format!("model.intents: {file}: {reason}"))
}

fn read(file: &Path) -> std::io::Result<String> {
    // Asked before it is opened: opening a pipe waits for somebody to write.
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("is no file"));
    }
    let mut text = String::new();
    std::fs::File::open(file)?
        .take(LARGEST_PACK + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_PACK {
        let most = LARGEST_PACK >> 20;
        return Err(std::io::Error::other(format!("is larger than {most} MiB")));
    }
    Ok(text)
}
