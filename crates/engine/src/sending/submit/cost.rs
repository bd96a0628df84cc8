//! What a request would cost, and whether it would be accepted. Nothing is stored.

use domain::message::text::Shape;
use domain::{Access, Country, Money, Msisdn, Network};

use super::{Destination, RoutedRequest, SmsInput, Submit, SubmitError, ViberInput, check_active};
use crate::invalid::Field;

/// What a message to one recipient costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub to: Msisdn,
    /// How the text is encoded and split.
    pub shape: Shape,
    pub country: Option<Country>,
    /// As far as the number's prefix tells, or what it was ported to if the account or the route goes by that.
    pub network: Option<Network>,
    pub per_part: Money,
    pub total: Money,
}

/// What would become of a request with valid fields.
#[derive(Debug)]
pub struct Preview {
    pub costs: Vec<Cost>,
    /// A test message, which counts for no limit.
    pub is_test: bool,
    /// The account's rules do not allow the sender or a country. Whether the account can pay is not part of it.
    pub refusal: Option<SubmitError>,
}

impl Submit {
    /// What a request would cost, for each recipient.
    pub async fn cost(
        &self,
        access: &Access,
        order: SmsInput<'_>,
    ) -> Result<Vec<Cost>, SubmitError> {
        let from = self.approvals.originator(access, &order.from).await?;
        let checked = order.check(access.account, from, self.clock.now())?;
        Ok(costs(&self.route(checked)?))
    }

    /// What a request for Viber messages would cost, for each recipient.
    pub async fn cost_viber(
        &self,
        access: &Access,
        order: ViberInput<'_>,
    ) -> Result<Vec<Cost>, SubmitError> {
        let from = self.approvals.approved(access, &order.from).await?;
        let checked = order.check(access.account, from, self.clock.now())?;
        Ok(costs(&self.route(checked)?))
    }

    /// Checks a request as [`Submit::send`] does, and returns what it would cost even if the account's rules refuse it.
    pub async fn preview(
        &self,
        access: &Access,
        order: SmsInput<'_>,
    ) -> Result<Preview, SubmitError> {
        check_active(access)?;
        let (from, refusal) = match self.approvals.originator(access, &order.from).await {
            Err(SubmitError::Sender(from)) => (from.clone(), Some(SubmitError::Sender(from))),
            from => (from?, None),
        };
        let checked = order.check(access.account, from, self.clock.now())?;
        let routed = self.route(checked)?;
        let refusal = refusal.or_else(|| routed.check_countries(access).err());
        self.check_callback(&routed.checked, Field::DlrUrl).await?;
        routed.check_routes(Field::Recipients)?;
        Ok(Preview {
            costs: costs(&routed),
            is_test: routed.checked.test_mode.is_some(),
            refusal,
        })
    }
}

fn costs(routed: &RoutedRequest) -> Vec<Cost> {
    let cost = |destination: &Destination| Cost {
        to: destination.to,
        shape: routed.checked.shape,
        country: destination.location.country,
        network: destination.location.network,
        per_part: destination.per_part,
        total: destination.price,
    };
    routed.destinations.iter().map(cost).collect()
}
