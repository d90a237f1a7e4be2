//! TLS of a listener: server certificates that are renewed while they are in use, and the names of
//! client certificates.
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`TlsConfig`]: the section `tls` of a listener |
//! | `files` | reads the configured files |
//! | `loaded` | [`LoadedTls`]: the files, checked and ready to use |
//! | `tls` | [`Tls`]: what is in force, reloaded when files change |
//! | `resolver` | picks a certificate by the name that the client asks for |
//! | `client` | [`ClientCertificate`]: the names of an authenticated client |
//! | `handshakes` | counts of handshakes, and the [`HandshakeFailure`]s |
//! | `certificate`, `der` | the few fields of X.509 that are needed |

mod certificate;
mod client;
mod config;
mod der;
mod files;
mod handshakes;
mod loaded;
mod resolver;
mod tls;

pub use self::{
    client::{ClientCertificate, SubjectName},
    config::{CertificateConfig, ClientCertificates, MinVersion, TlsConfig},
    handshakes::{HandshakeFailure, Handshakes},
    loaded::LoadedTls,
    tls::{CertificateStatus, Tls},
};
