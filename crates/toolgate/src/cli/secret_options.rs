//! What `toolgate secret` is told.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SecretOptions {
    #[command(subcommand)]
    pub(crate) action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretAction {
    /// Put a secret into the keyring: typed without being shown, or from stdin
    Set { name: String },
    /// List the names of secrets, and what of the configuration uses them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a secret out of the keyring
    Remove { name: String },
}
