//! Debug output and observers identify no client.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use headgate_guard::{
    AddressKey, Backend, Denied, InFlightLimits, MessageKind, Observer, PeerAddress, PeerId,
    Subject, WebSocketGuard, WebSocketLimits,
};

use crate::support::guard;

const ADDRESS: &str = "198.51.100.7";
const PUBKEY: &str = "npub1secret";

/// Records everything that an observer receives.
#[derive(Default)]
struct Told(Mutex<String>);

impl Observer for Told {
    fn rejected(&self, class: &str, denied: &Denied) {
        writeln!(self.0.lock().unwrap(), "{class} {denied} {denied:?}").unwrap();
    }
}

#[tokio::test]
async fn debug_output_and_observers_do_not_identify_clients() {
    let told = Arc::new(Told::default());
    let backend = Backend::memory().observer(Arc::clone(&told) as _);
    let nothing = headgate_guard::Allowance::per_minute(0).unwrap();
    let limits = WebSocketLimits::new(InFlightLimits::new(1, 1)).message(MessageKind::Req, nothing);
    let websocket = WebSocketGuard::new(limits, backend);
    let mut connection = websocket.connect(ADDRESS.parse().unwrap()).await.unwrap();
    connection.authenticate(Subject::new(PUBKEY).unwrap());
    let denied = connection.message(MessageKind::Req).await.unwrap_err();
    let busy = websocket.connect(ADDRESS.parse().unwrap()).await.unwrap_err();

    let address = ADDRESS.parse().unwrap();
    let guard = guard(1);
    guard.check("public", address).await.unwrap();
    let printed = [
        format!("{websocket:?} {connection:?} {denied:?} {denied} {busy:?} {guard:?}"),
        format!("{:?} {:?}", AddressKey::of(address), PeerAddress((address, 1).into())),
        format!("{:?} {:?}", PeerId::Node(PUBKEY), PeerId::Address(address)),
        format!("{:?} {:?}", connection.subject(), guard.layer()),
        told.0.lock().unwrap().clone(),
    ];
    assert!(printed[4].contains("ws-req") && printed[4].contains("ws-connect"), "{}", printed[4]);
    for text in printed {
        assert!(!text.contains("198") && !text.contains(PUBKEY), "{text}");
    }
}
