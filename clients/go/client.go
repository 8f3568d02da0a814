// Package peripety is the Go client of Peripety: turns as streams that survive a lost connection, typed errors,
// batches, progress of long work, and the verification of exported sessions.
//
//	client, err := peripety.Connect("127.0.0.1:50051")
//	...
//	for event, err := range client.Play(ctx, session, &sessionv1.TakeTurnRequest{Input: "I listen."}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(event.GetNarrativeChunk().GetText())
//	}
//
// Messages and stubs are in the packages below api. A request without RequestId gets a new one, so that a retry
// has no second effect.
package peripety

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	agentv1 "peripety/api/agent/v1"
	gatewayv1 "peripety/api/gateway/v1"
	policyv1 "peripety/api/policy/v1"
	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
	testgenv1 "peripety/api/testgen/v1"
)

const maxMessageBytes = 4 << 20

//go:embed service-config.json
var serviceConfig string

// Client has the stubs of all services over one connection. Its methods may be called from several goroutines.
type Client struct {
	Agents    agentv1.AgentServiceClient
	Gateway   gatewayv1.GatewayServiceClient
	Policies  policyv1.PolicyServiceClient
	Scenarios scenariov1.ScenarioServiceClient
	Sessions  sessionv1.SessionServiceClient
	Tests     testgenv1.TestGenServiceClient

	connection *grpc.ClientConn
}

// Option is a setting of a connection.
type Option func(*settings)

type settings struct {
	tls   *tls.Config
	token func(context.Context) (string, error)
	dial  []grpc.DialOption
}

// WithTLS encrypts the connection. The config may be nil, for the certificate authorities of the system.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		s.tls = config
	}
}

// WithToken sends a bearer token with each call.
func WithToken(token string) Option {
	return WithTokenSource(func(context.Context) (string, error) { return token, nil })
}

// WithTokenSource sends the bearer token that a function returns for each call, so that it can be refreshed.
func WithTokenSource(source func(context.Context) (string, error)) Option {
	return func(s *settings) { s.token = source }
}

// WithDialOptions adds options of gRPC, which override those of this package: interceptors, keepalive, a dialer.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.dial = append(s.dial, options...) }
}

// DefaultAddress is the address of a server that was started without one.
const DefaultAddress = "127.0.0.1:50051"

// Connect returns a client of the server at host:port; an empty address is [DefaultAddress]. It connects at its first
// call. Calls have the deadline of
// their context and that of the service config, whichever is earlier, and are retried by the service config.
//
// A token is never sent as plaintext to another machine: without TLS, that is an error.
func Connect(address string, options ...Option) (*Client, error) {
	var chosen settings
	for _, option := range options {
		option(&chosen)
	}
	address = cmp.Or(address, DefaultAddress)
	isUnix := strings.HasPrefix(address, "unix:")
	host, _, err := net.SplitHostPort(address)
	if err != nil && !isUnix {
		return nil, fmt.Errorf("address: not host:port: %q; for example %s, with WithTLS for TLS", address, DefaultAddress)
	}
	transport := insecure.NewCredentials()
	if chosen.tls != nil {
		transport = credentials.NewTLS(chosen.tls)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		// Servers close connections that are pinged every 20 s or more often.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(callUnary),
		grpc.WithChainStreamInterceptor(callStream),
	}
	if chosen.token != nil {
		if chosen.tls == nil && !isUnix && host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return nil, errors.New("token: would be sent as plaintext to another machine: " + address + "; add WithTLS")
		}
		dial = append(dial, grpc.WithPerRPCCredentials(tokens{chosen.token, chosen.tls != nil}))
	}
	connection, err := grpc.NewClient(address, append(dial, chosen.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return &Client{
		Agents:     agentv1.NewAgentServiceClient(connection),
		Gateway:    gatewayv1.NewGatewayServiceClient(connection),
		Policies:   policyv1.NewPolicyServiceClient(connection),
		Scenarios:  scenariov1.NewScenarioServiceClient(connection),
		Sessions:   sessionv1.NewSessionServiceClient(connection),
		Tests:      testgenv1.NewTestGenServiceClient(connection),
		connection: connection,
	}, nil
}

// Close closes the connection. Running calls fail.
func (c *Client) Close() error { return c.connection.Close() }

// tokens sends a bearer token with each call.
type tokens struct {
	source   func(context.Context) (string, error)
	needsTLS bool
}

func (t tokens) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := t.source(ctx)
	return map[string]string{"authorization": "Bearer " + token}, err
}

func (t tokens) RequireTransportSecurity() bool { return t.needsTLS }
