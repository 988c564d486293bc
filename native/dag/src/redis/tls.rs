//! How the server of an encrypted connection is known: by its name, and by whom that is certified.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::redis::failure::Failure;

#[derive(Clone, Debug)]
pub struct Tls {
    pub(crate) name: ServerName<'static>,
    pub(crate) client: Arc<ClientConfig>,
}

impl Tls {
    /// `authorities`: a file of certificates (PEM), in place of the system's.
    pub fn new(name: &str, authorities: Option<&Path>) -> Result<Self, Failure> {
        let found = match authorities {
            Some(file) => read(file)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        let (known, _) = roots.add_parsable_certificates(found);
        if known == 0 {
            let what = "no certificates of authorities were found: name a file with ?cacert=/path";
            return Err(Failure::Config(what.to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls {
            name: ServerName::try_from(name.to_owned()).map_err(wrong)?,
            client: Arc::new(client),
        })
    }
}

fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let unreadable = |error| Failure::Config(format!("{}: {error}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file).map_err(unreadable)?;
    certificates.collect::<Result<_, _>>().map_err(unreadable)
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Config(error.to_string())
}
