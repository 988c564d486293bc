"""A package that goes on without its native part, as PyYAML and polars do."""

try:
    # Single-phase: CPython refuses it in sub-interpreters.
    import _testsinglephase as native

    class Loader:
        def load(self, number):
            return native.sum(number, 1)

except ImportError:
    pass


def add(one, two):
    return native.sum(one, two)
