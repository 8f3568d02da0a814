// Plays until the run ends, and prints each event as it arrives.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"peripety"
	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

func main() {
	ctx := context.Background()
	client := must(peripety.Connect(os.Getenv("PERIPETY_ADDRESS")))
	source := &scenariov1.CompileScenarioRequest_Spec{Spec: must(os.ReadFile("scenario.json"))}
	compile, id := &scenariov1.CompileScenarioRequest{Source: source}, ""
	for response, err := range peripety.Follow(ctx, client.Scenarios.CompileScenario, compile) {
		id = must(response, err).GetCompiled().GetScenarioId()
		fmt.Printf("%.0f %% %s\n", 100*response.GetProgress().GetFraction(), response.GetProgress().GetMessage())
	}
	session := must(client.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{ScenarioId: id})).GetSession()
	for actions := session.GetLegalActions(); len(actions) > 0; actions = session.GetLegalActions() {
		turn := &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{peripety.Action(actions[0].GetActionId())}}
		for event, err := range client.Play(ctx, session, turn) { // accepted: discard earlier events of the turn
			fmt.Println(must(event, err).GetSequence(), peripety.Kind(event), event.GetNarrativeChunk().GetText())
		}
	}
	fmt.Println(session.GetTurn(), session.GetStatus().GetKind())
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
