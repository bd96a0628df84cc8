//! The main time zone of each country.

use jiff::tz::TimeZone;

use super::country::Country;

/// Time zones as POSIX writes them, with the countries where most people live in them. In countries with several time
/// zones, the others are left out. A country that changes its clocks otherwise needs another row.
const ZONES: &[(&str, &str)] = &[
    (
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "AD AL AT BA BE CH CZ DE DK ES FR GI HR HU IT LI LU MC ME MK MT NL NO PL RS SE SI SJ SK SM VA XK",
    ),
    (
        "AST4",
        "AG AI AW BB BL BQ CW DM DO GD GP KN LC MF MQ MS PR SX TT VC VG VI",
    ),
    ("GMT0", "BF CI GH GM GN GW IS LR ML MR SH SL SN ST TG"),
    ("WAT-1", "AO BJ CD CF CG CM GA GQ NE NG TD"),
    (
        "EET-2EEST,M3.5.0/3,M10.5.0/4",
        "AX BG CY EE FI GR LT LV RO UA",
    ),
    ("<+03>-3", "BH BY IQ JO KW QA SA SY TR YE"),
    ("CAT-2", "BI BW MW MZ NA RW SD SS ZM ZW"),
    ("EAT-3", "DJ ER ET KE KM MG SO TZ UG YT"),
    ("<+04>-4", "AE AM AZ GE MU OM RE SC"),
    ("<-03>3", "AR BR FK GF PY SR UY"),
    ("CST6", "BZ CR GT HN MX NI SV"),
    ("<+12>-12", "FJ KI MH NR TV UM WF"),
    ("<+05>-5", "KZ MV TF TJ TM UZ"),
    ("EST5EDT,M3.2.0,M11.1.0", "BS CA HT TC US"),
    ("<+07>-7", "CX KH LA TH VN"),
    ("<+06>-6", "BD BT IO KG"),
    ("<+08>-8", "BN MN MY SG"),
    ("<+11>-11", "FM NC SB VU"),
    ("GMT0BST,M3.5.0/1,M10.5.0", "GB GG IM JE"),
    ("<-04>4", "BO GY VE"),
    ("CST-8", "CN MO TW"),
    ("<-05>5", "CO EC PE"),
    ("EST5", "JM KY PA"),
    ("SAST-2", "LS SZ ZA"),
    ("<+13>-13", "TK TO WS"),
    ("NZST-12NZDT,M9.5.0,M4.1.0/3", "AQ NZ"),
    ("<+0630>-6:30", "CC MM"),
    ("<-10>10", "CK PF"),
    ("CET-1", "DZ TN"),
    ("<+01>-1", "EH MA"),
    ("WET0WEST,M3.5.0/1,M10.5.0", "FO PT"),
    ("ChST-10", "GU MP"),
    ("KST-9", "KP KR"),
    ("<+09>-9", "PW TL"),
    ("<+0430>-4:30", "AF"),
    ("SST11", "AS"),
    ("AEST-10AEDT,M10.1.0,M4.1.0/3", "AU"),
    ("AST4ADT,M3.2.0,M11.1.0", "BM"),
    ("<-04>4<-03>,M9.1.6/24,M4.1.6/24", "CL"),
    ("CST5CDT,M3.2.0/0,M11.1.0/1", "CU"),
    ("<-01>1", "CV"),
    ("EET-2EEST,M4.5.5/0,M10.5.4/24", "EG"),
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "GL"),
    ("<-02>2", "GS"),
    ("HKT-8", "HK"),
    ("WIB-7", "ID"),
    ("IST-1GMT0,M10.5.0,M3.5.0/1", "IE"),
    ("IST-2IDT,M3.4.4/26,M10.5.0", "IL"),
    ("IST-5:30", "IN"),
    ("<+0330>-3:30", "IR"),
    ("JST-9", "JP"),
    ("EET-2EEST,M3.5.0/0,M10.5.0/0", "LB"),
    ("<+0530>-5:30", "LK"),
    ("EET-2", "LY"),
    ("EET-2EEST,M3.5.0,M10.5.0/3", "MD"),
    ("<+11>-11<+12>,M10.1.0,M4.1.0/3", "NF"),
    ("<+0545>-5:45", "NP"),
    ("<-11>11", "NU"),
    ("<+10>-10", "PG"),
    ("PST-8", "PH"),
    ("PKT-5", "PK"),
    ("<-03>3<-02>,M3.2.0,M11.1.0", "PM"),
    ("<-08>8", "PN"),
    ("EET-2EEST,M3.4.4/50,M10.4.4/50", "PS"),
    ("MSK-3", "RU"),
];

/// The time zone in which most people of a country live.
pub fn main_time_zone(country: Country) -> Option<TimeZone> {
    let has = |countries: &str| countries.split(' ').any(|code| code == country.as_str());
    let (zone, _) = ZONES.iter().find(|(_, countries)| has(countries))?;
    TimeZone::posix(zone).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn every_inhabited_country_has_one_time_zone() {
        for country in Country::all() {
            let code = country.as_str();
            let rows = ZONES.iter().map(|(_, countries)| countries.split(' '));
            let count = rows.flatten().filter(|known| *known == code).count();
            let expected = usize::from(!["BV", "HM"].contains(&code));
            assert_eq!(count, expected, "{code}");
            assert_eq!(main_time_zone(country).is_some(), expected == 1, "{code}");
        }
    }

    #[test]
    fn clocks_are_right_in_winter_and_summer() {
        let hour = |country: &str, at: &str| {
            let country = Country::parse(country).expect("a country");
            let at: Timestamp = at.parse().expect("a time");
            let zone = main_time_zone(country).expect("a zone");
            at.to_zoned(zone).strftime("%H:%M").to_string()
        };
        for (country, winter, summer) in [
            ("LV", "14:00", "15:00"),
            ("GB", "12:00", "13:00"),
            ("IE", "12:00", "13:00"),
            ("US", "07:00", "08:00"),
            ("AU", "23:00", "22:00"),
            ("IN", "17:30", "17:30"),
            ("BR", "09:00", "09:00"),
        ] {
            assert_eq!(hour(country, "2026-01-15T12:00:00Z"), winter, "{country}");
            assert_eq!(hour(country, "2026-07-15T12:00:00Z"), summer, "{country}");
        }
    }
}
