// Decides on tool calls, and compares with what is expected.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"peripety"
	policyv1 "peripety/api/policy/v1"
)

func main() {
	client, connectErr := peripety.Connect(os.Getenv("PERIPETY_ADDRESS"))
	document, err := os.ReadFile("policy.json")
	policy := &policyv1.PolicySource{Source: &policyv1.PolicySource_Document{Document: document}}
	var calls []struct {
		ToolName  string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
		Expected  string          `json:"expected"`
	}
	file, readErr := os.ReadFile("policy_calls.json")
	if err := errors.Join(connectErr, err, readErr, json.Unmarshal(file, &calls)); err != nil {
		log.Fatal(err)
	}
	for _, call := range calls {
		request := &policyv1.PolicyRequest{ServerName: "files", ToolName: call.ToolName, Arguments: call.Arguments}
		question := &policyv1.DecideRequest{Policy: policy, Request: request}
		decided, err := client.Policies.Decide(context.Background(), question)
		decision := strings.ToLower(strings.TrimPrefix(decided.GetResult().GetDecision().String(), "DECISION_"))
		fmt.Printf("%s: %s %s: %v\n", decision, call.ToolName, call.Arguments, decided.GetResult().GetReasons())
		if err != nil || decision != call.Expected {
			log.Fatal("expected ", call.Expected, " ", err)
		}
	}
}
