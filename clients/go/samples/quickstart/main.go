// Compiles a scenario, starts a session and plays one turn.
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
	compile := &scenariov1.CompileScenarioRequest{Source: source}
	compiled := must(peripety.Last(peripety.Follow(ctx, client.Scenarios.CompileScenario, compile)))

	create := &sessionv1.CreateSessionRequest{ScenarioId: compiled.GetCompiled().GetScenarioId()}
	session := must(client.Sessions.CreateSession(ctx, create)).GetSession()
	turn := &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{peripety.Action("tend")}}
	for event, err := range client.Play(ctx, session, turn) {
		fmt.Print(must(event, err).GetNarrativeChunk().GetText())
	}
	fmt.Printf("\nturn %d is stored, chain hash %s\n", session.GetTurn(), session.GetChainHash())
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
