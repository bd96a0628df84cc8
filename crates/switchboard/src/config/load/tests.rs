//! Reading the configuration.

mod providers;
mod secrets;

use super::*;
use crate::config::carriers;

fn parse_config(text: &str, env: &[(&str, &str)]) -> Result<Config, Problems> {
    let env = env
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    parse(Some((Path::new("switchboard.toml"), text)), env)
}

#[test]
fn the_file_in_the_working_folder_wins_over_the_installed_one() {
    let (here, installed, missing) = ("Cargo.toml", "src/main.rs", "no-such-file.toml");
    for (case, files, expected) in [
        ("both", [here, installed], Some(here)),
        ("only installed", [missing, installed], Some(installed)),
        ("none", [missing, missing], None),
    ] {
        assert_eq!(first_that_exists(&files), expected.map(Path::new), "{case}");
    }
}

#[test]
fn the_example_file_has_the_defaults() {
    let example = include_str!("../../../../../switchboard.example.toml");
    assert_eq!(
        parse_config(example, &[]).expect("valid"),
        Config::default()
    );
    // Keys without a default are comments there; if set, they must be known.
    let keys = example
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.contains(" = "));
    assert!(keys.count() >= 5, "optional keys are shown as comments");
}

/// The keys without a default, so that the table has every key.
const OPTIONAL_KEYS: &str = "
    tls = { cert = 'cert.pem', key = 'key.pem' }
    database = { url = 'sqlite:x.db' }
    security = { key = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTI=' }
    urls = { base = 'http://x', mcp = 'http://x', auth = 'http://x', dashboard = 'http://x' }
    limits = { connections_per_address = 9 }
    smpp_server = { listen = '127.0.0.1:2775', tls_listen = '127.0.0.1:3550' }
    metrics = { listen = '127.0.0.1:9' }
    callbacks = { allow = [], park_after_days = 7, tls_ca = 'ca.pem', proxy = 'http://me:secret@proxy:3128' }
    simulator = { journal = 'journal.log' }
    mail = { url = 'smtps://user:hunter2@mail.example.com', from = 'a@example.com' }
    [[notify]]
    url = 'https://x'
    secret = 'whsec_c2VjcmV0'
    events = ['carrier.down']
    [[notify]]
    email = 'a@example.com'
    [[carrier]]
    kind = 'simulator'
    costs = 'costs.csv'
    [[carrier]]
    kind = 'smpp'
    name = 'alpha'
    address = 'smsc:2775'
    tls = true
    tls_ca = 'ca.pem'
    tls_name = 'smsc'
    system_id = 'user'
    password = 'hunter2'
    max_per_second = 9
    source = '192.0.2.1'
    source_ton = 5
    source_npi = 0
    dest_ton = 1
    dest_npi = 1
    costs = 'costs.csv'
    [[carrier]]
    kind = 'upstream'
    name = 'gamma'
    url = 'https://x'
    token = 'hunter2'
    report_url = 'https://y'
    max_per_second = 9
    costs = 'costs.csv'
    [[carrier]]
    kind = 'http'
    name = 'beta'
    preset = 'twilio'
    base_url = 'https://x'
    report_url = 'https://y'
    max_per_second = 9
    tls_ca = 'ca.pem'
    proxy = 'http://proxy:3128'
    source = '192.0.2.1'
    costs = 'costs.csv'
    channels = ['sms', 'hlr']
    [carrier.secret]
    account_sid = 'AC1'
    auth_token = 'hunter2'
    [carrier.request]
    headers = { Accept = 'text/plain' }
    query = { a = 1 }
    [carrier.request.hmac]
    key = '{{ secret.auth_token }}'
    header = 'X-Signature'
    [carrier.response]
    state = '/a'
    id_after = 'ID:'
    error_after = 'ERR:'
    [carrier.poll.request]
    method = 'GET'
    url = 'https://x'
    [carrier.signature]
    scheme = 'hmac'
    header = 'X-Signature'
    hash = 'sha512'
    encoding = 'base64'
    [carrier.inbound]
    list = '/a'
    [carrier.lookup]
    present = '/a'
    ported = '/a'
    mcc = '/a'
    mnc = '/a'
    original_network = '/a'
    roaming = '/a'
    error = '/a'
    other_error = 51
    [[carrier]]
    kind = 'http'
    name = 'delta'
    channels = ['hlr']
    [carrier.request]
    url = 'https://x'
    json = { to = '{{ to }}', callback = '{{ report_url }}' }
    [carrier.lookup]
    present = '/a'
    network = '/a'
    [carrier.report]
    state = '/a'
    network = '/a'
    list = '/a'
    [[carrier]]
    kind = 'http'
    name = 'epsilon'
    [carrier.request]
    url = 'https://x'
    json = { to = '{{ items }}' }
    [carrier.batch]
    size = 2
    item = '{{ to }}'
    results = '/a'
    to = '/a'
    id = '/a'
    state = '/a'
    error = '/a'
    [[route]]
    carriers = ['alpha']
    ported_numbers = true
";

#[test]
fn every_key_is_in_the_example_and_in_the_documentation() {
    let example = include_str!("../../../../../switchboard.example.toml");
    let page = include_str!("../../../../../docs/CONFIGURATION.md");
    let full = parse_config(OPTIONAL_KEYS, &[]).expect("valid");
    let table = Table::try_from(&full).expect("a table");
    for (section, value) in &table {
        let tables = value.as_array().into_iter().flatten();
        let tables: Vec<&Table> = tables.chain([value]).filter_map(Value::as_table).collect();
        if tables.is_empty() {
            assert!(
                example.contains(&format!("{section} = ")),
                "{section} is missing in the example"
            );
            assert!(
                page.contains(&format!("`{section}`")),
                "{section} is missing in CONFIGURATION.md"
            );
            continue;
        }
        for table in tables {
            check_documented(section, table, example, page);
        }
    }
}

/// Operators choose the keys of these tables.
const FREE_TABLES: [&str; 7] = [
    "secret", "headers", "query", "json", "form", "errors", "item",
];

fn check_documented(section: &str, table: &Table, example: &str, page: &str) {
    for (key, value) in table {
        let path = format!("{section}.{key}");
        assert!(
            example.contains(&format!("{key} = ")) || example.contains(&format!("[{path}]")),
            "{path} is missing in the example"
        );
        let documented = format!("`{path}`");
        assert!(
            page.contains(&documented),
            "{documented} is missing in CONFIGURATION.md"
        );
        if let Some(inner) = value.as_table()
            && !FREE_TABLES.contains(&key.as_str())
        {
            check_documented(&path, inner, example, page);
        }
    }
}

#[test]
fn the_environment_overrides_the_file() {
    let config = parse_config(
        "[server]\nlisten = '127.0.0.1:1'\n",
        &[
            ("SWITCHBOARD_SERVER__LISTEN", "[::1]:9000"),
            ("SWITCHBOARD_AUTH__QUERY_TOKEN", "true"),
            ("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['10.0.0.0/8']"),
            ("SWITCHBOARD_LIMITS__IN_FLIGHT", "12"),
            ("SWITCHBOARD_DATA_DIR", "elsewhere"),
            ("SWITCHBOARD_UNRELATED", "ignored"),
            ("PATH", "ignored"),
        ],
    )
    .expect("valid");
    assert_eq!(config.server.listen.to_string(), "[::1]:9000");
    assert!(config.auth.query_token);
    assert_eq!(config.auth.trusted_proxies.len(), 1);
    assert_eq!(config.limits.in_flight, 12);
    assert_eq!(config.data_dir, Path::new("elsewhere"));
}

#[test]
fn everything_that_is_wrong_is_named_with_its_place() {
    let file = "\
[server]
listen = \"nowhere\"
port = 1

[limits]
in_flight = 0
body_seconds = 0

[database]
url = \"env:NO_SUCH_VARIABLE\"

[[carrier]]
kind = \"smpp\"
name = \"alpha\"
address = \"smsc\"
system_id = 7
speed = 1

[[carrier]]
kind = \"upstream\"
name = \"beta\"
token = 12345

[[route]]
country = \"Latvia\"
carriers = [\"gamma\"]
";
    let env = [
        ("SWITCHBOARD_OAUTH__CODE_SECONDS", "soon"),
        ("SWITCHBOARD_CARRIER__1__PASSWORD", "12345678"),
        ("SWITCHBOARD_ROUTE__9__PREFIX", "371"),
    ];
    let problems = parse_config(file, &env).expect_err("wrong").to_string();
    for expected in [
        "switchboard.toml:2: server.listen: invalid socket address",
        "switchboard.toml:3: server.port: unknown field `port`",
        "switchboard.toml:6: limits.in_flight is 0; give at least 1",
        "switchboard.toml:7: limits.body_seconds is 0",
        "switchboard.toml:10: database.url is env:NO_SUCH_VARIABLE",
        "switchboard.toml:15: carrier 'alpha': address 'smsc' must be a host and a port",
        "switchboard.toml:16: carrier.1.system_id: invalid type: integer `7`, expected a string",
        "switchboard.toml:17: carrier.1.speed: unknown field `speed`",
        "switchboard.toml:19: carrier.2: missing field `url`",
        "switchboard.toml:22: carrier.2.token: must be a text in quotes",
        "switchboard.toml:26: route 1: route.carriers: there is no carrier 'gamma'",
        "SWITCHBOARD_OAUTH__CODE_SECONDS: oauth.code_seconds: invalid type: string \"soon\"",
        "SWITCHBOARD_ROUTE__9__PREFIX: there is no route 9; the next one is 2",
    ] {
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
    assert!(!problems.contains("12345"), "{problems}");
    assert!(problems.starts_with("13 settings are wrong:"), "{problems}");
}

#[test]
fn a_carrier_can_be_set_by_the_environment_alone() {
    let env = [
        ("SWITCHBOARD_CARRIER__1__KIND", "smpp"),
        ("SWITCHBOARD_CARRIER__1__NAME", "alpha"),
        ("SWITCHBOARD_CARRIER__1__ADDRESS", "smsc:2775"),
        ("SWITCHBOARD_CARRIER__1__SYSTEM_ID", "12345"),
        ("SWITCHBOARD_CARRIER__1__PASSWORD", "0042"),
        ("SWITCHBOARD_CARRIER__1__WINDOW", "20"),
        ("SWITCHBOARD_ROUTE__1__PREFIX", "371"),
        ("SWITCHBOARD_ROUTE__1__CARRIERS", "['alpha']"),
    ];
    let config = parse_config("", &env).expect("valid");
    let carriers::Carrier::Smpp(alpha) = &config.carriers()[0] else {
        panic!("another kind of carrier");
    };
    assert_eq!(alpha.system_id, "12345");
    assert_eq!(alpha.password.0, "0042");
    assert_eq!(alpha.window, 20);
    assert_eq!(config.routes.len(), 1);
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_its_line() {
    let error = parse_config("[server]\nlisten = \n", &[]).expect_err("not TOML");
    assert!(
        error.to_string().starts_with("switchboard.toml:2: "),
        "{error}"
    );
}

fn check_refused(text: &str, reason: &str) {
    let error = format!("{:#}", parse_config(text, &[]).expect_err(text));
    assert!(error.contains(reason), "{text}: {error}");
}

#[test]
fn errors_say_what_contradicts() {
    for (text, reason) in [
        ("[server]\nport = 1", "unknown field `port`"),
        ("[tls]\ncert = 'a'", "tls.key is not"),
        ("[database]\nurl = 'mysql://x'", "database.url"),
        ("[server]\nheader_prefix = 'a b'", "header_prefix"),
        (
            "[server]\nlisten = '127.0.0.1:80'\n[metrics]\nlisten = '127.0.0.1:80'",
            "a port of its own",
        ),
        ("[urls]\nauth = 'ftp://x'", "urls.auth"),
        ("[oauth]\ncode_seconds = 0", "oauth.code_seconds is 0"),
        ("[oauth]\naccess_seconds = 86401", "give 1 to 86400"),
        ("[oauth]\nrefresh_days = 366", "oauth.refresh_days is 366"),
        ("[oauth]\ngrant_days = 0", "oauth.grant_days is 0"),
        ("[limits]\nin_flight = 0", "limits.in_flight is 0"),
        ("[limits]\nin_flight = -1", "in_flight"),
        ("[limits]\nconnections_per_address = 0", "per_address is 0"),
        ("[limits]\nwrite_seconds = 0", "limits.write_seconds is 0"),
        ("[billing]\ncurrency = 'Euro'", "ISO 4217"),
        ("[billing]\nconfirm_above = 'much'", "billing.confirm_above"),
        ("[billing]\nconfirm_above = '-1'", "is negative"),
        ("[urls]\nbase = 'ftp://x'", "urls.base"),
        (
            "[callbacks]\nproxy = 'x:3128'",
            "callbacks.proxy is no address",
        ),
        ("[senders]\npin_from = 'A@B'", "senders.pin_from"),
        ("[log]\nlevel = 'loud,'", "log.level"),
        ("[mail]\nurl = 'smtp://u:p@x'\nfrom = 'a@b.c'", "no TLS"),
        ("[mail]\nurl = 'smtps://x'", "mail.from is not set"),
        ("[mail]\nfrom = 'a@b.c'", "without mail.url"),
        ("[[notify]]\nevents = ['disk.low']", "needs url or email"),
        ("[[notify]]\nurl = 'https://x'", "notify.secret is not set"),
        (
            "[[notify]]\nurl = 'https://x'\nsecret = 'x'",
            "not whsec_ and a key",
        ),
        ("[[notify]]\nemail = 'a@b.c'", "needs mail.url"),
        (
            "[[notify]]\nurl = 'https://x'\nsecret = 'whsec_eA=='\nevents = ['x']",
            "'x' is not an event",
        ),
        ("[[carrier]]\nkind = 'pigeon'", "pigeon"),
        (
            "[[carrier]]\nkind = 'simulator'\nspeed = 1",
            "unknown field `speed`",
        ),
        (
            "[[carrier]]\nkind = 'simulator'\nname = 'x'",
            "always named simulator",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a b'",
            "carrier.name 'a b'",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'smsc'",
            "a host and a port",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'smsc:1'",
            "system_id is not set",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'x:1'\nsystem_id = 'u'\nwindow = 0",
            "window is 0",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'x:1'\nsystem_id = 'u'\nmax_per_second = 0",
            "max_per_second is 0",
        ),
        (
            "[[carrier]]\nkind = 'upstream'\nname = 'a'\nurl = 'http://u:p@x'\ntoken = 't'",
            "must hold no user",
        ),
        (
            "[[carrier]]\nkind = 'simulator'\n[[carrier]]\nkind = 'simulator'",
            "two carriers",
        ),
    ] {
        check_refused(text, reason);
    }
}

#[test]
fn errors_say_what_is_wrong_with_a_route() {
    for (text, reason) in [
        ("[[route]]\nprefix = '371'", "route.carriers is empty"),
        (
            "[[route]]\ncarriers = ['beta']",
            "there is no carrier 'beta'; there are: simulator",
        ),
        (
            "[[route]]\ncarriers = ['simulator', 'simulator']",
            "a carrier twice",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nprefix = '+37a'",
            "route.prefix",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\ncountry = 'Latvia'",
            "route.country",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nnetwork = '24'",
            "route.network",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nchannel = 'fax'",
            "route.channel",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nby = 'share'",
            "0 numbers for 1 carriers",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nweights = [1]",
            "counts only with",
        ),
        (
            "[[route]]\ncarriers = ['simulator']\nby = 'cost'",
            "has a cost list",
        ),
    ] {
        check_refused(text, reason);
    }
}
