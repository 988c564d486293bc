//! A function of Python asks for more nodes (`erlang.dag.more`): they become nodes of the run, on its
//! pool and its loop.
//!
//! Thread: attached, where the function has ended: the pool's, or a loop's.

use dag::{Expansion, Graph, Node, Value};
use pyloop::graph::line::{Body, Line};
use pyloop::graph::more::More;
use pyrt::Obj;

use crate::dag_graph::{CONTEXT, Taken};
use crate::dag_python::{self, Called, Function, NodeCall};
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
    call: &NodeCall,
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
    for line in more.lines() {
        taken.add(&line.shape, matches!(line.body, Body::Python { .. }));
    }
    let mut builder = Graph::builder().input(CONTEXT);
    more.names()
        .iter()
        .for_each(|name| builder.add_input(name.clone()));
    for (index, line) in more.lines().iter().enumerate() {
        let own = taken.needs(&line.name);
        let node = line
            .shape
            .give(node(line, index, own), CONTEXT, dag_value::is_true);
        builder.add(
            match line.default.as_ref().and_then(|kept| kept.get(world.py)) {
                Some(default) => {
                    let needs = asked.needs(index, own);
                    node.default(dag_value::made(world, job, default, needs)?)
                }
                None => node,
            },
        );
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

fn node(line: &Line, index: usize, needs: Needs) -> Node {
    match &line.body {
        Body::Python { callable, is_async } => {
            let function = Function {
                called: Called::Object(callable.clone()),
                index,
                inputs: line.shape.inputs.len(),
                is_io: *is_async,
                needs,
            };
            dag_python::node(&line.name, function)
        }
        Body::Redis(commands) => dag_redis::node(&line.name, commands.clone()),
    }
}
