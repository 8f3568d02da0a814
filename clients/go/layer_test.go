package peripety

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	commonv1 "peripety/api/common/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

// The client against a real server.

func TestATurnIsStreamedAndTheSessionIsAtTheNextOne(t *testing.T) {
	client := server(t)
	session := newSession(t, client)
	var kinds []string
	for event, err := range client.Play(t.Context(), session, tend()) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, Kind(event))
	}
	if !slices.Equal(kinds[:3], []string{"accepted", "action_resolved", "world_resolved"}) ||
		kinds[len(kinds)-1] != "committed" {
		t.Errorf("events: %v", kinds)
	}
	request := &sessionv1.GetSessionRequest{SessionId: session.GetSessionId()}
	read, err := client.Sessions.GetSession(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	stored := read.GetSession()
	stored.State, stored.Usage, session.Usage = nil, nil, nil
	if !proto.Equal(session, stored) {
		t.Errorf("session: %v\nstored: %v", session, stored)
	}
}

func TestAnExportedSessionHasTheChainHashOfTheServer(t *testing.T) {
	client := server(t)
	session := newSession(t, client)
	for range 3 {
		play(t, client, session)
	}
	bundle, err := client.Export(t.Context(), session.GetSessionId())
	if err != nil {
		t.Fatal(err)
	}
	verified, err := VerifyTranscript(bytes.NewReader(bundle))
	if err != nil || verified.ChainHash != session.GetChainHash() || verified.Turns != 3 {
		t.Errorf("%+v, %v", verified, err)
	}
}

func TestAnErrorHasItsReasonAndTheInvalidFields(t *testing.T) {
	client := server(t)
	session := newSession(t, client)
	_, unknown := client.Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{SessionId: "unknown"})
	_, invalid := client.Sessions.ListSessions(t.Context(), &sessionv1.ListSessionsRequest{PageSize: -1})
	session.Turn = 5
	_, stale := Last(client.Play(t.Context(), session, nil))
	for _, expected := range []struct {
		err    error
		code   codes.Code
		reason commonv1.ErrorReason
		field  string
	}{
		{unknown, codes.NotFound, commonv1.ErrorReason_ERROR_REASON_UNKNOWN_SESSION, ""},
		{invalid, codes.InvalidArgument, commonv1.ErrorReason_ERROR_REASON_INVALID_ARGUMENT, "page_size"},
		{stale, codes.Aborted, commonv1.ErrorReason_ERROR_REASON_STALE_TURN, ""},
	} {
		var failed *Error
		if !errors.As(expected.err, &failed) || failed.Code != expected.code || failed.Reason != expected.reason ||
			failed.ConnectionLost() {
			t.Errorf("%v, expected %s", expected.err, expected.reason)
		} else if expected.field != "" && failed.Violations[0].GetField() != expected.field {
			t.Errorf("violations: %v", failed.Violations)
		}
	}
}

func TestProgressNeverDecreasesAndEnds(t *testing.T) {
	client := server(t)
	var fractions []float64
	last := ""
	for response, err := range Follow(t.Context(), client.Scenarios.CompileScenario, scenario(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if progress := response.GetProgress(); progress != nil {
			fractions = append(fractions, progress.GetFraction())
		}
		last = Kind(response)
	}
	if len(fractions) < 4 || !slices.IsSorted(fractions) || last != "compiled" {
		t.Errorf("progress: %v, last event: %s", fractions, last)
	}
}

func TestAQuietStreamOpensBeforeItsFirstEvent(t *testing.T) {
	client := server(t)
	request := &sessionv1.WatchSessionRequest{SessionId: newSession(t, client).GetSessionId()}
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	stream, err := client.Sessions.WatchSession(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	t.Logf("opened in %v", time.Since(start))
	cancel()
	if _, err := stream.Recv(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDocumentsAreReadOnlyAsFastAsVerdicts(t *testing.T) {
	client := server(t)
	read, spec := make(chan int, 1), scenario(t).GetSpec()
	endless := func(yield func(*scenariov1.SpecItem, error) bool) {
		count := 0
		for yield(&scenariov1.SpecItem{ItemId: fmt.Sprint(count), Spec: spec}, nil) {
			count++
		}
		read <- count
	}
	verdicts := 0
	for verdict, err := range client.Validate(t.Context(), endless, nil) {
		if err != nil || !verdict.GetAccepted() {
			t.Fatal(verdict, err)
		}
		if verdicts++; verdicts == 500 {
			time.Sleep(300 * time.Millisecond) // nothing is read meanwhile
		} else if verdicts == 1000 {
			break
		}
	}
	if count := <-read; count > 20_000 {
		t.Errorf("%d documents were read for %d verdicts", count, verdicts)
	}
}

func TestAnErrorOfTheDocumentsFollowsTheVerdicts(t *testing.T) {
	client := server(t)
	noMore, spec := errors.New("no further documents"), scenario(t).GetSpec()
	failing := func(yield func(*scenariov1.SpecItem, error) bool) {
		_ = yield(&scenariov1.SpecItem{ItemId: "1", Spec: spec}, nil) && yield(nil, noMore)
	}
	var ids []string
	var failure error
	for verdict, err := range client.Validate(t.Context(), failing, nil) {
		if failure = err; err == nil {
			ids = append(ids, verdict.GetItemId())
		}
	}
	if failure != noMore || !slices.Equal(ids, []string{"1"}) {
		t.Errorf("verdicts: %v, error: %v", ids, failure)
	}
}
