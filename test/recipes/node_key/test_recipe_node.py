"""In a copy of the tree, with the key of a node that `edit.sh` adds."""

import pytest

from erlang import dag


def fails():
    raise ValueError("as told")


def test_the_added_key_is_known():
    after = dag.cpu(name="after")(lambda a: ("after", a))
    report = dag.run([dag.cpu(name="a", made_up=True)(fails), after])
    assert report.results == {"after": ("after", None)}
    with pytest.raises(dag.NodeError):
        dag.run([dag.cpu(name="a", made_up=False)(fails), after])
