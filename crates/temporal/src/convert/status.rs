//! The status of runs.

use dacapo_client::Status;

use crate::proto::enums::WorkflowExecutionStatus;

pub(crate) fn status_from_proto(status: WorkflowExecutionStatus) -> Status {
    match status {
        WorkflowExecutionStatus::Running | WorkflowExecutionStatus::Paused => Status::Open,
        WorkflowExecutionStatus::Completed => Status::Completed,
        WorkflowExecutionStatus::Failed => Status::Failed,
        WorkflowExecutionStatus::Canceled => Status::Cancelled,
        WorkflowExecutionStatus::Terminated => Status::Terminated,
        WorkflowExecutionStatus::ContinuedAsNew => Status::ContinuedAsNew,
        WorkflowExecutionStatus::TimedOut => Status::TimedOut,
        WorkflowExecutionStatus::Unspecified => Status::Unknown,
    }
}

/// The word for a status in the language of the server's lists.
pub(crate) const fn status_to_word(status: Status) -> &'static str {
    match status {
        Status::Completed => "Completed",
        Status::Failed => "Failed",
        Status::Cancelled => "Canceled",
        Status::Terminated => "Terminated",
        Status::TimedOut => "TimedOut",
        Status::ContinuedAsNew => "ContinuedAsNew",
        _ => "Running",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_of_every_status_is_the_name_that_the_server_gives_it() {
        for status in Status::ALL {
            let named = format!("WORKFLOW_EXECUTION_STATUS_{}", screaming(status_to_word(status)));
            let of_server = WorkflowExecutionStatus::from_str_name(&named).unwrap_or_else(|| panic!("{named}"));
            assert_eq!(status_from_proto(of_server), status);
        }
    }

    fn screaming(word: &str) -> String {
        let split = |(at, c): (usize, char)| if at > 0 && c.is_uppercase() { format!("_{c}") } else { c.to_string() };
        word.char_indices().map(split).collect::<String>().to_uppercase()
    }
}
