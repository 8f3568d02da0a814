package peripety

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	commonv1 "peripety/api/common/v1"
	sessionv1 "peripety/api/session/v1"
)

const (
	longestPause = 2 * time.Second
	longestHint  = 30 * time.Second
	endPause     = time.Second // for the server to end a stream after its last event
)

// Variables for tests.
var (
	maxAttempts = 10 // failed attempts in a row, without an event in between
	firstPause  = 100 * time.Millisecond
)

// Play plays the next turn of a session, and yields its events as they happen. The last one is committed, or
// rule_failed if the turn was abandoned.
//
// After a lost connection the turn continues with the same request id, so it is played once, and each event is
// yielded once. If the first attempt had no effect, accepted follows again: discard the earlier events of the turn.
//
// The request may be nil. Play sets its SessionId and ExpectedTurn and, if they are empty, its RequestId and
// PovEntityId. The committed event updates the session: turn, status, hashes and legal actions. State is cleared,
// because events have no state.
//
// An error is the last value. It is an [*Error]: the turn was refused, or the connection did not return.
func (c *Client) Play(ctx context.Context, session *sessionv1.Session, turn *sessionv1.TakeTurnRequest,
) iter.Seq2[*sessionv1.TurnEvent, error] {
	return func(yield func(*sessionv1.TurnEvent, error) bool) {
		request := &sessionv1.TakeTurnRequest{}
		proto.Merge(request, turn)
		request.SessionId, request.ExpectedTurn = session.GetSessionId(), session.GetTurn()+1
		if request.GetPovEntityId() == "" {
			request.PovEntityId = session.GetPovEntityId()
		}
		for response, err := range Follow(ctx, c.Sessions.TakeTurn, request) {
			update(session, response.GetEvent())
			if !yield(response.GetEvent(), err) {
				return
			}
		}
	}
}

// Watch follows a session: recorded events first, then live events, without gaps, over lost connections and restarts
// of the server. It ends with closed when the run has ended or the session was deleted.
func (c *Client) Watch(ctx context.Context, request *sessionv1.WatchSessionRequest,
) iter.Seq2[*sessionv1.WatchSessionResponse, error] {
	return Follow(ctx, c.Sessions.WatchSession, request)
}

// Follow yields the responses of a call that streams numbered events, and continues it after a lost connection:
// behind the last event, without repetitions. Use it for long work, whose responses include its progress:
//
//	peripety.Follow(ctx, client.Scenarios.GenerateScenario, &scenariov1.GenerateScenarioRequest{Description: text})
//
// If the server has no record of the work, it starts again, with sequence number 1. An error is the last value.
func Follow[Request, Response any](ctx context.Context,
	call func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Response], error),
	request *Request) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		position := newCursor(any(request).(proto.Message))
		for {
			err := read(ctx, call, position, yield)
			if err == nil {
				return
			}
			pause, isFinal := position.pauseAfter(err)
			if deadline, ok := ctx.Deadline(); isFinal || ok && time.Until(deadline) <= pause {
				yield(nil, err)
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				yield(nil, callError(ctx, ctx.Err()))
				return
			}
		}
	}
}

// read yields the new responses of one call. It returns nil if the stream has ended or the reader has stopped.
func read[Request, Response any](ctx context.Context,
	call func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Response], error),
	position *cursor, yield func(*Response, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := call(ctx, any(position.request).(*Request))
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if reason := closeReason(response); reason == "TOO_SLOW" || reason == "SERVER_SHUTTING_DOWN" {
			return &Error{Code: codes.Unavailable, Message: "server ended the stream: " + reason}
		}
		if !position.advance(response) {
			continue
		}
		isLast := isEndOfTurn(response)
		if isLast {
			timer := time.AfterFunc(endPause, cancel)
			_, _ = stream.Recv() // the turn is stored; the status of the call changes nothing
			timer.Stop()
		}
		if !yield(response, nil) || isLast {
			return nil
		}
	}
}

// cursor is the position in a stream of numbered events, and the request that continues there.
type cursor struct {
	request  proto.Message
	last     int64
	attempt  string // attempt of the turn that the last event belongs to
	failures int
}

func newCursor(request proto.Message) *cursor {
	position := &cursor{request: proto.Clone(withRequestID(request).(proto.Message))}
	if numbered, ok := request.(interface{ GetAfterSequence() int64 }); ok {
		position.last = numbered.GetAfterSequence()
	}
	if attempted, ok := request.(interface{ GetAttemptId() string }); ok {
		position.attempt = attempted.GetAttemptId()
	}
	return position
}

// advance records a response, and returns true if it is not a repetition.
func (c *cursor) advance(response any) bool {
	c.failures = 0
	event := numberedEvent(response)
	if event == nil {
		return true
	}
	attempt := c.attempt
	if turn, ok := event.(*sessionv1.TurnEvent); ok && turn.GetAccepted() != nil {
		attempt = turn.GetAccepted().GetAttemptId()
	}
	if event.GetSequence() <= c.last && attempt == c.attempt {
		return false
	}
	c.last, c.attempt = event.GetSequence(), attempt
	return true
}

// pauseAfter prepares the request that continues, and returns the time to wait before it. The error is final if
// repeating the call does not help, or has not helped.
func (c *cursor) pauseAfter(err error) (pause time.Duration, isFinal bool) {
	var failed *Error
	if !errors.As(err, &failed) {
		return 0, true
	}
	c.failures++
	isForgotten := failed.Reason == commonv1.ErrorReason_ERROR_REASON_WORK_NOT_FOUND && c.last > 0
	isBusy := failed.Code == codes.ResourceExhausted && 0 < failed.RetryAfter && failed.RetryAfter <= longestHint
	if c.failures >= maxAttempts || !(failed.ConnectionLost() || isForgotten || isBusy) {
		return 0, true
	}
	if isForgotten { // the server lost the unfinished work, which starts again from its first event
		c.last = 0
	}
	if field := fieldOf(c.request, "after_sequence"); field != nil {
		c.request.ProtoReflect().Set(field, protoreflect.ValueOfInt64(c.last))
	}
	if field := fieldOf(c.request, "attempt_id"); field != nil {
		c.request.ProtoReflect().Set(field, protoreflect.ValueOfString(c.attempt))
	}
	longest := min(longestPause, firstPause<<(c.failures-1))
	return max(failed.RetryAfter, time.Duration(float64(longest)*(0.5+rand.Float64()/2))), false
}

// numberedEvent returns the part of a response that has its sequence number; nil for one without a number.
func numberedEvent(response any) interface{ GetSequence() int64 } {
	switch response := response.(type) {
	case *sessionv1.WatchSessionResponse:
		if event := response.GetTurnEvent(); event != nil {
			return event
		} else if event := response.GetRewound(); event != nil {
			return event
		}
	case interface{ GetEvent() *sessionv1.TurnEvent }:
		return response.GetEvent()
	case interface{ GetSequence() int64 }:
		return response
	}
	return nil
}

func closeReason(response any) string {
	watched, _ := response.(*sessionv1.WatchSessionResponse)
	return watched.GetClosed().GetReason()
}

// isEndOfTurn reports that a turn has no further events: it was stored, or abandoned without effect.
func isEndOfTurn(response any) bool {
	played, _ := response.(interface{ GetEvent() *sessionv1.TurnEvent })
	if played == nil {
		return false
	}
	event := played.GetEvent()
	return event.GetCommitted() != nil || event.GetRuleFailed().GetTurnAbandoned()
}

// update advances a session by the committed event of its next turn.
func update(session *sessionv1.Session, event *sessionv1.TurnEvent) {
	end := event.GetCommitted()
	if end == nil {
		return
	}
	session.Turn, session.LastSequence, session.State = event.GetTurn(), event.GetSequence(), nil
	session.StateHash, session.ChainHash = end.GetStateHash(), end.GetChainHash()
	session.Status, session.LegalActions = end.GetStatus(), end.GetLegalActions()
	session.NextSeatId, session.UpdateTime = end.GetNextSeatId(), end.GetCommitTime()
}

// Action returns an action with its parameters, such as Action("rest", Number("hours", 2)).
func Action(id string, params ...Param) *commonv1.ActionCall {
	call := &commonv1.ActionCall{ActionId: id, Params: map[string]*commonv1.ParamValue{}}
	for _, param := range params {
		call.Params[param.name] = param.value
	}
	return call
}

// Param is a parameter of an action.
type Param struct {
	name  string
	value *commonv1.ParamValue
}

// Number returns a parameter of type integer or number.
func Number(name string, value float64) Param {
	return Param{name, &commonv1.ParamValue{Kind: &commonv1.ParamValue_Number{Number: value}}}
}

// Text returns a parameter of type string.
func Text(name, value string) Param {
	return Param{name, &commonv1.ParamValue{Kind: &commonv1.ParamValue_Text{Text: value}}}
}

// Flag returns a parameter of type boolean.
func Flag(name string, value bool) Param {
	return Param{name, &commonv1.ParamValue{Kind: &commonv1.ParamValue_Flag{Flag: value}}}
}

// Last reads a stream to its end, and returns its last value: the result of long work, or a committed turn.
func Last[Value any](stream iter.Seq2[Value, error]) (last Value, err error) {
	for last, err = range stream {
	}
	return last, err
}

// Kind returns the name of the event of a message, such as committed; empty if the event is unknown.
func Kind(message proto.Message) string {
	reflected := message.ProtoReflect()
	if choice := reflected.Descriptor().Oneofs().ByName("event"); choice != nil {
		if field := reflected.WhichOneof(choice); field != nil {
			return string(field.Name())
		}
	}
	return ""
}
