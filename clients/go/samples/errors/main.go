// Receives an unknown id, a stale turn and an invalid field, and decides by the reason.
package main

import (
	"context"
	"errors"
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
	client, _ := peripety.Connect(os.Getenv("PERIPETY_ADDRESS"))
	spec, _ := os.ReadFile("scenario.json")
	compile := &scenariov1.CompileScenarioRequest{Source: &scenariov1.CompileScenarioRequest_Spec{Spec: spec}}
	compiled, _ := peripety.Last(peripety.Follow(ctx, client.Scenarios.CompileScenario, compile))
	create := &sessionv1.CreateSessionRequest{ScenarioId: compiled.GetCompiled().GetScenarioId()}
	old, _ := client.Sessions.CreateSession(ctx, create)
	old.Session.Turn = 8 // as if another client had rewound the session
	_, unknown := client.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{SessionId: "unknown"})
	_, stale := peripety.Last(client.Play(ctx, old.GetSession(), nil))
	_, invalid := client.Sessions.ListSessions(ctx, &sessionv1.ListSessionsRequest{PageSize: -1})
	for _, err := range []error{unknown, stale, invalid} {
		var failed *peripety.Error
		if !errors.As(err, &failed) {
			log.Fatal(err)
		} else if failed.Reason == commonv1.ErrorReason_ERROR_REASON_UNKNOWN_SESSION {
			fmt.Println("gone, start a new game:", failed.Message)
		} else if failed.Reason == commonv1.ErrorReason_ERROR_REASON_STALE_TURN {
			fmt.Println("read the session again:", failed.Message)
		} else if len(failed.Violations) > 0 {
			fmt.Printf("correct %s: %s\n", failed.Violations[0].GetField(), failed.Message)
		}
	}
}
