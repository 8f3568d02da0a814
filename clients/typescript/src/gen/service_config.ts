// Generated from clients/service-config.json by `make generate`; never edited.
export const serviceConfig = {
  "loadBalancingConfig": [
    {
      "round_robin": {}
    }
  ],
  "methodConfig": [
    {
      "name": [
        { "service": "peripety.api.agent.v1.AgentService", "method": "RunAgent" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "ContinueRun" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "ResumeRun" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "RerunPhase" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "GenerateMany" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "WatchScriptedCalls" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "CompilePolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "RunMutationTests" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "GenerateCoverageScenarios" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "DecideMany" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "ResumePolicyRun" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "GenerateScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "CompileScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "AmendScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "BalanceScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ValidateScenarios" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "CertifyScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "CheckCertificate" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ResumeScenarioRun" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ReplaySession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ExportSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ImportSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ForecastOutcomes" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "GenerateTests" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "ResumeTests" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "RunTests" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "ExportTests" }
      ],
      "timeout": "86400s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": [
          "UNAVAILABLE"
        ]
      }
    },
    {
      "name": [
        { "service": "peripety.api.agent.v1.AgentService", "method": "GetRun" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "ListRuns" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "CancelRun" },
        { "service": "peripety.api.agent.v1.AgentService", "method": "DeleteRun" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "CountTokens" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "CreateConversation" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "GetConversation" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "ListConversations" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "ListConversationTurns" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "DeleteConversation" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "ForkConversation" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "RewindConversation" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "GetUsage" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "ListModels" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "GetProviderStatus" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "Decide" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "GetPolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "ListPolicies" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "ListPolicyVersions" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "DeletePolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "GetPolicyRun" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "ListPolicyRuns" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "CancelPolicyRun" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "DeletePolicyRun" },
        { "service": "peripety.api.policy.v1.ApprovalService", "method": "ListApprovals" },
        { "service": "peripety.api.policy.v1.ApprovalService", "method": "ApproveCall" },
        { "service": "peripety.api.policy.v1.ApprovalService", "method": "DenyCall" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "GetScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ListScenarios" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ListScenarioVersions" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "RetainScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ReleaseScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "DeleteScenario" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "GetScenarioTools" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "GetCertificate" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "GetScenarioRun" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "ListScenarioRuns" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "CancelScenarioRun" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "DeleteScenarioRun" },
        { "service": "peripety.api.session.v1.SessionService", "method": "GetSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ListSessions" },
        { "service": "peripety.api.session.v1.SessionService", "method": "DeleteSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "SubmitActions" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ListTurns" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ForkSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "RewindSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "AskSession" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "GetTestRun" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "ListTestRuns" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "ListTestTasks" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "CancelTestRun" },
        { "service": "peripety.api.testgen.v1.TestGenService", "method": "DeleteTestRun" }
      ],
      "timeout": "60s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": [
          "UNAVAILABLE"
        ]
      }
    },
    {
      "name": [
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "Generate" },
        { "service": "peripety.api.gateway.v1.GatewayService", "method": "GenerateObject" },
        { "service": "peripety.api.session.v1.SessionService", "method": "TakeTurn" },
        { "service": "peripety.api.session.v1.SessionService", "method": "ResumeTurn" }
      ],
      "timeout": "600s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": [
          "UNAVAILABLE"
        ]
      }
    },
    {
      "name": [
        { "service": "peripety.api.policy.v1.PolicyService", "method": "VerifyPolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "AnalyzePolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "ExplainPolicy" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "DiffPolicies" },
        { "service": "peripety.api.policy.v1.PolicyService", "method": "DecidePartially" },
        { "service": "peripety.api.scenario.v1.ScenarioService", "method": "InspectScenario" },
        { "service": "peripety.api.session.v1.SessionService", "method": "CreateSession" },
        { "service": "peripety.api.session.v1.SessionService", "method": "CompareBranches" }
      ],
      "timeout": "300s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": [
          "UNAVAILABLE"
        ]
      }
    },
    {
      "name": [
        { "service": "peripety.api.policy.v1.ApprovalService", "method": "WatchApprovals" },
        { "service": "peripety.api.session.v1.SessionService", "method": "WatchSession" }
      ],
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": [
          "UNAVAILABLE"
        ]
      }
    }
  ],
  "retryThrottling": {
    "maxTokens": 10,
    "tokenRatio": 0.1
  }
};
