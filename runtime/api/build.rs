//! Compiles the protos: into Rust, and into the descriptors that JSON,
//! reflection and the OpenAPI document are made from.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const PROTOS: [&str; 6] = [
    "tidegate/v1/catalog.proto",
    "tidegate/v1/collections.proto",
    "tidegate/v1/error.proto",
    "tidegate/v1/status.proto",
    "tidegate/v1/task_control.proto",
    "tidegate/v1/tasks.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    let mut config = prost_build::Config::new();
    config.enable_type_names();
    config.btree_map(["."]);
    config.bytes(["."]);
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .build_transport(false)
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
