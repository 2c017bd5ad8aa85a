//! What clients may do, and what they try.

use std::collections::BTreeSet;

use proptest::prelude::*;

pub(super) const SERVERS: [&str; 3] = ["a", "b", "c"];
/// Methods whose name is also that of the right.
pub(super) const METHODS: [&str; 5] = [
    "resources/read",
    "prompts/get",
    "completion/complete",
    "skills/get",
    "resources/directory/read",
];
/// The right to use extensions, whatever their methods are called.
pub(super) const EXTENSION_RIGHT: &str = "extensions/request";
/// Tools that ask their client, and that log a message.
pub(super) const TOOLS: [&str; 2] = ["elicit", "notify"];
/// The extensions, and the servers that have them.
pub(super) const EXTENSIONS: [(&str, &[&str]); 5] = [
    ("com.example/a", &["a"]),
    ("com.example/b", &["b"]),
    ("com.example/c", &["c"]),
    ("com.example/pair", &["a", "b"]),
    ("com.example/shared", &SERVERS),
];
/// Methods that every server answers, if it is asked.
pub(super) const EXTENSION_METHODS: [&str; 9] = [
    "a/find",
    "b/find",
    "c/find",
    "com.example/b/find",
    "pair/find",
    "shared/find",
    "other/find",
    "skills/find",
    "resources/find",
];

/// What one client may do: pairs of a server and a method, tool or other right.
pub(super) type Rights = BTreeSet<(String, String)>;

#[derive(Debug, Clone)]
pub(super) struct ClientPlan {
    pub(super) is_modern: bool,
    pub(super) rights: Rights,
    // Written as a list of what is denied, instead of what is allowed.
    pub(super) is_denied: bool,
    /// What it declares.
    pub(super) extensions: Vec<&'static str>,
    pub(super) requests: Vec<PlannedRequest>,
}

#[derive(Debug, Clone)]
pub(super) enum PlannedRequest {
    Read(String),
    Prompt(String),
    Complete(String),
    Subscribe(String),
    GetSkill(String),
    ReadFolder(String),
    ListSkills,
    UseExtension(&'static str),
    BeAsked(&'static str),
    Log(&'static str),
}

/// Addresses of resources: of the scheme that all servers list, of a scheme of one, with the name
/// of a server in many forms, and random text.
fn address() -> impl Strategy<Value = String> {
    let own = prop_oneof![
        3 => Just("x:N".to_owned()),
        1 => prop::sample::select(SERVERS.to_vec()).prop_map(|server| format!("{server}-own:N")),
        1 => "[a-zA-Z:/%.{}]{0,12}N",
    ];
    let server = prop_oneof![
        4 => prop::sample::select(SERVERS.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["A", "%61", "", "d", "a/b", "b%2Fa"]).prop_map(str::to_owned),
    ];
    let prefix = prop::sample::select(vec![
        "toolgate://",
        "ui://toolgate/",
        "skill://toolgate/",
        "TOOLGATE://",
        "ui://",
        "skill://",
    ]);
    let named = (prefix, server, own.clone());
    let named = named.prop_map(|(prefix, server, own)| format!("{prefix}{server}/{own}"));
    let twice = (prop::sample::select(SERVERS.to_vec()), named.clone());
    let twice = twice.prop_map(|(server, own)| format!("toolgate://{server}/{own}"));
    prop_oneof![3 => own, 4 => named, 1 => twice]
}

/// Also the skills that servers list.
fn skill() -> impl Strategy<Value = String> {
    let listed = (any::<bool>(), prop::sample::select(SERVERS.to_vec()));
    let listed = listed.prop_map(|(is_named, server)| match is_named {
        true => format!("skill://toolgate/{server}/{server}/SKILL.md"),
        false => format!("skill://{server}/SKILL.md"),
    });
    prop_oneof![1 => listed, 2 => address()]
}

fn prompt() -> impl Strategy<Value = String> {
    let own = prop::sample::select(vec!["p", "a__p", "only-b", "b__p"]);
    let qualified = (prop::sample::select(SERVERS.to_vec()), own.clone());
    let qualified = qualified.prop_map(|(server, own)| format!("{server}__{own}"));
    prop_oneof![2 => own.prop_map(str::to_owned), 2 => qualified, 1 => "[abc_p]{0,6}"]
}

fn request() -> impl Strategy<Value = PlannedRequest> {
    let extension = prop::sample::select(EXTENSION_METHODS.to_vec());
    prop_oneof![
        3 => address().prop_map(PlannedRequest::Read),
        2 => prompt().prop_map(PlannedRequest::Prompt),
        1 => address().prop_map(PlannedRequest::Complete),
        2 => address().prop_map(PlannedRequest::Subscribe),
        2 => skill().prop_map(PlannedRequest::GetSkill),
        2 => address().prop_map(PlannedRequest::ReadFolder),
        1 => Just(PlannedRequest::ListSkills),
        3 => extension.prop_map(PlannedRequest::UseExtension),
        2 => prop::sample::select(SERVERS.to_vec()).prop_map(PlannedRequest::BeAsked),
        1 => prop::sample::select(SERVERS.to_vec()).prop_map(PlannedRequest::Log),
    ]
}

pub(super) fn all_rights() -> Vec<(String, String)> {
    let targets = METHODS.into_iter().chain([EXTENSION_RIGHT]).chain(TOOLS);
    let pairs = SERVERS
        .iter()
        .flat_map(|server| targets.clone().map(move |target| (server, target)));
    pairs
        .map(|(server, method)| ((*server).to_owned(), method.to_owned()))
        .collect()
}

pub(super) fn plan() -> impl Strategy<Value = ClientPlan> {
    let rights = prop::sample::subsequence(all_rights(), 0..=all_rights().len());
    let extensions = EXTENSIONS.map(|(id, _)| id).to_vec();
    let extensions = prop::sample::subsequence(extensions, 0..=EXTENSIONS.len());
    let requests = prop::collection::vec(request(), 1..10);
    let all = (any::<bool>(), rights, any::<bool>(), extensions, requests);
    all.prop_map(
        |(is_modern, rights, is_denied, extensions, requests)| ClientPlan {
            is_modern,
            rights: rights.into_iter().collect(),
            is_denied,
            extensions,
            requests,
        },
    )
}
