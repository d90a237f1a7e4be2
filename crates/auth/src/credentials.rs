use headgate_tls::ClientCertificate;

/// Proofs of a caller's identity. A token decides if there is one, even if it is invalid.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The `authorization` header or metadata value.
    pub authorization: Option<&'a [u8]>,
    /// The verified certificate of the connection.
    pub certificate: Option<&'a ClientCertificate>,
}
