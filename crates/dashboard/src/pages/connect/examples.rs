//! The texts of the examples. `{base}`, `{mcp}` and `{header}` are replaced by the values of this server.

/// Reads a token into the environment without leaving it in the history of the shell.
pub(super) const IN_SHELL: &str = "read -rs SWITCHBOARD_TOKEN && export SWITCHBOARD_TOKEN";

pub(super) struct ServerAddresses<'a> {
    pub(super) base: &'a str,
    pub(super) mcp: &'a str,
    pub(super) header: &'a str,
}

impl ServerAddresses<'_> {
    fn fill(&self, text: &str) -> String {
        text.replace("{base}", self.base)
            .replace("{mcp}", self.mcp)
            .replace("{header}", self.header)
    }

    fn example(&self, (title, hint, text): (&'static str, &'static str, &str)) -> Example {
        Example {
            title,
            hint,
            text: self.fill(text),
        }
    }
}

pub(super) struct Example {
    pub(super) title: &'static str,
    /// Where to put it.
    pub(super) hint: &'static str,
    pub(super) text: String,
}

/// Programs that call the REST API.
pub(super) fn programs(addresses: &ServerAddresses<'_>) -> Vec<Example> {
    [
        ("curl", "In a shell.", CURL),
        ("Python", "Standard library only.", PYTHON),
        ("JavaScript", "Node.js 18 or newer, Deno, Bun.", JAVASCRIPT),
    ]
    .map(|example| addresses.example(example))
    .into()
}

/// AI clients with a token of the account.
pub(super) fn by_token(addresses: &ServerAddresses<'_>) -> Vec<Example> {
    [
        ("Claude Code", "In a shell.", CLAUDE_CODE_BY_TOKEN),
        ("Codex", "~/.codex/config.toml", CODEX_BY_TOKEN),
        ("Cursor", "~/.cursor/mcp.json", CURSOR_BY_TOKEN),
        ("Windsurf", "~/.codeium/windsurf/mcp_config.json", WINDSURF_BY_TOKEN),
        (
            "VS Code",
            ".vscode/mcp.json; it asks for the token and keeps it.",
            VS_CODE_BY_TOKEN,
        ),
        (
            "Claude Desktop",
            "claude_desktop_config.json, with your token instead of TOKEN; for clients that can only start programs.",
            REMOTE_BY_TOKEN,
        ),
    ]
    .map(|example| addresses.example(example))
    .into()
}

/// AI clients that send their user here to sign in.
pub(super) fn by_consent(addresses: &ServerAddresses<'_>) -> Vec<Example> {
    [
        (
            "Claude Code",
            "In a shell; then /mcp in Claude Code opens the browser.",
            "claude mcp add --transport http switchboard {mcp}",
        ),
        (
            "Claude, ChatGPT",
            "As the address of a custom connector; they must be able to reach it.",
            "{mcp}",
        ),
        (
            "Codex",
            "~/.codex/config.toml; then: codex mcp login switchboard",
            "[mcp_servers.switchboard]\nurl = \"{mcp}\"",
        ),
        ("Cursor", "~/.cursor/mcp.json", CURSOR_BY_CONSENT),
        ("VS Code", ".vscode/mcp.json", VS_CODE_BY_CONSENT),
        (
            "Claude Desktop",
            "claude_desktop_config.json; for all clients that can only start programs.",
            REMOTE_BY_CONSENT,
        ),
    ]
    .map(|example| addresses.example(example))
    .into()
}

const CURL: &str = r#"curl -s {base}/sms \
  -H "{header}: $SWITCHBOARD_TOKEN" \
  -H "Content-Type: application/json" \
  -d '{"to":"+447700900000","from":"Switchboard","message":"Hello"}'"#;

const PYTHON: &str = r#"import json, os, urllib.request

request = urllib.request.Request(
    "{base}/sms",
    data=json.dumps({
        "to": "+447700900000",
        "from": "Switchboard",
        "message": "Hello",
    }).encode(),
    headers={
        "{header}": os.environ["SWITCHBOARD_TOKEN"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer))  # the ID of the message"#;

const JAVASCRIPT: &str = r#"const answer = await fetch("{base}/sms", {
  method: "POST",
  headers: {
    "{header}": process.env.SWITCHBOARD_TOKEN,
    "Content-Type": "application/json",
  },
  body: JSON.stringify({
    to: "+447700900000",
    from: "Switchboard",
    message: "Hello",
  }),
});
if (!answer.ok) throw new Error((await answer.json()).message);
console.log(await answer.json()); // the ID of the message"#;

const CLAUDE_CODE_BY_TOKEN: &str = r#"claude mcp add --transport http switchboard {mcp} \
  --header "Authorization: Bearer $SWITCHBOARD_TOKEN""#;

const CODEX_BY_TOKEN: &str = r#"[mcp_servers.switchboard]
url = "{mcp}"
bearer_token_env_var = "SWITCHBOARD_TOKEN""#;

const CURSOR_BY_TOKEN: &str = r#"{
  "mcpServers": {
    "switchboard": {
      "url": "{mcp}",
      "headers": { "Authorization": "Bearer ${env:SWITCHBOARD_TOKEN}" }
    }
  }
}"#;

const WINDSURF_BY_TOKEN: &str = r#"{
  "mcpServers": {
    "switchboard": {
      "serverUrl": "{mcp}",
      "headers": { "Authorization": "Bearer ${env:SWITCHBOARD_TOKEN}" }
    }
  }
}"#;

const VS_CODE_BY_TOKEN: &str = r#"{
  "inputs": [
    { "type": "promptString", "id": "token", "description": "Switchboard token", "password": true }
  ],
  "servers": {
    "switchboard": {
      "type": "http",
      "url": "{mcp}",
      "headers": { "Authorization": "Bearer ${input:token}" }
    }
  }
}"#;

const REMOTE_BY_TOKEN: &str = r#"{
  "mcpServers": {
    "switchboard": {
      "command": "npx",
      "args": ["mcp-remote", "{mcp}", "--header", "Authorization:${AUTH}"],
      "env": { "AUTH": "Bearer TOKEN" }
    }
  }
}"#;

const CURSOR_BY_CONSENT: &str = r#"{
  "mcpServers": {
    "switchboard": { "url": "{mcp}" }
  }
}"#;

const VS_CODE_BY_CONSENT: &str = r#"{
  "servers": {
    "switchboard": { "type": "http", "url": "{mcp}" }
  }
}"#;

const REMOTE_BY_CONSENT: &str = r#"{
  "mcpServers": {
    "switchboard": { "command": "npx", "args": ["mcp-remote", "{mcp}"] }
  }
}"#;

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: ServerAddresses<'static> = ServerAddresses {
        base: "https://api.example.com",
        mcp: "https://mcp.example.com/mcp",
        header: "X-Service-Token",
    };

    #[test]
    fn every_example_has_addresses_and_no_placeholders() {
        let all = [
            programs(&ADDRESSES),
            by_token(&ADDRESSES),
            by_consent(&ADDRESSES),
        ];
        for example in all.iter().flatten() {
            let text = &example.text;
            assert!(text.contains(".example.com"), "{}: {text}", example.title);
            for gap in ["{base}", "{mcp}", "{header}"] {
                assert!(!text.contains(gap), "{}: {text}", example.title);
            }
        }
    }

    #[test]
    fn json_examples_are_valid() {
        let all = [by_token(&ADDRESSES), by_consent(&ADDRESSES)];
        let json = all.iter().flatten().filter(|e| e.text.starts_with("{\n"));
        assert_eq!(
            json.map(|example| {
                serde_json::from_str::<serde_json::Value>(&example.text)
                    .unwrap_or_else(|error| panic!("{}: {error}", example.title));
            })
            .count(),
            7
        );
    }
}
