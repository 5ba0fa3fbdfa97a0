//! One call to the endpoint: once, within its time, with nothing of the key in any text.

use super::Model;
use super::no_answer;
use super::prompt::Prompt;
use crate::operations::HttpClient;
use closer_contracts::refs::Amounts;
use closer_contracts::refusal::RefusalCode;
use closer_protocol::port::NoAnswer;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponse, ChatResponseFormat, JsonSpec, StopReason, Usage,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::Value;
use std::time::Duration;

/// How long an answer's text may be, in bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;

impl Model {
    /// Asks once. Gives the text and what the call used.
    pub(super) async fn ask(&self, prompt: &Prompt) -> Result<(String, Amounts), NoAnswer> {
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(self.endpoint.clone()),
            auth: AuthData::from_single(self.key()?),
            model: ModelIden::new(AdapterKind::OpenAI, self.model.clone()),
        };
        let messages = vec![ChatMessage::system(prompt.system.clone()), ChatMessage::user(prompt.data.clone())];
        let connection = HttpClient::default().connection().map_err(no_answer)?;
        let client = Client::builder().with_reqwest(connection).build();
        let client = client.map_err(|_| no_answer("the client for the endpoint cannot be built"))?;
        let options = self.options(prompt);
        let call = client.exec_chat(target, ChatRequest::new(messages), Some(&options));
        let timeout = Duration::from_millis(self.timeout_ms);
        match tokio::time::timeout(timeout, call).await {
            Err(_) => Err(no_answer(format!("the endpoint did not answer within {} ms", self.timeout_ms))),
            Ok(Err(error)) => Err(refused(&error)),
            Ok(Ok(response)) => self.said(&response),
        }
    }

    /// The key, read where it is kept; an endpoint that takes none is told so.
    fn key(&self) -> Result<String, NoAnswer> {
        match (&self.key_env, &self.key_file) {
            (Some(name), _) => {
                std::env::var(name).map_err(|_| no_answer(format!("the environment does not hold the key `{name}`")))
            }
            (None, Some(path)) => {
                let key = crate::keys::read_secret(path).map_err(|error| no_answer(error.to_string()))?;
                Ok(key.trim().to_owned())
            }
            (None, None) => Ok("none".to_owned()),
        }
    }

    fn options(&self, prompt: &Prompt) -> ChatOptions {
        // The raw body is kept to see whether there is more in it than one answer.
        let options = ChatOptions::default().with_capture_raw_body(true).with_max_tokens(self.tokens_max);
        let options = options.with_temperature(0.0);
        let options = match self.seed {
            Some(seed) => options.with_seed(seed),
            None => options,
        };
        match self.schema {
            true => {
                let spec = JsonSpec::new(prompt.name, prompt.schema.clone());
                options.with_response_format(ChatResponseFormat::JsonSpec(spec))
            }
            false => options,
        }
    }

    /// The one whole text of a response.
    fn said(&self, response: &ChatResponse) -> Result<(String, Amounts), NoAnswer> {
        let used = used(&response.usage);
        let fail = |code, reason: String| Err(NoAnswer { used: used.clone(), ..NoAnswer::new(code, reason) });
        let served: &str = &response.provider_model_iden.model_name;
        if let Some(expected) = self.served_as.as_ref().filter(|expected| *expected != served) {
            let served: String = served.chars().take(64).collect();
            return fail(RefusalCode::EndpointMismatch, format!("`{served}` answered where `{expected}` was verified"));
        }
        let choices =
            response.captured_raw_body.as_ref().and_then(|body| body.get("choices")).and_then(Value::as_array);
        let count = choices.map_or(0, Vec::len);
        if count != 1 {
            return fail(
                RefusalCode::Cardinality,
                format!("the endpoint gave {count} answers where one was asked for"),
            );
        }
        match &response.stop_reason {
            Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => {}
            Some(StopReason::MaxTokens(_)) => {
                return fail(RefusalCode::SchemaInvalid, "the answer was cut off".to_owned());
            }
            Some(StopReason::ToolCall(_) | StopReason::ContentFilter(_) | StopReason::Other(_)) | None => {
                return fail(
                    RefusalCode::SchemaInvalid,
                    "the endpoint does not say that the answer is whole".to_owned(),
                );
            }
        }
        let texts = response.content.texts();
        let text = match texts.as_slice() {
            [text] => *text,
            [] => return fail(RefusalCode::SchemaInvalid, "the answer holds no text".to_owned()),
            [_, _, ..] => return fail(RefusalCode::Cardinality, "the answer holds several texts".to_owned()),
        };
        match text.len() > ANSWER_BYTES_MAX {
            true => fail(RefusalCode::Oversize, format!("the answer has {} bytes", text.len())),
            false => Ok((text.to_owned(), used)),
        }
    }
}

/// What the endpoint measured; what it did not say is unknown, and never nothing.
fn used(usage: &Usage) -> Amounts {
    let known = |figure: Option<i32>| figure.and_then(|figure| u64::try_from(figure).ok());
    let sides = known(usage.prompt_tokens).zip(known(usage.completion_tokens)).map(|(prompt, answer)| prompt + answer);
    Amounts { tokens: sides.or_else(|| known(usage.total_tokens)), ..Amounts::default() }
}

/// Why there is no answer, without anything that the endpoint or the request said: both may hold what is not to be told.
fn refused(error: &genai::Error) -> NoAnswer {
    use genai::webc::Error as Web;
    if let Some(status) = error.status() {
        return no_answer(format!("the endpoint refused with status {}", status.as_u16()));
    }
    let genai::Error::WebModelCall { webc_error, .. } = error else {
        return NoAnswer::new(RefusalCode::SchemaInvalid, "the endpoint's response is not one of the chat protocol");
    };
    match webc_error {
        Web::ResponseFailedNotJson { .. } | Web::ResponseFailedInvalidJson { .. } | Web::JsonValueExt(_) => {
            NoAnswer::new(RefusalCode::SchemaInvalid, "the endpoint's response is not JSON")
        }
        Web::ResponseFailedStatus { status, .. } => {
            no_answer(format!("the endpoint refused with status {}", status.as_u16()))
        }
        Web::Reqwest(error) if error.is_connect() => no_answer("the endpoint cannot be reached"),
        Web::Reqwest(error) if error.is_timeout() => no_answer("the endpoint did not answer in time"),
        Web::Reqwest(_) => no_answer("the connection to the endpoint broke"),
    }
}
