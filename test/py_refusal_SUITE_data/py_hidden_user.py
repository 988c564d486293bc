"""Code that uses such a package, and has mistakes of its own."""

import py_hidden

import erlang


def load(number):
    return py_hidden.Loader().load(number)


def wrong(pid):
    erlang.send(pid, "ran")
    return nothing_of_this_name  # noqa: F821
