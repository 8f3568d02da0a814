package main

import (
	"fmt"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"google.golang.org/protobuf/proto"

	commonv1 "peripety/api/common/v1"
	sessionv1 "peripety/api/session/v1"
)

const help = "up and down: choose an action   text: your words   enter: play   ctrl+c: leave"

// eventArrived is an event of the turn in progress.
type eventArrived struct{ event *sessionv1.TurnEvent }

// turnEnded is the end of a turn, with the session after it.
type turnEnded struct {
	session *sessionv1.Session
	err     error
}

// player plays a turn, and updates the session that it is given.
type player func(*sessionv1.Session, *sessionv1.TakeTurnRequest) tea.Cmd

// game is the state of the screen. Only the event loop reads and changes it.
type game struct {
	play      player
	session   *sessionv1.Session
	chosen    int
	pending   *sessionv1.TakeTurnRequest // the turn whose parameters are being entered
	line      []rune                     // text that is being entered
	prose     string                     // narration of the current turn
	changes   []string
	problem   string
	isPlaying bool
	width     int
}

func newGame(session *sessionv1.Session, play player) *game {
	return &game{play: play, session: session, width: 80}
}

// Init starts nothing: the player moves first.
func (g *game) Init() tea.Cmd { return nil }

// Update applies a key, or what arrived from the server.
func (g *game) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		g.width = message.Width
	case eventArrived:
		g.show(message.event)
	case turnEnded:
		g.isPlaying, g.session, g.chosen = false, message.session, 0
		if message.err != nil {
			g.problem = message.err.Error()
		}
	case tea.KeyMsg:
		return g, g.press(message)
	}
	return g, nil
}

// show adds an event of the turn to the screen.
func (g *game) show(event *sessionv1.TurnEvent) {
	switch event := event.GetEvent().(type) {
	case *sessionv1.TurnEvent_Accepted_: // also when the turn starts again: earlier events have no effect
		g.prose, g.changes = "", nil
	case *sessionv1.TurnEvent_ActionResolved_:
		g.addChanges(event.ActionResolved.GetChanges())
	case *sessionv1.TurnEvent_WorldResolved_:
		g.addChanges(event.WorldResolved.GetChanges())
	case *sessionv1.TurnEvent_NarrativeRetracted_:
		g.prose = ""
	case *sessionv1.TurnEvent_NarrativeChunk_:
		g.prose += event.NarrativeChunk.GetText()
	case *sessionv1.TurnEvent_RuleFailed_:
		g.problem = event.RuleFailed.GetMessage()
	}
}

func (g *game) addChanges(changes []*commonv1.Change) {
	for _, change := range changes {
		g.changes = append(g.changes, fmt.Sprintf("%s = %s", change.GetPath(), change.GetAfter()))
	}
}

func (g *game) press(key tea.KeyMsg) tea.Cmd {
	actions := g.session.GetLegalActions()
	switch {
	case key.Type == tea.KeyCtrlC || key.Type == tea.KeyEsc:
		return tea.Quit
	case g.isPlaying || len(actions) == 0:
		return nil
	}
	switch key.Type {
	case tea.KeyUp:
		g.chosen = (g.chosen + len(actions) - 1) % len(actions)
	case tea.KeyDown:
		g.chosen = (g.chosen + 1) % len(actions)
	case tea.KeyBackspace:
		g.line = g.line[:max(0, len(g.line)-1)]
	case tea.KeyRunes, tea.KeySpace:
		g.line = append(g.line, key.Runes...)
	case tea.KeyEnter:
		return g.enter(actions[g.chosen])
	}
	return nil
}

// enter takes the line as the words of the player or as the next parameter, and plays the turn when it is complete.
func (g *game) enter(action *commonv1.LegalAction) tea.Cmd {
	text := strings.TrimSpace(string(g.line))
	g.line, g.problem = nil, ""
	if param := g.nextParam(); param != nil {
		value, err := parseParam(param, text)
		if err != nil {
			g.problem = err.Error()
			return nil
		}
		g.pending.Actions[0].Params[param.GetName()] = value
	} else {
		call := &commonv1.ActionCall{ActionId: action.GetActionId(), Params: map[string]*commonv1.ParamValue{}}
		g.pending = &sessionv1.TakeTurnRequest{Actions: []*commonv1.ActionCall{call}, Input: text}
	}
	if g.nextParam() != nil {
		return nil
	}
	turn := g.pending
	g.pending, g.isPlaying = nil, true
	return g.play(proto.CloneOf(g.session), turn) // the goroutine updates a copy
}

// nextParam returns the parameter to enter next; nil if there is none.
func (g *game) nextParam() *commonv1.Param {
	if g.pending == nil {
		return nil
	}
	for _, param := range g.session.GetLegalActions()[g.chosen].GetParams() {
		if g.pending.GetActions()[0].GetParams()[param.GetName()] == nil {
			return param
		}
	}
	return nil
}

// parseParam converts a text to the type of a parameter. The server checks the limits.
func parseParam(param *commonv1.Param, text string) (*commonv1.ParamValue, error) {
	switch param.GetType() {
	case commonv1.ParamType_PARAM_TYPE_STRING:
		return &commonv1.ParamValue{Kind: &commonv1.ParamValue_Text{Text: text}}, nil
	case commonv1.ParamType_PARAM_TYPE_BOOLEAN:
		return &commonv1.ParamValue{Kind: &commonv1.ParamValue_Flag{Flag: strings.HasPrefix(text, "y")}}, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: not a number: %q", param.GetName(), text)
	}
	return &commonv1.ParamValue{Kind: &commonv1.ParamValue_Number{Number: number}}, nil
}

// View draws the screen.
func (g *game) View() string {
	var screen strings.Builder
	fmt.Fprintf(&screen, "turn %d\n\n%s\n", g.session.GetTurn(), wrap(g.prose, g.width))
	for _, change := range g.changes {
		fmt.Fprintf(&screen, "  %s\n", change)
	}
	if g.problem != "" {
		fmt.Fprintf(&screen, "\n! %s\n", wrap(g.problem, g.width))
	}
	screen.WriteString("\n")
	switch {
	case g.isPlaying:
		screen.WriteString("...\n")
	case len(g.session.GetLegalActions()) == 0:
		kind := strings.TrimPrefix(g.session.GetStatus().GetKind().String(), "RUN_STATUS_KIND_")
		fmt.Fprintf(&screen, "The game is over: %s %s\n", kind, g.session.GetStatus().GetMessage())
	case g.nextParam() != nil:
		fmt.Fprintf(&screen, "%s: %s_\n", describe(g.nextParam()), string(g.line))
	default:
		for index, action := range g.session.GetLegalActions() {
			mark := "  "
			if index == g.chosen {
				mark = "> "
			}
			screen.WriteString(mark + action.GetName() + "\n")
		}
		fmt.Fprintf(&screen, "\n%s_\n", string(g.line))
	}
	return screen.String() + "\n" + help + "\n"
}

// describe returns the name of a parameter and its legal values.
func describe(param *commonv1.Param) string {
	switch {
	case param.Minimum != nil && param.Maximum != nil:
		return fmt.Sprintf("%s (%g to %g)", param.GetName(), param.GetMinimum(), param.GetMaximum())
	case param.GetType() == commonv1.ParamType_PARAM_TYPE_BOOLEAN:
		return param.GetName() + " (y or n)"
	case len(param.GetChoices()) > 0:
		var choices []string
		for _, choice := range param.GetChoices() {
			choices = append(choices, strings.TrimSpace(choice.GetText()))
		}
		return fmt.Sprintf("%s (%s)", param.GetName(), strings.Join(choices, ", "))
	}
	return param.GetName()
}

// wrap breaks a text between words, so that no line is wider than the screen.
func wrap(text string, width int) string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
