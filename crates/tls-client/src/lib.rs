//! TLS to backends: trusted authorities and client certificates, with rustls and ring.
//!
//! Every client of ours names its files the same: `ca_file`, `cert_file` and `key_file`. They are
//! validated before the first connection, so that an error names the file. A failed handshake is
//! explained by [`explain`].
//!
//! | module | contents |
//! |---|---|
//! | `files` | [`TlsFiles`]: the paths of a section of the configuration |
//! | `certificates` | [`Certificates`]: their contents, and the configuration of rustls |
//! | `handshake` | a handshake without a request |
//! | `explain` | [`explain`]: what a failed handshake means, and which key to set |

mod certificates;
mod explain;
mod files;
mod handshake;

pub use self::{
    certificates::{CertificateError, Certificates},
    explain::explain,
    files::{FileErrorCause, TlsFileError, TlsFiles},
};
