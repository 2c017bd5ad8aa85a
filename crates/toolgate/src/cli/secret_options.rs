//! The options of `toolgate secret`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SecretOptions {
    #[command(subcommand)]
    pub(crate) action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretAction {
    /// Store a secret in the keyring, typed without being shown or read from stdin
    Set { name: String },
    /// List the names of secrets, and where the configuration uses them
    List {
        /// Print a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Remove a secret from the keyring
    Remove { name: String },
}
