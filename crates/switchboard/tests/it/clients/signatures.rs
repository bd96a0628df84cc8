//! The code of `docs/SIGNATURES.md`, in the languages that Debian has.

use std::path::Path;
use std::process::Command;

use testkit::temp_dir;

use super::code_blocks;
use crate::deliver::reports::signature;
use crate::rest::service::in_seconds;

const PAGE: &str = include_str!("../../../../../docs/SIGNATURES.md");

/// How the code of a language is run: it prints `true` or `false` for the arguments SECRET, ID, TIMESTAMP, SIGNATURES
/// and BODY.
struct Language {
    /// The name of the code block.
    name: &'static str,
    /// The program, and the arguments before those of the call.
    run: &'static [&'static str],
    file: &'static str,
    /// Appended to the code.
    call: &'static str,
    /// Another file, if the call cannot be in the same one.
    other: Option<(&'static str, &'static str)>,
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "python",
        run: &["python3", "signed.py"],
        file: "signed.py",
        call: "
import sys
print('true' if is_signed(*sys.argv[1:5], sys.argv[5].encode()) else 'false')
",
        other: None,
    },
    Language {
        name: "js",
        run: &["node", "signed.mjs"],
        file: "signed.mjs",
        call: "console.log(isSigned(...process.argv.slice(2)));",
        other: None,
    },
    Language {
        name: "go",
        run: &["go", "run", "signed.go", "main.go"],
        file: "signed.go",
        call: "",
        other: Some((
            "main.go",
            "package main
import (\"fmt\"; \"os\")
func main() { a := os.Args; fmt.Println(isSigned(a[1], a[2], a[3], a[4], []byte(a[5]))) }
",
        )),
    },
    Language {
        name: "php",
        run: &["php", "signed.php"],
        file: "signed.php",
        call: "echo is_signed(...array_slice($argv, 1)) ? 'true' : 'false';",
        other: None,
    },
    Language {
        name: "java",
        run: &["java", "Signatures.java"],
        file: "Signatures.java",
        // It replaces the end of the class.
        call: "
    public static void main(String[] a) throws Exception {
        System.out.println(isSigned(a[0], a[1], a[2], a[3], a[4].getBytes(StandardCharsets.UTF_8)));
    }
}
",
        other: None,
    },
    Language {
        name: "ruby",
        run: &["ruby", "signed.rb"],
        file: "signed.rb",
        call: "puts signed?(*ARGV)",
        other: None,
    },
];

fn code_of(language: &str) -> &'static str {
    let blocks = code_blocks(PAGE, language);
    blocks.first().unwrap_or_else(|| panic!("no {language}"))
}

impl Language {
    fn write(&self, folder: &Path) {
        let code = code_of(self.name);
        let code = match self.name {
            "java" => code
                .trim_end()
                .strip_suffix('}')
                .expect("the end of the class"),
            _ => code,
        };
        let text = format!("{code}\n{}", self.call);
        std::fs::write(folder.join(self.file), text).expect("a file");
        if let Some((file, text)) = self.other {
            std::fs::write(folder.join(file), text).expect("a file");
        }
    }

    fn run(&self, folder: &Path, arguments: &[&str; 5]) -> bool {
        let mut command = Command::new(self.run[0]);
        let output = command
            .args(&self.run[1..])
            .args(arguments)
            .current_dir(folder)
            .output()
            .unwrap_or_else(|error| {
                panic!("{} is missing, see scripts/languages: {error}", self.name)
            });
        match String::from_utf8_lossy(&output.stdout).trim() {
            "true" => true,
            "false" => false,
            _ => panic!("{}: {output:?}", self.name),
        }
    }
}

#[test]
fn the_code_of_the_documentation_verifies_signatures() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let body = r#"{"id":"10001","message":"Grüße"}"#;
    for language in LANGUAGES {
        let folder = temp_dir("signatures").expect("a folder");
        language.write(folder.path());
        let (now, old) = (in_seconds(0).as_second(), in_seconds(-400).as_second());
        let (now, old) = (now.to_string(), old.to_string());
        let digits = "9".repeat(5000);
        let sign = |secret: &str, time: &str| signature(secret, &format!("msg_1.{time}.{body}"));
        let good = sign(secret, &now);
        let both = format!("{} {good}", sign(other, &now));
        let cases = [
            ("signed", &now, good.clone(), body, true),
            ("while the secret is replaced", &now, both, body, true),
            ("another secret", &now, sign(other, &now), body, false),
            ("another body", &now, good.clone(), "{}", false),
            ("too old", &old, sign(secret, &old), body, false),
            (
                "too many digits",
                &digits,
                sign(secret, &digits),
                body,
                false,
            ),
            (
                "another version",
                &now,
                good.replace("v1,", "v2,"),
                body,
                false,
            ),
        ];
        for (case, time, signatures, body, expected) in &cases {
            let arguments = [secret, "msg_1", time, signatures, body];
            let actual = language.run(folder.path(), &arguments);
            assert_eq!(actual, *expected, "{}: {case}", language.name);
        }
    }
    // Debian has no .NET, so this one is not run.
    assert!(code_of("csharp").contains("FixedTimeEquals"));
}
