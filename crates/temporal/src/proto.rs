//! Short names for Temporal's messages.

pub(crate) use temporalio_common::protos::coresdk::activity_result as activity;
pub(crate) use temporalio_common::protos::coresdk::activity_task as task;
pub(crate) use temporalio_common::protos::coresdk::child_workflow as child;
pub(crate) use temporalio_common::protos::coresdk::common as sdk_common;
pub(crate) use temporalio_common::protos::coresdk::nexus;
pub(crate) use temporalio_common::protos::coresdk::workflow_activation as activation;
pub(crate) use temporalio_common::protos::coresdk::workflow_commands as commands;
pub(crate) use temporalio_common::protos::coresdk::workflow_completion as completion;
pub(crate) use temporalio_common::protos::temporal::api::common::v1 as common;
pub(crate) use temporalio_common::protos::temporal::api::enums::v1 as enums;
pub(crate) use temporalio_common::protos::temporal::api::errordetails::v1 as errors;
pub(crate) use temporalio_common::protos::temporal::api::failure::v1 as failure;
pub(crate) use temporalio_common::protos::temporal::api::history::v1 as history;
pub(crate) use temporalio_common::protos::temporal::api::query::v1 as query;
pub(crate) use temporalio_common::protos::temporal::api::sdk::v1 as sdk;
pub(crate) use temporalio_common::protos::temporal::api::taskqueue::v1 as taskqueue;
pub(crate) use temporalio_common::protos::temporal::api::update::v1 as update;
pub(crate) use temporalio_common::protos::temporal::api::workflow::v1 as workflow;
pub(crate) use temporalio_common::protos::temporal::api::workflowservice::v1 as service;
