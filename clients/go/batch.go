package peripety

import (
	"context"
	"io"
	"iter"

	"google.golang.org/grpc"

	scenariov1 "peripety/api/scenario/v1"
	sessionv1 "peripety/api/session/v1"
)

const (
	itemsPerMessage = 256
	bytesPerMessage = maxMessageBytes / 8
	maxSpecBytes    = 1<<20 + 1 // longer specifications are rejected for their length, so the rest is not sent
)

// Validate validates specifications over one stream, and yields a verdict on each, in any order. The options may be
// nil.
//
// Documents are read by another goroutine, and only as fast as the verdicts are consumed; not after the loop has ended.
// An error of documents ends the batch. It is yielded as it is, after the verdicts on the documents before it.
func (c *Client) Validate(ctx context.Context, documents iter.Seq2[*scenariov1.SpecItem, error],
	options *scenariov1.ValidationOptions) iter.Seq2[*scenariov1.SpecVerdict, error] {
	return func(yield func(*scenariov1.SpecVerdict, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		stream, err := c.Scenarios.ValidateScenarios(ctx)
		if err != nil {
			cancel()
			yield(nil, err)
			return
		}
		sent := make(chan error, 1)
		go func() { sent <- sendDocuments(stream, documents, options) }()
		isStopped, err := readVerdicts(stream, yield)
		cancel()
		if failure := <-sent; err == nil {
			err = failure
		}
		if err != nil && !isStopped {
			yield(nil, err)
		}
	}
}

type validationStream = grpc.BidiStreamingClient[
	scenariov1.ValidateScenariosRequest, scenariov1.ValidateScenariosResponse]

func readVerdicts(stream validationStream, yield func(*scenariov1.SpecVerdict, error) bool,
) (isStopped bool, err error) {
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, err
		}
		for _, verdict := range response.GetVerdicts() {
			if !yield(verdict, nil) {
				return true, nil
			}
		}
	}
}

// sendDocuments packs documents into few messages. It returns the error of the documents; the reader of the stream
// receives those of the call.
func sendDocuments(stream validationStream, documents iter.Seq2[*scenariov1.SpecItem, error],
	options *scenariov1.ValidationOptions) error {
	request, size := &scenariov1.ValidateScenariosRequest{Options: options}, 0
	defer func() {
		if len(request.GetItems()) > 0 {
			_ = stream.Send(request)
		}
		_ = stream.CloseSend()
	}()
	for item, err := range documents {
		if err != nil {
			return err
		}
		spec := item.GetSpec()[:min(len(item.GetSpec()), maxSpecBytes)]
		request.Items = append(request.Items, &scenariov1.SpecItem{ItemId: item.GetItemId(), Spec: spec})
		size += len(spec)
		if len(request.Items) == itemsPerMessage || size >= bytesPerMessage {
			err := stream.Send(request)
			request, size = &scenariov1.ValidateScenariosRequest{}, 0
			if err != nil {
				return nil
			}
		}
	}
	return nil
}

// Export returns a session with all its turns as a bundle, which [VerifyTranscript] verifies.
func (c *Client) Export(ctx context.Context, sessionID string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Sessions.ExportSession(ctx, &sessionv1.ExportSessionRequest{SessionId: sessionID})
	if err != nil {
		return nil, err
	}
	var bundle []byte
	for {
		part, err := stream.Recv()
		if err == io.EOF {
			return bundle, nil
		} else if err != nil {
			return nil, err
		}
		bundle = append(bundle, part.GetChunk()...)
	}
}
