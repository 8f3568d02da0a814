// Loses the connection within a turn, and continues behind the last event.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	"peripety"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

func main() {
	ctx, connections := context.Background(), make(chan net.Conn, 100)
	dial := grpc.WithContextDialer(func(ctx context.Context, address string) (connection net.Conn, err error) {
		defer func() { connections <- connection }()
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
	client := must(peripety.Connect(os.Getenv("PERIPETY_ADDRESS"), peripety.WithDialOptions(dial)))
	source := &scenariov1.CompileScenarioRequest_Spec{Spec: must(os.ReadFile("scenario.json"))}
	compile := &scenariov1.CompileScenarioRequest{Source: source}
	compiled := must(peripety.Last(peripety.Follow(ctx, client.Scenarios.CompileScenario, compile)))
	create := &sessionv1.CreateSessionRequest{ScenarioId: compiled.GetCompiled().GetScenarioId()}
	var loss sync.Once
	for event, err := range client.Play(ctx, must(client.Sessions.CreateSession(ctx, create)).GetSession(), nil) {
		fmt.Println(must(event, err).GetSequence(), peripety.Kind(event))
		loss.Do(func() { (<-connections).Close() })
	}
}
func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
