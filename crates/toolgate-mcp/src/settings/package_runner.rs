//! Recognizes programs that download a package before they run it.
//!
//! Their first start takes as long as the download, and must not be killed: npm would leave a
//! half-written folder, and the package would not start for any program on the machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ring::digest::{SHA512, digest};
use toolgate_home::PROTOCOLS;

use super::ServerProgram;

const TOOLGATE: &str = "toolgate";
// Suffixes of wrapper scripts on Windows.
const SUFFIXES: [&str; 4] = [".cmd", ".exe", ".bat", ".ps1"];
// Options of npx, besides `-p` and `--package`, whose value is the next word.
const NPX_VALUES: &str = "-c --call -w --workspace --registry --cache --prefix --userconfig \
    --loglevel --script-shell";

// A program with a subcommand that runs packages. `values` are options before it whose value
// is the next word.
struct RunnerFamily {
    program: &'static str,
    run: &'static [&'static str],
    values: &'static str,
}

const fn family(
    program: &'static str,
    run: &'static [&'static str],
    values: &'static str,
) -> RunnerFamily {
    RunnerFamily {
        program,
        run,
        values,
    }
}

const UV_VALUES: &str = "--directory --project --config-file --cache-dir --color \
    --python-preference --allow-insecure-host";
const DOCKER_VALUES: &str = "--config -c --context -H --host -l --log-level";
const PODMAN_VALUES: &str = "--connection -c --log-level --root --runroot --url";

const FAMILIES: [RunnerFamily; 8] = [
    family("npm", &["exec", "x"], NPX_VALUES),
    family(
        "pnpm",
        &["dlx"],
        "-C --dir -F --filter --loglevel --reporter",
    ),
    family("yarn", &["dlx"], "--cwd"),
    family("bun", &["x"], "--cwd -c --config"),
    family("uv", &["run", "tool run"], UV_VALUES),
    family("pipx", &["run"], ""),
    family("docker", &["run", "container run"], DOCKER_VALUES),
    family("podman", &["run", "container run"], PODMAN_VALUES),
];

impl ServerProgram {
    /// True for `npx`, `uvx`, `docker run` and the like, whose package may have
    /// to be downloaded first.
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

    pub(crate) fn uses_npm(&self) -> bool {
        matches!(self.command_line().0.as_str(), "npm" | "npx")
    }

    /// Containers are confined by their engine.
    pub(crate) fn is_container_engine(&self) -> bool {
        let (name, _) = self.command_line();
        matches!(name.as_str(), "docker" | "podman" | "nerdctl")
    }

    /// The program that is really run, without folder and suffix, and its arguments. Looks through
    /// `env` and a shell's `-c`, and understands only a simple first command there.
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

    /// True if it starts Toolgate with the same configuration, which would be an endless loop.
    /// That doesn't happen if Toolgate runs as a home server, with another configuration, or as a
    /// client of a gateway.
    pub(crate) fn starts_itself(&self) -> bool {
        // A container has its own files, and so another configuration.
        if self.container.is_some() {
            return false;
        }
        let Some(words) = self.toolgate_arguments() else {
            return false;
        };
        let is_harmless = |word: &String| {
            let option = word.split('=').next().unwrap_or_default();
            matches!(option, "--config" | "--at" | "--help" | "--version")
                || PROTOCOLS.iter().any(|protocol| protocol.server() == option)
        };
        !self.env.contains_key("TOOLGATE_CONFIG") && !words.iter().any(is_harmless)
    }

    fn toolgate_arguments(&self) -> Option<Vec<String>> {
        let (name, args) = self.command_line();
        if name == TOOLGATE {
            return Some(args.into_owned());
        }
        // A container has its own files, and so another configuration.
        if !self.is_package_runner() || matches!(name.as_str(), "docker" | "podman") {
            return None;
        }
        let at = args.iter().position(|word| {
            let package = file_name(word);
            package.split(['@', '=']).next() == Some(TOOLGATE)
        })?;
        Some(args[at + 1..].to_vec())
    }

    /// The folder that npx installs these packages into. npm names it after the first 16
    /// hexadecimal digits of the SHA-512 of the sorted packages, one per line. `None` for other
    /// programs, and for packages that are folders.
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
        let first = digest.as_ref().iter().take(8);
        let hash: String = first.map(|byte| format!("{byte:02x}")).collect();
        Some(npm_cache(variables)?.join("_npx").join(hash))
    }

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
                word if takes_value(NPX_VALUES, word) => drop(words.next()),
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

fn file_name(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.map(str::to_owned).unwrap_or(name)
}

fn takes_value(options: &str, option: &str) -> bool {
    options.split(' ').any(|known| known == option)
}

impl RunnerFamily {
    fn sub_command<'a>(&self, mut args: &'a [String]) -> Option<&'a [String]> {
        while args.first()?.starts_with('-') {
            let has_value = takes_value(self.values, &args[0]);
            args = args.get(1 + usize::from(has_value)..)?;
        }
        self.run.iter().find_map(|run| {
            let (given, rest) = args.split_at_checked(run.split(' ').count())?;
            given
                .iter()
                .map(String::as_str)
                .eq(run.split(' '))
                .then_some(rest)
        })
    }
}

fn npm_cache(variables: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    // npm reads its variables case-insensitively.
    let is_cache = |name: &OsStr| name.eq_ignore_ascii_case("npm_config_cache");
    let mut variables_set = variables.iter().filter(|(_, value)| !value.is_empty());
    if let Some((_, folder)) = variables_set.find(|(name, _)| is_cache(name)) {
        return Some(folder.into());
    }
    let home = variables.get(OsStr::new("HOME"))?;
    Some(Path::new(home).join(".npm"))
}

#[cfg(test)]
mod tests;
