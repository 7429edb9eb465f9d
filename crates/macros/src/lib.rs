//! The attribute macros of Dacapo. The `dacapo` crate re-exports them, and its documentation shows them in use; the
//! generated code names nothing but `::dacapo`.
//!
//! A function keeps its name and its place: `async fn f(x: X) -> Result<O, E>` becomes `fn f(x: X) -> Attempt<__f>`,
//! which can still be called and awaited. Its name, its types, and how it is decoded and run are defined on the hidden
//! type `__f`, so that code that gets the function as an argument knows them too.

mod activities;
mod activity;
mod arguments;
mod attributes;
mod function;
mod handler;
mod options;
mod workflow_fn;
mod workflow_impl;

use proc_macro::TokenStream;
use quote::quote;
use syn::{ImplItemFn, Item, ItemFn, ItemImpl, parse_macro_input};

/// Makes an async function a workflow, or an impl block a workflow with state.
///
/// ```
/// use dacapo::prelude::*;
///
/// #[workflow]
/// async fn greet(ctx: Ctx, name: String) -> Result<String, Failure> {
///     ctx.sleep(secs(1)).await?;
///     Ok(format!("hello {name}"))
/// }
/// ```
///
/// Options: `name = "…"` (the function's own by default), `order = "handlers_first"` (by default) or `"root_first"`,
/// `unfinished_handlers = "warn_and_abandon"` or `"wait"`.
///
/// On an impl block, the attributes of the methods are:
///
/// - `#[run]`: the workflow function, `async fn run(ctx: Ctx<Self>, …)`.
/// - `#[init]`: makes the first state from the input, `fn new(input: &I) -> Self`, or `fn new() -> Self`. Of several arguments
///   it gets a reference to their tuple. Without it, the state is `Default`.
/// - `#[signal]`: `fn(&mut self, T)`, or `async fn(ctx: Ctx<Self>, T) -> Result<(), Failure>` for a handler that waits.
/// - `#[update]`: `fn(&mut self, I) -> Result<O, Failure>`, or `async fn(ctx: Ctx<Self>, I) -> Result<O, Failure>`.
/// - `#[query]`: `fn(&self) -> O` or `fn(&self, I) -> O`.
/// - `#[validate(update)]`: `fn(&self, input: &I) -> Result<(), Failure>`; an error rejects the update.
///
/// Each handler also makes a constant by which callers send the message: `fn approve` makes `APPROVE`. It is as visible as the
/// method: `pub fn approve` makes `pub const APPROVE`. A message brings one value; put several into a struct or a tuple.
///
/// ```
/// use dacapo::prelude::*;
///
/// struct Counter {
///     count: u64,
///     closed: bool,
/// }
///
/// #[workflow]
/// impl Counter {
///     #[init]
///     fn new(first: &u64) -> Self {
///         Self { count: *first, closed: false }
///     }
///
///     #[run]
///     async fn run(ctx: Ctx<Self>, _first: u64) -> Result<u64, Failure> {
///         ctx.wait_state(|counter| counter.closed).await?;
///         Ok(ctx.state().count)
///     }
///
///     #[signal]
///     fn add(&mut self, n: u64) {
///         self.count += n;
///     }
///
///     #[query]
///     fn count(&self) -> u64 {
///         self.count
///     }
///
///     #[update]
///     fn close(&mut self) -> Result<u64, Failure> {
///         self.closed = true;
///         Ok(self.count)
///     }
///
///     #[validate(close)]
///     fn may_close(&self, _: &()) -> Result<(), Failure> {
///         if self.closed { Err("it is closed already".into()) } else { Ok(()) }
///     }
/// }
///
/// const ADD: Signal<u64> = Counter::ADD;
/// ```
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    let expanded = match item {
        Item::Fn(function) => workflow_fn::expand(options.into(), function),
        Item::Impl(block) => workflow_impl::expand(options.into(), block),
        other => Err(syn::Error::new_spanned(
            quote!(#other),
            "`#[workflow]` stands on an async function, or on the impl block of a type that holds the workflow's state",
        )),
    };
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function an activity. An async function runs as a task; a plain one blocks its thread.
///
/// ```
/// use dacapo::prelude::*;
///
/// #[activity(name = "charge-card")]
/// async fn charge(ctx: ActivityCtx, card: String, cents: u64) -> Result<String, Failure> {
///     // Call the bank, with `ctx.idempotency_key()`.
///     Ok(format!("{card} paid {cents}"))
/// }
/// ```
///
/// It takes up to four arguments after an optional `ctx: ActivityCtx`; they are owned, and can be encoded and decoded.
/// Its error is any type that becomes a `Failure`: a failure, a string, any `std::error::Error`, an `anyhow` error.
#[proc_macro_attribute]
pub fn activity(options: TokenStream, item: TokenStream) -> TokenStream {
    // Parses a method as one, for the error that says where it belongs.
    let method = syn::parse::<ImplItemFn>(item.clone());
    if let Ok(method) = method
        && let Some(receiver) = method.sig.receiver()
    {
        let text = "an activity that is a method stands in an impl block marked `#[activities]`";
        return syn::Error::new_spanned(receiver, text).into_compile_error().into();
    }
    let function = parse_macro_input!(item as ItemFn);
    activity::expand(options.into(), function).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the methods of an impl block that are marked `#[activity]` activities, served together with a value.
///
/// ```
/// use dacapo::prelude::*;
/// use std::sync::Arc;
///
/// struct Bank {
///     url: String,
/// }
///
/// #[activities]
/// impl Bank {
///     #[activity]
///     async fn charge(self: Arc<Self>, cents: u64) -> Result<String, Failure> {
///         Ok(format!("{} took {cents}", self.url))
///     }
/// }
///
/// #[workflow]
/// async fn pay(ctx: Ctx, cents: u64) -> Result<String, Failure> {
///     ctx.call(Bank::charge, cents).await
/// }
/// ```
///
/// The name of such an activity is that of its type and method, `Bank::charge`, unless the attribute has `name = "…"`.
#[proc_macro_attribute]
pub fn activities(options: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as ItemImpl);
    activities::expand(options.into(), block).unwrap_or_else(syn::Error::into_compile_error).into()
}
