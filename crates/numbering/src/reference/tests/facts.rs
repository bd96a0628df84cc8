//! Compares the compiled-in data with well-known facts.

use super::*;

#[test]
fn known_networks_have_their_operators() {
    for (codes, code, name) in [
        ("202-01", "GR", "Cosmote"),
        ("204-04", "NL", "Vodafone"),
        ("204-08", "NL", "KPN"),
        ("208-01", "FR", "Orange"),
        ("208-10", "FR", "SFR"),
        ("208-15", "FR", "Free"),
        ("208-20", "FR", "Bouygues"),
        ("214-07", "ES", "Movistar"),
        ("222-01", "IT", "TIM"),
        ("222-10", "IT", "Vodafone"),
        ("226-01", "RO", "Vodafone"),
        ("228-01", "CH", "Swisscom"),
        ("230-01", "CZ", "T-Mobile"),
        ("231-01", "SK", "Orange"),
        ("232-01", "AT", "A1.net"),
        ("234-15", "GB", "Vodafone UK"),
        ("234-30", "GB", "EE"),
        ("238-01", "DK", "TDC"),
        ("240-01", "SE", "Telia"),
        ("242-01", "NO", "Telenor"),
        ("244-05", "FI", "Elisa"),
        ("246-03", "LT", "Tele2"),
        ("247-01", "LV", "LMT"),
        ("247-02", "LV", "Tele2"),
        ("247-05", "LV", "Bite"),
        ("248-01", "EE", "Telia"),
        ("250-01", "RU", "MTS"),
        ("255-01", "UA", "Vodafone"),
        ("255-03", "UA", "Kyivstar"),
        ("260-01", "PL", "Plus"),
        ("260-02", "PL", "T-Mobile"),
        ("262-01", "DE", "Telekom"),
        ("262-02", "DE", "Vodafone"),
        ("262-03", "DE", "O2"),
        ("272-01", "IE", "Vodafone"),
        ("286-01", "TR", "Turkcell"),
        ("302-720", "CA", "Rogers Wireless"),
        ("310-260", "US", "T-Mobile"),
        ("310-410", "US", "AT&T"),
        ("311-480", "US", "Verizon"),
        ("334-020", "MX", "Telcel"),
        ("405-840", "IN", "Jio"),
        ("424-02", "AE", "Etisalat"),
        ("440-10", "JP", "NTT docomo"),
        ("460-00", "CN", "China Mobile"),
        ("505-01", "AU", "Telstra"),
        ("525-01", "SG", "SingTel"),
        ("621-30", "NG", "MTN"),
        ("639-02", "KE", "Safaricom"),
        ("655-01", "ZA", "Vodacom"),
    ] {
        let country = country(code);
        let entry = EMBEDDED
            .find_network(network(codes))
            .find(|entry| entry.country == Some(country))
            .expect(codes);
        assert_eq!(&*entry.name, name, "{codes}");
        assert_eq!(entry.status, NetworkStatus::Operational, "{codes}");
        let operator = EMBEDDED.operator(entry.operator).expect(codes);
        assert_eq!(
            (operator.country, &*operator.name),
            (Some(country), name),
            "{codes}"
        );
        assert!(EMBEDDED.networks(country).contains(entry), "{codes}");
    }
}

#[test]
fn a_network_of_several_territories_is_listed_in_each() {
    let countries = |codes| {
        let entries = EMBEDDED.find_network(network(codes));
        entries
            .map(|entry| entry.country.map(|c| c.to_string()))
            .collect::<Vec<_>>()
    };
    let expected = |codes: &[&str]| {
        codes
            .iter()
            .map(|&code| Some(code.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        countries("340-01"),
        expected(&["BL", "GF", "GP", "MF", "MQ"])
    );
    assert_eq!(countries("310-260"), expected(&["PR", "US", "VI"]));
    assert_eq!(countries("901-03"), [None], "Iridium is of no country");
    assert_eq!(countries("001-01"), [], "a test network");
    assert_eq!(countries("247-99"), [], "no network");
}

#[test]
fn known_numbers_have_their_operators() {
    for (digits, code, name, main) in [
        ("37129212345", "LV", "LMT", "247-01"),
        ("37126312345", "LV", "LMT", "247-01"),
        ("37120000001", "LV", "Tele2", "247-02"),
        ("37062212345", "LT", "Telia", "246-01"),
        ("3725012345", "EE", "Telia", "248-01"),
        ("380501234567", "UA", "Vodafone", "255-01"),
        ("380671234567", "UA", "Kyivstar", "255-02"),
        ("4915112345678", "DE", "Telekom", "262-01"),
        ("491721234567", "DE", "Vodafone", "262-02"),
        ("4917612345678", "DE", "O2", "262-03"),
        ("48601123456", "PL", "Plus", "260-01"),
        ("48602123456", "PL", "T-Mobile", "260-02"),
        ("33607123456", "FR", "Orange", "208-01"),
        ("6591234567", "SG", "SingTel", "525-01"),
        ("393331234567", "IT", "TIM", "222-01"),
        ("393471234567", "IT", "Vodafone", "222-06"),
        ("41791234567", "CH", "Swisscom", "228-01"),
        ("436641234567", "AT", "A1.net", "232-01"),
        ("79201234567", "RU", "MegaFon", "250-02"),
        ("77011234567", "KZ", "Kcell", "401-02"),
        ("905321234567", "TR", "Turkcell", "286-01"),
        ("40721234567", "RO", "Vodafone", "226-01"),
        ("306971234567", "GR", "Cosmote", "202-01"),
        ("351911234567", "PT", "Vodafone", "268-01"),
        ("353871234567", "IE", "Vodafone", "272-01"),
        ("61412345678", "AU", "Optus", "505-02"),
        ("919810012345", "IN", "AirTel", "404-02"),
        ("8613812345678", "CN", "China Mobile", "460-00"),
        ("27821234567", "ZA", "Vodacom", "655-01"),
        ("254722123456", "KE", "Safaricom", "639-02"),
        ("2348031234567", "NG", "MTN", "621-30"),
        ("971501234567", "AE", "Etisalat", "424-02"),
        // The range reserved for fiction, which the simulated carrier uses.
        ("447700900123", "GB", "O2 (UK)", "234-02"),
        ("447781123456", "GG", "Sure Mobile", "234-55"),
    ] {
        let location = EMBEDDED.locate(&number(digits));
        let operator = location
            .operator
            .and_then(|id| EMBEDDED.operator(id))
            .expect(digits);
        assert_eq!(&*operator.name, name, "{digits}");
        assert_eq!(location.country, Some(country(code)), "{digits}");
        assert_eq!(location.network, Some(network(main)), "{digits}");
    }
}

#[test]
fn a_number_without_a_known_prefix_has_only_a_country() {
    for (digits, code) in [
        ("12025550123", Some("US")),
        ("14165550123", Some("CA")),
        ("18765550123", Some("JM")),
        ("37167012345", Some("LV")),
        ("77172123456", Some("KZ")),
        ("74951234567", Some("RU")),
        ("3906698123456", Some("VA")),
        ("4779021234", Some("SJ")),
        ("441534123456", Some("JE")),
        ("441624123456", Some("IM")),
        ("35818123456", Some("AX")),
        ("262269123456", Some("YT")),
        ("5997123456", Some("BQ")),
        ("2908123", Some("SH")),
        ("2471234567", Some("SH")),
        ("38338123456", Some("XK")),
        ("800123456789", None),
        ("870773111632", None),
        ("979123456789", None),
        ("21012345678", None),
    ] {
        let expected = Location {
            country: code.map(country),
            ..Location::default()
        };
        assert_eq!(EMBEDDED.locate(&number(digits)), expected, "{digits}");
    }
}

#[test]
fn known_countries_have_their_main_mcc() {
    for (code, mcc) in [
        ("LV", Some(247)),
        ("DE", Some(262)),
        ("GB", Some(234)),
        ("US", Some(310)),
        ("IN", Some(404)),
        ("JP", Some(440)),
        ("GP", Some(340)),
        ("AQ", None),
    ] {
        assert_eq!(EMBEDDED.main_mcc(country(code)), mcc, "{code}");
    }
}
