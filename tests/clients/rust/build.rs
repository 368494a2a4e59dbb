//! Makes the client from the .proto files, with the compiler that a crate brings along.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: a build script has one thread.
    unsafe { env::set_var("PROTOC", protoc_bin_vendored::protoc_bin_path()?) };
    let proto = "../../../proto";
    let files = ["memoryranker/v1/ranker", "memoryranker/v1/memory", "memoryranker/v1/admin", "google/rpc/error_details"]
        .map(|name| format!("{proto}/{name}.proto"));
    tonic_prost_build::configure()
        .build_server(false)
        .file_descriptor_set_path(PathBuf::from(env::var("OUT_DIR")?).join("api.binpb"))
        .extern_path(".google.rpc", "::tonic_types::pb")
        .compile_protos(&files, &[proto.to_string()])?;
    Ok(())
}
