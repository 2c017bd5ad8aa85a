//! Programs that download a package before they run it, as far as a command line shows it.
//!
//! Their first start takes as long as the download, and must not be killed in the middle of it: npm leaves a half-written
//! folder behind that breaks the package for every client on the machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ring::digest::{SHA512, digest};
use toolgate_home::DIALECTS;

use super::Program;

const TOOLGATE: &str = "toolgate";
/// Endings of programs that stand for the program itself.
const SUFFIXES: [&str; 4] = [".cmd", ".exe", ".bat", ".ps1"];
/// Options of npx that take their value as a word of its own, besides `-p` and `--package`.
const NPX_VALUES: [&str; 10] = [
    "-c",
    "--call",
    "-w",
    "--workspace",
    "--registry",
    "--cache",
    "--prefix",
    "--userconfig",
    "--loglevel",
    "--script-shell",
];

/// A program whose sub-command runs packages, and its options in front of it that take a value as a word of its own.
struct Family {
    program: &'static str,
    run: &'static [&'static [&'static str]],
    values: &'static [&'static str],
}

const FAMILIES: [Family; 8] = [
    Family {
        program: "npm",
        run: &[&["exec"], &["x"]],
        values: &NPX_VALUES,
    },
    Family {
        program: "pnpm",
        run: &[&["dlx"]],
        values: &["-C", "--dir", "-F", "--filter", "--loglevel", "--reporter"],
    },
    Family {
        program: "yarn",
        run: &[&["dlx"]],
        values: &["--cwd"],
    },
    Family {
        program: "bun",
        run: &[&["x"]],
        values: &["--cwd", "-c", "--config"],
    },
    Family {
        program: "uv",
        run: &[&["run"], &["tool", "run"]],
        values: &[
            "--directory",
            "--project",
            "--config-file",
            "--cache-dir",
            "--color",
            "--python-preference",
            "--allow-insecure-host",
        ],
    },
    Family {
        program: "pipx",
        run: &[&["run"]],
        values: &[],
    },
    Family {
        program: "docker",
        run: &[&["run"], &["container", "run"]],
        values: &[
            "--config",
            "-c",
            "--context",
            "-H",
            "--host",
            "-l",
            "--log-level",
        ],
    },
    Family {
        program: "podman",
        run: &[&["run"], &["container", "run"]],
        values: &[
            "--connection",
            "-c",
            "--log-level",
            "--root",
            "--runroot",
            "--url",
        ],
    },
];

impl Program {
    /// True for `npx`, `uvx`, `docker run` and their like: what they run may have to be downloaded first.
    pub(crate) fn is_package_runner(&self) -> bool {
        if self.container.is_some() {
            return true;
        }
        let (name, args) = self.command_line();
        if matches!(name.as_str(), "npx" | "pnpx" | "bunx" | "uvx") {
            return true;
        }
        let family = FAMILIES.iter().find(|family| family.program == name);
        family.is_some_and(|family| family.sub_command(&args).is_some())
    }

    /// True for npm and npx, which keep a cache of their own.
    pub(crate) fn uses_npm(&self) -> bool {
        matches!(self.command_line().0.as_str(), "npm" | "npx")
    }

    /// True for a container engine: what it runs is confined by itself.
    pub(crate) fn is_container_engine(&self) -> bool {
        matches!(
            self.command_line().0.as_str(),
            "docker" | "podman" | "nerdctl"
        )
    }

    /// The program that runs in the end, without folder and ending, and its arguments: what `env` or a shell's `-c` is told
    /// to run is what counts. Of a script only a plain first command is understood.
    fn command_line(&self) -> (String, Cow<'_, [String]>) {
        let name = file_name(&self.command);
        let words: Vec<String> = match (name.as_str(), self.args.as_slice()) {
            ("env", args) => args.to_vec(),
            ("sh" | "bash" | "dash" | "zsh", [flag, script, ..]) if flag == "-c" => {
                script.split_whitespace().map(str::to_owned).collect()
            }
            (_, args) => return (name, Cow::Borrowed(args)),
        };
        let is_setting = |word: &&String| {
            word.starts_with('-') || word.contains('=') || matches!(word.as_str(), "exec")
        };
        let settings = words.iter().take_while(is_setting).count();
        match words[settings..].split_first() {
            Some((command, args)) => (file_name(command), Cow::Owned(args.to_vec())),
            None => (name, Cow::Borrowed(&self.args)),
        }
    }

    /// True if it starts Toolgate with the configuration that this program finds too, and so itself without end. Its home
    /// servers have no servers, and one with another configuration, or at a gateway, ends.
    pub(crate) fn starts_itself(&self) -> bool {
        // A container has files of its own, and so another configuration.
        if self.container.is_some() {
            return false;
        }
        let Some(words) = self.toolgate_arguments() else {
            return false;
        };
        let is_elsewhere = |word: &String| {
            let option = word.split('=').next().unwrap_or_default();
            matches!(option, "--config" | "--at" | "--help" | "--version")
                || DIALECTS.iter().any(|dialect| dialect.server() == option)
        };
        !self.env.contains_key("TOOLGATE_CONFIG") && !words.iter().any(is_elsewhere)
    }

    /// What Toolgate would be told, if it is what runs in the end.
    fn toolgate_arguments(&self) -> Option<Vec<String>> {
        let (name, args) = self.command_line();
        if name == TOOLGATE {
            return Some(args.into_owned());
        }
        // A container has files of its own, and so another configuration.
        if !self.is_package_runner() || matches!(name.as_str(), "docker" | "podman") {
            return None;
        }
        let at = args.iter().position(|word| {
            let package = file_name(word);
            package.split(['@', '=']).next() == Some(TOOLGATE)
        })?;
        Some(args[at + 1..].to_vec())
    }

    /// The folder that npx installs these packages into, by npm's own rule: the first 16 hexadecimal digits of the SHA-512
    /// of the packages, in order, a line each. None if it is not npx, or the package is a folder.
    pub(crate) fn npx_folder(&self, variables: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
        if self.container.is_some() {
            return None;
        }
        let mut packages = self.npx_packages()?;
        let is_folder = |package: &String| package.starts_with(['.', '/', '~']);
        if packages.is_empty() || packages.iter().any(is_folder) {
            return None;
        }
        packages.sort_unstable();
        let digest = digest(&SHA512, packages.join("\n").as_bytes());
        let hash: String = digest
            .as_ref()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(npm_cache(variables)?.join("_npx").join(hash))
    }

    /// The packages of npx or `npm exec`, as they are written.
    fn npx_packages(&self) -> Option<Vec<String>> {
        let (name, args) = self.command_line();
        let args = match name.as_str() {
            "npx" => &args[..],
            "npm" => FAMILIES[0].sub_command(&args)?,
            _ => return None,
        };
        let (mut packages, mut words) = (Vec::new(), args.iter().map(String::as_str));
        while let Some(word) = words.next() {
            match word {
                "-p" | "--package" => packages.extend(words.next()),
                "--" => {}
                word if NPX_VALUES.contains(&word) => drop(words.next()),
                word if word.starts_with("--package=") => {
                    packages.extend(word.strip_prefix("--package="));
                }
                word if word.starts_with('-') => {}
                command => {
                    if packages.is_empty() {
                        packages.push(command);
                    }
                    break;
                }
            }
        }
        Some(packages.into_iter().map(str::to_owned).collect())
    }
}

/// The name of a program without its folder and what Windows ends it with.
fn file_name(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.map(str::to_owned).unwrap_or(name)
}

impl Family {
    /// What follows the sub-command that runs packages.
    fn sub_command<'a>(&self, args: &'a [String]) -> Option<&'a [String]> {
        let mut at = 0;
        while args.get(at)?.starts_with('-') {
            at += if self.values.contains(&args[at].as_str()) {
                2
            } else {
                1
            };
        }
        let is_run = |words: &&&[&str]| {
            let given = args.get(at..at + words.len());
            given.is_some_and(|given| given.iter().zip(words.iter()).all(|(a, b)| a == b))
        };
        let run = self.run.iter().find(is_run)?;
        args.get(at + run.len()..)
    }
}

/// Where npm keeps what it downloads.
fn npm_cache(variables: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    // npm reads its variables in any case.
    let is_cache = |name: &OsStr| name.eq_ignore_ascii_case("npm_config_cache");
    let mut configured = variables
        .iter()
        .filter(|(name, value)| is_cache(name) && !value.is_empty());
    if let Some((_, folder)) = configured.next() {
        return Some(folder.into());
    }
    let home = variables.get(OsStr::new("HOME"))?;
    Some(Path::new(home).join(".npm"))
}

#[cfg(test)]
mod tests;
