//! A server in a container: the command line of the engine, and how the container is removed
//! whatever happens to that.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::command::{self, StartError};
use super::environment;
use crate::{Container, Program};

/// How long an engine may take to remove a container.
const REMOVING: Duration = Duration::from_secs(30);
const ENGINES: [&str; 2] = ["podman", "docker"];
/// What an engine needs to find its containers again.
const NEEDED: [&str; 8] = [
    "HOME",
    "PATH",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "CONTAINER_HOST",
];

/// The engine's command line. Variables are named there, and their values are not: every user of
/// the machine can read it.
pub(super) fn program(
    inner: &Program,
    container: &Container,
    name: &str,
    max_memory: Option<u64>,
) -> Result<Program, StartError> {
    let variables = environment::environment(inner, std::env::vars_os());
    let (engine, options) = engine(inner, container, &variables)?;
    let mut args: Vec<String> = options.to_vec();
    args.extend(["run", "--rm", "-i", "--name", name].map(str::to_owned));
    args.extend(["--security-opt", "no-new-privileges", "--network"].map(str::to_owned));
    args.push(
        container
            .network
            .clone()
            .unwrap_or_else(|| "none".to_owned()),
    );
    if let Some(bytes) = max_memory {
        args.extend(["--memory".to_owned(), bytes.to_string()]);
    }
    for variable in inner.env.keys() {
        args.extend(["-e".to_owned(), variable.clone()]);
    }
    for mount in &container.mounts {
        let source = mount.source.display();
        args.extend(["-v".to_owned(), format!("{source}:{}", mount.target)]);
    }
    args.extend(container.options.iter().cloned());
    args.push(container.image.clone());
    let command = Some(&inner.command).filter(|command| !command.is_empty());
    args.extend(command.into_iter().chain(&inner.args).cloned());
    Ok(Program {
        command: engine,
        args,
        container: None,
        ..inner.clone()
    })
}

fn engine<'a>(
    inner: &Program,
    container: &'a Container,
    variables: &BTreeMap<OsString, OsString>,
) -> Result<(String, &'a [String]), StartError> {
    if let Some((engine, options)) = container.engine.split_first() {
        return Ok((engine.clone(), options));
    }
    let path = environment::path(variables);
    let is_there = |engine: &&str| {
        let program = Program {
            command: (**engine).to_owned(),
            container: None,
            ..inner.clone()
        };
        command::find(&program, path).is_ok()
    };
    let found = ENGINES.iter().copied().find(is_there);
    let found = found.ok_or_else(|| {
        StartError(format!(
            "it runs in a container, and neither podman nor docker was found on the PATH: install one, or name it as 'engine' (the PATH is {})",
            path.display()
        ))
    });
    Ok((found?.to_owned(), &[]))
}

/// The name of a container, from the marker of the server in it.
pub(super) fn name(marker: &str) -> String {
    format!(
        "toolgate-{}",
        marker.trim_end_matches('.').replace('.', "-")
    )
}

/// How a container is removed that is still there though its engine's command is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Removal {
    engine: PathBuf,
    args: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Removal {
    pub(super) fn new(
        engine: PathBuf,
        container: &Container,
        name: &str,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let mut args: Vec<String> = container.engine.iter().skip(1).cloned().collect();
        args.extend(["rm", "--force"].map(str::to_owned));
        // Else it waits for ten seconds before it kills; docker doesn't, and doesn't know the
        // option.
        if engine.ends_with("podman") {
            args.extend(["--time", "0"].map(str::to_owned));
        }
        args.push(name.to_owned());
        let needed = NEEDED.iter().filter_map(|name| {
            let value = variables.get(std::ffi::OsStr::new(name))?.to_str()?;
            Some(((*name).to_owned(), value.to_owned()))
        });
        Self {
            engine,
            args,
            variables: needed.collect(),
        }
    }

    /// Removes it; one that is gone already is no news.
    pub(super) async fn run(&self) {
        let mut command = Command::new(&self.engine);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.variables)
            .current_dir("/")
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        tokio::time::timeout(REMOVING, command.status()).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mount;

    fn boxed(container: &Container) -> Program {
        let inner = Program {
            command: "notes".to_owned(),
            args: vec!["--all".to_owned()],
            env: [("KEY".to_owned(), "s3cret".to_owned())].into(),
            ..Program::default()
        };
        program(&inner, container, "toolgate-1-0", Some(1 << 20)).unwrap()
    }

    #[test]
    fn the_engine_is_told_names_of_variables_and_no_values() {
        let program = boxed(&Container {
            image: "image".to_owned(),
            engine: ["podman", "--runtime", "runc"].map(str::to_owned).to_vec(),
            mounts: vec![Mount {
                source: "/here".into(),
                target: "/there:ro".to_owned(),
            }],
            options: vec!["--read-only".to_owned()],
            ..Container::default()
        });
        assert_eq!(program.command, "podman");
        assert_eq!(
            program.args.join(" "),
            "--runtime runc run --rm -i --name toolgate-1-0 --security-opt no-new-privileges \
             --network none --memory 1048576 -e KEY -v /here:/there:ro --read-only image notes --all"
        );
        assert_eq!(program.env["KEY"], "s3cret");
    }

    #[test]
    fn podman_goes_before_docker_and_neither_is_an_error() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let inner = Program {
            env: [("PATH".to_owned(), path)].into(),
            ..Program::default()
        };
        let chosen = || {
            let container = Container::default();
            program(&inner, &container, "x", None).map(|program| program.command)
        };
        let error = chosen().unwrap_err().to_string();
        assert!(error.contains("neither podman nor docker"), "{error}");
        for engine in ["docker", "podman"] {
            let file = folder.path().join(engine);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(chosen().unwrap(), engine);
        }
    }

    #[test]
    fn a_removal_names_the_engine_with_its_options_and_the_container() {
        let container = Container {
            engine: ["podman", "--root", "/r"].map(str::to_owned).to_vec(),
            ..Container::default()
        };
        let variables = BTreeMap::from([
            ("HOME".into(), "/home/ada".into()),
            ("KEY".into(), "s3cret".into()),
        ]);
        let of = |engine: &str| Removal::new(engine.into(), &container, "toolgate-1-0", &variables);
        let podman = of("/usr/bin/podman");
        assert_eq!(
            podman.args.join(" "),
            "--root /r rm --force --time 0 toolgate-1-0"
        );
        assert_eq!(podman.variables.len(), 1);
        let docker = of("/usr/bin/docker");
        assert_eq!(docker.args.join(" "), "--root /r rm --force toolgate-1-0");
    }
}
