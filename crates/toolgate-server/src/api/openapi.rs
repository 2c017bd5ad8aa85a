//! Builds the OpenAPI description of the API.

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
        description = "One door for every tool call: list tools, call them and watch them.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem, ChatEvent, GoneEvent, LaggedEvent, ToolsEvent))
)]
pub(crate) struct ApiSkeleton;

/// The description as it is sent, including the responses that the guard adds to every route.
pub(crate) fn serialized(token_needed: bool) -> Bytes {
    let mut document = router::document();
    add_security(&mut document, token_needed);
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
                operation.operation_id = Some(operation_id(method, path));
                operation.security = is_open.then(Vec::new);
                add_guard_responses(operation, is_health);
            }
        }
    }
    serde_json::to_vec(&document).unwrap_or_default().into()
}

// Describes the bearer token and the session cookie.
fn add_security(document: &mut Document, token_needed: bool) {
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

// Named after method and path, because handlers in several files share a name.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty() && *word != "api")
        .fold(method.to_owned(), |name, word| format!("{name}_{word}"))
}

const FOREIGN_RESPONSE: (&str, &str) = ("403", "The Host or the Origin is not one of this gateway");

// The guard answers for all routes, so no single route documents these responses.
fn add_guard_responses(operation: &mut Operation, is_health: bool) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            use_problem_type(response);
        }
    }
    let needs_token = ("401", "A token is needed, or it is wrong");
    let guard = [
        ("400", "The request can't be read"),
        FOREIGN_RESPONSE,
        ("408", "The body took too long to arrive"),
        ("429", "Too many requests; see `retry-after`"),
        ("500", "Internal error; see the log of the gateway"),
        ("503", "The gateway is busy; see `retry-after`"),
    ];
    if let Some(RefOr::T(own)) = operation.responses.responses.get_mut(FOREIGN_RESPONSE.0) {
        // Both the guard and the route can answer with this status.
        own.description = format!("{}; or: {}", own.description, FOREIGN_RESPONSE.1);
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

// Problems are sent as `application/problem+json` rather than plain JSON.
fn use_problem_type(response: &mut utoipa::openapi::Response) {
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

/// The description of this API, in OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "documents",
    responses((status = 200, description = "An OpenAPI document", body = Object)))]
pub(crate) async fn document(State(gateway): State<Gateway>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, gateway.document()).into_response()
}
