//! Finds the configuration file.

use std::path::{Path, PathBuf};

use super::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConfigLocation {
    #[default]
    Named,
    Here,
    User,
}

/// The candidates in a working folder, in order of precedence. The user's own file is never one of
/// them, even in its own folder or behind a link.
pub(crate) fn files_in_folder(here: &Path, environment: Environment<'_>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let users = user_file(environment).and_then(|path| real(&path));
    let files = ["toolgate.json", ".mcp.json"].map(|name| here.join(name));
    // A broken link counts too, so that it is reported.
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let is_users = |path: &PathBuf| users.is_some() && real(path) == users;
    let files = files.into_iter().filter(is_there);
    files.filter(|path| !is_users(path)).collect()
}

pub(crate) fn named_file(option: Option<&Path>, environment: Environment<'_>) -> Option<PathBuf> {
    let variable = || {
        environment("TOOLGATE_CONFIG")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    option.map(Path::to_owned).or_else(variable)
}

pub(crate) fn user_file(environment: Environment<'_>) -> Option<PathBuf> {
    user_folder(environment, "XDG_CONFIG_HOME", ".config")
        .map(|folder| folder.join("toolgate.json"))
}

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
    fn a_folder_has_its_files_but_not_the_users_own() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("here");
        let user = folder.path().join("config/toolgate");
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir_all(&user).unwrap();
        let config_home = folder.path().join("config").display().to_string();
        let environment = |name: &str| (name == "XDG_CONFIG_HOME").then(|| config_home.clone());
        let found = || files_in_folder(&here, &environment);
        assert!(found().is_empty());
        std::fs::write(here.join(".mcp.json"), "{}").unwrap();
        std::fs::write(user.join("toolgate.json"), "{}").unwrap();
        assert_eq!(found(), [here.join(".mcp.json")]);
        assert!(files_in_folder(&user, &environment).is_empty());
        let link = here.join("toolgate.json");
        std::os::unix::fs::symlink(user.join("toolgate.json"), &link).unwrap();
        assert_eq!(found(), [here.join(".mcp.json")]);
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(found(), [link, here.join(".mcp.json")]);
    }

    #[test]
    fn the_option_wins_over_the_variable() {
        let by_variable = |name: &str| (name == "TOOLGATE_CONFIG").then(|| "/x.json".to_owned());
        assert_eq!(named_file(None, &by_variable), Some("/x.json".into()));
        let by_option = named_file(Some(Path::new("/y.json")), &by_variable);
        assert_eq!(by_option, Some("/y.json".into()));
    }
}
