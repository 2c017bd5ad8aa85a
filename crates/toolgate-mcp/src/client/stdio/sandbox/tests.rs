use std::fs;
use std::os::unix::fs::symlink;

use super::grants::{Access, Grant, Named, grants};
use super::*;
use crate::{Connection, Sandbox};

fn confinement(home: &Path, cwd: &Path) -> Confinement {
    let program = Program {
        command: "sh".to_owned(),
        ..Program::default()
    };
    let mut settings = ServerSettings::new("test", Connection::Stdio(program.clone()));
    settings.sandbox.level = SandboxLevel::Default;
    let found = Found {
        file: "/bin/sh".into(),
        cwd: cwd.to_owned(),
    };
    let variables = BTreeMap::from([("HOME".into(), home.into())]);
    let confinement = Confinement::new(&settings, &program, &found, &variables);
    Confinement {
        // The folders of these tests are there.
        temporary: Vec::new(),
        ..confinement
    }
}

/// How much is open of a place: what the longest way to it says, since rights add up.
fn access(grants: &[Grant], place: &Path) -> Option<Access> {
    let all = grants.iter().filter(|grant| place.starts_with(&grant.path));
    let all = all.map(|grant| grant.access);
    all.filter(|access| *access != Access::Names)
        .max_by_key(|access| *access == Access::Write)
}

fn open_to(confinement: &Confinement) -> Vec<Grant> {
    let named = Named {
        programs: Vec::new(),
        arguments: Vec::new(),
    };
    grants(confinement, &named)
}

#[test]
fn only_folders_on_the_way_to_something_hidden_are_taken_apart() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    for made in [".ssh", ".config/gcloud", ".config/editor", "work/a/b"] {
        fs::create_dir_all(home.join(made)).unwrap();
    }
    let open = open_to(&confinement(&home, &home.join("work")));
    for (place, expected) in [
        (".ssh/id_rsa", None),
        (".config/gcloud/x", None),
        // Not there yet.
        (".aws/credentials", None),
        (".config/gh/hosts.yml", None),
        (".config/editor/x", Some(Access::Read)),
        ("work/a/b/c", Some(Access::Write)),
        ("new", None),
    ] {
        assert_eq!(access(&open, &home.join(place)), expected, "{place}");
    }
    assert_eq!(access(&open, Path::new("/usr/bin/sh")), Some(Access::Read));
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
fn a_hidden_name_with_a_star_hides_what_begins_so() {
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
        ("calls", Some(Access::Read)),
    ] {
        assert_eq!(access(&open, &home.join(file)), expected, "{file}");
    }
}

#[test]
fn the_folder_of_another_server_is_hidden_unless_it_is_everybodys() {
    let home = Path::new("/home/ada");
    let mut confinement = confinement(home, Path::new("/srv/a"));
    let secrets = confinement.hidden.len();
    let folders = ["/srv/b/c", "/home/ada", "/home", "/", "/usr", "/tmp"].map(PathBuf::from);
    confinement.hide(&[], &folders);
    assert_eq!(confinement.hidden[secrets..], ["/srv/b/c"]);
}

#[test]
fn without_a_launcher_nothing_is_started_that_has_to_be_confined() {
    let program = Program::default();
    let mut settings = ServerSettings::new("test", Connection::Stdio(program.clone()));
    let found = Found {
        file: "/bin/true".into(),
        cwd: "/".into(),
    };
    let launcher = Launcher::none();
    let command =
        |settings: &ServerSettings| launcher.command(settings, &program, &found, BTreeMap::new());
    assert!(command(&settings).is_ok());
    settings.sandbox = Sandbox {
        level: SandboxLevel::Default,
        ..Sandbox::default()
    };
    let error = command(&settings).unwrap_err().to_string();
    assert!(error.contains("can't confine servers"), "{error}");
}
