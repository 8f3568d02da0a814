package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	commonv1 "peripety/api/common/v1"
	sessionv1 "peripety/api/session/v1"
)

// TestAGameIsPlayedToItsEnd presses the keys of a player against a real server.
func TestAGameIsPlayedToItsEnd(t *testing.T) {
	address := os.Getenv("PERIPETY_ADDRESS")
	if address == "" {
		t.Skip("PERIPETY_ADDRESS is not set; run this test by `make test-clients`")
	}
	keys, press := io.Pipe()
	var screen bytes.Buffer
	turns := 0
	pressAfterTurns := tea.WithFilter(func(_ tea.Model, message tea.Msg) tea.Msg {
		if ended, ok := message.(turnEnded); ok {
			if ended.err != nil {
				t.Error(ended.err)
			}
			turns++
			if len(ended.session.GetLegalActions()) == 0 {
				go press.Write([]byte{3}) // ctrl+c
			} else {
				go press.Write([]byte("\r"))
			}
		}
		return message
	})
	go press.Write([]byte("I listen.\r"))
	err := run(t.Context(), address, "../../samples/scenario.json", 7,
		tea.WithInput(keys), tea.WithOutput(&screen), pressAfterTurns)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"state.light = ", "The game is over: "} {
		if !strings.Contains(screen.String(), part) {
			t.Errorf("%q was not drawn:\n%s", part, screen.String())
		}
	}
	if turns < 2 {
		t.Errorf("only %d turns were played", turns)
	}
}

func newTestGame() (*game, *[]*sessionv1.TakeTurnRequest) {
	turns := []*sessionv1.TakeTurnRequest{}
	one, three := 1.0, 3.0
	hours := &commonv1.Param{Name: "hours", Type: commonv1.ParamType_PARAM_TYPE_INTEGER, Minimum: &one, Maximum: &three}
	session := &sessionv1.Session{LegalActions: []*commonv1.LegalAction{
		{ActionId: "tend", Name: "Tend"}, {ActionId: "rest", Name: "Rest", Params: []*commonv1.Param{hours}}}}
	play := func(_ *sessionv1.Session, turn *sessionv1.TakeTurnRequest) tea.Cmd {
		turns = append(turns, turn)
		return nil
	}
	return newGame(session, play), &turns
}

func press(g *game, keys ...tea.KeyMsg) {
	for _, key := range keys {
		g.Update(key)
	}
}

func TestAParameterIsEnteredBeforeTheTurn(t *testing.T) {
	g, turns := newTestGame()
	down, enter := tea.KeyMsg{Type: tea.KeyDown}, tea.KeyMsg{Type: tea.KeyEnter}
	letters := func(text string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)} }
	press(g, down, letters("So tired"))
	if !strings.Contains(g.View(), "> Rest\n\nSo tired_") {
		t.Error(g.View())
	}
	press(g, enter)
	if !strings.Contains(g.View(), "hours (1 to 3): ") || len(*turns) > 0 {
		t.Fatal(g.View())
	}
	press(g, letters("many"), enter)
	if !strings.Contains(g.View(), `! hours: not a number: "many"`) {
		t.Error(g.View())
	}
	press(g, letters("2"), enter)
	if len(*turns) != 1 || (*turns)[0].GetInput() != "So tired" ||
		(*turns)[0].GetActions()[0].GetParams()["hours"].GetNumber() != 2 {
		t.Errorf("turns: %v", *turns)
	}
	press(g, enter) // the turn is in progress
	if len(*turns) != 1 {
		t.Error("a second turn was played at the same time")
	}
}

func TestATurnThatStartsAgainDiscardsItsEvents(t *testing.T) {
	g, _ := newTestGame()
	chunk := &sessionv1.TurnEvent_NarrativeChunk_{NarrativeChunk: &sessionv1.TurnEvent_NarrativeChunk{Text: "Wind."}}
	accepted := &sessionv1.TurnEvent_Accepted_{Accepted: &sessionv1.TurnEvent_Accepted{}}
	for range 2 {
		g.Update(eventArrived{&sessionv1.TurnEvent{Event: accepted}})
		g.Update(eventArrived{&sessionv1.TurnEvent{Event: chunk}})
	}
	if strings.Count(g.View(), "Wind.") != 1 {
		t.Error(g.View())
	}
}
