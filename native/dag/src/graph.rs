//! A graph that can be run: every input known, no name twice, no cycle.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::node::Node;
use crate::ready::Rank;
use crate::value::Value;

/// Where a node takes an input from.
#[derive(Clone, Copy)]
pub(crate) enum From {
    Input(usize),
    Node(usize),
}

pub(crate) struct Edge {
    pub from: From,
    pub maybe: bool,
}

pub(crate) struct Vertex {
    pub node: Node,
    pub edges: Vec<Edge>,
    pub children: Vec<u32>,
    /// How many of the edges come from nodes.
    pub waits: usize,
    /// How long the longest path is that begins with it.
    pub rank: Rank,
}

pub(crate) struct Plan {
    pub inputs: Vec<String>,
    pub vertices: Vec<Vertex>,
    /// What waits for nothing, the most urgent first.
    pub starts: Vec<u32>,
    /// Of inputs and nodes, by their names.
    places: HashMap<Arc<str>, From>,
}

impl Plan {
    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        match self.places.get(name) {
            Some(From::Node(index)) => Some(*index),
            _ => None,
        }
    }
}

/// Built once, run many times, shared by its clones.
#[derive(Clone)]
pub struct Graph(pub(crate) Arc<Plan>);

impl Graph {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The names of its nodes, in the order they were added.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.vertices.iter().map(|vertex| &*vertex.node.name)
    }

    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.0.inputs.iter().map(String::as_str)
    }

    /// The nodes that no other one takes as an input, by their place.
    pub fn leaves(&self) -> impl Iterator<Item = usize> {
        let all = self.0.vertices.iter().enumerate();
        all.filter(|(_, vertex)| vertex.children.is_empty())
            .map(|(index, _)| index)
    }

    /// Gives each input its value, for one run.
    pub fn bind<S: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (S, Value)>,
    ) -> Result<Bound, Error> {
        let plan = &self.0;
        let mut values: Vec<Option<Value>> = vec![None; plan.inputs.len()];
        let mut unused = None;
        for (name, value) in inputs {
            match plan.places.get(name.as_ref()) {
                Some(From::Input(place)) => values[*place] = Some(value),
                _ => unused = unused.or(Some(name.as_ref().to_owned())),
            }
        }
        if let Some(place) = values.iter().position(Option::is_none) {
            return Err(Error::MissingInput(plan.inputs[place].clone()));
        }
        match unused {
            Some(name) => Err(Error::UnusedInput(name)),
            None => Ok(Bound {
                graph: self.clone(),
                inputs: values.into_iter().flatten().collect(),
            }),
        }
    }
}

/// A graph with the values of its inputs.
pub struct Bound {
    pub(crate) graph: Graph,
    /// In the order of the graph.
    pub(crate) inputs: Vec<Value>,
}

/// Collects inputs and nodes in any order; `build` checks them.
#[derive(Default)]
pub struct Builder {
    inputs: Vec<String>,
    nodes: Vec<Node>,
}

impl Builder {
    pub fn input(mut self, name: impl Into<String>) -> Self {
        self.add_input(name);
        self
    }

    pub fn node(mut self, node: Node) -> Self {
        self.add(node);
        self
    }

    pub fn add_input(&mut self, name: impl Into<String>) {
        self.inputs.push(name.into());
    }

    pub fn add(&mut self, node: Node) {
        self.nodes.push(node);
    }

    pub fn build(self) -> Result<Graph, Error> {
        let mut places: HashMap<Arc<str>, From> = HashMap::new();
        let inputs = self.inputs.iter().map(|name| Arc::from(name.as_str()));
        let inputs = inputs.enumerate().map(|(n, name)| (name, From::Input(n)));
        let nodes = self.nodes.iter().map(|node| node.name.clone());
        let nodes = nodes.enumerate().map(|(n, name)| (name, From::Node(n)));
        for (name, from) in inputs.chain(nodes) {
            if places.insert(name.clone(), from).is_some() {
                return Err(Error::Duplicate(name.to_string()));
            }
        }
        let mut vertices = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            vertices.push(vertex(node, &places)?);
        }
        connect(&mut vertices);
        let order = in_order(&vertices).map_err(Error::Cycle)?;
        rank(&mut vertices, &order);
        let mut starts: Vec<u32> = (0..vertices.len() as u32).collect();
        starts.retain(|index| vertices[*index as usize].waits == 0);
        urgent_first(&mut starts, &vertices);
        Ok(Graph(Arc::new(Plan {
            inputs: self.inputs,
            vertices,
            starts,
            places,
        })))
    }
}

fn vertex(node: Node, places: &HashMap<Arc<str>, From>) -> Result<Vertex, Error> {
    let mut edges = Vec::with_capacity(node.wishes.len());
    for wish in &node.wishes {
        let Some(from) = places.get(wish.name.as_str()) else {
            return Err(Error::UnknownInput {
                node: node.name.to_string(),
                input: wish.name.clone(),
            });
        };
        edges.push(Edge {
            from: *from,
            maybe: wish.maybe,
        });
    }
    let waits = edges
        .iter()
        .filter(|edge| matches!(edge.from, From::Node(_)));
    let waits = waits.count();
    Ok(Vertex {
        node,
        edges,
        children: Vec::new(),
        waits,
        rank: Rank::default(),
    })
}

fn connect(vertices: &mut [Vertex]) {
    for child in 0..vertices.len() {
        for edge in 0..vertices[child].edges.len() {
            if let From::Node(parent) = vertices[child].edges[edge].from {
                vertices[parent].children.push(child as u32);
            }
        }
    }
}

/// Each node after those it waits for; or the nodes of a circle. Counts down as a run would: whoever is left
/// waits for himself.
fn in_order(vertices: &[Vertex]) -> Result<Vec<usize>, Vec<String>> {
    let mut waits: Vec<usize> = vertices.iter().map(|vertex| vertex.waits).collect();
    let mut order: Vec<usize> = (0..vertices.len()).filter(|n| waits[*n] == 0).collect();
    let mut done = 0;
    while let Some(&n) = order.get(done) {
        done += 1;
        for child in &vertices[n].children {
            let child = *child as usize;
            waits[child] -= 1;
            if waits[child] == 0 {
                order.push(child);
            }
        }
    }
    match cycle(vertices, &waits) {
        Some(path) => Err(path),
        None => Ok(order),
    }
}

/// The length of the longest path that begins with each node; its children in the order of theirs.
fn rank(vertices: &mut [Vertex], order: &[usize]) {
    for &n in order.iter().rev() {
        let mut children = std::mem::take(&mut vertices[n].children);
        urgent_first(&mut children, vertices);
        let longest = children.first().map(|child| vertices[*child as usize].rank);
        let behind = longest.unwrap_or_default().length();
        vertices[n].rank = Rank::new(vertices[n].node.policy.weight + behind);
        vertices[n].children = children;
    }
}

fn urgent_first(nodes: &mut [u32], vertices: &[Vertex]) {
    nodes.sort_by_key(|n| std::cmp::Reverse(vertices[*n as usize].rank));
}

/// Walking back among those that wait still must come round.
fn cycle(vertices: &[Vertex], waits: &[usize]) -> Option<Vec<String>> {
    let mut at = waits.iter().position(|waits| *waits > 0)?;
    let mut path = Vec::new();
    let mut seen = vec![false; vertices.len()];
    while !std::mem::replace(&mut seen[at], true) {
        path.push(at);
        let parents = vertices[at]
            .edges
            .iter()
            .filter_map(|edge| match edge.from {
                From::Node(parent) if waits[parent] > 0 => Some(parent),
                _ => None,
            });
        at = parents.min()?;
    }
    let start = path.iter().position(|n| *n == at)?;
    // Walked from child to parent; shown the way the data goes.
    let around = path[start..].iter().rev();
    let mut names: Vec<String> = around.map(|n| vertices[*n].node.name.to_string()).collect();
    names.extend(names.first().cloned());
    Some(names)
}
