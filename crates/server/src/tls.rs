//! The certificate and key the services present.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::command_line::SettingsError;
use crate::settings::TlsFiles;

pub fn load(files: &TlsFiles) -> Result<TlsAcceptor, SettingsError> {
    let certificates = read_certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable(&files.key, "a private key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SettingsError::rule(format!("TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| {
            SettingsError::rule(format!(
                "certificate {} and key {} cannot be used together: {error}",
                files.certificate.display(),
                files.key.display()
            ))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(path, "a certificate", &error))?;
    if certificates.is_empty() {
        let error = "no certificate in it";
        return Err(unusable(path, "a certificate", &error));
    }
    Ok(certificates)
}

fn unusable(path: &Path, what: &str, error: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::rule(format!("cannot read {what} in PEM form from {}: {error}", path.display()))
}
