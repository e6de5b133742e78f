//! The generated half of the protocol; nothing else lives here.

wit_bindgen::generate!({
    path: "../wit",
    world: "tidegate:connector/materialize",
    generate_all,
    pub_export_macro: true,
    default_bindings_module: "tidegate_boilerplate::bindings",
});
