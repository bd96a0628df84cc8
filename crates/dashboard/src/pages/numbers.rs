//! Correcting a list of numbers, like `POST /numberCorrection`.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::Country;
use engine::catalogue::prices::push_cell;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::{count, shorten};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::{Member, Posted};

/// More would make the page too long.
const MAX_NUMBERS: usize = 2000;
/// Longer than any phone number.
const MAX_SHOWN_CHARS: usize = 64;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route("/dashboard/numbers", get(ask).post(correct))
}

#[derive(Template)]
#[template(path = "numbers.html")]
struct NumbersPage {
    frame: Frame,
    typed: FormInput,
    countries: Vec<Country>,
    max_numbers: String,
    max_by_api: String,
    result: Option<Corrected>,
}

struct Corrected {
    rows: Vec<NumberRow>,
    right: String,
    wrong: String,
    csv: String,
}

struct NumberRow {
    typed: String,
    e164: Option<String>,
    kind: &'static str,
    country: Option<String>,
    problem: Option<String>,
}

async fn ask(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    page(&dashboard, member.frame(), FormInput::default(), None)
}

fn page(
    dashboard: &Dashboard,
    frame: Frame,
    typed: FormInput,
    result: Option<Corrected>,
) -> Response {
    let status = if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let mut countries: Vec<Country> = Country::all().collect();
    countries.sort_by_key(|country| country.short_name());
    let page = NumbersPage {
        frame,
        typed,
        countries,
        max_numbers: count(MAX_NUMBERS as u64),
        max_by_api: count(dashboard.settings.max_api_corrections as u64),
        result,
    };
    show_page(status, &page)
}

/// Changes nothing, so the response shows the result instead of redirecting.
async fn correct(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut typed = FormInput::from_form(&form, &["numbers", "country"]);
    let country = match typed.given("country").map(Country::parse).transpose() {
        Ok(country) => country,
        Err(unknown) => {
            typed.refuse("country", unknown);
            None
        }
    };
    let numbers: Vec<String> = lines(typed.text("numbers")).collect();
    if numbers.is_empty() {
        typed.refuse("numbers", "Paste numbers, one per line");
    } else if numbers.len() > MAX_NUMBERS {
        let (given, most) = (count(numbers.len() as u64), count(MAX_NUMBERS as u64));
        typed.refuse(
            "numbers",
            format!("{given} are more than {most}; split the list"),
        );
    }
    if typed.is_refused() {
        return Ok(page(&dashboard, member.frame(), typed, None));
    }
    let work = dashboard
        .corrections
        .run(move || correct_all(&numbers, country));
    // `None` means a panic, which is logged elsewhere.
    let corrected = work.await.ok_or(Failure::Form)?;
    Ok(page(&dashboard, member.frame(), typed, Some(corrected)))
}

/// Numbers are separated by line breaks, commas or semicolons.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let lines = text.split(['\n', '\r', ';', ',']).map(str::trim);
    lines.filter(|line| !line.is_empty()).map(str::to_owned)
}

fn correct_all(numbers: &[String], country: Option<Country>) -> Corrected {
    let rows: Vec<NumberRow> = numbers
        .iter()
        .map(|number| NumberRow::new(number, country))
        .collect();
    let mut csv = "Number,NumberE164,NumberType,CountryIso,Error\r\n".to_owned();
    for (number, row) in numbers.iter().zip(&rows) {
        push_row(&mut csv, number, row);
    }
    let wrong = rows.iter().filter(|row| row.problem.is_some()).count();
    Corrected {
        right: count((rows.len() - wrong) as u64),
        wrong: count(wrong as u64),
        rows,
        csv,
    }
}

impl NumberRow {
    fn new(number: &str, country: Option<Country>) -> Self {
        let typed = shorten(number, MAX_SHOWN_CHARS);
        match numbering::examine(number, country) {
            Ok(corrected) => Self {
                typed,
                e164: Some(corrected.number.to_string()),
                kind: corrected.kind.name(),
                country: corrected.country.map(|country| country.to_string()),
                problem: None,
            },
            Err(error) => Self {
                typed,
                e164: None,
                kind: numbering::NumberType::Unknown.name(),
                country: country.map(|country| country.to_string()),
                problem: Some(format!("{error}.")),
            },
        }
    }
}

fn push_row(csv: &mut String, number: &str, row: &NumberRow) {
    push_cell(csv, number);
    csv.push(',');
    // Only digits follow the plus sign, so this cell cannot be a formula.
    csv.push_str(row.e164.as_deref().unwrap_or_default());
    let country = row.country.as_deref().unwrap_or_default();
    let error = row.problem.as_deref().unwrap_or_default();
    for cell in [row.kind, country, error] {
        csv.push(',');
        push_cell(csv, cell);
    }
    csv.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_numbers_are_split() {
        let numbers: Vec<String> =
            lines("29 111 111\r\n\r\n +371 29111112 ;29111113,x\n").collect();
        assert_eq!(numbers, ["29 111 111", "+371 29111112", "29111113", "x"]);
    }

    #[test]
    fn the_csv_has_a_row_for_each_and_no_formula() {
        let numbers = ["29 111 111", "=HYPERLINK(\"x\")"].map(str::to_owned);
        let corrected = correct_all(&numbers, Country::parse("LV").ok());
        assert_eq!(
            (corrected.right.as_str(), corrected.wrong.as_str()),
            ("1", "1")
        );
        let mut rows = corrected.csv.split("\r\n").skip(1);
        assert_eq!(rows.next(), Some("29 111 111,+37129111111,mobile,LV,"));
        let hostile = rows.next().expect("a second row");
        assert!(hostile.starts_with("\"'=HYPERLINK("), "{hostile}");
    }
}
