//! The languages of words such as STOP, and the replies in them.

use super::words::Request;

/// A language that the service knows words and replies of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Dutch,
    English,
    French,
    German,
    Greek,
    Italian,
    Latvian,
    Portuguese,
    Russian,
    Spanish,
}

impl Language {
    pub const ALL: [Self; 10] = [
        Self::Dutch,
        Self::English,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Italian,
        Self::Latvian,
        Self::Portuguese,
        Self::Russian,
        Self::Spanish,
    ];

    /// The ISO 639-1 code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Dutch => "nl",
            Self::English => "en",
            Self::French => "fr",
            Self::German => "de",
            Self::Greek => "el",
            Self::Italian => "it",
            Self::Latvian => "lv",
            Self::Portuguese => "pt",
            Self::Russian => "ru",
            Self::Spanish => "es",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|language| language.code() == code)
    }

    /// The default reply. It avoids accents that GSM-7 does not have, because they would make the message longer.
    pub const fn default_reply(self, request: Request) -> &'static str {
        match request {
            Request::Stop => self.stop_reply(),
            Request::Start => self.start_reply(),
            Request::Help => self.help_reply(),
        }
    }

    const fn stop_reply(self) -> &'static str {
        match self {
            Self::Dutch => {
                "U ontvangt geen berichten meer van dit nummer. Antwoord START om ze weer te ontvangen."
            }
            Self::English => {
                "You will get no more messages from this number. Reply START to get them again."
            }
            Self::French => {
                "Vous ne recevrez plus de messages de ce numéro. Répondez START pour en recevoir à nouveau."
            }
            Self::German => {
                "Sie erhalten keine Nachrichten mehr von dieser Nummer. Antworten Sie START, um sie wieder zu erhalten."
            }
            Self::Greek => {
                "Δεν θα λαμβάνετε άλλα μηνύματα από αυτόν τον αριθμό. Απαντήστε START για να τα λαμβάνετε ξανά."
            }
            Self::Italian => {
                "Non riceverà più messaggi da questo numero. Risponda START per riceverli di nuovo."
            }
            Self::Latvian => {
                "Jus vairs nesanemsiet zinas no si numura. Atbildiet START, lai tas atkal sanemtu."
            }
            Self::Portuguese => {
                "Nao recebera mais mensagens deste numero. Responda START para voltar a recebe-las."
            }
            Self::Russian => {
                "Вы больше не будете получать сообщения с этого номера. Ответьте START, чтобы получать их снова."
            }
            Self::Spanish => {
                "No recibira mas mensajes de este numero. Responda START para volver a recibirlos."
            }
        }
    }

    const fn start_reply(self) -> &'static str {
        match self {
            Self::Dutch => {
                "U ontvangt weer berichten van dit nummer. Antwoord STOP om ze niet meer te ontvangen."
            }
            Self::English => {
                "You will get messages from this number again. Reply STOP to end them."
            }
            Self::French => {
                "Vous recevrez à nouveau les messages de ce numéro. Répondez STOP pour ne plus en recevoir."
            }
            Self::German => {
                "Sie erhalten wieder Nachrichten von dieser Nummer. Antworten Sie STOP, um sie zu beenden."
            }
            Self::Greek => {
                "Θα λαμβάνετε ξανά μηνύματα από αυτόν τον αριθμό. Απαντήστε STOP για να σταματήσουν."
            }
            Self::Italian => {
                "Riceverà di nuovo i messaggi da questo numero. Risponda STOP per non riceverli più."
            }
            Self::Latvian => {
                "Jus atkal sanemsiet zinas no si numura. Atbildiet STOP, lai tas vairs nesanemtu."
            }
            Self::Portuguese => {
                "Voltara a receber mensagens deste numero. Responda STOP para deixar de as receber."
            }
            Self::Russian => {
                "Вы снова будете получать сообщения с этого номера. Ответьте STOP, чтобы отказаться от них."
            }
            Self::Spanish => {
                "Volvera a recibir mensajes de este numero. Responda STOP para no recibirlos mas."
            }
        }
    }

    const fn help_reply(self) -> &'static str {
        match self {
            Self::Dutch => "Antwoord STOP om geen berichten meer van dit nummer te ontvangen.",
            Self::English => "Reply STOP to get no more messages from this number.",
            Self::French => "Répondez STOP pour ne plus recevoir de messages de ce numéro.",
            Self::German => {
                "Antworten Sie STOP, um keine Nachrichten mehr von dieser Nummer zu erhalten."
            }
            Self::Greek => "Απαντήστε STOP για να μη λαμβάνετε άλλα μηνύματα από αυτόν τον αριθμό.",
            Self::Italian => "Risponda STOP per non ricevere più messaggi da questo numero.",
            Self::Latvian => "Atbildiet STOP, lai vairs nesanemtu zinas no si numura.",
            Self::Portuguese => "Responda STOP para nao receber mais mensagens deste numero.",
            Self::Russian => "Ответьте STOP, чтобы больше не получать сообщения с этого номера.",
            Self::Spanish => "Responda STOP para no recibir mas mensajes de este numero.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::words::Words;
    use crate::message::text::measure;

    #[test]
    fn replies_are_short_and_ask_for_nothing_themselves() {
        let words = Words::new(&[], &[], &[]);
        for language in Language::ALL {
            assert_eq!(Language::from_code(language.code()), Some(language));
            for request in Request::ALL {
                let reply = language.default_reply(request);
                let shape = measure(reply).expect(reply);
                assert!(shape.parts <= 2, "{reply}");
                assert_eq!(
                    words.find(reply),
                    None,
                    "two services must not answer each other"
                );
            }
        }
    }
}
