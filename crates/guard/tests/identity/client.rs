//! A table of requests and their clients.

use headgate_guard::ForwardedBy;

use crate::support::{FWD, REAL, XFF, address, headers, proxies};

type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

fn check(header: ForwardedBy, cases: &[Case]) {
    for (peer, lines, expected) in cases {
        let client = proxies(header).client(address(peer), &headers(lines));
        assert_eq!(client, address(expected), "{header:?}: from {peer} with {lines:?}");
    }
}

#[test]
fn headers_from_untrusted_peers_are_ignored() {
    let cases: &[Case] = &[
        ("198.51.100.7", &[], "198.51.100.7"),
        ("198.51.100.7", &[(XFF, "192.0.2.1")], "198.51.100.7"),
        ("198.51.100.7", &[(XFF, "192.0.2.1, 10.0.0.1")], "198.51.100.7"),
        ("198.51.100.7", &[(XFF, "198.51.100.7, 10.0.0.1"), (XFF, "10.0.0.2")], "198.51.100.7"),
        ("198.51.100.7", &[(FWD, "for=192.0.2.1")], "198.51.100.7"),
        ("198.51.100.7", &[(FWD, "for=10.0.0.1;by=10.0.0.2")], "198.51.100.7"),
        ("198.51.100.7", &[(REAL, "192.0.2.1")], "198.51.100.7"),
        ("198.51.100.7", &[(REAL, "10.0.0.1")], "198.51.100.7"),
        ("2001:db8::7", &[(XFF, "fd00::1")], "2001:db8::7"),
        ("::ffff:198.51.100.7", &[(XFF, "192.0.2.1")], "198.51.100.7"),
        ("11.0.0.1", &[(XFF, "192.0.2.1")], "11.0.0.1"),
        ("9.255.255.255", &[(XFF, "192.0.2.1")], "9.255.255.255"),
    ];
    for header in [
        ForwardedBy::FirstPresent,
        ForwardedBy::XForwardedFor,
        ForwardedBy::Forwarded,
        ForwardedBy::XRealIp,
    ] {
        check(header, cases);
    }
}

#[test]
fn x_forwarded_for_is_read_from_the_right() {
    check(
        ForwardedBy::XForwardedFor,
        &[
            // No header: the proxy is the client.
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "")], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, " , ,, ")], "10.0.0.1"),
            // One, two and three proxies, and a forged address before them.
            ("10.0.0.1", &[(XFF, "192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "203.0.113.9, 192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "192.0.2.1, 10.0.0.2")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "203.0.113.9, 192.0.2.1, 10.0.0.2, 10.0.0.3")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "10.9.9.9, 192.0.2.1, 10.0.0.2")], "192.0.2.1"),
            ("::ffff:10.0.0.1", &[(XFF, "192.0.2.1")], "192.0.2.1"),
            // All are trusted: the left-most one.
            ("10.0.0.1", &[(XFF, "10.0.0.4, 10.0.0.3, 10.0.0.2")], "10.0.0.4"),
            // Several lines are one list.
            (
                "10.0.0.1",
                &[(XFF, "203.0.113.9"), (XFF, "192.0.2.1"), (XFF, "10.0.0.2")],
                "192.0.2.1",
            ),
            (
                "10.0.0.1",
                &[(XFF, "203.0.113.9, 192.0.2.1"), (XFF, ""), (XFF, "10.0.0.2,")],
                "192.0.2.1",
            ),
            // IPv6, IPv4-mapped IPv6, ports, blanks.
            ("fd00::1", &[(XFF, "2001:DB8::1, fd00::2")], "2001:db8::1"),
            ("fd00::1", &[(XFF, "2001:db8::1, [fd00::2]:4711, 10.0.0.2:80")], "2001:db8::1"),
            ("10.0.0.1", &[(XFF, "::ffff:192.0.2.1, ::ffff:10.0.0.2")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "[::ffff:192.0.2.1]:567")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "192.0.2.1:567")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "[2001:db8::1]:65535")], "2001:db8::1"),
            ("10.0.0.1", &[(XFF, "[2001:db8::1]")], "2001:db8::1"),
            ("10.0.0.1", &[(XFF, "\t 192.0.2.1 \t,\t10.0.0.2 ")], "192.0.2.1"),
            // Other headers are ignored.
            ("10.0.0.1", &[(REAL, "203.0.113.9"), (FWD, "for=203.0.113.9")], "10.0.0.1"),
        ],
    );
}

#[test]
fn parsing_stops_at_garbage() {
    let garbage = [
        "unknown",
        "_hidden",
        "localhost",
        "?",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "01.2.3.4",
        "0x7f.1",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:+80",
        "1.2.3.4:65536",
        "1.2.3.4:80:80",
        "[1.2.3.4]",
        "[::1",
        "[::1]80",
        "[::1]:",
        "::1]",
        "[]",
        "[",
        "]",
        "::1%eth0",
        ":80",
        "1.2.3.4 5.6.7.8",
        "\"1.2.3.4\"",
        "1.2.3.4;",
        "for=1.2.3.4",
        "10.0.0.0/8",
        "\u{e9}",
    ];
    for item in garbage {
        let believed = |lines: &[(&'static str, String)], header| {
            proxies(header).client(address("10.0.0.1"), &headers(lines))
        };
        let xff = [(XFF, format!("192.0.2.1, {item}, 10.0.0.3, 10.0.0.2"))];
        assert_eq!(believed(&xff, ForwardedBy::XForwardedFor), address("10.0.0.3"), "{item}");
        let only = [(XFF, format!("192.0.2.1, {item}"))];
        assert_eq!(believed(&only, ForwardedBy::XForwardedFor), address("10.0.0.1"), "{item}");
        let real = [(REAL, item.to_owned())];
        assert_eq!(believed(&real, ForwardedBy::XRealIp), address("10.0.0.1"), "{item}");
    }
    let bytes = headers(&[(XFF, b"192.0.2.1, \xff\xfe, 10.0.0.2")]);
    let client = proxies(ForwardedBy::XForwardedFor).client(address("10.0.0.1"), &bytes);
    assert_eq!(client, address("10.0.0.2"));
}

#[test]
fn forwarded_is_read_from_the_right() {
    check(
        ForwardedBy::Forwarded,
        &[
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[(FWD, "for=192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, "For=192.0.2.1; Proto=HTTPS;BY=10.0.0.1")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, "proto=https;by=10.0.0.1;FOR=\"192.0.2.1:80\"")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, "for=\"[2001:db8::1]:4711\"")], "2001:db8::1"),
            ("10.0.0.1", &[(FWD, "for=\"[2001:db8::1]:_http\"")], "2001:db8::1"),
            ("10.0.0.1", &[(FWD, "for=\"::ffff:192.0.2.1\"")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, for=192.0.2.1,for=10.0.0.2")], "192.0.2.1"),
            (
                "10.0.0.1",
                &[(FWD, "for=203.0.113.9"), (FWD, "for=192.0.2.1"), (FWD, "for=10.0.0.2")],
                "192.0.2.1",
            ),
            ("10.0.0.1", &[(FWD, "for=10.0.0.4, for=10.0.0.3;, , for=10.0.0.2")], "10.0.0.4"),
            // Commas and semicolons within quotes separate nothing.
            (
                "10.0.0.1",
                &[(FWD, "for=192.0.2.1;x=\"a,b;for=9.9.9.9\", for=10.0.0.2")],
                "192.0.2.1",
            ),
            ("10.0.0.1", &[(FWD, r#"for=192.0.2.1;x="a\",for=9.9.9.9""#)], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, r#"for=192.0.2.1;x="a\\", for=10.0.0.2"#)], "192.0.2.1"),
            // An unclosed quote from the client does not affect the text to its right.
            ("10.0.0.1", &[(FWD, "for=\", for=192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, "for=\"203.0.113.9"), (FWD, "for=192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(FWD, r#"x="\, for="192.0.2.1""#)], "192.0.2.1"),
            // Hidden clients.
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, for=unknown, for=10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, for=_hidden, for=10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, for=\"_gazonk:80\"")], "10.0.0.1"),
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, proto=https")], "10.0.0.1"),
            (
                "10.0.0.1",
                &[(FWD, "for=203.0.113.9, for=10.0.0.3;for=10.0.0.4, for=10.0.0.2")],
                "10.0.0.2",
            ),
            ("10.0.0.1", &[(FWD, "for=203.0.113.9, for=\"10.0.0.2")], "10.0.0.1"),
            ("10.0.0.1", &[(FWD, "192.0.2.1")], "10.0.0.1"),
            // Other headers are ignored.
            ("10.0.0.1", &[(XFF, "203.0.113.9"), (FWD, "for=192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(XFF, "203.0.113.9"), (REAL, "203.0.113.9")], "10.0.0.1"),
        ],
    );
}

#[test]
fn x_real_ip_is_one_address() {
    check(
        ForwardedBy::XRealIp,
        &[
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[(REAL, "192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(REAL, " 192.0.2.1:80 ")], "192.0.2.1"),
            ("10.0.0.1", &[(REAL, "::ffff:192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(REAL, "10.0.0.9")], "10.0.0.9"),
            ("10.0.0.1", &[(REAL, "192.0.2.1, 203.0.113.9")], "10.0.0.1"),
            ("10.0.0.1", &[(REAL, "192.0.2.1"), (REAL, "203.0.113.9")], "10.0.0.1"),
            ("10.0.0.1", &[(REAL, "")], "10.0.0.1"),
            (
                "10.0.0.1",
                &[(REAL, "192.0.2.1"), (XFF, "203.0.113.9"), (FWD, "for=203.0.113.9")],
                "192.0.2.1",
            ),
        ],
    );
}

#[test]
fn the_default_is_the_first_header_present() {
    check(
        ForwardedBy::default(),
        &[
            (
                "10.0.0.1",
                &[(REAL, "203.0.113.9"), (FWD, "for=203.0.113.9"), (XFF, "192.0.2.1")],
                "192.0.2.1",
            ),
            ("10.0.0.1", &[(REAL, "203.0.113.9"), (FWD, "for=192.0.2.1")], "192.0.2.1"),
            ("10.0.0.1", &[(REAL, "192.0.2.1")], "192.0.2.1"),
            // An empty header counts as present.
            ("10.0.0.1", &[(REAL, "203.0.113.9"), (FWD, "for=203.0.113.9"), (XFF, "")], "10.0.0.1"),
            (
                "10.0.0.1",
                &[(REAL, "203.0.113.9"), (FWD, "for=203.0.113.9"), (XFF, "unknown")],
                "10.0.0.1",
            ),
            ("10.0.0.1", &[(REAL, "203.0.113.9"), (FWD, "")], "10.0.0.1"),
        ],
    );
}
