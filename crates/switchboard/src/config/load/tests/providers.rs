//! The descriptions of providers.

use super::{OPTIONAL_KEYS, parse_config};

#[test]
fn mistakes_in_the_description_of_a_provider_have_their_lines() {
    let file = "\
[[carrier]]
kind = \"http\"
name = \"beta\"
channels = [\"sms\", \"fax\"]
timeout_s = 0
[carrier.request]
url = \"https://provider.example/send\"
headers = { \"X-Api-Key\" = \"{{ secret.kee }}\" }
[carrier.request.json]
to = \"{{ to }}\"
[carrier.response]
taken = [\"ok\"]
[carrier.report]
state = \"status\"
[carrier.inbound]
from = \"/from\"
to = \"me\"
text = \"/text\"
speed = 1
[carrier.signature]
scheme = \"twilio\"
key = \"{{ to }}\"

[[carrier]]
kind = \"http\"
name = \"gamma\"
[carrier.request]
url = \"https://provider.example/send\"
[carrier.request.json]
to = [\"{{ to }}\", { number = \"{{ too }}\" }]

[[carrier]]
kind = \"http\"
name = \"delta\"
preset = \"twilo\"

[[carrier]]
kind = \"http\"
name = \"epsilon\"
preset = \"twilio\"
[carrier.secret]
account_sid = \"AC1\"
";
    let problems = parse_config(file, &[]).expect_err("wrong").to_string();
    for expected in [
        "switchboard.toml:4: carrier 'beta': channels: 'fax' is not a channel",
        "switchboard.toml:5: carrier 'beta': timeout_s is 0; give 1 to 300",
        "switchboard.toml:8: carrier 'beta': request.headers.X-Api-Key: '{{ secret.kee }}' is not set; add kee to secret",
        "switchboard.toml:12: carrier 'beta': response.taken: 'ok' is no HTTP status",
        "switchboard.toml:14: carrier 'beta': report.state: 'status' is no JSON pointer",
        "switchboard.toml:17: carrier 'beta': inbound.to: 'me' is neither a JSON pointer",
        "switchboard.toml:19: carrier.1.inbound.speed: unknown field `speed`",
        "switchboard.toml:22: carrier 'beta': signature.key must be a secret",
        "switchboard.toml:30: carrier 'gamma': request.json.to.2.number: '{{ too }}' is not a variable",
        "switchboard.toml:35: preset: there is no preset 'twilo'; there are android-sms-gateway, infobip,",
        "'{{ secret.auth_token }}' is not set; add auth_token to secret",
    ] {
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

#[test]
fn mistakes_in_signatures_and_states_are_found() {
    for (tables, expected) in [
        (
            "[carrier.response]\nrefused = ['REJECTED']",
            "response.refused: needs response.state",
        ),
        (
            "[carrier.response]\nid_after = ' '",
            "response.id_after: is empty; give the text to look for",
        ),
        (
            "[carrier.response]\nrefused_text = ['']",
            "response.refused_text: is empty",
        ),
        (
            "[carrier.request.hmac]\nkey = 'k'\nheader = 'X-Signature'\nsigned = '{{ to }}'",
            "request.hmac.signed: '{{ to }}' is not a variable here; there are method, path, body,",
        ),
        (
            "[carrier.poll.request]\nurl = 'https://x/{{ provider_id }}'",
            "poll is set, but report is not",
        ),
        (
            "[carrier.report]\nstate = '/a'\n[carrier.poll]\ninterval_s = 0\nrequest = { url = 'https://x' }",
            "poll.interval_s is 0; give 1 to 3600",
        ),
        (
            "[carrier.report]\nstate = '/a'\n[carrier.poll.request]\nurl = 'https://x/{{ provider_id }}'",
            "neither response.id nor response.id_after says where it is",
        ),
        (
            "[carrier.report]\nstate = '/a'\n[carrier.poll.request]\nurl = 'https://x/{{ to }}'",
            "poll.request.url: '{{ to }}' is not a variable here; there are id, provider_id,",
        ),
        (
            "[carrier.batch]\nsize = 1\nitem = '{{ to }}'\nresults = '/a'",
            "batch.size is 1; give 2 to 100",
        ),
        (
            "[carrier.batch]\nsize = 60\nitem = '{{ to }}'\nresults = '/a'",
            "batch.size is 60, but window is only 50",
        ),
        (
            "[carrier.batch]\nsize = 2\nitem = '{{ to }}'\nresults = '/a'",
            "request: '{{ to }}' is only for one message of a batch; it belongs in batch.item",
        ),
        (
            "[carrier.batch]\nsize = 2\nitem = '{{ to }}'\nresults = 'a'",
            "batch.results: 'a' is no JSON pointer",
        ),
        (
            "[carrier.inbound]\nlist = '/a'\nfrom = '/a'\nto = '/a'\ntext = '/a'",
            "inbound.list: needs inbound.id",
        ),
        (
            "[carrier.report]\nshared = true\nlist = '/a'\nstate = '/a'",
            "report.shared cannot be set together with report.list or inbound.list",
        ),
        (
            "[carrier.lookup]\npresent = '/a'\nother_error = 0",
            "lookup.other_error: 0 is not an error code of this service",
        ),
        (
            "[carrier.signature]\nscheme = 'hmac'\nkey = '{{ secret.key }}'",
            "signature.header is missing",
        ),
        (
            "[carrier.signature]\nscheme = 'twilio'\nkey = '{{ secret.key }}'\nhash = 'sha1'",
            "signature.header, hash and encoding are only for the scheme hmac",
        ),
        (
            "[carrier.signature]\nscheme = 'telnyx'\nkey = '{{ secret.key }}'",
            "signature.key is not a public key of the provider: 32 bytes in Base64",
        ),
        (
            "[carrier.signature]\nscheme = 'jwt'\nkey = '{{ secret.key }}'",
            "unknown variant `jwt`",
        ),
    ] {
        let file = format!(
            "[[carrier]]\nkind = 'http'\nname = 'beta'\n[carrier.request]\nurl = 'https://x'\n\
             query = {{ to = '{{{{ to }}}}' }}\n[carrier.secret]\nkey = 'hunter2'\n{tables}\n"
        );
        let problems = parse_config(&file, &[]).expect_err(tables).to_string();
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

#[test]
fn secrets_of_a_provider_are_hidden() {
    let config = parse_config(OPTIONAL_KEYS, &[]).expect("valid");
    let shown = toml::to_string(&config).expect("TOML");
    assert!(
        !shown.contains("hunter2") && !shown.contains("AC1"),
        "{shown}"
    );
    assert!(!format!("{config:?}").contains("hunter2"));
}
