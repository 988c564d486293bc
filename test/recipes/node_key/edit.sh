# shellcheck shell=sh
# shellcheck disable=SC2034 # for run.sh
heading="How to add a key of a graph node"

after native/pyloop/src/graph/key.rs '^    \("weight", ' <<'RUST'
    ("made_up", |node, given| Ok(node.policy.made_up = given.value.is_atom("true"))),
RUST

after native/dag/src/node.rs '^    pub weight: f64,' <<'RUST'
    pub made_up: bool,
RUST

after native/dag/src/node.rs '^            weight: 1.0,' <<'RUST'
            made_up: false,
RUST

after native/dag/src/node.rs '^        self.policy = policy;' <<'RUST'
        if self.policy.made_up {
            self.default = Some(Value::absent());
        }
RUST

after docs/dag.md '^\| .weight. ' <<'MARKDOWN'
| `made_up` | `true`: nothing is its value if it fails |
MARKDOWN
