//! The table of server options, for `py_asgi_options`.
//!
//! Thread: the caller's scheduler.

use pyloop::options::{Field, Row, table};
use rustler::types::atom::Atom;
use rustler::{Encoder, Env, NifResult, Term};

/// A map for each option of a node.
#[rustler::nif]
fn server_options(env: Env<'_>) -> NifResult<Vec<Term<'_>>> {
    let rows = table();
    let of_nodes = rows.iter().filter(|row| row.worlds.node);
    of_nodes.map(|row| shown(env, row)).collect()
}

fn shown<'a>(env: Env<'a>, row: &Row) -> NifResult<Term<'a>> {
    let fields = row.checked();
    let keys = fields.iter().map(|(name, _)| word(env, name));
    let values = fields.iter().map(|(_, field)| value(env, field));
    Term::map_from_term_arrays(
        env,
        &keys.collect::<NifResult<Vec<_>>>()?,
        &values.collect::<NifResult<Vec<_>>>()?,
    )
}

fn value<'a>(env: Env<'a>, field: &Field) -> NifResult<Term<'a>> {
    Ok(match field {
        Field::Word(name) => word(env, name)?,
        Field::Words(names) => {
            let words = names.iter().map(|name| word(env, name));
            words.collect::<NifResult<Vec<_>>>()?.encode(env)
        }
        Field::Text(text) => text.as_ref().encode(env),
        Field::Number(number) => number.encode(env),
        Field::Flag(flag) => flag.encode(env),
    })
}

fn word<'a>(env: Env<'a>, name: &str) -> NifResult<Term<'a>> {
    Ok(Atom::from_str(env, name)?.to_term(env))
}
