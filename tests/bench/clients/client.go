// Go side of `make bench-clients`.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"peripety"
	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

func main() {
	ctx := context.Background()
	client := must(peripety.Connect(os.Args[1]))
	defer client.Close()
	lines := bytes.Split(bytes.TrimSpace(must(os.ReadFile(os.Args[3]))), []byte("\n"))
	sessions, turns, rounds := must(strconv.Atoi(os.Args[4])), must(strconv.Atoi(os.Args[5])), must(strconv.Atoi(os.Args[6]))
	var opened []*sessionv1.Session

	openQuietly := func() int {
		for _, session := range opened {
			quiet, cancel := context.WithCancel(ctx)
			request := &sessionv1.WatchSessionRequest{SessionId: session.GetSessionId()}
			must(must(client.Sessions.WatchSession(quiet, request)).Header())
			cancel()
		}
		return sessions
	}
	play := func(session *sessionv1.Session) int {
		for range turns {
			turn := &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{peripety.Action("hold")}}
			for event, err := range client.Play(ctx, session, turn) {
				must(event, err)
			}
		}
		return turns
	}
	watch := func(session *sessionv1.Session) int {
		events := 0
		for response, err := range client.Watch(ctx, &sessionv1.WatchSessionRequest{SessionId: session.GetSessionId()}) {
			events++
			event := must(response, err).GetTurnEvent()
			if event.GetCommitted() != nil && event.GetTurn() == session.GetTurn() {
				break
			}
		}
		return events
	}
	together := func(act func(*sessionv1.Session) int) int {
		var done atomic.Int64
		var group sync.WaitGroup
		for _, session := range opened {
			group.Add(1)
			go func() {
				defer group.Done()
				done.Add(int64(act(session)))
			}()
		}
		group.Wait()
		return int(done.Load())
	}
	validate := func() int {
		documents := func(yield func(*scenariov1.SpecItem, error) bool) {
			for number, line := range lines {
				if !yield(&scenariov1.SpecItem{ItemId: strconv.Itoa(number), Spec: line}, nil) {
					return
				}
			}
		}
		accepted := 0
		for verdict, err := range client.Validate(ctx, documents, nil) {
			if must(verdict, err).GetAccepted() {
				accepted++
			}
		}
		return accepted
	}

	best := map[string]float64{}
	measure := func(name string, work func() int) {
		started := time.Now()
		done := work()
		best[name] = max(best[name], float64(done)/time.Since(started).Seconds())
	}
	for range rounds {
		opened = nil
		for range sessions {
			created := must(client.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{ScenarioId: os.Args[2]}))
			opened = append(opened, created.GetSession())
		}
		measure("openings", openQuietly)
		measure("turns", func() int { return together(play) })
		measure("events", func() int { return together(watch) })
		measure("specifications", validate)
	}
	fmt.Println(string(must(json.Marshal(best))))
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
