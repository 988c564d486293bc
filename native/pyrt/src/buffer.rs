//! The buffer protocol: memory that a Python object lends, and memory lent to Python.
