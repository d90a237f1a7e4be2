//! Counts of handshakes.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rustls::{CertificateError, Error};

/// Reason for which a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeFailure {
    /// It took too long.
    TimedOut,
    /// The peer closed the connection.
    Disconnected,
    /// The server closed the connection: it stops, or others needed the connection's slot.
    Closed,
    /// The peer does not speak TLS.
    NotTls,
    /// There is no version, cipher suite or application protocol in common.
    Incompatible,
    /// The client has no certificate, and one is required.
    NoClientCertificate,
    /// The client's certificate has expired.
    ClientCertificateExpired,
    /// The client's certificate is of an unknown CA, or otherwise invalid.
    ClientCertificateInvalid,
    /// The client sent an alert, usually because it does not trust the server's certificate.
    RejectedByClient,
    /// Any other violation of the protocol.
    Protocol,
}

/// Counts of handshakes.
#[derive(Debug, Default)]
pub struct Handshakes {
    completed: AtomicU64,
    failed: [AtomicU64; HandshakeFailure::ALL.len()],
}

// === impl HandshakeFailure ===

impl HandshakeFailure {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::TimedOut,
        Self::Disconnected,
        Self::Closed,
        Self::NotTls,
        Self::Incompatible,
        Self::NoClientCertificate,
        Self::ClientCertificateExpired,
        Self::ClientCertificateInvalid,
        Self::RejectedByClient,
        Self::Protocol,
    ];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Disconnected => "disconnected",
            Self::Closed => "closed",
            Self::NotTls => "not_tls",
            Self::Incompatible => "incompatible",
            Self::NoClientCertificate => "no_client_certificate",
            Self::ClientCertificateExpired => "client_certificate_expired",
            Self::ClientCertificateInvalid => "client_certificate_invalid",
            Self::RejectedByClient => "rejected_by_client",
            Self::Protocol => "protocol",
        }
    }
}

impl From<&io::Error> for HandshakeFailure {
    fn from(error: &io::Error) -> Self {
        let Some(error) = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) else {
            return Self::Disconnected;
        };
        match error {
            Error::NoCertificatesPresented => Self::NoClientCertificate,
            Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            ) => Self::ClientCertificateExpired,
            Error::InvalidCertificate(_) => Self::ClientCertificateInvalid,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::Incompatible,
            Error::AlertReceived(_) => Self::RejectedByClient,
            _ => Self::Protocol,
        }
    }
}

// === impl Handshakes ===

impl Handshakes {
    /// Number of handshakes that succeeded.
    pub fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    /// Number of handshakes that failed for this reason.
    pub fn failed(&self, reason: HandshakeFailure) -> u64 {
        self.failed[reason as usize].load(Relaxed)
    }

    /// Counts a handshake.
    pub fn count(&self, result: Result<(), HandshakeFailure>) {
        let counter = match result {
            Ok(()) => &self.completed,
            Err(reason) => &self.failed[reason as usize],
        };
        counter.fetch_add(1, Relaxed);
    }
}
