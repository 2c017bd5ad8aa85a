//! From a choice to a client.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Choice, ChooseError, Chosen};
use crate::intents::{FastPath, IntentsClient, Pack, StandIn};
use crate::provider::ClientResult;
use crate::{ModelClient, ModelSettings, Provider, Toolbox};

/// Nobody writes so many sentences.
const LARGEST_PACK: u64 = 4 << 20;

/// Makes the client of a choice. Nothing is asked yet.
pub fn connect(choice: Choice, toolbox: &Toolbox) -> Result<Chosen, ChooseError> {
    let settings = choice.settings;
    let client = (choice.provider.entry().connect)(&settings, toolbox)?;
    let client = match choice.provider {
        Provider::Intents => client,
        _ => beside(client, &settings, choice.is_unasked, toolbox)?,
    };
    Ok(Chosen {
        client,
        settings,
        why: choice.why,
        passed_over: choice.passed_over,
    })
}

/// Sentences alone.
pub(crate) fn intents_client(settings: &ModelSettings, toolbox: &Toolbox) -> ClientResult {
    Ok(Arc::new(intents(toolbox, &settings.intents)?))
}

/// A model with sentences before it, behind it, or neither.
fn beside(
    mut client: Arc<dyn ModelClient>,
    settings: &ModelSettings,
    is_unasked: bool,
    toolbox: &Toolbox,
) -> ClientResult {
    if !settings.intents_first && !is_unasked {
        return Ok(client);
    }
    let sentences = Arc::new(intents(toolbox, &settings.intents)?);
    if settings.intents_first {
        client = Arc::new(FastPath::new(Arc::clone(&sentences), client));
    }
    if is_unasked {
        client = Arc::new(StandIn::new(sentences, client));
    }
    Ok(client)
}

/// The sentences that ship, and those of the person.
fn intents(toolbox: &Toolbox, files: &[PathBuf]) -> Result<IntentsClient, ChooseError> {
    let mut all = Pack::english();
    for file in files {
        let text = read(file).map_err(|error| unusable(file, &error.to_string()))?;
        let pack = Pack::read(&text).map_err(|error| unusable(file, &error.to_string()))?;
        all = all.with(pack);
        // What does not fit together is the fault of the file that was added last.
        all.check()
            .map_err(|error| unusable(file, &error.to_string()))?;
    }
    let client = IntentsClient::new(toolbox.clone(), all);
    client.map_err(|error| ChooseError::Settings(format!("model.intents: {error}")))
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
