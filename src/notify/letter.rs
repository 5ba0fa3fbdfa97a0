//! Letters: handed to a mail server, never to a person's own.

use super::message::Message;
use crate::deployment::{Protection, Smtp};
use crate::error::Error;
use lettre::message::{Mailbox, header};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use std::time::Duration;

/// How long the mail server may take for each step.
const WITHIN: Duration = Duration::from_secs(20);

/// Letters to one address.
pub(super) struct Letters {
    from: Mailbox,
    to: Mailbox,
    server: AsyncSmtpTransport<Tokio1Executor>,
}

impl Letters {
    pub(super) fn open(smtp: &Smtp, to: &str) -> Result<Self, Error> {
        let told = |what: &str, error: &dyn std::fmt::Display| Error::World(format!("notify.{what}: {error}"));
        let from = smtp.from.parse().map_err(|error| told("smtp.from", &error))?;
        let to = to.parse().map_err(|error| told("channel.to", &error))?;
        let parameters = || TlsParameters::new(smtp.host.clone()).map_err(|error| told("smtp", &error));
        let tls = match smtp.protection {
            Protection::None => Tls::None,
            Protection::Starttls => Tls::Required(parameters()?),
            Protection::Tls => Tls::Wrapper(parameters()?),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&smtp.host);
        let mut builder = builder.port(smtp.port).tls(tls).timeout(Some(WITHIN));
        if let (Some(user), Some(file)) = (&smtp.user, &smtp.password_file) {
            let password = crate::access::secret_file(file)?;
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        Ok(Self { from, to, server: builder.build() })
    }

    /// Hands a letter over; it is delivered once the server took it.
    pub(super) async fn send(&self, message: &Message) -> Result<(), String> {
        let host = self.from.email.domain().to_owned();
        let letter = lettre::Message::builder()
            .from(self.from.clone())
            .to(self.to.clone())
            .subject(message.subject())
            .message_id(Some(format!("<{}@{host}>", message.key())))
            .header(header::ContentType::TEXT_PLAIN)
            .body(message.text())
            .map_err(|error| error.to_string())?;
        self.server.send(letter).await.map(|_| ()).map_err(|error| error.to_string())
    }
}
