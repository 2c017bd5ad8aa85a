//! Detects Toolgate processes that start one another as MCP servers.
//!
//! Every child process inherits a list of the configurations that led to it. A Toolgate that finds
//! its own configuration there would start itself forever.

use std::path::Path;

use super::catalog::sha256_hex;

pub(super) const VARIABLE: &str = "TOOLGATE_CHAIN";
const NO_FILE: &str = "-";
const MAX_CHAIN: usize = 3;

/// The Toolgate processes that started one another, down to this one; used
/// to stop endless recursion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartChain(Vec<String>);

/// Why this process must not start: Toolgates would start one another endlessly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecursiveStartError {
    #[error(
        "this Toolgate was started by a server of {0}, and would start that server again in an endless loop: give it another file with --config, or remove it from the list of servers"
    )]
    Loop(String),
    #[error(
        "{MAX_CHAIN} Toolgates have already started one another as MCP servers: configure all servers in one of them"
    )]
    TooLong,
}

impl StartChain {
    /// Reads the processes, outermost first, from the environment variable that each
    /// sets for its servers.
    pub fn from_env() -> Self {
        Self::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let links = text.split(',').filter(|link| !link.is_empty());
        Self(links.map(str::to_owned).collect())
    }

    /// Fails if three Toolgates are nested already.
    pub fn check_length(&self) -> Result<(), RecursiveStartError> {
        match self.0.len() < MAX_CHAIN {
            true => Ok(()),
            false => Err(RecursiveStartError::TooLong),
        }
    }

    /// Fails if an outer Toolgate uses `file`, so that this one would start itself again.
    pub fn check(&self, file: Option<&Path>) -> Result<(), RecursiveStartError> {
        match file {
            Some(file) if self.0.contains(&chain_link(Some(file))) => {
                Err(RecursiveStartError::Loop(file.display().to_string()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn variable_value(&self, file: Option<&Path>) -> String {
        let mut links = self.0.clone();
        links.push(chain_link(file));
        links.join(",")
    }
}

fn chain_link(file: Option<&Path>) -> String {
    let Some(file) = file else {
        return NO_FILE.to_owned();
    };
    // Hash the path, not the content: an edited file is still the same list of servers.
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let hash = sha256_hex(real.as_os_str().as_encoded_bytes());
    hash[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_detect_loops_and_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, alias] = ["one", "two", "alias"].map(|name| folder.path().join(name));
        for file in [&one, &two] {
            std::fs::write(file, "{}").unwrap();
        }
        std::os::unix::fs::symlink(&one, &alias).unwrap();
        let first = StartChain::default();
        assert_eq!(first.check(Some(&one)), Ok(()));
        let second = StartChain::parse(&first.variable_value(Some(&one)));
        assert_eq!(second.check(Some(&two)), Ok(()));
        assert!(matches!(
            second.check(Some(&one)),
            Err(RecursiveStartError::Loop(_))
        ));
        assert!(matches!(
            second.check(Some(&alias)),
            Err(RecursiveStartError::Loop(_))
        ));
        let third = StartChain::parse(&second.variable_value(Some(&two)));
        assert!(third.check(Some(&one)).is_err() && third.check(Some(&two)).is_err());
        assert_eq!(third.check_length(), Ok(()));
        let fourth = StartChain::parse(&third.variable_value(None));
        assert_eq!(fourth.check(None), Ok(()));
        assert_eq!(fourth.check_length(), Err(RecursiveStartError::TooLong));
    }
}
