//! The certificates in force, and their renewal.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use headgate::Clock;
use headgate_config::{FileReads, Problem, ReadFailure};
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::time;
use tracing::{info, warn};

use crate::{
    Handshakes, TlsConfig,
    certificate::Certificate,
    files::{Fingerprint, TlsFiles},
    loaded::{LoadedCertificate, LoadedTls, seconds, shown},
};

/// Interval at which the files are read. A change is applied once two reads are the same.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A warning is reported during the last part of the lifetime of a certificate: one in this many.
const EXPIRING_PART: i64 = 10;

/// TLS of one or several listeners.
///
/// New connections use the files as they were last read; open ones are not affected by a change.
pub struct Tls {
    loaded: ArcSwap<LoadedTls>,
    clock: Arc<dyn Clock>,
    handshakes: Handshakes,
    reload_failures: AtomicU64,
    /// The last reload, if it failed.
    failure: Mutex<Option<ReloadFailure>>,
}

/// A certificate in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The configured path.
    pub path: PathBuf,
    /// Time until it expires; negative if it has.
    pub seconds_left: i64,
}

/// Content of the files at one time, or the reason why they cannot be read.
type Observation = Result<Fingerprint, String>;

struct ReloadFailure {
    observed: Observation,
    message: String,
}

impl Tls {
    /// Reads the certificates that `config` names.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or used. The key is relative to the section.
    pub fn open(config: &TlsConfig, clock: Arc<dyn Clock>) -> Result<Self, Problem> {
        let loaded = LoadedTls::read(config, &*clock)?;
        Ok(Self {
            loaded: ArcSwap::from_pointee(loaded),
            clock,
            handshakes: Handshakes::default(),
            reload_failures: AtomicU64::new(0),
            failure: Mutex::default(),
        })
    }

    /// Returns the settings of the next connection.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.loaded.load().server)
    }

    /// Returns true if a client's certificate has expired. A resumed session brings the certificate
    /// of its first handshake, which rustls does not verify again.
    pub fn has_expired(&self, certificate: &CertificateDer<'_>) -> bool {
        let now = seconds(&*self.clock);
        Certificate::parse(certificate).is_some_and(|it| *it.validity.end() < now)
    }

    /// Reads the files again, now. If one of them is invalid, nothing changes.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or used. It is logged, counted and warned about, too.
    pub fn reload(&self) -> Result<(), Problem> {
        let config = self.loaded.load().config.clone();
        let files = TlsFiles::read(&config);
        let observed = observation(&files);
        if observed.as_ref() == Ok(&self.loaded.load().fingerprint) {
            *self.failure() = None;
            return Ok(());
        }
        let loaded = files.and_then(|files| LoadedTls::new(&config, &files, &*self.clock));
        match loaded {
            Ok(loaded) => {
                self.install(loaded);
                Ok(())
            }
            Err(problem) => {
                self.report(observed, &problem);
                Err(problem)
            }
        }
    }

    /// Puts certificates in force that were [read](LoadedTls::read) before, perhaps from other
    /// files.
    pub fn install(&self, loaded: LoadedTls) {
        let expires = loaded.certificates.iter().map(|it| *it.validity.end()).min();
        self.loaded.store(Arc::new(loaded));
        *self.failure() = None;
        let expires = expires.map(shown);
        info!(expires, "loaded certificates");
    }

    /// Reloads the files when they change, for ever.
    pub async fn watch(self: Arc<Self>) {
        self.watch_by(Self::poll).await;
    }

    async fn watch_by(
        self: Arc<Self>,
        poll: impl Fn(&Self, Option<&Observation>) -> Observation + Clone + Send + 'static,
    ) {
        let mut reads = FileReads::default();
        let mut previous = None;
        loop {
            time::sleep(POLL_INTERVAL).await;
            let (tls, poll) = (Arc::clone(&self), poll.clone());
            previous = match reads.read(move || poll(&tls, previous.as_ref())).await {
                Ok(observed) => Some(observed),
                Err(ReadFailure::ShuttingDown) => return,
                Err(failure) => {
                    self.not_read(failure);
                    None
                }
            };
        }
    }

    /// Reads the files, and reloads them if they have changed and are the same as in the `previous`
    /// observation: a file may be half written.
    fn poll(&self, previous: Option<&Observation>) -> Observation {
        let loaded = self.loaded.load_full();
        let observed = observation(&TlsFiles::read(&loaded.config));
        let is_in_force = observed.as_ref() == Ok(&loaded.fingerprint);
        let has_failed = self.failure().as_ref().is_some_and(|it| it.observed == observed);
        if is_in_force {
            // The files are the same as before.
            *self.failure() = None;
        } else if !has_failed && previous == Some(&observed) {
            // It reports its failure itself.
            let _ = self.reload();
        }
        observed
    }

    /// Reports files that were not read, once until they are.
    fn not_read(&self, failure: ReadFailure) {
        let config = &self.loaded.load().config;
        let file = config.certificates.first().map(|it| it.cert_file.display().to_string());
        let file = file.unwrap_or_default();
        let message = format!("{file} or another file cannot be read: {failure}");
        let problem = Problem::new("certificates", message);
        let observed = Err(problem.to_string());
        let is_known = self.failure().as_ref().is_some_and(|it| it.observed == observed);
        if !is_known {
            self.report(observed, &problem);
        }
    }

    /// Logs and counts a reload that failed, and warns of it until one succeeds.
    fn report(&self, observed: Observation, problem: &Problem) {
        let message = problem.to_string();
        warn!(problem = message, "failed to reload certificates; keeping the previous ones");
        self.reload_failures.fetch_add(1, Relaxed);
        *self.failure() = Some(ReloadFailure { observed, message });
    }

    /// Returns the counts of handshakes.
    pub const fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// Number of reloads that failed.
    pub fn reload_failures(&self) -> u64 {
        self.reload_failures.load(Relaxed)
    }

    /// Returns the certificates in force.
    pub fn certificates(&self) -> Vec<CertificateStatus> {
        let now = seconds(&*self.clock);
        let loaded = self.loaded.load();
        let status = |it: &LoadedCertificate| CertificateStatus {
            path: it.path.clone(),
            seconds_left: it.validity.end() - now,
        };
        loaded.certificates.iter().map(status).collect()
    }

    /// Returns warnings for an operator: a reload that failed, and certificates that expire during
    /// the last tenth of their lifetime.
    pub fn warnings(&self) -> Vec<String> {
        let failure = self.failure().as_ref().map(|failure| {
            format!("failed to reload; the previous certificates are in force: {}", failure.message)
        });
        let now = seconds(&*self.clock);
        let loaded = self.loaded.load();
        let expiring = loaded.certificates.iter().filter_map(|it| {
            let (start, end) = (*it.validity.start(), *it.validity.end());
            let path = it.path.display();
            if end < now {
                Some(format!("{path} expired at {}: renew it", shown(end)))
            } else if end - now < (end - start) / EXPIRING_PART {
                Some(format!("{path} expires at {}: renew it", shown(end)))
            } else {
                None
            }
        });
        failure.into_iter().chain(expiring).collect()
    }

    fn failure(&self) -> MutexGuard<'_, Option<ReloadFailure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn observation(files: &Result<TlsFiles, Problem>) -> Observation {
    files.as_ref().map(TlsFiles::fingerprint).map_err(ToString::to_string)
}

#[cfg(test)]
mod tests;
