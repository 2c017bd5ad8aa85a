use std::fs;
use std::os::unix::fs::symlink;

use super::grants::{GrantAccess, NamedPaths, PathGrant, build_grants};
use super::*;
use crate::{SandboxSettings, ServerConnection};

fn confinement(home: &Path, cwd: &Path) -> Confinement {
    let program = ServerProgram {
        command: "sh".to_owned(),
        ..ServerProgram::default()
    };
    let mut settings = ServerSettings::new("test", ServerConnection::Stdio(program.clone()));
    settings.sandbox.level = SandboxLevel::Default;
    let found = ResolvedProgram {
        file: "/bin/sh".into(),
        cwd: cwd.to_owned(),
    };
    let variables = BTreeMap::from([("HOME".into(), home.into())]);
    let confinement = Confinement::new(&settings, &program, &found, &variables);
    Confinement {
        // The temporary folders of these tests are below `/tmp`.
        temporary: Vec::new(),
        ..confinement
    }
}

/// The access to a path: the union of all rules above it, because Landlock adds rights.
fn access(grants: &[PathGrant], place: &Path) -> Option<GrantAccess> {
    let all = grants.iter().filter(|grant| place.starts_with(&grant.path));
    let all = all.map(|grant| grant.access);
    all.filter(|access| *access != GrantAccess::Names)
        .max_by_key(|access| *access == GrantAccess::Write)
}

fn open_to(confinement: &Confinement) -> Vec<PathGrant> {
    let named = NamedPaths {
        programs: Vec::new(),
        arguments: Vec::new(),
    };
    build_grants(confinement, &named)
}

#[test]
fn only_ancestors_of_hidden_paths_are_split() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    for made in [".ssh", ".config/gcloud", ".config/editor", "work/a/b"] {
        fs::create_dir_all(home.join(made)).unwrap();
    }
    let open = open_to(&confinement(&home, &home.join("work")));
    for (place, expected) in [
        (".ssh/id_rsa", None),
        (".config/gcloud/x", None),
        // It doesn't exist yet.
        (".aws/credentials", None),
        (".config/gh/hosts.yml", None),
        (".config/editor/x", Some(GrantAccess::Read)),
        ("work/a/b/c", Some(GrantAccess::Write)),
        ("new", None),
    ] {
        assert_eq!(access(&open, &home.join(place)), expected, "{place}");
    }
    assert_eq!(
        access(&open, Path::new("/usr/bin/sh")),
        Some(GrantAccess::Read)
    );
    let below = open.iter().filter(|grant| grant.path.starts_with(&home));
    let below: Vec<_> = below
        .map(|grant| grant.path.strip_prefix(&home).unwrap())
        .collect();
    assert!(!below.contains(&Path::new("work/a")), "{below:?}");
}

#[test]
fn links_hide_nothing_and_open_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (home, data) = (folder.path().join("home"), folder.path().join("data"));
    fs::create_dir_all(data.join("keys")).unwrap();
    fs::create_dir_all(data.join("real")).unwrap();
    symlink(data.join("real"), &home).unwrap();
    symlink(data.join("keys"), home.join(".ssh")).unwrap();
    symlink(data.join("keys"), home.join("harmless")).unwrap();
    let open = open_to(&confinement(&home, Path::new("/")));
    assert_eq!(access(&open, &data.join("keys/id_rsa")), None);
    assert_eq!(access(&open, &data.join("real/.aws")), None);
    let links = open.iter().filter(|grant| grant.path.ends_with("harmless"));
    assert_eq!(links.count(), 0);
}

#[test]
fn a_trailing_star_hides_by_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(&home).unwrap();
    for file in ["calls.db", "calls.db-wal", "calls", ".npmrc.bak"] {
        fs::write(home.join(file), "").unwrap();
    }
    let mut confinement = confinement(&home, Path::new("/"));
    confinement.hide(&[home.join("calls.db*").display().to_string()], &[]);
    let open = open_to(&confinement);
    for (file, expected) in [
        ("calls.db", None),
        ("calls.db-wal", None),
        (".npmrc.bak", None),
        ("calls", Some(GrantAccess::Read)),
    ] {
        assert_eq!(access(&open, &home.join(file)), expected, "{file}");
    }
}

#[test]
fn folders_of_other_servers_are_hidden_unless_shared() {
    let home = Path::new("/home/ada");
    let mut confinement = confinement(home, Path::new("/srv/a"));
    let secrets = confinement.hidden.len();
    let folders = ["/srv/b/c", "/home/ada", "/home", "/", "/usr", "/tmp"].map(PathBuf::from);
    confinement.hide(&[], &folders);
    assert_eq!(confinement.hidden[secrets..], ["/srv/b/c"]);
}

#[test]
fn confined_servers_need_a_launcher() {
    let program = ServerProgram::default();
    let mut settings = ServerSettings::new("test", ServerConnection::Stdio(program.clone()));
    let found = ResolvedProgram {
        file: "/bin/true".into(),
        cwd: "/".into(),
    };
    let launcher = SandboxLauncher::none();
    let command =
        |settings: &ServerSettings| launcher.command(settings, &program, &found, BTreeMap::new());
    assert!(command(&settings).is_ok());
    settings.sandbox = SandboxSettings {
        level: SandboxLevel::Default,
        ..SandboxSettings::default()
    };
    let error = command(&settings).unwrap_err().to_string();
    assert!(error.contains("can't confine servers"), "{error}");
}
