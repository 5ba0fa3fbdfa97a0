//! TLS by the service itself: a certificate and its key from files, with the protocol's own refusals left to rustls.

use crate::deployment::Tls;
use crate::error::Error;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What accepts connections with this certificate.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let told =
        |path: &std::path::Path, error: &dyn std::fmt::Display| Error::World(format!("{}: {error}", path.display()));
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| told(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| told(&tls.key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| told(&tls.certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
