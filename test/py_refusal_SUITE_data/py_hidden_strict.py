"""A package that says in its own words that it can't do without its native part."""

try:
    import _testsinglephase as native
except ImportError:
    native = None

if native is None:
    raise ImportError("py_hidden_strict: the C extension is not built")


def add(one, two):
    return native.sum(one, two)
