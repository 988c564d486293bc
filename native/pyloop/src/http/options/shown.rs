//! The table for Python.

use pyrt::module::Args;
use pyrt::{Attached, Obj, PyResult};

use super::{Field, table};

pub fn server_options<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let rows = table();
    let mut shown = Vec::with_capacity(rows.len());
    for row in &rows {
        let made = Obj::dict(py)?;
        for (name, field) in row.fields() {
            made.dict_set(&Obj::text(py, name)?, &value(py, &field)?)?;
        }
        shown.push(made);
    }
    Obj::tuple(py, shown.into_iter())
}

fn value<'py>(py: Attached<'py>, field: &Field) -> PyResult<'py, Obj<'py>> {
    match field {
        Field::Word(text) => Obj::text(py, text),
        Field::Text(text) => Obj::text(py, text),
        Field::Number(number) => Obj::int(py, *number),
        Field::Flag(flag) => Ok(Obj::bool(py, *flag)),
        Field::Words(words) => {
            let mut texts = Vec::with_capacity(words.len());
            for word in *words {
                texts.push(Obj::text(py, word)?);
            }
            Obj::tuple(py, texts.into_iter())
        }
    }
}
