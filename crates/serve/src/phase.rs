/// Phase of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No shutdown.
    Serving,
    /// Peers are asked to connect elsewhere; requests are still answered.
    Leaving,
    /// Connections are closed after their requests in flight.
    Ending,
}
