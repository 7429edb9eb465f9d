//! Typed names: constants that say what travels under a name.

use std::fmt;
use std::marker::PhantomData;

use dacapo_core::Name;

macro_rules! typed_name {
    ($(#[$doc:meta])* $name:ident<$($param:ident),+>) => {
        $(#[$doc])*
        pub struct $name<$($param),+> {
            name: &'static str,
            types: PhantomData<fn() -> ($($param,)+)>,
        }

        impl<$($param),+> $name<$($param),+> {
            #[doc = concat!("Creates a `", stringify!($name), "` of this name: a constant that code and callers share.")]
            pub const fn new(name: &'static str) -> Self {
                Self { name, types: PhantomData }
            }

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                self.name
            }
        }

        impl<$($param),+> Clone for $name<$($param),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($param),+> Copy for $name<$($param),+> {}

        impl<$($param),+> fmt::Debug for $name<$($param),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {:?}", stringify!($name), self.name)
            }
        }

        impl<$($param),+> From<$name<$($param),+>> for Name {
            fn from(typed: $name<$($param),+>) -> Self {
                Self::from_static(typed.name)
            }
        }
    };
}

typed_name! {
    /// A signal that brings a `T`: a message to a run, without an answer.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const CANCEL: Signal<String> = Signal::new("cancel");
    ///
    /// #[workflow]
    /// async fn order(ctx: Ctx) -> Result<String, Failure> {
    ///     ctx.next_signal(CANCEL).await
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// # let app = Dacapo::open("memory:").await?.serve(order).await?;
    /// let run = app.start(order, ()).await?;
    /// run.signal(CANCEL, "too bright".into()).await?;
    /// assert_eq!(run.result().await?, "too bright");
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    Signal<T>
}

typed_name! {
    /// A query that takes an `I` and answers with an `O`: a question to a run, which changes nothing.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// use dacapo::Query;
    ///
    /// const STAGE: Query<(), String> = Query::new("stage");
    ///
    /// #[workflow]
    /// async fn order(ctx: Ctx) -> Result<(), Failure> {
    ///     ctx.on_query(STAGE, |()| Ok("packed".into()));
    ///     ctx.sleep(days(1)).await?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// # let app = Dacapo::open("memory:").await?.serve(order).await?;
    /// let run = app.start(order, ()).await?;
    /// assert_eq!(run.query(STAGE, ()).await?, "packed");
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    Query<I, O>
}

typed_name! {
    /// An update that brings an `I` and is answered with an `O`: a message to a run that changes it and has an answer.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const ADD: Update<u64, u64> = Update::new("add");
    ///
    /// #[workflow]
    /// async fn cart(ctx: Ctx) -> Result<u64, Failure> {
    ///     let (total, full) = (ctx.cell(0), |total: &u64| *total >= 10);
    ///     let added = total.clone();
    ///     ctx.on_update(ADD, |_| Ok(()), move |n| {
    ///         *added.lock() += n;
    ///         let total = added.read(|total| *total);
    ///         async move { Ok(total) }
    ///     });
    ///     ctx.wait_until(move || total.read(full)).await?;
    ///     Ok(10)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// # let app = Dacapo::open("memory:").await?.serve(cart).await?;
    /// let run = app.start(cart, ()).await?;
    /// assert_eq!(run.update(ADD, 3).await?, 3);
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    Update<I, O>
}

typed_name! {
    /// A promise of a `T`, which a caller outside the run resolves.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const APPROVAL: Promise<bool> = Promise::new("approval");
    ///
    /// #[workflow]
    /// async fn request(ctx: Ctx) -> Result<bool, Failure> {
    ///     ctx.promise(APPROVAL).await
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// # let app = Dacapo::open("memory:").await?.serve(request).await?;
    /// let run = app.start(request, ()).await?;
    /// run.resolve(APPROVAL, true).await?;
    /// assert!(run.result().await?);
    /// # app.shutdown().await;
    /// # Ok(()) }
    /// ```
    Promise<T>
}

typed_name! {
    /// A durable key of a run that holds a `T`: a value by name, which replay compares.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const TOTAL: Key<u64> = Key::new("total");
    ///
    /// #[workflow]
    /// async fn count(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ///     let total = ctx.keys().get(TOTAL).unwrap_or(0) + n;
    ///     ctx.keys().set(TOTAL, &total);
    ///     Ok(total)
    /// }
    /// ```
    Key<T>
}

typed_name! {
    /// A search attribute that holds a `T`: text, a number, a `bool`, a `Timestamp` or a list of text.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// const CITY: Attr<String> = Attr::new("city");
    ///
    /// #[workflow]
    /// async fn order(ctx: Ctx) -> Result<(), Failure> {
    ///     ctx.set_attr(CITY, "Lisboa".into());
    ///     ctx.sleep(days(1)).await?;
    ///     Ok(())
    /// }
    ///
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let run = app.start(order, ()).attr(CITY, "Porto".into()).await?;
    /// println!("{:?}", run.describe().await?.attributes.get("city"));
    /// # Ok(()) }
    /// ```
    Attr<T>
}
