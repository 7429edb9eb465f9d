//! The suite that every store must pass, on a real server. `cargo xtask postgres` starts one and runs this.

mod server;

dacapo_store::conformance_tests!(server::Schema::new().store());
