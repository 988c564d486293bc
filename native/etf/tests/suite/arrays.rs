//! numpy, where it is installed. Elsewhere these tests say so and prove nothing.

use etf::{NoNode, Value};

use crate::harness::{decode, encoded, eval, python, shown, there_and_back, x};

fn numpy() -> bool {
    let found = python(|bound| pyrt::call::import_c(bound.py(), c"numpy").is_ok());
    if !found {
        eprintln!("numpy is not installed: not tested");
    }
    found
}

#[test]
fn an_array_comes_back_as_the_same_array() {
    if !numpy() {
        return;
    }
    for array in [
        "np.arange(6, dtype='i4').reshape(2, 3)",
        "np.arange(6.0).reshape(2, 3).T",
        "np.arange(10)[::2]",
        "np.array(5.5)",
        "np.zeros((0, 3))",
        "np.array([True, False])",
        "np.array(['2024-01-02'], dtype='M8[D]')",
        "np.array(['ab', 'c'])",
        "np.arange(3, dtype='>f8')",
        "np.array([1j])",
    ] {
        python(|bound| {
            let py = bound.py();
            let array = x(py, &format!("import numpy as np\nx = {array}"));
            let bytes = crate::harness::encode(bound, &array).unwrap();
            let back = decode(bound, &bytes).unwrap();
            let same = x(
                py,
                "import numpy as np\n\
                 def x(a, b): return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())",
            );
            assert_eq!(same.call(&[&array, &back]).unwrap().as_bool(), Some(true));
        });
    }
}

#[test]
fn an_array_is_a_tuple_of_dtype_shape_and_binary() {
    if !numpy() {
        return;
    }
    let bytes = encoded("import numpy as np; x = np.array([[1, 2]], dtype='u1')").unwrap();
    let expected = [
        &[104, 4, 119, 7][..],
        b"ndarray",
        &[109, 0, 0, 0, 3],
        b"|u1",
        &[108, 0, 0, 0, 2, 97, 1, 97, 2, 106, 109, 0, 0, 0, 2, 1, 2],
    ];
    assert_eq!(bytes, expected.concat());
    // What Erlang writes: an atom, a shape that is a string.
    let theirs = [
        &[104, 4, 119, 7][..],
        b"ndarray",
        &[119, 5],
        b"uint8",
        &[107, 0, 2, 1, 2, 109, 0, 0, 0, 2, 1, 2],
    ];
    assert_eq!(shown(&theirs.concat()), "array([[1, 2]], dtype=uint8)");
}

#[test]
fn scalars_are_numbers() {
    if !numpy() {
        return;
    }
    let source = "import numpy as np\nx = [np.int8(-5), np.uint64(2**64 - 1), np.float32(0.5), \
        np.float64(1.5), np.bool_(True), np.str_('a'), np.bytes_(b'\\xff'), np.float64('nan')]";
    let expected = "[-5, 18446744073709551615, 0.5, 1.5, True, 'a', b'\\xff', 'nan']";
    assert_eq!(there_and_back(source), expected);
    for source in ["np.complex64(1j)", "np.longdouble(1)"] {
        let error = encoded(&format!("import numpy as np; x = {source}")).unwrap_err();
        assert!(error.starts_with("not convertible"), "{source}: {error}");
    }
}

#[test]
fn arrays_that_would_lose_something_are_refused() {
    if !numpy() {
        return;
    }
    for array in [
        "np.array([object()])",
        "np.zeros(2, dtype=[('a', 'i4'), ('b', 'f4')])",
        "np.ma.array([1, 2], mask=[0, 1])",
    ] {
        let error = encoded(&format!("import numpy as np; x = {array}")).unwrap_err();
        assert!(error.starts_with("not convertible"), "{array}: {error}");
    }
}

#[test]
fn bad_array_tuples_are_errors() {
    if !numpy() {
        return;
    }
    let tuple = |dtype: &[u8], shape: &[u8], data: &[u8]| {
        shown(&[&[104, 4, 119, 7][..], b"ndarray", dtype, shape, data].concat())
    };
    let (u1, data) = (
        &[109, 0, 0, 0, 2, b'u', b'1'][..],
        &[109, 0, 0, 0, 2, 1, 2][..],
    );
    assert_eq!(
        tuple(&[109, 0, 0, 0, 1, b'O'], &[107, 0, 1, 2], data),
        "bad argument: an ndarray of Python objects cannot be made from bytes"
    );
    assert!(tuple(&[119, 2, b'?', b'?'], &[107, 0, 1, 2], data).starts_with("TypeError"));
    assert!(tuple(u1, &[107, 0, 1, 3], data).starts_with("ValueError"));
    assert!(tuple(u1, &[107, 0, 1, 2], &[97, 1]).starts_with("bad argument: an ndarray"));
    assert!(tuple(u1, &[107, 0, 1, 3], &[109, 0, 0, 0, 0]).starts_with("bad argument: an ndarray"));
}

#[test]
fn a_large_array_that_nobody_else_has_is_lent_and_another_one_copied() {
    if !numpy() {
        return;
    }
    python(|bound| {
        let py = bound.py();
        let make = x(
            py,
            "import numpy as np\ndef x(): return np.arange(100000, dtype='i4')",
        );
        let address = x(py, "def x(a): return a.__array_interface__['data'][0]");
        let lend =
            |array: pyrt::Obj<'_>| match etf::into_value(bound, &NoNode, array, &mut Vec::new()) {
                Ok(Value::Array { dtype, shape, data }) => {
                    assert_eq!((dtype.as_str(), shape.as_slice()), ("<i4", &[100_000][..]));
                    assert_eq!(data.as_slice()[4..8], 1i32.to_le_bytes());
                    data.as_slice().as_ptr() as i64
                }
                _ => panic!("not an array"),
            };
        let array = make.call(&[]).unwrap();
        let place = address.call(&[&array]).unwrap().as_i64().unwrap().unwrap();
        assert_eq!(lend(array), place, "lent");
        let array = make.call(&[]).unwrap();
        let place = address.call(&[&array]).unwrap().as_i64().unwrap().unwrap();
        assert_ne!(
            lend(array.clone()),
            place,
            "copied: somebody could write to it"
        );
        let view = array
            .call_method(c"reshape", &[&eval(py, "(100000,)")])
            .unwrap();
        drop(array);
        assert_ne!(lend(view), place, "copied: not its own memory");
    });
}

#[test]
fn an_array_without_its_data_allocates_nothing() {
    if !numpy() {
        return;
    }
    // 10^15 items: more than any machine has, so to allocate them first would be a MemoryError.
    let shape = [
        108, 0, 0, 0, 1, 110, 7, 0, 0x00, 0x80, 0xc6, 0xa4, 0x7e, 0x8d, 0x03, 106,
    ];
    for dtype in [&b"O"[..], b"f8", b"S0", b"O,i4"] {
        let name = [&[109, 0, 0, 0, dtype.len() as u8][..], dtype].concat();
        let head = [&[104, 4, 119, 7][..], b"ndarray"].concat();
        let error = shown(&[&head[..], &name, &shape, &[109, 0, 0, 0, 0]].concat());
        assert!(error.starts_with("bad argument: an ndarray"), "{error}");
    }
}

#[test]
fn the_parts_of_an_array_are_a_name_and_sizes() {
    if !numpy() {
        return;
    }
    let data = [109, 0, 0, 0, 0];
    let tuple = |dtype: &[u8], shape: &[u8]| {
        shown(&[&[104, 4, 119, 7][..], b"ndarray", dtype, shape, &data].concat())
    };
    let (u1, none) = (&[109, 0, 0, 0, 2, b'u', b'1'][..], &[107, 0, 1, 0][..]);
    assert_eq!(tuple(u1, none), "array([], dtype=uint8)");
    assert!(tuple(&[106], none).starts_with("bad argument: an ndarray"));
    assert!(tuple(u1, &[97, 0]).starts_with("bad argument: an ndarray"));
    assert!(tuple(u1, &[108, 0, 0, 0, 1, 106, 106]).starts_with("bad argument: an ndarray"));
}

#[test]
fn a_large_array_that_somebody_can_still_reach_is_copied() {
    if !numpy() {
        return;
    }
    python(|bound| {
        let py = bound.py();
        let lent =
            |array: pyrt::Obj<'_>| match etf::into_value(bound, &NoNode, array, &mut Vec::new()) {
                Ok(Value::Array { data, .. }) => data,
                _ => panic!("not an array"),
            };
        let make = x(
            py,
            "import numpy as np, weakref\nkept = []\ndef x():\n  a = np.zeros(100000, 'u1')\n  \
             kept.append(weakref.ref(a))\n  def change():\n    b = kept[0]()\n    \
             if b is not None: b[:] = 7\n  x.change = change\n  return a",
        );
        let data = lent(make.call(&[]).unwrap());
        make.getattr_c(c"change").unwrap().call(&[]).unwrap();
        assert!(
            data.as_slice().iter().all(|&byte| byte == 0),
            "a weak reference"
        );
        // Memory that the array neither owns nor names the owner of, as C libraries hand it out.
        let make = x(
            py,
            "import ctypes, numpy as np\nblock = (ctypes.c_ubyte * 100000)()\n\
             api = ctypes.pythonapi\napi.PyMemoryView_FromMemory.restype = ctypes.py_object\n\
             api.PyMemoryView_FromMemory.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]\n\
             def x():\n  a = np.frombuffer(api.PyMemoryView_FromMemory(\
             ctypes.addressof(block), 100000, 0x200), 'u1')\n  return a",
        );
        let array = make.call(&[]).unwrap();
        let address = x(py, "def x(a): return a.__array_interface__['data'][0]");
        let place = address.call(&[&array]).unwrap().as_i64().unwrap().unwrap();
        assert_ne!(lent(array).as_slice().as_ptr() as i64, place, "not its own");
    });
}
