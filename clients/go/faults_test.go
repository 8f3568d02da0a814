package peripety

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

// A client on a bad connection ends with the same turn as on a good one, or with the same typed error.

const defaultCuts = 16

func TestATurnThatIsCutAtAnyByteIsPlayedOnce(t *testing.T) {
	direct, proxy := server(t), startProxy(t)
	expected := play(t, direct, newSession(t, direct))
	length := 0
	for _, event := range expected {
		length += len(event)
	}
	cuts, err := strconv.Atoi(os.Getenv("PERIPETY_CUTS"))
	if err != nil {
		cuts = defaultCuts
	}
	random, broken := rand.New(rand.NewPCG(1, 2)), 0
	for cut := range cuts {
		fault := fmt.Sprintf("cut %d", random.IntN(length))
		if cut%4 == 3 {
			fault = fmt.Sprintf("cut_request %d", random.IntN(400))
		}
		session, client := newSession(t, direct), connect(t, proxy.address)
		proxy.send(fault)
		if events := play(t, client, session); !slices.Equal(events, expected) || session.GetTurn() != 1 {
			t.Fatalf("%s: turn %d: %q, expected %q", fault, session.GetTurn(), events, expected)
		}
		if !proxy.isArmed() {
			broken++
		}
		proxy.send("clear")
		client.Close()
	}
	t.Logf("%d turns, %d of them over a connection that broke", cuts, broken)
	if broken < cuts/2 {
		t.Errorf("only %d of %d connections broke", broken, cuts)
	}
}

func TestATurnSurvivesWhatProxiesDo(t *testing.T) {
	direct, proxy := server(t), startProxy(t)
	expected := play(t, direct, newSession(t, direct))
	client := connect(t, proxy.address)
	for _, fault := range []string{"goaway 3", "goaway 6", "refuse 0", "refuse 3", "duplicate", "delay 0.01", "trickle"} {
		for range 2 { // the second turn uses what the first has left of the connection
			session := newSession(t, direct)
			proxy.send(fault)
			if events := play(t, client, session); !slices.Equal(events, expected) {
				t.Errorf("%s: %q, expected %q", fault, events, expected)
			}
			proxy.send("clear")
		}
	}
}

func TestAFrozenConnectionEndsWithTheDeadline(t *testing.T) {
	direct, proxy := server(t), startProxy(t)
	session := newSession(t, direct)
	proxy.send("freeze 60")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := receive(connect(t, proxy.address).Play(ctx, session, tend()))
	if !errors.Is(err, context.DeadlineExceeded) || session.GetTurn() != 0 {
		t.Errorf("turn %d: %v", session.GetTurn(), err)
	}
}

func TestAFrozenConnectionIsNoticedByPings(t *testing.T) {
	t.Parallel()
	direct, proxy := server(t), startProxy(t)
	expected := play(t, direct, newSession(t, direct))
	session := newSession(t, direct)
	proxy.send("freeze 300")
	if events := play(t, connect(t, proxy.address, frequentPings), session); !slices.Equal(events, expected) {
		t.Errorf("%q, expected %q", events, expected)
	}
}

func TestASlowReaderGetsEveryEvent(t *testing.T) {
	direct := server(t)
	expected := play(t, direct, newSession(t, direct))
	session := newSession(t, direct)
	events, err := receive(func(yield func(*sessionv1.TurnEvent, error) bool) {
		for event, err := range direct.Play(t.Context(), session, tend()) {
			time.Sleep(20 * time.Millisecond)
			if !yield(event, err) {
				return
			}
		}
	})
	if err != nil || !slices.Equal(events, expected) {
		t.Errorf("%q, expected %q: %v", events, expected, err)
	}
}

func TestALostServerIsATypedError(t *testing.T) {
	_, err := receive(connect(t, "127.0.0.1:1").Play(t.Context(), &sessionv1.Session{SessionId: "s"}, tend()))
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != codes.Unavailable || !failed.ConnectionLost() {
		t.Error(err)
	}
}

func TestARefusedTurnIsTheSameErrorOnAnyConnection(t *testing.T) {
	direct, proxy := server(t), startProxy(t)
	turn := &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{Action("unknown")}}
	for _, fault := range []string{"clear", "cut 20", "cut_request 20", "goaway 3", "refuse 3", "duplicate", "trickle"} {
		session := newSession(t, direct)
		proxy.send(fault)
		_, err := receive(connect(t, proxy.address).Play(t.Context(), session, turn))
		var failed *Error
		if !errors.As(err, &failed) || failed.Code != codes.InvalidArgument || len(failed.Violations) != 1 ||
			failed.Violations[0].GetField() != "actions[0].action_id" {
			t.Errorf("%s: %v", fault, err)
		}
		proxy.send("clear")
	}
}

func TestAWatchContinuesOverCutsWithoutGaps(t *testing.T) {
	direct, proxy := server(t), startProxy(t)
	session := newSession(t, direct)
	for range 3 {
		play(t, direct, session)
	}
	proxy.send("cut 300")
	var seen []int64
	request := &sessionv1.WatchSessionRequest{SessionId: session.GetSessionId()}
	for response, err := range connect(t, proxy.address).Watch(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
		if event := response.GetTurnEvent(); event != nil {
			seen = append(seen, event.GetSequence())
			if len(seen)%5 == 0 {
				proxy.send("cut 100")
			}
			if event.GetSequence() == session.GetLastSequence() {
				break
			}
		}
	}
	for index, sequence := range seen {
		if sequence != int64(index+1) {
			t.Fatalf("sequences: %v", seen)
		}
	}
}

func TestLongWorkContinuesBehindItsLastEvent(t *testing.T) {
	proxy := startProxy(t)
	proxy.send("cut 700")
	request := &scenariov1.GenerateScenarioRequest{Description: "Two players share one table."}
	next, kind := int64(1), ""
	for response, err := range Follow(t.Context(), connect(t, proxy.address).Scenarios.GenerateScenario, request) {
		if err != nil {
			t.Fatal(err)
		}
		if response.GetSequence() != next {
			t.Fatalf("sequence %d, expected %d", response.GetSequence(), next)
		}
		next, kind = next+1, Kind(response)
	}
	if proxy.isArmed() || next == 1 {
		t.Errorf("the connection did not break; last event: %s", kind)
	}
}

func TestWorkWithoutARecordStartsAgain(t *testing.T) {
	proxy := startProxy(t)
	proxy.send("cut 700")
	next, kind := int64(1), ""
	for response, err := range Follow(t.Context(), connect(t, proxy.address).Scenarios.CompileScenario, scenario(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if response.GetSequence() == 1 {
			next = 1
		}
		if response.GetSequence() != next {
			t.Fatalf("sequence %d, expected %d", response.GetSequence(), next)
		}
		next, kind = next+1, Kind(response)
	}
	if proxy.isArmed() || kind != "compiled" {
		t.Errorf("the connection broke: %t; last event: %s", !proxy.isArmed(), kind)
	}
}
