package peripety

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

// A server to test against, sessions on it, and turns in a form that can be compared.

func TestMain(m *testing.M) {
	firstPause = time.Millisecond
	os.Exit(m.Run())
}

// setting returns an environment variable that tests/e2e/clients/test_go.py sets. Without it the test is skipped.
func setting(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv(name) == "" {
		t.Skipf("%s is not set; run this test by `make test-clients`", name)
	}
	return os.Getenv(name)
}

func connect(t *testing.T, address string, options ...Option) *Client {
	t.Helper()
	client, err := Connect(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// server returns a client over a good connection.
func server(t *testing.T) *Client { return connect(t, setting(t, "PERIPETY_ADDRESS")) }

func scenario(t *testing.T) *scenariov1.CompileScenarioRequest {
	t.Helper()
	spec, err := os.ReadFile("../samples/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return &scenariov1.CompileScenarioRequest{Source: &scenariov1.CompileScenarioRequest_Spec{Spec: spec}}
}

func newSession(t *testing.T, direct *Client) *sessionv1.Session {
	t.Helper()
	compiled, err := Last(Follow(t.Context(), direct.Scenarios.CompileScenario, scenario(t)))
	if err != nil {
		t.Fatal(err)
	}
	create := &sessionv1.CreateSessionRequest{
		ScenarioId: compiled.GetCompiled().GetScenarioId(), Seed: proto.Int64(7)}
	created, err := direct.Sessions.CreateSession(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	return created.GetSession()
}

func tend() *sessionv1.TakeTurnRequest {
	return &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{Action("tend")}, Input: "I listen."}
}

func play(t *testing.T, client *Client, session *sessionv1.Session) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := receive(client.Play(ctx, session, tend()))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// receive returns what a reader has when the stream ends: the events since the last accepted, without what differs
// from session to session.
func receive(turn iter.Seq2[*sessionv1.TurnEvent, error]) (events []string, _ error) {
	for event, err := range turn {
		if err != nil {
			return nil, err
		}
		event = proto.CloneOf(event)
		event.SessionId = ""
		if accepted := event.GetAccepted(); accepted != nil {
			events, accepted.AttemptId, accepted.RequestId = nil, "", ""
		}
		if committed := event.GetCommitted(); committed != nil {
			committed.CommitTime, committed.Usage = nil, nil // the prompt of a later session is cached
		}
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(event)
		if err != nil {
			return nil, err
		}
		events = append(events, Kind(event)+" "+string(encoded))
	}
	return events, nil
}

// proxy is a TCP proxy that misbehaves on command: tests/support/servers/misbehaving_proxy.py.
type proxy struct {
	address string
	send    func(command string) string
}

func startProxy(t *testing.T) proxy {
	t.Helper()
	python, upstream := setting(t, "PERIPETY_PYTHON"), setting(t, "PERIPETY_ADDRESS")
	command := exec.Command(python, "-m", "support.servers.misbehaving_proxy", upstream)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		command.Wait()
	})
	lines := bufio.NewScanner(output)
	answer := func() string {
		if !lines.Scan() {
			t.Fatal("the proxy has ended")
		}
		return lines.Text()
	}
	address, isListening := strings.CutPrefix(answer(), "listening on ")
	if !isListening {
		t.Fatal("the proxy does not listen")
	}
	return proxy{address, func(command string) string {
		fmt.Fprintln(input, command)
		return answer()
	}}
}

func (p proxy) isArmed() bool { return p.send("state") == "armed" }

// frequentPings is the shortest keepalive that gRPC for Go allows.
var frequentPings = WithDialOptions(
	grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second}))
