//! The document that describes this API.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Content, ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder};

use super::chat::ChatEvent;
use super::events::{GoneEvent, LaggedEvent, ToolsEvent};
use crate::guard::session;
use crate::problem::Problem;
use crate::{Gateway, router};

const PROBLEM: &str = "application/problem+json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Toolgate",
        description = "One door for every tool call: list tools, call them, watch them.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem, ChatEvent, GoneEvent, LaggedEvent, ToolsEvent))
)]
struct Skeleton;

/// What there is to say before any route is known.
pub(crate) fn skeleton() -> Document {
    Skeleton::openapi()
}

/// The document as it is sent: what stands before all routes may answer in their place.
pub(crate) fn written(token_needed: bool) -> Bytes {
    let mut document = router::document();
    tell_keys(&mut document, token_needed);
    for (path, item) in &mut document.paths.paths {
        let is_health = matches!(path.as_str(), "/healthz" | "/readyz");
        let is_open = is_health || path == "/login";
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(named(method, path));
                operation.security = is_open.then(Vec::new);
                complete(operation, is_health);
            }
        }
    }
    serde_json::to_vec(&document).unwrap_or_default().into()
}

/// Says what to show to come in: a token, or the cookie that signing in gives.
fn tell_keys(document: &mut Document, token_needed: bool) {
    const BEARER: &str = "bearer";
    const COOKIE: &str = "cookie";
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A token of the configuration: `serve.token` or `serve.tokens`",
        ));
    let session = ApiKeyValue::with_description(
        session::COOKIE,
        "Set by `POST /login`, with `_` and the port behind its name, and `__Host-` before it over HTTPS; only pages of this gateway change anything with it",
    );
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(token.build()));
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(session)));
    let nothing = (!token_needed).then(SecurityRequirement::default);
    let keys = [BEARER, COOKIE].map(|key| SecurityRequirement::new::<_, [String; 0], _>(key, []));
    document.security = Some(nothing.into_iter().chain(keys).collect());
}

/// A name for programs that are made from the document: functions of several files have the same name.
fn named(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty() && *word != "api")
        .fold(method.to_owned(), |name, word| format!("{name}_{word}"))
}

/// Whoever comes from elsewhere.
const FOREIGN: (&str, &str) = ("403", "The Host or the Origin is not one of this gateway");

/// Adds what the guard answers, and says of every problem which type it has.
fn complete(operation: &mut Operation, is_health: bool) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            tell_problems(response);
        }
    }
    let needs_token = ("401", "A token is needed, or it is wrong");
    let guard = [
        ("400", "The request can not be read"),
        FOREIGN,
        ("408", "The body took too long to arrive"),
        (
            "429",
            "Too many requests; `retry-after` says when to come back",
        ),
        (
            "500",
            "Something is wrong inside of the gateway; its log says what",
        ),
        (
            "503",
            "Too much is under way; `retry-after` says when to come back",
        ),
    ];
    if let Some(RefOr::T(own)) = operation.responses.responses.get_mut(FOREIGN.0) {
        // The guard's reason comes before the route's.
        own.description = format!("{}; or: {}", own.description, FOREIGN.1);
    }
    let all = guard.into_iter().chain((!is_health).then_some(needs_token));
    for (status, description) in all {
        let responses = &mut operation.responses.responses;
        responses.entry(status.to_owned()).or_insert_with(|| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
            ResponseBuilder::new()
                .description(description)
                .content(PROBLEM, content.build())
                .into()
        });
    }
}

/// A problem is no plain JSON.
fn tell_problems(response: &mut utoipa::openapi::Response) {
    let is_problem = |content: &RefOr<Content>| {
        let RefOr::T(content) = content else {
            return false;
        };
        let schema = content.schema.as_ref();
        matches!(schema, Some(RefOr::Ref(schema)) if schema.ref_location.ends_with("/Problem"))
    };
    let plain = response.content.get("application/json");
    if plain.is_some_and(is_problem)
        && let Some(content) = response.content.swap_remove("application/json")
    {
        response.content.insert(PROBLEM.to_owned(), content);
    }
}

/// The description of this API, OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "documents",
    responses((status = 200, description = "An OpenAPI document", body = Object)))]
pub(crate) async fn document(State(gateway): State<Gateway>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, gateway.document()).into_response()
}
