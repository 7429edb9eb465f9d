//! The programs in the documents, compiled and played as doctests.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/start.md")]
struct Start;

#[doc = include_str!("../../../docs/determinism.md")]
struct Determinism;

#[doc = include_str!("../../../docs/learn.md")]
struct Learn;

#[doc = include_str!("../../../docs/test.md")]
struct Test;

#[doc = include_str!("../../../docs/deploy.md")]
struct Deploy;

#[doc = include_str!("../../../docs/operate.md")]
struct Operate;

#[doc = include_str!("../../../docs/move-to-temporal.md")]
struct MoveToTemporal;

#[doc = include_str!("../../../docs/recipes.md")]
struct Recipes;

#[doc = include_str!("../../../docs/search.md")]
struct Search;

#[doc = include_str!("../../../docs/troubleshoot.md")]
struct Troubleshoot;

#[doc = include_str!("../../../docs/store.md")]
struct Store;
