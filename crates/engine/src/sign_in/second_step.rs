//! The second half of a sign-in: a code of the device, or a recovery code.

use domain::TokenHash;
use domain::person::{Device, RecoveryCode};
use domain::ports::{HalfOpen, SecondProof};

use super::{SignIn, SignInError, by, count, new_session, refused};

/// Codes that may be tried for one sign-in.
const MAX_TRIES: u32 = 5;

impl SignIn {
    /// Signs in whoever gave the right password before. The answer is the secret of a new session, which takes the place
    /// of `replaced`. Tries count as wrong passwords do.
    pub async fn with_code(
        &self,
        half: &str,
        typed: &str,
        device: &Device,
        replaced: Option<&str>,
    ) -> Result<String, SignInError> {
        let half = TokenHash::of(half);
        let now = self.clock.now();
        let Some(open) = self.store.try_half(&half, MAX_TRIES, now).await? else {
            return Err(SignInError::Over);
        };
        let (email, account) = (open.person.email.as_str(), open.person.account);
        let tried = self.begin_try(email, device)?;
        let by = by(email, device);
        let Some(proof) = self.find_proof(&open, typed) else {
            self.note_refused(&by, account, "the code was wrong")
                .await?;
            return Err(refused(device, SignInError::WrongCode));
        };
        let noted = self.note_open(&by, account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = replaced.map(TokenHash::of);
        let closed = self
            .store
            .close_half(&half, proof, &session, replaced.as_ref());
        let closed = match closed.await {
            Ok(true) => Ok(secret),
            Ok(false) => Err(SignInError::WrongCode),
            Err(error) => Err(error.into()),
        };
        if closed.is_ok() {
            self.forgive(&tried);
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
