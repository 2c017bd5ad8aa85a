//! Toolgates that start one another through their servers: how such a chain ends.
//!
//! Every child process carries the configurations that led to it. A Toolgate that finds its own
//! among them would start itself without end.

use std::path::Path;

use ring::digest::{SHA256, digest};

/// The variable that holds the chain: a hash of each configuration file, the first one first.
pub(super) const VARIABLE: &str = "TOOLGATE_CHAIN";
/// Stands for a Toolgate without a file.
const NO_FILE: &str = "-";
/// So many Toolgates may stand above one another.
const LONGEST: usize = 3;

/// The Toolgates above this one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain(Vec<String>);

/// Why this Toolgate must not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The configuration is in use further up.
    #[error(
        "this Toolgate was started by a server of {0}, and would start that server again, without end: give it another file with --config, or take it out of the list of servers"
    )]
    Loop(String),
    /// There are enough of them.
    #[error(
        "{LONGEST} Toolgates have started one another through their servers, and this would be one more: let one of them have all servers"
    )]
    TooLong,
}

impl Chain {
    /// What whoever started this program has said.
    pub fn inherited() -> Self {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let links = text.split(',').filter(|link| !link.is_empty());
        Self(links.map(str::to_owned).collect())
    }

    /// Refuses one Toolgate too many.
    ///
    /// # Errors
    ///
    /// If three have started one another already.
    pub fn check_length(&self) -> Result<(), ChainError> {
        match self.0.len() < LONGEST {
            true => Ok(()),
            false => Err(ChainError::TooLong),
        }
    }

    /// Refuses a configuration that is in use further up.
    ///
    /// # Errors
    ///
    /// If this Toolgate would start itself again.
    pub fn check(&self, file: Option<&Path>) -> Result<(), ChainError> {
        match file {
            Some(file) if self.0.contains(&link(Some(file))) => {
                Err(ChainError::Loop(file.display().to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The variable's value for the servers of this Toolgate.
    pub(crate) fn continued(&self, file: Option<&Path>) -> String {
        let mut links = self.0.clone();
        links.push(link(file));
        links.join(",")
    }
}

fn link(file: Option<&Path>) -> String {
    let Some(file) = file else {
        return NO_FILE.to_owned();
    };
    // The path, not the text: a file that is edited meanwhile is still the same list of servers.
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let hash = digest(&SHA256, real.as_os_str().as_encoded_bytes());
    hash.as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_found_again_and_a_chain_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, alias] = ["one", "two", "alias"].map(|name| folder.path().join(name));
        for file in [&one, &two] {
            std::fs::write(file, "{}").unwrap();
        }
        std::os::unix::fs::symlink(&one, &alias).unwrap();
        let first = Chain::default();
        assert_eq!(first.check(Some(&one)), Ok(()));
        let second = Chain::parse(&first.continued(Some(&one)));
        assert_eq!(second.check(Some(&two)), Ok(()));
        assert!(matches!(second.check(Some(&one)), Err(ChainError::Loop(_))));
        assert!(matches!(
            second.check(Some(&alias)),
            Err(ChainError::Loop(_))
        ));
        let third = Chain::parse(&second.continued(Some(&two)));
        assert!(third.check(Some(&one)).is_err() && third.check(Some(&two)).is_err());
        assert_eq!(third.check_length(), Ok(()));
        let fourth = Chain::parse(&third.continued(None));
        assert_eq!(fourth.check(None), Ok(()));
        assert_eq!(fourth.check_length(), Err(ChainError::TooLong));
    }
}
