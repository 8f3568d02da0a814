package peripety

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "peripety/api/common/v1"
)

// Error is the error of a call, or of one item of a batch. Get it with [errors.As], and decide by its Reason.
//
// It matches [context.Canceled] and [context.DeadlineExceeded] if the call ended for that reason.
type Error struct {
	// Code is the status of the call.
	Code codes.Code
	// Reason is the reason of the server. It is unspecified if the server did not send one, or one that is not
	// in the catalogue of this version; see ReasonName.
	Reason commonv1.ErrorReason
	// ReasonName is the reason as the server sent it, such as STALE_TURN or the code of a finding. It is empty
	// if the error did not come from a Peripety server.
	ReasonName string
	// Message is one sentence for display: the problem and the remedy.
	Message string
	// Violations are the invalid fields of the request.
	Violations []*commonv1.FieldViolation
	// RetryAfter is the time to wait before a retry; 0 if the server sent none.
	RetryAfter time.Duration
	// Metadata has identifiers and limits that the message refers to.
	Metadata map[string]string

	cause error
}

// Error returns the status, the reason and the message, and a line for each invalid field.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", strings.TrimSpace(e.Code.String()+" "+e.ReasonName), e.Message)
	for _, violation := range e.Violations {
		fmt.Fprintf(&text, "\n  %s: %s", violation.GetField(), violation.GetDescription())
	}
	return text.String()
}

// Unwrap returns the error of gRPC; nil for an item of a batch.
func (e *Error) Unwrap() error { return e.cause }

// Is compares with the errors of a context.
func (e *Error) Is(target error) bool {
	return target == context.Canceled && e.Code == codes.Canceled ||
		target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded
}

// GRPCStatus returns the status with all its details, for [status.FromError].
func (e *Error) GRPCStatus() *status.Status {
	if found, ok := status.FromError(e.cause); ok && e.cause != nil && found.Code() == e.Code {
		return found
	}
	return status.New(e.Code, e.Message)
}

// ConnectionLost reports that the connection or the server was lost, so that the effect of the call is unknown.
// Send the same request with the same RequestId again.
func (e *Error) ConnectionLost() bool {
	switch e.Code {
	case codes.Unavailable:
		return true
	case codes.Aborted, codes.Internal, codes.Unknown, codes.DataLoss: // of a broken stream, or of a proxy
		return e.ReasonName == ""
	default:
		return false
	}
}

// ItemError converts the error of one item of a batch, such as SpecVerdict.Error. It returns nil for nil.
func ItemError(item *commonv1.ItemError) error {
	if item == nil {
		return nil
	}
	return &Error{
		Code:       codes.Code(item.GetCode()),
		Reason:     reasonOf(item.GetReason()),
		ReasonName: item.GetReason(),
		Message:    item.GetMessage(),
		Violations: item.GetViolations(),
		RetryAfter: item.GetRetryAfter().AsDuration(),
		Metadata:   item.GetMetadata(),
	}
}

func reasonOf(name string) commonv1.ErrorReason {
	return commonv1.ErrorReason(commonv1.ErrorReason_value["ERROR_REASON_"+name])
}

// callError converts an error of a call with a context. It preserves nil and io.EOF, the end of a stream.
func callError(ctx context.Context, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	found, ok := status.FromError(err)
	if !ok {
		found = status.FromContextError(err)
	}
	failed := &Error{Code: found.Code(), Message: found.Message(), cause: err}
	for _, detail := range found.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == "peripety" {
				failed.ReasonName, failed.Metadata = detail.GetReason(), detail.GetMetadata()
				failed.Reason = reasonOf(failed.ReasonName)
			}
		case *errdetails.BadRequest:
			for _, field := range detail.GetFieldViolations() {
				violation := commonv1.FieldViolation{Field: field.GetField(), Description: field.GetDescription()}
				failed.Violations = append(failed.Violations, &violation)
			}
		case *errdetails.RetryInfo:
			failed.RetryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	if failed.ReasonName == "" {
		failed.explain(ctx)
	}
	return failed
}

// explain adds the remedy to an error that did not come from a Peripety server.
func (e *Error) explain(ctx context.Context) {
	if e.Code == codes.Canceled && ctx.Err() == nil { // not by the caller
		e.Code = codes.Unavailable
	}
	switch e.Code {
	case codes.Unavailable:
		e.Message = fmt.Sprintf("server does not respond (%s); check that it runs at this address", e.Message)
	case codes.DeadlineExceeded:
		e.Message = fmt.Sprintf("server did not respond in time (%s); use a context with a later deadline", e.Message)
	case codes.Unimplemented:
		e.Message = fmt.Sprintf("server does not implement this call (%s); it may be an older version", e.Message)
	}
}
