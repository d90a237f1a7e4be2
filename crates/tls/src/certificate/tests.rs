use headgate_testkit::CertificateAuthority;
use proptest::prelude::*;
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::*;

fn issued(names: &[&str]) -> CertificateDer<'static> {
    let issued = CertificateAuthority::new("test").issue(names);
    CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()
}

#[test]
fn reads_validity_and_names() {
    let der = issued(&["API.example", "spiffe://c/ns/a", "ops@example.com", "127.0.0.1"]);
    let certificate = Certificate::parse(&der).unwrap();
    // 2020-01-01 and 2049-01-01.
    assert_eq!(certificate.validity, 1_577_836_800..=2_493_072_000);
    assert_eq!(
        certificate.names,
        [
            SubjectName::Dns("api.example".to_owned()),
            SubjectName::Uri("spiffe://c/ns/a".to_owned()),
            SubjectName::Email("ops@example.com".to_owned()),
        ]
    );
}

#[test]
fn the_common_name_is_not_read() {
    assert_eq!(Certificate::parse(&issued(&[])).unwrap().names, []);
}

#[test]
fn reads_times_of_both_forms() {
    let read = |tag: u8, text: &str| {
        let der = [&[tag, text.len() as u8], text.as_bytes()].concat();
        time(&mut Reader::new(&der))
    };
    assert_eq!(read(UTC_TIME, "700101000001Z"), Some(1));
    assert_eq!(read(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
    assert_eq!(read(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
    for invalid in ["", "Z", "7001010000Z", "700101000001", "701301000001Z", "70010100000xZ"] {
        assert_eq!(read(UTC_TIME, invalid), None, "{invalid}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Certificate::parse(&bytes);
    }

    #[test]
    fn a_damaged_certificate_is_read_or_refused(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        use std::sync::OnceLock;
        static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
        let whole = WHOLE.get_or_init(|| issued(&["a.example", "spiffe://c/a"]).to_vec());
        let end = end.index(whole.len());
        prop_assert_eq!(Certificate::parse(&whole[..end]), None);
        let mut der = whole.clone();
        for (place, byte) in places {
            let place = place.index(der.len());
            der[place] = byte;
        }
        let _ = Certificate::parse(&der);
        // A damaged length may say that it ends here.
        let _ = Certificate::parse(&der[..end]);
    }
}
