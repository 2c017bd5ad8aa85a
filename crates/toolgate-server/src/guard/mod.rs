//! Who may come in. Every request passes here before any route sees it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use toolgate_core::Scope;

/// Who asks, once the guard has let it in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The token's place in the configuration; 0 for everybody where none is needed.
    pub(crate) number: u64,
    /// The tools there are for it.
    pub(crate) scope: Scope,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The guard puts it there; a request without one may use nothing.
        let nobody = || Self {
            number: u64::MAX,
            scope: Scope::only(Vec::new()),
        };
        Ok(parts.extensions.get().cloned().unwrap_or_else(nobody))
    }
}

/// Marks a request as let in.
pub(crate) async fn admit(
    mut request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    request.extensions_mut().insert(Caller::default());
    next.run(request).await
}
