//! The second half of a sign-in: a code of the device, or a recovery code.

use domain::TokenHash;
use domain::person::RecoveryCode;
use domain::ports::{HalfOpen, SecondProof};

use super::{
    BY_CODES, SignIn, SignInError, Visit, by, by_network, count, counted_by, new_session, refused,
};

/// Codes that may be tried for one sign-in.
const MAX_TRIES: u32 = 5;

impl SignIn {
    /// Signs in whoever gave the right password before. The answer is the secret of a new session.
    pub async fn with_code(
        &self,
        half: &str,
        typed: &str,
        visit: &Visit<'_>,
    ) -> Result<String, SignInError> {
        let device = visit.device;
        let network = self.begin_at(device)?;
        let half = TokenHash::of(half);
        let now = self.clock.now();
        let Some(open) = self.store.try_half(&half, MAX_TRIES, now).await? else {
            return Err(SignInError::Over);
        };
        let (email, account) = (open.person.email.as_str(), open.person.account);
        let person = open.person.id.to_string();
        let keys = [
            by_network(network),
            (counted_by("codes of", &person), BY_CODES),
        ];
        self.begin_try(&keys).await?;
        let by = by(email, device);
        let Some(proof) = self.find_proof(&open, typed) else {
            self.note_refused(&by, account, "the code was wrong")
                .await?;
            return Err(refused(device, SignInError::WrongCode));
        };
        let noted = self.note_open(&by, account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = visit.replaced.map(TokenHash::of);
        let closed = self
            .store
            .close_half(&half, proof, &session, replaced.as_ref());
        let closed = match closed.await {
            Ok(true) => Ok(secret),
            Ok(false) => Err(SignInError::WrongCode),
            Err(error) => Err(error.into()),
        };
        if closed.is_ok() {
            self.forgive(network, &keys).await?;
            count("right");
        }
        noted.done(closed).await
    }

    /// What was typed proves, if it is used for the first time: which is for the store to say.
    fn find_proof(&self, open: &HalfOpen, typed: &str) -> Option<SecondProof> {
        let now = self.clock.now();
        let step = open.secret.find_step(typed, now, open.last_step);
        let recovery = || RecoveryCode::hash_typed(typed).map(SecondProof::Recovery);
        step.map(SecondProof::Step).or_else(recovery)
    }
}
