//! Where the configuration is.

use std::path::{Path, PathBuf};

use super::Environment;

/// How a file came to be the one that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Place {
    /// By `--config` or `$TOOLGATE_CONFIG`: the person chose it.
    Named,
    /// It lies in the working folder, whoever put it there.
    #[default]
    Here,
    /// In the user's own config folder.
    User,
}

/// `--config`, else `$TOOLGATE_CONFIG`, else `toolgate.json` or `.mcp.json` here, else the user's; none is fine.
pub(crate) fn find(
    option: Option<&Path>,
    here: &Path,
    environment: Environment<'_>,
) -> Option<(PathBuf, Place)> {
    if let Some(path) = named(option, environment) {
        return Some((path, Place::Named));
    }
    let candidates = [
        Some((here.join("toolgate.json"), Place::Here)),
        Some((here.join(".mcp.json"), Place::Here)),
        user_file(environment).map(|path| (path, Place::User)),
    ];
    // Whatever has the name counts: a file that can not be read must be an error, not a policy that silently is not there.
    candidates
        .into_iter()
        .flatten()
        .find(|(path, _)| path.symlink_metadata().is_ok())
}

/// `--config`, else `$TOOLGATE_CONFIG`.
pub(crate) fn named(option: Option<&Path>, environment: Environment<'_>) -> Option<PathBuf> {
    let variable = || {
        environment("TOOLGATE_CONFIG")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    option.map(Path::to_owned).or_else(variable)
}

/// The user's own file, there or not.
pub(crate) fn user_file(environment: Environment<'_>) -> Option<PathBuf> {
    user_folder(environment, "XDG_CONFIG_HOME", ".config")
        .map(|folder| folder.join("toolgate.json"))
}

/// Our folder for what must be remembered.
pub(crate) fn state_folder(environment: Environment<'_>) -> Option<PathBuf> {
    user_folder(environment, "XDG_STATE_HOME", ".local/state")
}

fn user_folder(environment: Environment<'_>, variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name| {
        environment(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set(variable)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(set("HOME")?.join(below_home)));
    base.map(|base| base.join("toolgate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_has_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("here");
        let user = folder.path().join("config/toolgate");
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir_all(&user).unwrap();
        let config_home = folder.path().join("config").display().to_string();
        let environment = |name: &str| (name == "XDG_CONFIG_HOME").then(|| config_home.clone());
        let found = || find(None, &here, &environment);
        assert_eq!(found(), None);
        for (path, place) in [
            (user.join("toolgate.json"), Place::User),
            (here.join(".mcp.json"), Place::Here),
            (here.join("toolgate.json"), Place::Here),
        ] {
            std::fs::write(&path, "{}").unwrap();
            assert_eq!(found(), Some((path, place)));
        }
        let by_variable = |name: &str| (name == "TOOLGATE_CONFIG").then(|| "/x.json".to_owned());
        assert_eq!(
            find(None, &here, &by_variable),
            Some(("/x.json".into(), Place::Named))
        );
        let by_option = find(Some(Path::new("/y.json")), &here, &by_variable);
        assert_eq!(by_option, Some(("/y.json".into(), Place::Named)));
    }
}
