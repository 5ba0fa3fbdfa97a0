//! The ways a message goes.

use super::letter::Letters;
use super::message::Message;
use crate::deployment::{Channel, Shape, Smtp};
use crate::error::Error;
use std::time::Duration;

/// How long a web address may take to take a message.
const WITHIN: Duration = Duration::from_secs(20);

/// One way, opened.
pub(super) enum Sender {
    Letters { to: String, letters: Box<Letters> },
    Web { name: String, url: reqwest::Url, shape: Shape, client: reqwest::Client },
}

impl Sender {
    pub(super) fn open(channel: &Channel, smtp: Option<&Smtp>) -> Result<Self, Error> {
        match channel {
            Channel::Email { to } => {
                let smtp = smtp.ok_or_else(|| Error::World("letters need a mail server".to_owned()))?;
                Ok(Self::Letters { to: to.clone(), letters: Box::new(Letters::open(smtp, to)?) })
            }
            Channel::Webhook { url_file, shape } => {
                let url: reqwest::Url = crate::access::secret_file(url_file)?
                    .parse()
                    .map_err(|_| Error::World(format!("{}: no web address", url_file.display())))?;
                let local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
                if url.scheme() != "https" && !(url.scheme() == "http" && local) {
                    let reason = format!("{}: beyond this machine an address is https:// alone", url_file.display());
                    return Err(Error::World(reason));
                }
                // The provider of cryptography is the process's own choice; another that was chosen before is as good.
                let _: Result<(), _> = rustls::crypto::ring::default_provider().install_default();
                let client = reqwest::Client::builder()
                    .redirect(reqwest::redirect::Policy::none())
                    .no_proxy()
                    .timeout(WITHIN)
                    .build()
                    .map_err(|error| Error::World(error.to_string()))?;
                let key: String = crate::access::digest(url.as_str()).chars().take(12).collect();
                Ok(Self::Web { name: format!("web {key}"), url, shape: *shape, client })
            }
        }
    }

    /// By what the way is told apart; holds no secret.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Letters { to, .. } => format!("email {to}"),
            Self::Web { name, .. } => name.clone(),
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// Why it was not taken; the address is not told.
    pub(super) async fn send(&self, message: &Message) -> Result<(), String> {
        match self {
            Self::Letters { letters, .. } => letters.send(message).await,
            Self::Web { url, shape, client, .. } => {
                let body = message.shaped(*shape).to_string();
                let request = client
                    .post(url.clone())
                    .header("content-type", "application/json")
                    .header("idempotency-key", message.key())
                    .body(body);
                let response = request.send().await.map_err(|error| error.without_url().to_string())?;
                match response.status().is_success() {
                    true => Ok(()),
                    false => Err(format!("answered with {}", response.status())),
                }
            }
        }
    }
}
