//! Setters of calls: all of them hand their value on to the call of the core that they wrap.

/// Writes setters that set what the setter of the same name of the core's call sets.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $type:ty);)*) => {
        $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, $value: $type) -> Self {
                Self { pending: self.pending.$name($value), ..self }
            }
        )*
    };
}

/// Writes the setters of headers.
macro_rules! header_setters {
    () => {
        /// Adds a header: a named value that travels beside the arguments. One that cannot be encoded fails the activation.
        ///
        /// ```
        /// # use dacapo::prelude::*;
        /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
        /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
        /// let receipt = ctx.call(charge, order).header("tenant", "ada").await?;
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn header<T: Serialize + ?Sized>(self, name: impl Into<Name>, value: &T) -> Self {
            let name = name.into();
            let value = self.recorded.header(&name, value, Location::caller());
            self.header_payload(name, value)
        }

        /// Adds a header that is encoded already.
        #[track_caller]
        pub fn header_payload(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
            Self { pending: self.pending.header(name, value), ..self }
        }
    };
}

pub(super) use {header_setters, setters};
