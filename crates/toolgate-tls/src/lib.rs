//! Which cryptography TLS is done with, chosen once for the whole process: every HTTP client here is made without one of its own.

use rustls::crypto::{CryptoProvider, ring};

/// Chooses `ring`, unless the process has chosen already. To be called before a client is made; more often does no harm.
///
/// ```
/// toolgate_tls::provide();
/// toolgate_tls::provide();
/// assert!(rustls::crypto::CryptoProvider::get_default().is_some());
/// ```
pub fn provide() {
    if CryptoProvider::get_default().is_none()
        && ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed its TLS provider first");
    }
}
