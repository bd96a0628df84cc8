//! Which buttons and images are accepted, and how they are stored.

use proptest::prelude::*;

use super::*;

fn action(url: &str, title: &str) -> Action {
    Action {
        url: CallbackUrl::parse(url).expect(url),
        title: ActionTitle::parse(title).expect(title),
    }
}

fn image(url: &str) -> ImageUrl {
    ImageUrl::parse(url).expect(url)
}

#[test]
fn a_label_is_one_short_line() {
    for (name, value, refusal) in [
        ("one character", "x".to_owned(), None),
        ("thirty code points", "ж".repeat(30), None),
        ("spaces around it", " Buy now ".to_owned(), None),
        (
            "empty",
            String::new(),
            Some("the label is empty; give 1 to 30 characters"),
        ),
        (
            "only white space",
            " \u{a0}\n".to_owned(),
            Some("the label is empty; give 1 to 30 characters"),
        ),
        (
            "thirty-one code points",
            "a".repeat(31),
            Some("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' has 31 characters; give 1 to 30"),
        ),
        (
            "two lines",
            "Buy\nnow".to_owned(),
            Some("'Buy\\u{a}now' holds control characters; a label is one line of text"),
        ),
    ] {
        let got = ActionTitle::parse(&value);
        let text = got.as_ref().err().map(ToString::to_string);
        assert_eq!(text.as_deref(), refusal, "{name}");
        assert_eq!(
            got.ok().as_ref().map(ActionTitle::as_str),
            refusal.is_none().then_some(value.as_str()),
            "{name}"
        );
    }
}

#[test]
fn an_images_name_says_its_kind() {
    for value in [
        "https://a.example/x.jpeg",
        "http://a.example/x.PNG",
        "http://a.example:8080/deep/er/x.Gif?size=1#top",
        "http://a.example/.png",
        "http://a.example/a.jpg/b.png",
        "http:\\\\a.example\\b\\x.png",
        "http://127.0.0.1/x%20y.gif",
        "http://a.example/ж.jpeg",
    ] {
        let got = ImageUrl::parse(value);
        assert_eq!(got.as_ref().map(ImageUrl::as_str), Ok(value), "{value}");
    }
}

#[test]
fn other_names_are_refused_with_what_to_do() {
    for (value, refusal) in [
        (
            "http://a.example/x.jpg",
            "the path ends in '.jpg'; name the image '.jpeg' instead",
        ),
        (
            "http://a.example/x.JPG?x.png",
            "the path ends in '.jpg'; name the image '.jpeg' instead",
        ),
        (
            "http://a.example/x.webp",
            "the path's last segment is 'x.webp'; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "http://a.example/x?y.png",
            "the path's last segment is 'x'; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "http://a.example/x#y.png",
            "the path's last segment is 'x'; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "http://a.example/x.png/",
            "the path's last segment is ''; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "http://x.png",
            "the path's last segment is ''; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "http://a.example/png",
            "the path's last segment is 'png'; it must end in '.jpeg', '.png' or '.gif'",
        ),
        (
            "x.png",
            "'x.png' is not a URL (relative URL without a base); give an http or https address",
        ),
        (
            "ftp://a.example/x.png",
            "'ftp://a.example/x.png' has the scheme 'ftp'; only http and https are called",
        ),
        (
            "http://me:secret@a.example/x.png",
            "the URL holds a user name or password before the host; leave it out",
        ),
    ] {
        let got = ImageUrl::parse(value).map_err(|error| error.to_string());
        assert_eq!(got.err().as_deref(), Some(refusal), "{value}");
    }
}

#[test]
fn it_is_stored_as_the_object_of_the_request() {
    let button = || action("https://a.example/?a=\"b\"", "Ja \"bitte\" \\ ж");
    for (name, interactive, json) in [
        ("nothing", Interactive::default(), "{}"),
        (
            "a button",
            Interactive {
                action: Some(button()),
                image: None,
            },
            r#"{"action":{"url":"https://a.example/?a=\"b\"","title":"Ja \"bitte\" \\ ж"}}"#,
        ),
        (
            "an image",
            Interactive {
                action: None,
                image: Some(image("http://a.example/x.png")),
            },
            r#"{"image":{"url":"http://a.example/x.png"}}"#,
        ),
        (
            "both",
            Interactive {
                action: Some(action("http://a.example", "Go")),
                image: Some(image("http://a.example/x.gif")),
            },
            r#"{"action":{"url":"http://a.example","title":"Go"},"image":{"url":"http://a.example/x.gif"}}"#,
        ),
    ] {
        assert_eq!(interactive.to_json(), json, "{name}");
        let read = Interactive::from_json(json.as_bytes()).expect(name);
        assert_eq!(read, interactive, "{name}");
        assert_eq!(read.is_empty(), name == "nothing");
    }
}

#[test]
fn invalid_stored_json_is_refused() {
    for (name, json) in [
        ("not JSON", "action"),
        (
            "a bare control character",
            "{\"image\":{\"url\":\"http://a.example/\u{1}.png\"}}",
        ),
        ("more behind it", "{} {}"),
        ("an unknown field", r#"{"video":{}}"#),
        (
            "an unknown field of the image",
            r#"{"image":{"url":"http://a.example/x.png","size":1}}"#,
        ),
        (
            "a button without a label",
            r#"{"action":{"url":"http://a.example"}}"#,
        ),
        (
            "a button without an address",
            r#"{"action":{"title":"Go"}}"#,
        ),
        (
            "a button with an empty label",
            r#"{"action":{"url":"http://a.example","title":""}}"#,
        ),
        (
            "a button that runs something",
            r#"{"action":{"url":"javascript:1","title":"Go"}}"#,
        ),
        (
            "an image of another kind",
            r#"{"image":{"url":"http://a.example/x.jpg"}}"#,
        ),
        (
            "a field twice",
            r#"{"image":{"url":"http://a.example/x.png"},"image":{"url":"http://a.example/y.png"}}"#,
        ),
    ] {
        assert!(Interactive::from_json(json.as_bytes()).is_err(), "{name}");
    }
    assert!(
        Interactive::from_json(b"{\"image\":{\"url\":\"http://a.example/\xff.png\"}}").is_err()
    );
}

fn some_action() -> impl Strategy<Value = Action> {
    let url = "https?://[a-z0-9]{1,9}/\\PC{0,20}"
        .prop_filter_map("a URL", |url| CallbackUrl::parse(&url).ok());
    let title = "\\PC{1,30}".prop_filter_map("a label", |title| ActionTitle::parse(&title).ok());
    (url, title).prop_map(|(url, title)| Action { url, title })
}

fn some_image() -> impl Strategy<Value = ImageUrl> {
    "https?://[a-z0-9]{1,9}/\\PC{0,20}\\.(jpeg|PNG|gif)(\\?\\PC{0,9})?"
        .prop_filter_map("an image's address", |url| ImageUrl::parse(&url).ok())
}

proptest! {
    #[test]
    fn stored_values_round_trip(
        action in proptest::option::of(some_action()),
        image in proptest::option::of(some_image()),
    ) {
        let interactive = Interactive { action, image };
        let read = Interactive::from_json(interactive.to_json().as_bytes());
        prop_assert_eq!(read.ok(), Some(interactive));
    }

    #[test]
    fn parsing_never_panics(value in "\\PC{0,60}|https?://\\PC{0,40}", bytes: Vec<u8>) {
        if let Ok(url) = ImageUrl::parse(&value) {
            prop_assert_eq!(url.as_str(), value.as_str());
            prop_assert_eq!(url.as_url().as_str(), value.as_str());
        }
        if let Ok(title) = ActionTitle::parse(&value) {
            prop_assert_eq!(title.as_str(), value.as_str());
        }
        if let Ok(read) = Interactive::from_json(&bytes) {
            prop_assert_eq!(Interactive::from_json(read.to_json().as_bytes()).ok(), Some(read));
        }
    }
}
