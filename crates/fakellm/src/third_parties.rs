//! Finds the models and clients of third parties, for tests that need them.

use std::path::PathBuf;

/// The folder where `./test.sh` installs them; `None`, with a message, if it hasn't. With `CI=true`
/// that is a panic.
pub fn third_parties() -> Option<PathBuf> {
    thirdparty::MODELS.folder()
}
