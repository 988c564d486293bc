fn main() {
    // `Py_3_12`, `Py_GIL_DISABLED` and the like, as cfgs of this crate.
    pyo3_build_config::use_pyo3_cfgs();
    println!("cargo::rustc-check-cfg=cfg(Py_3_15)");
}
