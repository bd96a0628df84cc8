//! The second factor of a sign-in: a code from a device, or a recovery code.

use domain::TokenHash;
use domain::person::RecoveryCode;
use domain::ports::{PendingSignIn, SecondProof};

use super::{
    BY_CODES, SignIn, SignInContext, SignInError, attempt_key, by, count, network_key, new_session,
    refused,
};

/// How many codes may be tried for one sign-in.
const MAX_ATTEMPTS: u32 = 5;

impl SignIn {
    /// Completes a pending sign-in. Returns the secret of a new session.
    pub async fn with_code(
        &self,
        pending: &str,
        typed: &str,
        visit: &SignInContext<'_>,
    ) -> Result<String, SignInError> {
        let device = visit.device;
        let network = self.begin_on_node(device)?;
        let pending = TokenHash::from_secret(pending);
        let now = self.clock.now();
        let Some(sign_in) = self
            .store
            .try_pending_sign_in(&pending, MAX_ATTEMPTS, now)
            .await?
        else {
            return Err(SignInError::Over);
        };
        let (email, account) = (sign_in.person.email.as_str(), sign_in.person.account);
        let person = sign_in.person.id.to_string();
        let keys = [
            network_key(network),
            (attempt_key("codes of", &person), BY_CODES),
        ];
        self.begin_attempt(&keys).await?;
        let by = by(email, device);
        let Some(proof) = self.find_proof(&sign_in, typed) else {
            self.record_refused(&by, account, "the code was wrong")
                .await?;
            return Err(refused(device, SignInError::WrongCode));
        };
        let recorded = self.record_open(&by, account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = visit.replaced.map(TokenHash::from_secret);
        let completed = self
            .store
            .complete_sign_in(&pending, proof, &session, replaced.as_ref());
        let completed = match completed.await {
            Ok(true) => Ok(secret),
            Ok(false) => Err(SignInError::WrongCode),
            Err(error) => Err(error.into()),
        };
        if completed.is_ok() {
            self.forgive(network, &keys).await?;
            count("right");
        }
        recorded.done(completed).await
    }

    /// What the typed code proves. The store checks that it was not used before.
    fn find_proof(&self, sign_in: &PendingSignIn, typed: &str) -> Option<SecondProof> {
        let now = self.clock.now();
        let step = sign_in.secret.find_step(typed, now, sign_in.last_step);
        let recovery = || RecoveryCode::hash_typed(typed).map(SecondProof::Recovery);
        step.map(SecondProof::Step).or_else(recovery)
    }
}
