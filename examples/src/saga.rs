//! A saga: three bookings of three services, of which either all are made or all are undone.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// The trip that a traveller wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trip {
    /// The traveller's name.
    pub traveller: String,
    /// The destination.
    pub city: String,
}

/// Something that can be booked, and given back by the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Booking {
    /// A flight, a hotel or a car.
    pub what: String,
    /// The destination.
    pub city: String,
    /// An id of our own, so that a booking can be undone although its result is not known.
    pub id: String,
}

/// Books flight, hotel and car. If one cannot be booked, or the run is cancelled, all are undone, the last first.
#[workflow]
pub async fn trip(ctx: Ctx, wanted: Trip) -> Result<Vec<String>, Failure> {
    let mut asked = Vec::new();
    let booked = book_all(&ctx, &wanted, &mut asked).await;
    let Err(failure) = booked else { return booked };
    // A cancelled run may not begin anything: every wait fails at once. The shield is for cleaning up.
    ctx.shield(async {
        for booking in asked.into_iter().rev() {
            // A booking that stays would cost money for ever, so this is tried for ever.
            ctx.call(give_back, booking).retry(Retry::exponential().attempts(0)).await?;
        }
        Ok::<_, Failure>(())
    })
    .await?;
    // The failure is why the run ends, so that a cancelled run ends as cancelled.
    Err(failure)
}

async fn book_all(ctx: &Ctx, wanted: &Trip, asked: &mut Vec<Booking>) -> Result<Vec<String>, Failure> {
    let mut confirmed = Vec::new();
    for what in ["flight", "hotel", "car"] {
        let booking =
            Booking { what: what.into(), city: wanted.city.clone(), id: format!("{what}-{}", wanted.traveller) };
        // Noted before it is asked for: a booking whose answer we never heard has to be given back too.
        asked.push(booking.clone());
        confirmed.push(ctx.call(book, booking).await?);
    }
    Ok(confirmed)
}

/// Books something.
#[activity]
pub async fn book(booking: Booking) -> Result<String, Failure> {
    if booking.what == "car" && booking.city == "Venezia" {
        // Trying again would not help, and this says so.
        return Err(Failure::application("there are no cars in Venezia").non_retryable());
    }
    println!("  booked     {}", booking.id);
    Ok(format!("{} is confirmed", booking.id))
}

/// Gives a booking back, and does nothing if there was none.
#[activity]
pub async fn give_back(booking: Booking) -> Result<(), Failure> {
    println!("  given back {}", booking.id);
    Ok(())
}
