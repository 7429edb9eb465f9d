//! Copies the descriptors of Temporal's messages, by which histories are read from JSON and written to it.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH");
    let descriptors = env::var_os("DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH")
        .ok_or_else(|| io::Error::other("temporalio-protos gives no path of its descriptors"))?;
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::copy(descriptors, Path::new(&folder).join("descriptors.bin")).map(drop)
}
