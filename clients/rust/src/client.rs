//! Connections: address, TLS, token and keepalive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::api::agent::v1::agent_service_client::AgentServiceClient;
use crate::api::gateway::v1::gateway_service_client::GatewayServiceClient;
use crate::api::policy::v1::approval_service_client::ApprovalServiceClient;
use crate::api::policy::v1::policy_service_client::PolicyServiceClient;
use crate::api::scenario::v1::scenario_service_client::ScenarioServiceClient;
use crate::api::session::v1::session_service_client::SessionServiceClient;
use crate::api::testgen::v1::test_gen_service_client::TestGenServiceClient;
use crate::calls::{Calls, TokenSource};
use crate::errors::{Error, Result};

/// Address of a server that was started without one.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:50051";

const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Settings of a connection. The default is plaintext without a token.
#[derive(Clone, Default)]
pub struct Settings {
    tls: Option<ClientTlsConfig>,
    token: Option<TokenSource>,
    keepalive: Option<Duration>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tls, token) = (self.tls.is_some(), self.token.is_some());
        formatter.debug_struct("Settings").field("tls", &tls).field("token", &token).finish_non_exhaustive()
    }
}

impl Settings {
    /// Encrypts the connection. `ClientTlsConfig::new().with_native_roots()` trusts the authorities of the system.
    #[must_use]
    pub fn tls(mut self, config: ClientTlsConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sends a bearer token with each call. It is never sent as plaintext to another machine.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        let token = token.into();
        self.token_source(move || token.clone())
    }

    /// Sends the bearer token that a function returns for each call, so that it can be refreshed.
    #[must_use]
    pub fn token_source(mut self, source: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.token = Some(Arc::new(source));
        self
    }

    /// Sets the time between pings; the default is 30 s. Servers close connections that are pinged every 20 s or more
    /// often.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = Some(interval);
        self
    }
}

/// Client with the stubs of all services over one connection. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    calls: Calls<Channel>,
}

/// Defines a method that returns a stub.
macro_rules! stub {
    ($name:ident, $stub:ident, $about:literal) => {
        #[doc = concat!("Returns the stub for ", $about, ".")]
        #[must_use]
        pub fn $name(&self) -> $stub<Calls<Channel>> {
            $stub::new(self.calls.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        }
    };
}

impl Client {
    /// Returns a client of the server at `host:port`; an empty address is [`DEFAULT_ADDRESS`]. It connects at its first
    /// call, and must be created within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// The address is not `host:port`.
    pub fn connect(address: &str) -> Result<Self> {
        Self::connect_with(address, Settings::default())
    }

    /// Like [`Client::connect`], with settings.
    ///
    /// # Errors
    ///
    /// The address is not `host:port`, the TLS configuration is invalid, or a token would be sent as plaintext to
    /// another machine.
    pub fn connect_with(address: &str, settings: Settings) -> Result<Self> {
        let address = if address.is_empty() { DEFAULT_ADDRESS } else { address };
        let Some((host, port)) = address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok())
        else {
            let message = format!("address: not host:port: {address:?}; for example {DEFAULT_ADDRESS}");
            return Err(Error::invalid(message));
        };
        let is_local = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        if settings.token.is_some() && settings.tls.is_none() && !is_local {
            let message = format!("token: would be sent as plaintext to another machine: {address}; set tls");
            return Err(Error::invalid(message));
        }
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{host}:{port}"))
            .map_err(|error| Error::invalid(format!("address: {error}")))?
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(settings.keepalive.unwrap_or(Duration::from_secs(30)))
            .keep_alive_timeout(Duration::from_secs(10))
            .tcp_nodelay(true);
        if let Some(tls) = settings.tls {
            endpoint = endpoint.tls_config(tls).map_err(|error| Error::invalid(format!("tls: {error}")))?;
        }
        Ok(Self { calls: Calls::new(endpoint.connect_lazy(), settings.token) })
    }

    stub!(agents, AgentServiceClient, "agent runs");
    stub!(approvals, ApprovalServiceClient, "calls that wait for a person; connect to the enforcement point");
    stub!(gateway, GatewayServiceClient, "language models");
    stub!(policies, PolicyServiceClient, "policies, and their decisions");
    stub!(scenarios, ScenarioServiceClient, "scenarios from texts");
    stub!(sessions, SessionServiceClient, "sessions of scenarios");
    stub!(tests, TestGenServiceClient, "generated tests");
}
