package peripety

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "peripety/api/common/v1"
	sessionv1 "peripety/api/session/v1"
)

// Calls against a server in this process, which fails as the test requests.

type fakeServer struct {
	sessionv1.UnimplementedSessionServiceServer
	mutex    sync.Mutex
	failures []error // of the next calls
	pushback string  // sent with each failure
	calls    []context.Context
	ids      []string
	play     func(attempt int, stream grpc.ServerStreamingServer[sessionv1.TakeTurnResponse]) error
	watch    func(request *sessionv1.WatchSessionRequest) []*sessionv1.WatchSessionResponse
}

func (s *fakeServer) record(ctx context.Context, id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls, s.ids = append(s.calls, ctx), append(s.ids, id)
	if len(s.failures) == 0 {
		return nil
	}
	failure := s.failures[0]
	s.failures = s.failures[1:]
	if failure != nil && s.pushback != "" {
		grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", s.pushback))
	}
	return failure
}

func (s *fakeServer) GetSession(ctx context.Context, _ *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	return &sessionv1.GetSessionResponse{}, s.record(ctx, "")
}

func (s *fakeServer) DeleteSession(ctx context.Context, request *sessionv1.DeleteSessionRequest) (
	*sessionv1.DeleteSessionResponse, error) {
	return &sessionv1.DeleteSessionResponse{}, s.record(ctx, request.GetRequestId())
}

func (s *fakeServer) TakeTurn(request *sessionv1.TakeTurnRequest,
	stream grpc.ServerStreamingServer[sessionv1.TakeTurnResponse]) error {
	if err := s.record(stream.Context(), request.GetRequestId()); err != nil {
		return err
	}
	return s.play(len(s.ids), stream)
}

func (s *fakeServer) WatchSession(request *sessionv1.WatchSessionRequest,
	stream grpc.ServerStreamingServer[sessionv1.WatchSessionResponse]) error {
	for _, response := range s.watch(request) {
		if err := stream.Send(response); err != nil {
			return err
		}
	}
	return nil
}

// serve returns a client of the server.
func (s *fakeServer) serve(t *testing.T, options ...Option) *Client {
	return connect(t, listen(t, s), options...)
}

func listen(t *testing.T, served *fakeServer, options ...grpc.ServerOption) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running := grpc.NewServer(options...)
	sessionv1.RegisterSessionServiceServer(running, served)
	go running.Serve(listener)
	t.Cleanup(running.Stop)
	return listener.Addr().String()
}

func unavailable(times int) []error {
	return slices.Repeat([]error{status.Error(codes.Unavailable, "restarting")}, times)
}

func accepted(sequence int64, attempt string) *sessionv1.TurnEvent {
	event := &sessionv1.TurnEvent_Accepted_{Accepted: &sessionv1.TurnEvent_Accepted{AttemptId: attempt}}
	return &sessionv1.TurnEvent{Turn: 1, Sequence: sequence, Event: event}
}

func committed(sequence int64) *sessionv1.TurnEvent {
	event := &sessionv1.TurnEvent_Committed_{Committed: &sessionv1.TurnEvent_Committed{ChainHash: "h"}}
	return &sessionv1.TurnEvent{Turn: 1, Sequence: sequence, Event: event}
}

func TestACallIsRepeatedThreeTimesWithTokenAndDeadline(t *testing.T) {
	fake := &fakeServer{failures: unavailable(3), pushback: "1"}
	client := fake.serve(t, WithToken("secret"))
	if _, err := client.Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{}); err != nil {
		t.Fatal(err)
	}
	if len(fake.calls) != 4 {
		t.Fatalf("%d calls", len(fake.calls))
	}
	for _, ctx := range fake.calls {
		if token := metadata.ValueFromIncomingContext(ctx, "authorization"); !slices.Equal(token, []string{"Bearer secret"}) {
			t.Errorf("token: %v", token)
		}
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
			t.Errorf("deadline: %v", deadline)
		}
	}
	failing := &fakeServer{failures: unavailable(4), pushback: "1"}
	_, err := failing.serve(t).Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{})
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != codes.Unavailable || len(failing.calls) != 4 {
		t.Errorf("%d calls: %v", len(failing.calls), err)
	}
}

func TestOtherErrorsAreNotRepeated(t *testing.T) {
	for _, fake := range []*fakeServer{
		{failures: []error{status.Error(codes.NotFound, "no")}},
		{failures: unavailable(1), pushback: "-1"}, // the server forbids to repeat the call
	} {
		_, err := fake.serve(t).Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{})
		if err == nil || len(fake.calls) != 1 {
			t.Errorf("%d calls: %v", len(fake.calls), err)
		}
	}
}

func TestAFailingServerGetsNoMoreRetriesAfterAWhile(t *testing.T) {
	fake := &fakeServer{failures: unavailable(99), pushback: "1"}
	client := fake.serve(t)
	for range 10 {
		_, _ = client.Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{})
	}
	if len(fake.calls) >= 20 {
		t.Errorf("%d calls", len(fake.calls))
	}
}

func TestARepeatedCallHasTheSameRequestID(t *testing.T) {
	fake := &fakeServer{failures: unavailable(1), pushback: "1"}
	client := fake.serve(t)
	for _, id := range []string{"", "", "chosen"} {
		request := &sessionv1.DeleteSessionRequest{SessionId: "a", RequestId: id}
		if _, err := client.Sessions.DeleteSession(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if request.GetRequestId() != id {
			t.Error("the request of the caller was changed")
		}
	}
	if ids := fake.ids; len(ids) != 4 || len(ids[0]) != 36 || ids[0] != ids[1] || ids[1] == ids[2] || ids[3] != "chosen" {
		t.Errorf("ids: %v", ids)
	}
}

func TestAnErrorHasTheDetailsOfTheServer(t *testing.T) {
	full, err := status.New(codes.ResourceExhausted, "full").WithDetails(
		&errdetails.ErrorInfo{Domain: "peripety", Reason: "OF_A_NEWER_SERVER", Metadata: map[string]string{"limit": "8"}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(2250 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeServer{failures: []error{full.Err()}}
	_, err = fake.serve(t).Sessions.GetSession(t.Context(), &sessionv1.GetSessionRequest{})
	var failed *Error
	if !errors.As(err, &failed) || failed.RetryAfter != 2250*time.Millisecond || failed.Metadata["limit"] != "8" ||
		failed.ReasonName != "OF_A_NEWER_SERVER" || failed.Reason != commonv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		t.Errorf("%#v", err)
	}
	if found, ok := status.FromError(err); !ok || found.Code() != codes.ResourceExhausted || len(found.Details()) != 2 {
		t.Errorf("status: %v", found)
	}
}

func TestAReaderThatStopsEndsTheCallOnTheServer(t *testing.T) {
	isCancelled := make(chan struct{})
	fake := &fakeServer{play: func(_ int, stream grpc.ServerStreamingServer[sessionv1.TakeTurnResponse]) error {
		_ = stream.Send(&sessionv1.TakeTurnResponse{Event: accepted(1, "a")})
		<-stream.Context().Done()
		close(isCancelled)
		return nil
	}}
	for range fake.serve(t).Play(t.Context(), &sessionv1.Session{SessionId: "a"}, nil) {
		break
	}
	<-isCancelled
}

func TestACancelledTurnEndsAtOnceAndIsNotContinued(t *testing.T) {
	fake := &fakeServer{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Last(fake.serve(t).Play(ctx, &sessionv1.Session{SessionId: "a"}, nil))
	if !errors.Is(err, context.Canceled) || len(fake.calls) > 0 {
		t.Errorf("%d calls: %v", len(fake.calls), err)
	}
}

func TestATurnContinuesWithTheSameRequest(t *testing.T) {
	for name, second := range map[string]string{"the turn was stored": "a", "the turn is played again": "b"} {
		fake := &fakeServer{play: func(attempt int, stream grpc.ServerStreamingServer[sessionv1.TakeTurnResponse]) error {
			if attempt == 1 {
				_ = stream.Send(&sessionv1.TakeTurnResponse{Event: accepted(1, "a")})
				return status.Error(codes.Internal, "stream was broken")
			}
			_ = stream.Send(&sessionv1.TakeTurnResponse{Event: accepted(1, second)})
			return stream.Send(&sessionv1.TakeTurnResponse{Event: committed(2)})
		}}
		session := &sessionv1.Session{SessionId: "a"}
		var kinds []string
		for event, err := range fake.serve(t).Play(t.Context(), session, nil) {
			if err != nil {
				t.Fatal(name, err)
			}
			kinds = append(kinds, Kind(event))
		}
		expected := []string{"accepted", "committed"}
		if second == "b" {
			expected = []string{"accepted", "accepted", "committed"}
		}
		if !slices.Equal(kinds, expected) || fake.ids[0] != fake.ids[1] || session.GetTurn() != 1 {
			t.Errorf("%s: %v, ids %v, turn %d", name, kinds, fake.ids, session.GetTurn())
		}
	}
}

func TestAWatchContinuesWhenTheServerShutsDown(t *testing.T) {
	var requests []*sessionv1.WatchSessionRequest
	closed := func(reason string) *sessionv1.WatchSessionResponse {
		end := &sessionv1.WatchSessionResponse_Closed{Reason: reason}
		return &sessionv1.WatchSessionResponse{Event: &sessionv1.WatchSessionResponse_Closed_{Closed: end}}
	}
	turn := func(event *sessionv1.TurnEvent) *sessionv1.WatchSessionResponse {
		return &sessionv1.WatchSessionResponse{Event: &sessionv1.WatchSessionResponse_TurnEvent{TurnEvent: event}}
	}
	fake := &fakeServer{watch: func(request *sessionv1.WatchSessionRequest) []*sessionv1.WatchSessionResponse {
		if requests = append(requests, request); len(requests) == 1 {
			return []*sessionv1.WatchSessionResponse{turn(accepted(4, "a")), closed("SERVER_SHUTTING_DOWN")}
		}
		return []*sessionv1.WatchSessionResponse{turn(committed(5)), closed("RUN_ENDED")}
	}}
	var kinds []string
	for response, err := range fake.serve(t).Watch(t.Context(), &sessionv1.WatchSessionRequest{AfterSequence: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, Kind(response))
	}
	if !slices.Equal(kinds, []string{"turn_event", "turn_event", "closed"}) {
		t.Errorf("events: %v", kinds)
	}
	if requests[1].GetAfterSequence() != 4 || requests[1].GetAttemptId() != "a" {
		t.Errorf("second request: %v", requests[1])
	}
}

func TestAConnectionWithTLSTrustsTheGivenAuthorityAlone(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}
	pair := tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}
	address := listen(t, &fakeServer{}, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)
	request := &sessionv1.GetSessionRequest{}
	trusting := connect(t, address, WithTLS(&tls.Config{RootCAs: trusted}), WithToken("secret"))
	if _, err := trusting.Sessions.GetSession(t.Context(), request); err != nil {
		t.Error(err)
	}
	_, err = connect(t, address, WithTLS(nil)).Sessions.GetSession(t.Context(), request)
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != codes.Unavailable {
		t.Error(err)
	}
}

func TestBadSettingsAreErrors(t *testing.T) {
	for _, address := range []string{"localhost", "http://localhost:50051"} {
		if _, err := Connect(address); err == nil {
			t.Errorf("%s was accepted", address)
		}
	}
	if _, err := Connect("192.0.2.1:50051", WithToken("secret")); err == nil {
		t.Error("a token would be sent as plaintext to another machine")
	}
	socket := "unix:" + filepath.Join(t.TempDir(), "socket")
	for _, local := range []string{"localhost:1", "127.0.0.1:1", "[::1]:1", socket} {
		connect(t, local, WithToken("secret"))
	}
}
