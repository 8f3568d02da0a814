package peripety

import (
	"context"
	"crypto/rand"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// callUnary gives each request an id, and each error its type.
func callUnary(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return callError(ctx, invoke(ctx, method, withRequestID(request), reply, connection, options...))
}

// callStream does the same for streams.
func callStream(ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, method string,
	start grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := start(ctx, description, connection, method, options...)
	if err != nil {
		return nil, callError(ctx, err)
	}
	return &clientStream{ClientStream: stream, ctx: ctx}, nil
}

type clientStream struct {
	grpc.ClientStream
	ctx       context.Context
	isStarted bool
}

func (s *clientStream) SendMsg(message any) error {
	if !s.isStarted { // the first message of a stream identifies the request
		s.isStarted, message = true, withRequestID(message)
	}
	return callError(s.ctx, s.ClientStream.SendMsg(message))
}

func (s *clientStream) RecvMsg(message any) error {
	return callError(s.ctx, s.ClientStream.RecvMsg(message))
}

// withRequestID returns the request with a new id, if it needs one and has none.
func withRequestID(request any) any {
	message, ok := request.(proto.Message)
	if !ok {
		return request
	}
	field := fieldOf(message, "request_id")
	if field == nil || field.ContainingOneof() != nil || message.ProtoReflect().Has(field) {
		return request
	}
	identified := proto.Clone(message) // a request that is sent twice without an id is two requests
	identified.ProtoReflect().Set(field, protoreflect.ValueOfString(newRequestID()))
	return identified
}

// fieldOf returns the field with a name; nil if the message has none.
func fieldOf(message proto.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return message.ProtoReflect().Descriptor().Fields().ByName(name)
}

// newRequestID returns a random UUID.
func newRequestID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
