//! Rows of saved texts.

use domain::template::TextTemplate;

use super::{Corrupt, SqlRow};

pub(crate) fn read_template<R: SqlRow>(row: &R) -> Result<TextTemplate, R::Error> {
    let (name, text): (String, String) = (row.column(0)?, row.column(1)?);
    let template = TextTemplate::new(&name, &text);
    template.map_err(|_| Corrupt("template").into())
}

pub(crate) fn sorted(mut templates: Vec<TextTemplate>) -> Vec<TextTemplate> {
    templates.sort_by(|one, other| one.name().cmp(other.name()));
    templates
}
