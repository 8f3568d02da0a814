// Package scripted tests a game whose model is scripted: the same words in every run, without a key and without cost.
// Start the server with MODEL_PROVIDER=scripted PERIPETY_SCRIPT=clients/samples/script.toml peripety serve.
package scripted

import (
	"os"
	"strings"
	"testing"

	"peripety"
	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

func TestTheNarratorAnswersFromTheScript(t *testing.T) {
	client, _ := peripety.Connect(os.Getenv("PERIPETY_ADDRESS"))
	spec, err := os.ReadFile("scenario.json")
	if err != nil {
		t.Skip("run it in clients/samples, with the server above")
	}
	compile := &scenariov1.CompileScenarioRequest{Source: &scenariov1.CompileScenarioRequest_Spec{Spec: spec}}
	compiled, err := peripety.Last(peripety.Follow(t.Context(), client.Scenarios.CompileScenario, compile))
	create := &sessionv1.CreateSessionRequest{ScenarioId: compiled.GetCompiled().GetScenarioId()}
	created, createErr := client.Sessions.CreateSession(t.Context(), create)
	if err != nil || createErr != nil {
		t.Fatal(err, createErr)
	}
	for words, expected := range map[string]string{"I listen": "There is only the wind.", "I go on": "The watch goes on."} {
		turn := &sessionv1.TakeTurnRequest{Input: words, Actions: []*commonv1.ActionCall{peripety.Action("tend")}}
		event, err := peripety.Last(client.Play(t.Context(), created.GetSession(), turn))
		if narrative := event.GetCommitted().GetNarrative(); err != nil || !strings.HasPrefix(narrative, expected) {
			t.Errorf("%q: %q, %v", words, narrative, err)
		}
	}
}
