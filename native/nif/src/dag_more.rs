//! A function of Python asks for more nodes (`erlang.dag.more`): they become nodes of the run, on its
//! pool and its loop.
//!
//! Thread: attached, where the function has ended: the pool's, or a loop's.

use dag::{Expansion, Graph, Node, Value};
use pyloop::graph::PyNode;
use pyloop::graph::describe::Body;
use pyloop::graph::more::More;
use pyrt::Obj;

use crate::dag_graph::{CONTEXT, Taken};
use crate::dag_python::{self, Called, Function, Running};
use crate::dag_redis;
use crate::dag_run::Context;
use crate::dag_value::{self, Needs};
use crate::failure::Failure;
use crate::interp::World;
use crate::job::Job;

/// The nodes that a value stands for; for most values none.
pub fn of<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    call: &Running,
    value: &Obj<'py>,
) -> Result<Option<Expansion>, Failure<'py>> {
    let native = world.interp.native(world.py);
    let Some(more) = native.and_then(|native| More::of(&native, value)) else {
        return Ok(None);
    };
    let Ok(context) = call.given.get::<Context>(0) else {
        return Err(Failure::Died);
    };
    let asked = Context {
        wanted: vec![more.place()],
        wanted_as: call.needs,
        ..context.clone()
    };
    let mut taken = Taken::default();
    more.nodes()
        .iter()
        .for_each(|node| taken.add(&node.described));
    let mut builder = Graph::builder().input(CONTEXT);
    more.names()
        .iter()
        .for_each(|name| builder.add_input(name.clone()));
    for (index, given) in more.nodes().iter().enumerate() {
        let own = taken.needs(&given.described.name);
        let node = node(given, index, own)?;
        let node = given.described.around(node, CONTEXT, dag_value::is_true);
        let default = given.default.as_ref().and_then(|kept| kept.get(world.py));
        builder.add(match default {
            Some(default) => {
                let needs = asked.needs(index, own);
                node.default(dag_value::made(world, job, default, needs)?)
            }
            None => node,
        });
    }
    let mut inputs = vec![(CONTEXT.to_owned(), Value::new(asked))];
    for (name, object) in more.inputs(world.py)? {
        let value = dag_value::made(world, job, object, taken.needs(name))?;
        inputs.push((name.to_owned(), value));
    }
    match builder.build() {
        Ok(graph) => Ok(Some(Expansion {
            graph,
            inputs,
            result: more.result().to_owned(),
        })),
        Err(error) => Err(Failure::BadArgument(error.to_string())),
    }
}

fn node<'py>(given: &PyNode, index: usize, needs: Needs) -> Result<Node, Failure<'py>> {
    let described = &given.described;
    Ok(match (&described.body, &given.callable) {
        (Body::Function { is_async }, Some(callable)) => {
            let function = Function {
                called: Called::Object(callable.clone()),
                index,
                inputs: described.inputs.len(),
                is_io: *is_async,
                needs,
            };
            dag_python::node(&described.name, function)
        }
        (Body::Redis(commands), _) => dag_redis::node(&described.name, commands.clone()),
        _ => return Err(Failure::BadArgument("a node without a function".into())),
    })
}
