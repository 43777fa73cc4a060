//! The certificate and key the services present.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::command_line::SettingsError;
use crate::settings::TlsFiles;

pub fn load(files: &TlsFiles) -> Result<TlsAcceptor, SettingsError> {
    let certificates = read_certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable(&files.key, "a private key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certified = certified(certificates, key, &provider).map_err(|error| {
        SettingsError::rule(format!(
            "certificate {} and key {} cannot be used together: {error}",
            files.certificate.display(),
            files.key.display()
        ))
    })?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SettingsError::rule(format!("TLS: {error}")))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A certificate with its key. rustls does not parse certificates of X.509 version 1, which `openssl
/// x509 -req` makes; clients may be configured to trust one, so it is presented anyway.
fn certified(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    let key = provider.key_provider.load_private_key(key)?;
    let certified = CertifiedKey::new(certificates, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(mismatch @ rustls::Error::InconsistentKeys(_)) => Err(mismatch),
        Err(unreadable) => match holds_key(&certified) {
            Some(true) => Ok(certified),
            Some(false) => Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)),
            None => Err(unreadable),
        },
    }
}

/// Whether a certificate that rustls cannot parse contains the public key, which every version of
/// X.509 has in the same form; `None` if it is not a certificate of version 1.
fn holds_key(certified: &CertifiedKey) -> Option<bool> {
    let certificate = certified.end_entity_cert().ok().filter(|bytes| is_version_1(bytes))?;
    let key = certified.key.public_key()?;
    let key: &[u8] = key.as_ref();
    Some(certificate.windows(key.len()).any(|part| part == key))
}

/// In DER, the signed part begins with the version from version 2 on, and before with the serial
/// number.
fn is_version_1(certificate: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    let content = |bytes: &[u8]| match bytes {
        [SEQUENCE, length, rest @ ..] => {
            // A long length begins with its own number of bytes.
            let skipped = if length & 0x80 == 0 { 0 } else { usize::from(length & 0x7F) };
            rest.get(skipped..).map(<[u8]>::to_vec)
        }
        _ => None,
    };
    let signed = content(certificate).and_then(|certificate| content(&certificate));
    signed.is_some_and(|signed| signed.first() == Some(&INTEGER))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl x509 -req -signkey` with the key below, which is used only here.
    const VERSION_1: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBJDCBywIUDYb/ILkMPFoJCdP4lPjeS5uJ2d0wCgYIKoZIzj0EAwIwFDESMBAG\n\
        A1UEAwwJbG9jYWxob3N0MCAXDTI2MTExODA4MjIwM1oYDzIxMjYxMDI1MDgyMjAz\n\
        WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
        AAS6msB96vE/VRchTy1k2hIbRrpYT35bnzjNCTNiGKJXmWHitxP9Lv+7dQw2dGI3\n\
        /V2hOAf5yaTsZ0N2SPc9CIOJMAoGCCqGSM49BAMCA0gAMEUCIByzDjosFK8S3MfN\n\
        pQiPMzF2br7a4v9mLXtKVCMqLEzAAiEA/jVo+1ZhqOV2AEwt/yfmjZc9zLa0hrO2\n\
        1UiORvpLtqs=\n\
        -----END CERTIFICATE-----\n";
    const ITS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTlpfRFxBLka0pjEX\n\
        4TXwVJ2kuQ1Vq7un7Z4nlI8v8KWhRANCAAS6msB96vE/VRchTy1k2hIbRrpYT35b\n\
        nzjNCTNiGKJXmWHitxP9Lv+7dQw2dGI3/V2hOAf5yaTsZ0N2SPc9CIOJ\n\
        -----END PRIVATE KEY-----\n";

    fn loaded(certificate: &str, key: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let files =
            TlsFiles { certificate: path("cert.pem", certificate), key: path("key.pem", key) };
        load(&files).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_certificate_is_presented_with_its_own_key_only_whatever_its_version() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        assert_eq!(loaded(&certificate, &key), Ok(()));
        assert_eq!(loaded(VERSION_1, ITS_KEY), Ok(()));
        for (certificate, key) in [(certificate.as_str(), ITS_KEY), (VERSION_1, key.as_str())] {
            let refused = loaded(certificate, key).expect_err("another key");
            assert!(refused.contains("cannot be used together"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let whole = CertificateDer::from_pem_slice(VERSION_1.as_bytes()).expect("a certificate");
        assert!(is_version_1(&whole));
        for length in 0..6 {
            assert!(!is_version_1(&whole[..length]), "{length} bytes of it");
        }
        assert!(!is_version_1(&[0x30, 0xFF, 0x02]));
        let garbage = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        assert!(loaded(garbage, ITS_KEY).is_err());
    }
}
