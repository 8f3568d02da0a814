// Command game plays a scenario at the terminal.
//
//	go run . -address 127.0.0.1:50051 ../../samples/scenario.json
//
// It is a start for a game of your own. Turns are played by a goroutine, and their events become messages of the event
// loop, so drawing never waits for the network.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	tea "github.com/charmbracelet/bubbletea"
	"google.golang.org/protobuf/proto"

	"peripety"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

func main() {
	address := flag.String("address", os.Getenv("PERIPETY_ADDRESS"), "host:port of the server")
	seed := flag.Int64("seed", 7, "seed of the session")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: game [flags] scenario.json")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *address, flag.Arg(0), *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run plays a scenario until the player leaves.
func run(ctx context.Context, address, scenario string, seed int64, options ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a turn in progress
	client, err := peripety.Connect(address)
	if err != nil {
		return err
	}
	defer client.Close()
	session, err := start(ctx, client, scenario, seed)
	if err != nil {
		return err
	}
	var program *tea.Program
	play := func(session *sessionv1.Session, turn *sessionv1.TakeTurnRequest) tea.Cmd {
		return func() tea.Msg { // runs in a goroutine of its own
			for event, err := range client.Play(ctx, session, turn) {
				if err != nil {
					return turnEnded{session, err}
				}
				program.Send(eventArrived{event})
			}
			return turnEnded{session, nil}
		}
	}
	program = tea.NewProgram(newGame(session, play), append([]tea.ProgramOption{tea.WithContext(ctx)}, options...)...)
	_, err = program.Run()
	return err
}

// start compiles a scenario, and creates a session of it.
func start(ctx context.Context, client *peripety.Client, path string, seed int64) (*sessionv1.Session, error) {
	spec, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	compile := &scenariov1.CompileScenarioRequest{Source: &scenariov1.CompileScenarioRequest_Spec{Spec: spec}}
	compiled, err := peripety.Last(peripety.Follow(ctx, client.Scenarios.CompileScenario, compile))
	if err != nil {
		return nil, err
	}
	for _, finding := range compiled.GetRejected().GetFindings().GetFindings() {
		return nil, fmt.Errorf("%s: %s: %s", path, finding.GetPath(), finding.GetMessage())
	}
	create := &sessionv1.CreateSessionRequest{
		ScenarioId: compiled.GetCompiled().GetScenarioId(), Seed: proto.Int64(seed)}
	created, err := client.Sessions.CreateSession(ctx, create)
	return created.GetSession(), err
}
