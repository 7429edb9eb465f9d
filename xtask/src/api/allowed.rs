//! Which types of our other crates users may see. `dacapo` is what they depend on; what lies below it may change.

use super::list::Interface;

/// What `dacapo` re-exports of the engine, the worker and the core, and what its signatures name beside that, with what a user needs
/// it for. Types of `dacapo_client` are the interface of every backend, and need no reason.
const REASONS: &[(&str, &str)] = &[
    (
        "dacapo::core",
        "the untyped layer: names and bytes, policies, transcripts, and the futures that calls of the ctx return",
    ),
    ("dacapo::ActivityInfo", "what an activity knows of its attempt"),
    ("dacapo::AppSettings", "settings"),
    ("dacapo::AppValues", "settings that hold, as `Effective` shows them"),
    ("dacapo::AttributeValue", "values of search attributes"),
    ("dacapo::BadAttribute", "why a value cannot be an attribute"),
    ("dacapo::CancelHandle", "cancels what `ctx.cancellable` made"),
    ("dacapo::CancelType", "option of calls"),
    ("dacapo::Cancelled", "why a wait failed"),
    ("dacapo::CompletionToken", "reads and writes tokens of external completion"),
    ("dacapo::ContinueAsNew", "options of the next run"),
    ("dacapo::Effective", "settings that hold, and where each comes from"),
    ("dacapo::EffectiveRow", "one of them"),
    ("dacapo::Either", "what `ctx.race` returns"),
    ("dacapo::Entity", "which code was asked to stop, in `Health`"),
    ("dacapo::EntityKind", "whether that is a turn or an attempt"),
    ("dacapo::Failure", "how workflows and activities fail"),
    ("dacapo::FailureKind", "what kind of failure"),
    ("dacapo::First", "what `ctx.race` returns"),
    ("dacapo::Health", "code that was asked to stop and runs on"),
    ("dacapo::IdReuse", "option of starts and children"),
    ("dacapo::Info", "facts about the run"),
    ("dacapo::Name", "every name: ids, types, queues"),
    ("dacapo::OneOf3", "what `ctx.race_of` returns"),
    ("dacapo::OneOf4", "what `ctx.race_of` returns"),
    ("dacapo::OneOf5", "what `ctx.race_of` returns"),
    ("dacapo::OneOf6", "what `ctx.race_of` returns"),
    ("dacapo::OneOf7", "what `ctx.race_of` returns"),
    ("dacapo::OneOf8", "what `ctx.race_of` returns"),
    ("dacapo::Order", "option of `#[workflow]`"),
    ("dacapo::ParentClose", "option of children"),
    ("dacapo::Payload", "bytes of a value, in descriptions and headers"),
    ("dacapo::PhaseEnd", "how a phase ended"),
    ("dacapo::Pins", "what a run keeps for life"),
    ("dacapo::Priority", "option of calls"),
    ("dacapo::QueueSettings", "settings"),
    ("dacapo::QueueValues", "settings that hold, as `Effective` shows them"),
    ("dacapo::Registry", "what a catalog holds; the kit and generated code fill it"),
    ("dacapo::RegistryError", "why something cannot be served"),
    ("dacapo::Retry", "option of calls"),
    ("dacapo::Scope", "what the body of `ctx.scope` gets"),
    ("dacapo::Second", "what `ctx.race` returns"),
    ("dacapo::SettingError", "one of them"),
    ("dacapo::SettingErrors", "all that is wrong with the settings"),
    ("dacapo::SettingUnit", "the unit of a setting"),
    ("dacapo::ShutdownReport", "what a shutdown cut off"),
    ("dacapo::StateCell", "state that handlers share"),
    ("dacapo::StateGuard", "access to the state"),
    ("dacapo::StoppingCode", "one line of `Health`"),
    ("dacapo::Target", "whom a workflow signals or cancels"),
    ("dacapo::TerminationState", "how far a stop has come, in `Health`"),
    ("dacapo::TimeoutKind", "which timeout passed"),
    ("dacapo::Timestamp", "moments"),
    ("dacapo::TokenError", "why a text is no token"),
    ("dacapo::UnfinishedHandlers", "option of `#[workflow]`"),
    ("dacapo::Unplayable", "what `check_open_runs` finds"),
    // Its variant `Default`, if it could be named, would make the compiler write `std::default::Default` for the trait in its messages.
    ("dacapo_worker::settings::effective::SettingOrigin", "where a setting comes from, to be printed"),
    ("dacapo_worker::activity::Activity", "an untyped activity to serve, which generated code makes"),
    ("dacapo_worker::ctx::ActivityCtx", "what generated code makes an `ActivityCtx` from"),
    ("dacapo_core::activation::History", "`dacapo::core`: the size of a history, in `Info`"),
    ("dacapo_core::command::operations::CallNexus", "`dacapo::core`: options of a Nexus call"),
    ("dacapo_core::command::operations::StartChild", "`dacapo::core`: all options of a child at once"),
    ("dacapo_core::ctx::Ctx", "`dacapo::core`: the untyped ctx"),
    ("dacapo_core::ctx::cancel::Cancellable", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::cancel::Shield", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::condition::WaitUntil", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::external::CancelExternalCall", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::join::Join", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::join::TryJoin", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::launch::Launched", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::nexus::NexusStart", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::parallel::Parallel", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::race::Race", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::race::Timeout", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::race_of::Entrants", "`dacapo::core`: what can be raced"),
    ("dacapo_core::ctx::scope::ScopePlay", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::select_all::SelectAll", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::timer::Timer", "`dacapo::core`: a future"),
    ("dacapo_core::ctx::yield_now::YieldNow", "`dacapo::core`: a future"),
    ("dacapo_core::failure::ActivityFailed", "`dacapo::core`: which activity failed"),
    ("dacapo_core::failure::ChildFailed", "`dacapo::core`: which child failed"),
    ("dacapo_core::failure::NexusFailed", "`dacapo::core`: which Nexus operation failed"),
    ("dacapo_core::failure::Origin", "`dacapo::core`: where a failure comes from"),
    ("dacapo_core::job::Start", "`dacapo::core`: how the run was started, in `Info`"),
    ("dacapo_core::payload::Headers", "`dacapo::core`: headers by name"),
    ("dacapo_core::payload::PayloadData", "`dacapo::core`: bytes, or where they are kept"),
    ("dacapo_core::payload::digest::PayloadDigest", "`dacapo::core`: digest of a payload"),
    ("dacapo_core::payload::reference::ExternalPayload", "`dacapo::core`: where bytes are kept"),
    ("dacapo_core::policy::spec::PolicySpec", "`dacapo::core`: which policy a run is pinned to"),
    ("dacapo_core::run::inspect::Inspection", "`dacapo::core`: what `Handle::inspect` returns"),
    ("dacapo_core::run::workflow::OwnPolicy", "`dacapo::core`: a policy of the user's own"),
    ("dacapo_core::run::workflow::Workflow", "`dacapo::core`: an untyped workflow to serve"),
    ("dacapo_core::seq::OperationId", "`dacapo::core`: ids of promises, UUIDs"),
    ("dacapo_core::seq::Seq", "`dacapo::core`: number of an operation in a history"),
    ("dacapo_core::transcript::Transcript", "`dacapo::core`: what `Handle::transcript` returns"),
];

/// Types that are public and are in no list, and types that a signature names and that users cannot name.
pub(super) fn problems(interface: &Interface) -> Vec<String> {
    let reason = |name: &str| REASONS.iter().find(|(allowed, _)| *allowed == name);
    let is_free = |path: &str| path.starts_with("dacapo_client::") || path.starts_with("dacapo_macros::");
    let mut problems = Vec::new();
    for (path, name) in interface.exported.iter().filter(|(path, _)| path.starts_with("dacapo_") && !is_free(path)) {
        if reason(name).is_none() {
            problems.push(format!("{name} is {path}: re-exported without a reason"));
        }
    }
    // `dacapo::backend` has all of the client.
    let hidden = |path: &str| !interface.exported.contains_key(path) && !is_free(path);
    for (path, line) in interface.named.iter().filter(|(path, _)| hidden(path)) {
        if reason(path).is_none() {
            problems.push(format!("{path} is named and cannot be: {line}"));
        }
    }
    let is_known = |name: &str| {
        interface.exported.values().any(|known| known == name) || interface.named.keys().any(|known| known == name)
    };
    let stale = REASONS.iter().filter(|(name, _)| !is_known(name));
    problems.extend(stale.map(|(name, _)| format!("{name} has a reason and is not public any more")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_of_a_store_in_a_signature_is_a_problem() {
        let mut interface = Interface::default();
        let pair = |path: &str, name: &str| (path.to_owned(), name.to_owned());
        interface
            .exported
            .extend([pair("dacapo_core::name::Name", "dacapo::Name"), pair("dacapo_engine::Engine", "dacapo::Engine")]);
        interface
            .named
            .extend([pair("dacapo_store::Store", "fn dacapo::over(store: Store)"), pair("dacapo_client::Page", "")]);
        let found: Vec<String> =
            problems(&interface).into_iter().filter(|line| !line.contains("not public any more")).collect();
        let expected = [
            "dacapo::Engine is dacapo_engine::Engine: re-exported without a reason",
            "dacapo_store::Store is named and cannot be: fn dacapo::over(store: Store)",
        ];
        assert_eq!(found, expected);
    }
}
