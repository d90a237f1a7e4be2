//! Properties that hold for any header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use headgate_guard::ForwardedBy;
use proptest::{prelude::*, sample::select};

use crate::support::{FWD, REAL, XFF, address, headers, proxies};

fn header() -> impl Strategy<Value = ForwardedBy> {
    use ForwardedBy::{FirstPresent, Forwarded, XForwardedFor, XRealIp};
    select(vec![FirstPresent, XForwardedFor, Forwarded, XRealIp])
}

fn stranger() -> impl Strategy<Value = IpAddr> {
    let any = prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))),
        any::<u32>().prop_map(|bits| IpAddr::V6(Ipv4Addr::from_bits(bits).to_ipv6_mapped())),
    ];
    any.prop_filter("a proxy", |address| !proxies(ForwardedBy::default()).trusts(*address))
}

/// A header line: fragments of valid values, and arbitrary bytes.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let sense = select(vec![
        "10.0.0.1",
        "192.0.2.1",
        "[fd00::1]:80",
        "2001:db8::1",
        "unknown",
        "_x",
        "for=",
        "by=",
        "For=\"",
        ",",
        ", ",
        ";",
        "\"",
        "\\",
        "\\\"",
        " ",
        "\t",
        ":",
        "80",
        "=",
    ]);
    let byte = any::<u8>()
        .prop_filter("no header byte", |byte| http::HeaderValue::from_bytes(&[*byte]).is_ok());
    let piece = prop_oneof![
        4 => sense.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(byte, 0..8),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn lines() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    prop::collection::vec((select(vec![XFF, FWD, REAL]), line()), 0..6)
}

proptest! {
    #[test]
    fn no_header_changes_an_untrusted_peer(peer in stranger(), header in header(), lines in lines()) {
        let client = proxies(header).client(peer, &headers(&lines));
        prop_assert_eq!(client, peer.to_canonical());
    }

    #[test]
    fn addresses_left_of_the_client_are_ignored(
        client in stranger(),
        trusted in prop::collection::vec(select(vec!["10.0.0.2", "[fd00::1]:80", "10.9.9.9:1"]), 0..4),
        before in line(),
        lines in prop::collection::vec(line(), 0..4),
        forwarded in any::<bool>(),
        same_line in any::<bool>(),
    ) {
        let (name, header) = if forwarded { (FWD, ForwardedBy::Forwarded) } else { (XFF, ForwardedBy::XForwardedFor) };
        let item = |text: String| if forwarded { format!("for=\"{text}\"") } else { text };
        let hops = std::iter::once(client.to_string()).chain(trusted.iter().map(ToString::to_string));
        let written = hops.map(item).collect::<Vec<_>>().join(", ").into_bytes();

        let mut sent: Vec<_> = lines.into_iter().map(|line| (name, line)).collect();
        if same_line {
            sent.push((name, [before, b",".to_vec(), written].concat()));
        } else {
            sent.extend([(name, before), (name, written)]);
        }
        let answer = proxies(header).client(address("10.0.0.1"), &headers(&sent));
        prop_assert_eq!(answer, client.to_canonical());
    }
}
