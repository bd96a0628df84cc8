//! Another service that speaks this same REST API, as a carrier for SMS, Viber messages and lookups.
//!
//! A message is handed over by a request of the contract. Its reports come to an address of ours that was made for that
//! one message, and go to whoever gave us the message, under our own ID. Error codes are the same on both sides and are
//! passed on as they are.
//!
//! A try whose answer is lost is repeated under the same `Idempotency-Key`, so an upstream of our own kind sends the
//! message once. When it says that the key was used with another body (the time that is left has changed), it has the
//! message; then only its name for it is unknown, and the message goes by a name of ours: `@` and its ID.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Parcel, Receipt, Submitted};
use domain::ports::{Carrier, CarrierState, Health, ReceiptError, ReceiptSink, ReportTaken};
use domain::{Clock, Code, MessageId, Outcome};
use tokio::task::AbortHandle;

use crate::pace::Pace;

mod link;
mod order;
mod probe;
mod proof;
mod pulse;
mod report;
mod reports;
mod settings;
mod verdict;

pub use reports::UpstreamReports;
pub use settings::{TOKEN_HEADER, UpstreamSettings};

use link::Link;
use order::Orders;
use proof::ProofKey;
use pulse::Pulse;
use report::{News, Report};
use verdict::{Verdict, answer_text, judge};

/// What a name of ours for a message starts with, where the upstream's is not known. No ID of an upstream does.
const OWN_NAME: char = '@';

/// What to do about a token that is not taken.
const BAD_TOKEN: &str = "the upstream refuses the token; check carrier.token";

/// The carrier.
pub struct Upstream {
    settings: UpstreamSettings,
    orders: Orders,
    proofs: ProofKey,
    link: Arc<Link>,
    pulse: Arc<Pulse>,
    pace: Pace,
    sink: Arc<dyn ReceiptSink>,
    clock: Arc<dyn Clock>,
    is_stopped: AtomicBool,
    probing: AbortHandle,
}

impl Upstream {
    /// Starts it; what it is told about messages goes to the sink. Must be called inside a tokio runtime.
    pub fn start(
        settings: UpstreamSettings,
        sink: Arc<dyn ReceiptSink>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let link = Arc::new(Link::new(&settings));
        let pulse = Arc::new(Pulse::new(&settings.name));
        let proofs = ProofKey::new(&settings.token);
        let probing = tokio::spawn(probe::run(link.clone(), pulse.clone()));
        Arc::new(Self {
            orders: Orders::new(&settings.name, &settings.report_url, proofs.clone()),
            proofs,
            link,
            pulse,
            pace: Pace::new(settings.max_per_second),
            settings,
            sink,
            clock,
            is_stopped: AtomicBool::new(false),
            probing: probing.abort_handle(),
        })
    }

    /// What it was started with.
    pub fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// What the upstream said, for its health and for the message.
    fn act_on(&self, verdict: Verdict, parcel: &Parcel) -> Submitted {
        let code = verdict.code();
        match verdict {
            Verdict::Taken(references) => {
                self.pulse.note_success();
                return Submitted::Taken(references);
            }
            Verdict::TakenBefore => {
                self.pulse.note_success();
                return Submitted::Taken(vec![own_name(parcel.id)]);
            }
            Verdict::Declined => {
                self.pulse.note_answer();
                return Submitted::Declined(code);
            }
            Verdict::Blocked(why) => self.pulse.note_trouble(&why),
            Verdict::BadToken => self.pulse.set_down(BAD_TOKEN),
            Verdict::Throttled(pause) => {
                self.pulse.note_answer();
                self.pulse.slow_down(pause);
            }
            Verdict::Failed(why, pause) => {
                self.pulse.note_failure(&why);
                if let Some(pause) = pause {
                    self.pulse.slow_down(pause);
                }
            }
        }
        Submitted::NotNow(code)
    }

    /// Takes a report whose address was verified.
    async fn take_report(&self, message: MessageId, body: &[u8]) -> ReportTaken {
        let report = match Report::read(body) {
            Ok(report) => report,
            Err(error) => return ReportTaken::NotAReport(error.to_string()),
        };
        if self.is_stopped.load(Ordering::Acquire) {
            return ReportTaken::NotNow;
        }
        match self.bring(message, report).await {
            Ok(()) => ReportTaken::Yes,
            Err(error) => {
                tracing::debug!(carrier = self.settings.name, %error, "a report is to come again");
                ReportTaken::NotNow
            }
        }
    }

    /// Brings a report to the sink.
    ///
    /// The IDs of operators in a lookup are the upstream's own. They are passed on: services of one kind keep the same
    /// reference data, and where they do not, country and network still tell.
    async fn bring(&self, message: MessageId, report: Report) -> Result<(), ReceiptError> {
        let reference = report.reference;
        match report.news {
            News::OnItsWay => {}
            News::Ended(outcome) => {
                self.receive(message, reference, outcome, None).await?;
            }
            News::Found(subscriber) => {
                let told = subscriber.payload(message);
                let outcome = subscriber.outcome();
                self.receive(message, reference, outcome, Some(told))
                    .await?;
            }
            // What was seen has been delivered. That report may still be on its way, and without it this one is lost.
            News::Seen => {
                let outcome = Outcome::Delivered;
                let of = self.receive(message, reference, outcome, None).await?;
                self.sink.seen(of, self.clock.now()).await?;
            }
        }
        Ok(())
    }

    /// Brings a receipt, and says by which name its message is known.
    ///
    /// When no part is known by the upstream's name, either the answer with that name is not stored yet, or it never
    /// came and the message goes by a name of ours. So the receipt is left under both. The one that nobody asks for is
    /// forgotten with other receipts of its kind.
    async fn receive(
        &self,
        message: MessageId,
        reference: String,
        outcome: Outcome,
        report: Option<String>,
    ) -> Result<CarrierRef, ReceiptError> {
        let mut receipt = Receipt {
            of: CarrierRef {
                carrier: self.settings.name.clone(),
                reference,
            },
            to: None,
            outcome,
            report,
            at: self.clock.now(),
        };
        if !self.sink.receive(receipt.clone()).await? {
            let theirs = std::mem::replace(&mut receipt.of.reference, own_name(message));
            if !self.sink.receive(receipt.clone()).await? {
                receipt.of.reference = theirs;
            }
        }
        Ok(receipt.of)
    }
}

/// The name of a message whose name at the upstream is not known.
fn own_name(message: MessageId) -> String {
    format!("{OWN_NAME}{message}")
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

#[async_trait]
impl Carrier for Upstream {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn window(&self) -> usize {
        self.settings.window
    }

    fn health(&self) -> Health {
        self.pulse.health()
    }

    fn state(&self) -> CarrierState {
        self.pulse.state()
    }

    async fn submit(&self, parcel: &Parcel) -> Submitted {
        if self.pulse.is_down() {
            return Submitted::NotNow(Code::LINK_DOWN);
        }
        if !self.pulse.wait_out_pause().await {
            return Submitted::NotNow(Code::THROTTLED);
        }
        for _ in 0..parcel.shape.parts {
            self.pace.turn().await;
        }
        let now = self.clock.now();
        if parcel.expires_at <= now {
            // Its time ran out while it waited here; whoever comes for it next finds that.
            return Submitted::NotNow(Code::THROTTLED);
        }
        let verdict = match self.link.post(self.orders.order(parcel, now)).await {
            Ok(reply) => {
                if reply.status.is_client_error() {
                    let (carrier, answer) = (&self.settings.name, answer_text(&reply));
                    tracing::debug!(carrier, message = %parcel.id, answer, "a message was not taken");
                }
                judge(&reply, parcel.claim.attempt > 1)
            }
            Err(silence) => Verdict::Failed(silence.to_string(), None),
        };
        self.act_on(verdict, parcel)
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.probing.abort();
    }
}
