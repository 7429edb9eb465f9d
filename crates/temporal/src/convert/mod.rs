//! Values, failures and options in Temporal's form and in ours. Both directions of a type are in one file, with the test that
//! what goes out comes back.

mod attributes;
mod failure;
mod options;
mod payload;
mod status;
mod time;

pub(crate) use attributes::{attributes_from_proto, attributes_to_proto};
pub(crate) use failure::{failure_from_proto, failure_to_proto, is_rejection, rejection_to_proto};
pub(crate) use options::{
    child_cancel_to_proto, id_reuse_to_proto, nexus_cancel_to_proto, parent_close_to_proto, priority_from_proto,
    priority_to_proto, retry_from_proto, retry_to_proto, task_cancel_to_proto,
};
pub(crate) use payload::{
    first_from_proto, headers_from_proto, headers_to_proto, map_from_proto, map_to_proto, payload_from_proto,
    payload_to_proto, payloads_from_proto, payloads_list, payloads_to_proto,
};
pub(crate) use status::{status_from_proto, status_to_word};
pub(crate) use time::{duration_from_proto, duration_to_proto, time_from_proto, time_to_proto};
