//! Long headers, many ranges, and keys.

use headgate_guard::{AddressKey, Cidr, ForwardedBy, TrustedProxies};

use crate::support::{XFF, address, headers, proxies};

#[test]
fn header_parsing_is_bounded() {
    let client = |line: String| {
        proxies(ForwardedBy::XForwardedFor).client(address("10.0.0.1"), &headers(&[(XFF, line)]))
    };
    let trusted = |hops: usize| {
        let addresses: Vec<_> = (1..=hops).rev().map(|hop| format!("10.0.0.{hop}")).collect();
        addresses.join(",")
    };
    assert_eq!(client(format!("192.0.2.1,{}", trusted(31))), address("192.0.2.1"));
    assert_eq!(client(format!("192.0.2.1,{}", trusted(32))), address("10.0.0.32"));
    assert_eq!(client(format!("192.0.2.1,{}", trusted(255))), address("10.0.0.32"));

    // The address, a comma, blanks, and a comma after them: 4096 bytes, then one more.
    let far = |blanks| format!("192.0.2.1,{}10.0.0.2", " ".repeat(blanks));
    let fits = 4096 - "192.0.2.1,10.0.0.2,".len();
    assert_eq!(client(far(fits)), address("192.0.2.1"));
    assert_eq!(client(far(fits + 1)), address("10.0.0.2"));
    assert_eq!(client(far(10 * 4096)), address("10.0.0.1"));
    // An address that is cut off is not another one: 192.0.2.1 does not become 92.0.2.1.
    assert_eq!(client(far(fits + 2)), address("10.0.0.2"));
    assert_eq!(client(format!("{},10.0.0.2", "1".repeat(60_000))), address("10.0.0.2"));

    let lines: Vec<_> = std::iter::once((XFF, "192.0.2.1")).chain(vec![(XFF, ""); 5000]).collect();
    let client = proxies(ForwardedBy::XForwardedFor).client(address("10.0.0.1"), &headers(&lines));
    assert_eq!(client, address("10.0.0.1"));
}

#[test]
fn overlapping_ranges_are_all_trusted() {
    let ranges =
        ["10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/9", "192.0.2.1", "fd00::/8", "192.0.2.1", "::1"];
    let trusted: TrustedProxies =
        ranges.map(|range| range.parse::<Cidr>().unwrap()).into_iter().collect();
    for yes in [
        "10.0.0.0",
        "10.1.2.3",
        "10.255.255.255",
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "fdff::1",
        "::1",
    ] {
        assert!(trusted.trusts(address(yes)), "{yes}");
    }
    for no in [
        "9.255.255.255",
        "11.0.0.0",
        "192.0.2.0",
        "192.0.2.2",
        "fc00::",
        "fe00::",
        "::",
        "::2",
        "0.0.0.0",
    ] {
        assert!(!trusted.trusts(address(no)), "{no}");
    }
    assert!(!TrustedProxies::default().trusts(address("127.0.0.1")));
}

#[test]
fn one_client_has_one_key() {
    let key = |line| {
        let client =
            proxies(ForwardedBy::default()).client(address("10.0.0.1"), &headers(&[(XFF, line)]));
        AddressKey::with_prefix("ip:", client)
    };
    assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1, [fd00::1]:80"));
    assert_eq!(key("2001:db8:1:2::a"), key("[2001:db8:1:2:ffff::b]:80"));
    assert_eq!(key("2001:db8:1:2::a").to_string(), "ip:2001:db8:1:2::/64");
    assert_ne!(key("2001:db8:1:2::a"), key("2001:db8:1:3::a"));
}
