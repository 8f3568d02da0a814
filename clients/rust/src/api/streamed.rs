use crate::streams::{Numbered, Streamed};

impl Streamed for super::gateway::v1::GenerateRequest {
    type Response = super::gateway::v1::GenerateResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.gateway().generate(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::gateway::v1::GenerateObjectRequest {
    type Response = super::gateway::v1::GenerateObjectResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.gateway().generate_object(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::gateway::v1::WatchScriptedCallsRequest {
    type Response = super::gateway::v1::WatchScriptedCallsResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.gateway().watch_scripted_calls(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::agent::v1::RunAgentRequest {
    type Response = super::agent::v1::RunAgentResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.agents().run_agent(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::agent::v1::ContinueRunRequest {
    type Response = super::agent::v1::ContinueRunResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.agents().continue_run(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::agent::v1::ResumeRunRequest {
    type Response = super::agent::v1::ResumeRunResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.agents().resume_run(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::agent::v1::RerunPhaseRequest {
    type Response = super::agent::v1::RerunPhaseResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.agents().rerun_phase(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::policy::v1::CompilePolicyRequest {
    type Response = super::policy::v1::CompilePolicyResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.policies().compile_policy(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::policy::v1::RunMutationTestsRequest {
    type Response = super::policy::v1::RunMutationTestsResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.policies().run_mutation_tests(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::policy::v1::GenerateCoverageScenariosRequest {
    type Response = super::policy::v1::GenerateCoverageScenariosResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.policies().generate_coverage_scenarios(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::policy::v1::ResumePolicyRunRequest {
    type Response = super::policy::v1::ResumePolicyRunResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.policies().resume_policy_run(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::policy::v1::WatchApprovalsRequest {
    type Response = super::policy::v1::WatchApprovalsResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.approvals().watch_approvals(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::GenerateScenarioRequest {
    type Response = super::scenario::v1::GenerateScenarioResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().generate_scenario(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::CompileScenarioRequest {
    type Response = super::scenario::v1::CompileScenarioResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().compile_scenario(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::AmendScenarioRequest {
    type Response = super::scenario::v1::AmendScenarioResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().amend_scenario(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::BalanceScenarioRequest {
    type Response = super::scenario::v1::BalanceScenarioResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().balance_scenario(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::CertifyScenarioRequest {
    type Response = super::scenario::v1::CertifyScenarioResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().certify_scenario(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::CheckCertificateRequest {
    type Response = super::scenario::v1::CheckCertificateResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().check_certificate(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::scenario::v1::ResumeScenarioRunRequest {
    type Response = super::scenario::v1::ResumeScenarioRunResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.scenarios().resume_scenario_run(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::TakeTurnRequest {
    type Response = super::session::v1::TakeTurnResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().take_turn(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::ResumeTurnRequest {
    type Response = super::session::v1::ResumeTurnResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, attempt: &str) {
        self.after_sequence = sequence;
        self.attempt_id = attempt.into();
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().resume_turn(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::WatchSessionRequest {
    type Response = super::session::v1::WatchSessionResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, attempt: &str) {
        self.after_sequence = sequence;
        self.attempt_id = attempt.into();
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().watch_session(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::ReplaySessionRequest {
    type Response = super::session::v1::ReplaySessionResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().replay_session(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::ExportSessionRequest {
    type Response = super::session::v1::ExportSessionResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().export_session(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::session::v1::ForecastOutcomesRequest {
    type Response = super::session::v1::ForecastOutcomesResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.sessions().forecast_outcomes(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::testgen::v1::GenerateTestsRequest {
    type Response = super::testgen::v1::GenerateTestsResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.tests().generate_tests(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::testgen::v1::ResumeTestsRequest {
    type Response = super::testgen::v1::ResumeTestsResponse;
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.tests().resume_tests(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::testgen::v1::RunTestsRequest {
    type Response = super::testgen::v1::RunTestsResponse;
    fn identify(&mut self) {
        if self.request_id.is_empty() {
            self.request_id = crate::streams::new_request_id();
        }
    }
    fn position(&self) -> i64 {
        self.after_sequence
    }
    fn continue_after(&mut self, sequence: i64, _attempt: &str) {
        self.after_sequence = sequence;
    }
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.tests().run_tests(self).await.map(tonic::Response::into_inner)
    }
}

impl Streamed for super::testgen::v1::ExportTestsRequest {
    type Response = super::testgen::v1::ExportTestsResponse;
    async fn send(self, client: &crate::Client) -> Result<tonic::Streaming<Self::Response>, tonic::Status> {
        client.tests().export_tests(self).await.map(tonic::Response::into_inner)
    }
}

impl Numbered for super::agent::v1::ContinueRunResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::agent::v1::RerunPhaseResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::agent::v1::ResumeRunResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::agent::v1::RunAgentResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::gateway::v1::GenerateObjectResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::gateway::v1::GenerateResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::gateway::v1::WatchScriptedCallsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::policy::v1::CompilePolicyResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::policy::v1::GenerateCoverageScenariosResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::policy::v1::ResumePolicyRunResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::policy::v1::RunMutationTestsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::policy::v1::WatchApprovalsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::AmendScenarioResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::BalanceScenarioResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::CertifyScenarioResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::CheckCertificateResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::CompileScenarioResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::GenerateScenarioResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::scenario::v1::ResumeScenarioRunResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::session::v1::ExportSessionResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::session::v1::ForecastOutcomesResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::session::v1::ReplaySessionResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::session::v1::ResumeTurnResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, crate::streams::attempt_of(event)))
    }
    fn is_last(&self) -> bool {
        self.event.as_ref().is_some_and(crate::streams::ends_turn)
    }
}

impl Numbered for super::session::v1::TakeTurnResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, crate::streams::attempt_of(event)))
    }
    fn is_last(&self) -> bool {
        self.event.as_ref().is_some_and(crate::streams::ends_turn)
    }
}

impl Numbered for super::session::v1::WatchSessionResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        crate::streams::watched(self)
    }
    fn lost(&self) -> Option<&str> {
        crate::streams::lost_watch(self)
    }
}

impl Numbered for super::testgen::v1::ExportTestsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}

impl Numbered for super::testgen::v1::GenerateTestsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::testgen::v1::ResumeTestsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        self.event.as_ref().map(|event| (event.sequence, None))
    }
}

impl Numbered for super::testgen::v1::RunTestsResponse {
    fn number(&self) -> Option<(i64, Option<&str>)> {
        Some((self.sequence, None))
    }
}
