//! Runs a server in a container: builds the engine's command line, and removes the container even
//! if the engine's command is killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::command::{self, ServerStartError};
use super::environment;
use crate::{ContainerSettings, ServerProgram};

const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);
const ENGINES: [&str; 2] = ["podman", "docker"];
// Variables an engine needs to find its containers again.
const ENGINE_VARIABLES: &str = "\
    HOME PATH TMPDIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR DOCKER_HOST CONTAINER_HOST";

/// Builds the engine's command line. It contains the names of variables but not their values,
/// because every user of the machine can read it.
pub(super) fn engine_program(
    inner: &ServerProgram,
    container: &ContainerSettings,
    name: &str,
    max_memory: Option<u64>,
) -> Result<ServerProgram, ServerStartError> {
    let variables = environment::build(inner, std::env::vars_os());
    let (engine, options) = choose_engine(inner, container, &variables)?;
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
    Ok(ServerProgram {
        command: engine,
        args,
        container: None,
        ..inner.clone()
    })
}

fn choose_engine<'a>(
    inner: &ServerProgram,
    container: &'a ContainerSettings,
    variables: &BTreeMap<OsString, OsString>,
) -> Result<(String, &'a [String]), ServerStartError> {
    if let Some((engine, options)) = container.engine.split_first() {
        return Ok((engine.clone(), options));
    }
    let path = environment::path(variables);
    let is_installed = |engine: &&str| {
        let program = ServerProgram {
            command: (**engine).to_owned(),
            container: None,
            ..inner.clone()
        };
        command::resolve(&program, path).is_ok()
    };
    let found = ENGINES.iter().copied().find(is_installed);
    let found = found.ok_or_else(|| {
        ServerStartError(format!(
            "it runs in a container, and neither podman nor docker was found on the PATH: install one, or name it as 'engine' (the PATH is {})",
            path.display()
        ))
    });
    Ok((found?.to_owned(), &[]))
}

pub(super) fn container_name(marker: &str) -> String {
    let marker = marker.trim_end_matches('.').replace('.', "-");
    format!("toolgate-{marker}")
}

/// Removes a container that still exists after the engine's command has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ContainerRemoval {
    engine: PathBuf,
    args: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl ContainerRemoval {
    pub(super) fn new(
        engine: PathBuf,
        container: &ContainerSettings,
        name: &str,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let mut args: Vec<String> = container.engine.iter().skip(1).cloned().collect();
        args.extend(["rm", "--force"].map(str::to_owned));
        // Without this option podman waits ten seconds before it kills the container. docker
        // doesn't wait, and doesn't have the option.
        if engine.ends_with("podman") {
            args.extend(["--time", "0"].map(str::to_owned));
        }
        args.push(name.to_owned());
        let needed = ENGINE_VARIABLES.split(' ').filter_map(|name| {
            let value = variables.get(std::ffi::OsStr::new(name))?.to_str()?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self {
            engine,
            args,
            variables: needed.collect(),
        }
    }

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
        tokio::time::timeout(REMOVAL_TIMEOUT, command.status())
            .await
            .ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContainerMount;

    fn boxed(container: &ContainerSettings) -> ServerProgram {
        let inner = ServerProgram {
            command: "notes".to_owned(),
            args: vec!["--all".to_owned()],
            env: [("KEY".to_owned(), "s3cret".to_owned())].into(),
            ..ServerProgram::default()
        };
        engine_program(&inner, container, "toolgate-1-0", Some(1 << 20)).unwrap()
    }

    #[test]
    fn the_command_line_has_no_variable_values() {
        let program = boxed(&ContainerSettings {
            image: "image".to_owned(),
            engine: ["podman", "--runtime", "runc"].map(str::to_owned).to_vec(),
            mounts: vec![ContainerMount {
                source: "/here".into(),
                target: "/there:ro".to_owned(),
            }],
            options: vec!["--read-only".to_owned()],
            ..ContainerSettings::default()
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
    fn podman_is_preferred_over_docker() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let inner = ServerProgram {
            env: [("PATH".to_owned(), path)].into(),
            ..ServerProgram::default()
        };
        let chosen = || {
            let container = ContainerSettings::default();
            engine_program(&inner, &container, "x", None).map(|program| program.command)
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
    fn a_removal_keeps_the_engine_options() {
        let container = ContainerSettings {
            engine: ["podman", "--root", "/r"].map(str::to_owned).to_vec(),
            ..ContainerSettings::default()
        };
        let variables = BTreeMap::from([
            ("HOME".into(), "/home/ada".into()),
            ("KEY".into(), "s3cret".into()),
        ]);
        let of = |engine: &str| {
            ContainerRemoval::new(engine.into(), &container, "toolgate-1-0", &variables)
        };
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
