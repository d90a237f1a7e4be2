use crate::free_port;

/// A port for each listener. Those with TLS are optional.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) controller: u16,
    pub(super) ssl: u16,
    pub(super) sasl_ssl: u16,
}

// === impl Ports ===

impl Ports {
    pub(super) fn free() -> Self {
        let [plain, controller, ssl, sasl_ssl] = [(); 4].map(|()| free_port());
        Self { plain, controller, ssl, sasl_ssl }
    }

    pub(super) fn plain(self) -> String {
        address(self.plain)
    }

    pub(super) fn all(self) -> [u16; 4] {
        [self.plain, self.controller, self.ssl, self.sasl_ssl]
    }
}

pub(super) fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
