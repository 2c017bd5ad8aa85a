//! A server in a container with the real podman: what it can reach, and that nothing is left over.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::children::wait_until;
use crate::run::{ProgramRun, RunOutput};

/// Podman with a storage of its own, and one image in it: fakemcp and a shell.
struct Podman {
    folder: TempDir,
}

impl Podman {
    /// `None` if podman can't run; the test is then skipped with a note.
    fn new() -> Option<Self> {
        let is_there = ["podman", "runc", "tar", "ldd"].map(thirdparty::is_on_path);
        let folder = TempDir::new().unwrap();
        let podman = Self { folder };
        if is_there.contains(&false) || !podman.imports() {
            thirdparty::skip_optional("a podman that can run here, with runc");
            return None;
        }
        Some(podman)
    }

    fn engine(&self) -> Vec<String> {
        let place = |name: &str| self.folder.path().join(name).display().to_string();
        let (root, run) = (place("root"), place("run"));
        let words = [
            "podman",
            "--root",
            &root,
            "--runroot",
            &run,
            "--runtime",
            "runc",
        ];
        let words = words.into_iter().chain(["--storage-driver", "vfs"]);
        words.map(str::to_owned).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.args(&self.engine()[1..]).args(arguments);
        command
    }

    /// Builds the image from the files that fakemcp and a shell need.
    fn imports(&self) -> bool {
        let fakemcp = fakemcp::program();
        let programs = [fakemcp, Path::new("/bin/sh"), Path::new("/bin/cat")];
        let mut files: Vec<PathBuf> = programs.into_iter().flat_map(libraries).collect();
        files.extend(programs[1..].iter().map(PathBuf::from));
        let image = self.folder.path().join("image");
        for file in files {
            let copy = image.join(file.strip_prefix("/").unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(file, copy).unwrap();
        }
        std::fs::copy(fakemcp, image.join("bin/fakemcp")).unwrap();
        let mut tar = Command::new("tar");
        let tar = tar.arg("-C").arg(&image).args(["-c", "."]);
        let tar = tar.stdout(Stdio::piped()).spawn();
        let Ok(mut tar) = tar else { return false };
        let mut import = self.command(&["import", "-", "fakemcp"]);
        let import = import.stdin(tar.stdout.take().unwrap()).output();
        tar.wait().unwrap();
        import.is_ok_and(|import| import.status.success())
    }

    /// An entry of the configuration.
    fn entry(&self, more: &Value) -> Value {
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let files = limits.maximum.unwrap_or(1024);
        let options = [
            "--ulimit",
            &format!("nofile={files}:{files}"),
            "--ulimit",
            "nproc=1000:1000",
        ];
        let mut container =
            json!({ "image": "fakemcp", "engine": self.engine(), "options": options });
        for (key, value) in more.as_object().into_iter().flatten() {
            container[key] = value.clone();
        }
        json!({ "container": container, "startTimeout": "2m" })
    }

    /// The names of all our containers, running or not.
    fn left(&self) -> String {
        let output = self
            .command(&["ps", "-a", "--format", "{{.Names}}"])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

/// The libraries that a program needs, according to the loader.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

#[test]
fn a_server_runs_in_a_container_without_a_network_or_our_files() {
    let Some(podman) = Podman::new() else { return };
    let out = podman.folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mount = format!("{}:/out", out.display());
    let mut entry = podman.entry(&json!({ "mounts": [mount] }));
    let script = format!(
        "cat /proc/net/dev > /out/network; cat {} > /out/config; echo $COLOUR $PATH_OF_OURS > /out/variables; exec /bin/fakemcp",
        podman.folder.path().join("c.json").display()
    );
    entry["command"] = json!("/bin/sh");
    entry["args"] = json!(["-c", script]);
    entry["env"] = json!({ "COLOUR": "green" });
    std::fs::write(
        podman.folder.path().join("c.json"),
        json!({ "mcpServers": { "boxed": entry } }).to_string(),
    )
    .unwrap();
    let run = ProgramRun::new(["--config", "c.json", "call", "boxed__echo", "text=hello"]);
    let run = run.env("PATH_OF_OURS", "x").within(podman.folder.path());
    let done = run.done();
    assert!(done.stdout.contains("hello"), "{done:?}");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let interfaces = read("network");
    let interfaces: Vec<&str> = interfaces.lines().skip(2).map(str::trim).collect();
    assert!(
        interfaces.iter().all(|line| line.starts_with("lo:")),
        "{interfaces:?}"
    );
    assert_eq!(read("config"), "");
    assert_eq!(read("variables"), "green\n");
    assert_eq!(podman.left(), "", "{done:?}");
}

#[test]
fn a_container_is_removed_even_if_its_server_does_not_listen() {
    let Some(podman) = Podman::new() else { return };
    let mut entry = podman.entry(&json!({}));
    entry["command"] = json!("/bin/fakemcp");
    entry["args"] = json!(["deaf"]);
    let config = json!({ "mcpServers": { "boxed": entry } }).to_string();
    let run = ProgramRun::new(["--config", "c.json", "list"]).file("c.json", &config);
    let done = run.done();
    assert!(done.stdout.contains("mcp:boxed"), "{done:?}");
    assert_eq!(podman.left(), "", "{done:?}");
    // After the kill only the watcher is left.
    let run = ProgramRun::new(["--config", "c.json", "mcp"]).file("c.json", &config);
    let (mut program, _folder) = run.start_open();
    wait_until("the container runs", || {
        podman.left().starts_with("toolgate-")
    });
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until("the container is removed", || podman.left().is_empty());
}

#[test]
fn container_errors_are_reported() {
    for (container, expected) in [
        (
            json!("--privileged"),
            "container: must be the name of an image",
        ),
        (
            json!({ "network": "none" }),
            "container.image: must be the name of an image",
        ),
        (
            json!({ "image": "x", "mounts": ["/etc"] }),
            "container.mounts.0: must look like",
        ),
        (
            json!({ "image": "x", "netwrok": "none" }),
            "container.netwrok: is unknown",
        ),
    ] {
        let config = json!({ "mcpServers": { "boxed": { "container": container } } });
        let run = ProgramRun::new(["--config", "c.json", "list"]);
        let done: RunOutput = run.file("c.json", config.to_string()).done();
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
}
