//! Changing code while runs are open. Each module is one deploy of the same workflow:
//!
//! - [`v1`] is what open runs were begun with;
//! - [`v2`] does something new behind `ctx.patched`: false for runs that passed this place before, true for all others;
//! - [`v3`] drops the old path once no run is left that took it (`deprecate_patch`); when no run is left that recorded the
//!   patch, that call can be removed too.

use dacapo::prelude::*;

/// Sends a letter.
#[activity]
pub async fn letter(_to: String) -> Result<String, Failure> {
    Ok("by letter".into())
}

/// Sends an email.
#[activity]
pub async fn email(_to: String) -> Result<String, Failure> {
    Ok("by email".into())
}

/// Every run sends a letter.
pub mod v1 {
    use super::*;

    /// Sends a reminder and waits for a week.
    #[workflow(name = "remind")]
    pub async fn remind(ctx: Ctx, to: String) -> Result<String, Failure> {
        let told = ctx.call(letter, to).await?;
        ctx.sleep(days(7)).await?;
        Ok(told)
    }
}

/// New runs send an email; open runs that sent a letter go on as they began.
pub mod v2 {
    use super::*;

    /// Sends a reminder and waits for a week.
    #[workflow(name = "remind")]
    pub async fn remind(ctx: Ctx, to: String) -> Result<String, Failure> {
        let told = match ctx.patched("by email") {
            true => ctx.call(email, to).await?,
            false => ctx.call(letter, to).await?,
        };
        ctx.sleep(days(7)).await?;
        Ok(told)
    }
}

/// No run is left that sent a letter.
pub mod v3 {
    use super::*;

    /// Sends a reminder and waits for a week.
    #[workflow(name = "remind")]
    pub async fn remind(ctx: Ctx, to: String) -> Result<String, Failure> {
        ctx.deprecate_patch("by email");
        let told = ctx.call(email, to).await?;
        ctx.sleep(days(7)).await?;
        Ok(told)
    }
}
