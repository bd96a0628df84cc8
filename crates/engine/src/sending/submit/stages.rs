//! The stages between a request and a stored submission: checked, routed, numbered.

use std::sync::Arc;

use domain::message::interactive::Interactive;
use domain::message::text::{Shape, Udh};
use domain::message::{IdempotencyClaim, Recipient, SendTime, Submission};
use domain::{
    Access, AccountId, CallbackUrl, Channel, Code, Holder, MessageId, Money, Msisdn, Originator,
    Priority, TestMode, Timestamp, TraceContext,
};
use numbering::reference::Location;

use super::SubmitError;
use super::sms::no_price;
use crate::catalogue::CatalogueSnapshot;
use crate::invalid::{Field, Invalid};
use crate::refusals::{Content, Refusals};
use crate::sending::carriers::{Carriers, Routed};
use crate::sending::routing::{RouteChoice, Routing, RoutingTable};

/// A request whose every field is valid.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) account: AccountId,
    pub(crate) channel: Channel,
    pub(crate) recipients: Vec<Msisdn>,
    /// A lookup has none.
    pub(crate) from: Option<Originator>,
    /// Empty for a lookup.
    pub(crate) text: String,
    /// The text contains a confirmation code, so it is stored encrypted and never shown.
    pub(crate) carries_code: bool,
    /// A message of the service itself, which opt-outs do not stop.
    pub(crate) notice: bool,
    pub(crate) interactive: Option<Interactive>,
    pub(crate) shape: Shape,
    pub(crate) udh: Option<Udh>,
    /// The caller chose the coding, so the text is not split.
    pub(crate) coding_given: bool,
    pub(crate) dlr_url: Option<CallbackUrl>,
    pub(crate) priority: Priority,
    pub(crate) send: SendTime,
    pub(crate) accepted_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) test_mode: Option<TestMode>,
    /// 0 for tests and for messages of the service itself.
    pub(crate) charged_parts: u8,
    /// The trace of the request.
    pub(crate) trace: Option<TraceContext>,
}

/// A recipient with its location, price and route.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) to: Msisdn,
    pub(crate) location: Location,
    pub(crate) per_part: Money,
    pub(crate) price: Money,
    /// `None` if no carrier serves it.
    pub(crate) route: Option<RouteChoice>,
    /// Why it is not sent.
    pub(crate) refused: Option<Code>,
}

/// A checked request whose recipients are located, priced and routed.
pub(crate) struct RoutedRequest {
    pub(crate) checked: Checked,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) carriers: Arc<Carriers>,
}

/// A routed request whose messages have their IDs.
pub(crate) struct Numbered {
    checked: Checked,
    recipients: Vec<Recipient>,
}

impl Checked {
    /// Locates, prices and routes each recipient.
    pub(super) fn route(
        self,
        live: &CatalogueSnapshot,
        routing: &Routing,
    ) -> Result<RoutedRequest, Invalid> {
        // A request uses one table, even if another is loaded in the meantime.
        let table = routing.table();
        let destinations = self.recipients.iter();
        let destinations = destinations.map(|to| self.find_destination(to, live, routing, &table));
        Ok(RoutedRequest {
            destinations: destinations.collect::<Result<_, _>>()?,
            carriers: table.carriers(),
            checked: self,
        })
    }

    fn find_destination(
        &self,
        to: &Msisdn,
        live: &CatalogueSnapshot,
        routing: &Routing,
        table: &RoutingTable,
    ) -> Result<Destination, Invalid> {
        let locations = routing.locate(table, live, Some(self.account), to);
        let chosen = table.choose(self.channel, self.account, to, &locations);
        let (route, location) = match chosen {
            Some((route, location)) => (Some(route), location),
            None => (None, *locations.for_account()),
        };
        let per_part = if self.charged_parts == 0 {
            Money::ZERO
        } else {
            let price = live.prices(self.channel).price(self.account, &location);
            price.ok_or_else(|| no_price(to, location.country))?
        };
        Ok(Destination {
            to: *to,
            route,
            per_part,
            price: per_part.times(self.charged_parts.into()),
            location,
            refused: None,
        })
    }
}

impl RoutedRequest {
    /// Checks that the account may send to the recipients' countries. A test message goes nowhere, so it is always
    /// allowed.
    pub(super) fn check_countries(&self, access: &Access) -> Result<(), SubmitError> {
        if access.allows_all_countries() || self.checked.test_mode.is_some() {
            return Ok(());
        }
        let mut destinations = self.destinations.iter();
        destinations.try_for_each(|destination| {
            super::check_country(access, destination.to, destination.location.country)
        })
    }

    /// Checks that there is a carrier for every recipient. A test message needs none.
    pub(super) fn check_routes(&self, field: Field) -> Result<(), Invalid> {
        let mut destinations = self.destinations.iter();
        match destinations.find(|destination| destination.route.is_none()) {
            Some(destination) if self.checked.test_mode.is_none() => {
                let (to, channel) = (destination.to, self.checked.channel.name());
                let reason = format!(
                    "{to} cannot be reached: no carrier of this service goes there by {channel}"
                );
                Err(Invalid::new(field, reason).with_code(Code::NO_ROUTE))
            }
            _ => Ok(()),
        }
    }

    /// Marks recipients to whom the message is not sent: they opted out, or it is blocked. They are not charged. A test
    /// message goes nowhere anyway.
    pub(super) fn refuse(&mut self, refusals: &Refusals) {
        let checked = &self.checked;
        if checked.test_mode.is_some() {
            return;
        }
        let content = Content {
            account: checked.account,
            channel: checked.channel,
            from: checked.from.as_ref(),
            text: &checked.text,
            notice: checked.notice,
        };
        let destinations = &mut self.destinations;
        refusals.check(&content, checked.recipients.iter(), |index, code| {
            destinations[index].refused = Some(code);
            destinations[index].price = Money::ZERO;
        });
    }

    /// The price of all recipients together.
    pub(super) fn cost(&self) -> Money {
        let prices = self.destinations.iter().map(|one| one.price);
        prices.fold(Money::ZERO, Money::plus)
    }

    pub(super) fn messages(&self) -> u32 {
        u32::try_from(self.destinations.len()).expect("at most a thousand")
    }

    /// Gives the messages consecutive IDs, which also decide between carriers that share messages. Returns the routes
    /// in the order of the recipients, without those of refused ones.
    pub(super) fn number(self, first: MessageId) -> (Numbered, Vec<Routed>) {
        let count = self.destinations.len();
        let (mut recipients, mut routes) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (destination, number) in self.destinations.into_iter().zip(first.get()..) {
            recipients.push(Recipient {
                id: MessageId::new(number).expect("blocks end within the range of IDs"),
                to: destination.to,
                network: destination.location.network,
                country: destination.location.country,
                price: destination.price,
                refused: destination.refused,
            });
            if destination.refused.is_some() {
                continue;
            }
            routes.push(Routed {
                route: destination
                    .route
                    .map(|choice| choice.pick(number))
                    .unwrap_or_default(),
                carriers: self.carriers.clone(),
            });
        }
        let numbered = Numbered {
            checked: self.checked,
            recipients,
        };
        (numbered, routes)
    }
}

impl Numbered {
    pub(super) fn account(&self) -> AccountId {
        self.checked.account
    }

    pub(super) fn priority(&self) -> Priority {
        self.checked.priority
    }

    pub(super) fn send(&self) -> SendTime {
        self.checked.send
    }

    pub(super) fn into_submission(
        self,
        holder: Holder,
        idempotency: Option<IdempotencyClaim>,
    ) -> Submission {
        let checked = self.checked;
        Submission {
            account: checked.account,
            channel: checked.channel,
            recipients: self.recipients,
            from: checked.from,
            text: checked.text,
            carries_code: checked.carries_code,
            notice: checked.notice,
            interactive: checked.interactive,
            shape: checked.shape,
            udh: checked.udh,
            coding_given: checked.coding_given,
            dlr_url: checked.dlr_url,
            priority: checked.priority,
            send: checked.send,
            accepted_at: checked.accepted_at,
            expires_at: checked.expires_at,
            test_mode: checked.test_mode,
            idempotency,
            holder,
            trace: checked.trace,
        }
    }
}
