package peripety.client;

import com.google.protobuf.ByteString;
import io.grpc.Channel;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.scenario.v1.SpecItem;
import peripety.api.scenario.v1.SpecVerdict;
import peripety.api.scenario.v1.ValidateScenariosRequest;
import peripety.api.scenario.v1.ValidateScenariosResponse;
import peripety.api.scenario.v1.ValidationOptions;

/** Verdicts on a batch of specifications. Documents are read while the server accepts them. */
final class Verdicts
    implements Iterator<SpecVerdict>, ClientResponseObserver<ValidateScenariosRequest, ValidateScenariosResponse> {
  private static final int ITEMS_PER_MESSAGE = 256;
  private static final int BYTES_PER_MESSAGE = Client.MAX_MESSAGE_BYTES / 8;
  private static final int MAX_SPEC_BYTES = (1 << 20) + 1; // longer ones are rejected for their length

  private final BlockingQueue<Object> received = new LinkedBlockingQueue<>(); // responses, errors, this at the end
  private final Iterator<SpecItem> documents;
  private ValidationOptions options;
  private ClientCallStreamObserver<ValidateScenariosRequest> requests;
  private Iterator<SpecVerdict> verdicts = Collections.emptyIterator();
  private boolean isSent;
  private boolean isEnded;

  Verdicts(Channel channel, Iterator<SpecItem> documents, ValidationOptions options) {
    this.documents = documents;
    this.options = options;
    ScenarioServiceGrpc.newStub(channel).validateScenarios(this);
  }

  @Override
  public void beforeStart(ClientCallStreamObserver<ValidateScenariosRequest> stream) {
    requests = stream;
    stream.disableAutoRequestWithInitial(1);
    stream.setOnReadyHandler(this::send);
  }

  /** Sends messages while the server accepts them. */
  private void send() {
    try {
      while (requests.isReady() && !isSent) {
        ValidateScenariosRequest message = nextMessage();
        if (message.getItemsCount() > 0) {
          requests.onNext(message);
        }
        if (!documents.hasNext()) {
          isSent = true;
          requests.onCompleted();
        }
      }
    } catch (RuntimeException error) { // of the documents
      isSent = true;
      received.add(error);
      requests.cancel("the documents cannot be read", error);
    }
  }

  private ValidateScenariosRequest nextMessage() {
    ValidateScenariosRequest.Builder message = ValidateScenariosRequest.newBuilder();
    if (options != null) {
      message.setOptions(options);
      options = null;
    }
    int size = 0;
    while (documents.hasNext() && message.getItemsCount() < ITEMS_PER_MESSAGE && size < BYTES_PER_MESSAGE) {
      SpecItem item = documents.next();
      ByteString spec = item.getSpec().substring(0, Math.min(item.getSpec().size(), MAX_SPEC_BYTES));
      message.addItems(item.toBuilder().setSpec(spec));
      size += spec.size();
    }
    return message.build();
  }

  @Override
  public void onNext(ValidateScenariosResponse response) {
    received.add(response);
  }

  @Override
  public void onError(Throwable error) {
    received.add(CallException.of(error));
  }

  @Override
  public void onCompleted() {
    received.add(this);
  }

  @Override
  public boolean hasNext() {
    while (!verdicts.hasNext() && !isEnded) {
      try {
        Object found = received.take();
        if (found instanceof ValidateScenariosResponse response) {
          verdicts = response.getVerdictsList().iterator();
          requests.request(1); // the next response only now, so that nothing piles up here
        } else {
          isEnded = true;
          if (found instanceof RuntimeException error) {
            throw error;
          }
        }
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        isEnded = true;
        requests.cancel("interrupted", interrupted);
      }
    }
    return verdicts.hasNext();
  }

  @Override
  public SpecVerdict next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    return verdicts.next();
  }
}
