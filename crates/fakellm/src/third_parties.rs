//! Where models and clients are that others wrote.

use std::path::PathBuf;

/// The folder where `./test.sh` installs them. If it has not: none, which is said; with `CI=true` a panic.
pub fn third_parties() -> Option<PathBuf> {
    thirdparty::MODELS.folder()
}
