package peripety.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import peripety.api.common.v1.ErrorReason;
import peripety.api.session.v1.TurnEvent;
import peripety.api.session.v1.WatchSessionResponse;

/**
 * Responses of a call that streams numbered events. It continues after a lost connection, behind the last event. Close
 * it to cancel the call. {@code next} and {@code hasNext} wait, and throw {@link CallException}.
 *
 * @param <Q> type of the request
 * @param <R> type of the responses
 */
public final class EventStream<Q extends Message, R extends Message> implements Iterator<R>, AutoCloseable {
  private static final int ATTEMPTS = 10; // failed attempts in a row, without an event in between
  private static final double FIRST_PAUSE_MS = 100;
  private static final double LONGEST_PAUSE_MS = 2_000;
  private static final Duration LONGEST_HINT = Duration.ofSeconds(30);

  private final Channel channel;
  private final MethodDescriptor<Q, R> method;
  private Q request;
  private volatile Context.CancellableContext context;
  private Iterator<R> responses;
  private R next;
  private volatile boolean isEnded;
  private long last;
  private String attempt = "";
  private int failures;

  @SuppressWarnings("unchecked")
  EventStream(Channel channel, MethodDescriptor<Q, R> method, Q request) {
    this.channel = channel;
    this.method = method;
    this.request = (Q) withRequestId(request);
    FieldDescriptor after = request.getDescriptorForType().findFieldByName("after_sequence");
    this.last = after == null ? 0 : (long) request.getField(after);
  }

  static Message withRequestId(Message request) {
    FieldDescriptor id = request.getDescriptorForType().findFieldByName("request_id");
    if (id == null || id.getRealContainingOneof() != null || !request.getField(id).equals("")) {
      return request;
    }
    return request.toBuilder().setField(id, UUID.randomUUID().toString()).build();
  }

  @Override
  public boolean hasNext() {
    while (next == null && !isEnded) {
      try {
        if (responses == null) {
          open();
        }
        read();
      } catch (Exception thrown) {
        CallException error = CallException.of(thrown);
        cancel();
        responses = null;
        if (!isEnded) {
          pauseAfter(error);
        }
      }
    }
    return next != null;
  }

  @Override
  public R next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    R response = next;
    next = null;
    return response;
  }

  /** Reads the stream to its end, and returns its last response: the result of long work. */
  public R last() {
    R found = next();
    while (hasNext()) {
      found = next();
    }
    return found;
  }

  /** Cancels the call, also from another thread than that of its reader. */
  @Override
  public synchronized void close() {
    isEnded = true;
    next = null;
    cancel();
  }

  private synchronized void open() throws Exception {
    context = Context.current().withCancellation();
    responses = context.call(() ->
        ClientCalls.blockingServerStreamingCall(channel, method, CallOptions.DEFAULT, request));
    if (isEnded) {
      cancel();
    }
  }

  private void cancel() {
    if (context != null) {
      context.cancel(null);
    }
  }

  private void read() {
    if (!responses.hasNext()) {
      isEnded = true;
      return;
    }
    R response = responses.next();
    if (response instanceof WatchSessionResponse watched
        && watched.getClosed().getReason().matches("SERVER_SHUTTING_DOWN|TOO_SLOW")) {
      throw Status.UNAVAILABLE.withDescription("server ended the stream: " + watched.getClosed().getReason())
          .asRuntimeException();
    }
    if (!advance(response)) {
      return;
    }
    next = response;
    if (event(response) instanceof TurnEvent event && !(response instanceof WatchSessionResponse)
        && (event.hasCommitted() || event.getRuleFailed().getTurnAbandoned())) {
      isEnded = true; // the turn is stored; the status of the call changes nothing
    }
  }

  /** Records a response, and returns true if it is not a repetition. */
  private boolean advance(R response) {
    failures = 0;
    Message event = event(response);
    FieldDescriptor number = event == null ? null : event.getDescriptorForType().findFieldByName("sequence");
    if (number == null) {
      return true;
    }
    long sequence = (long) event.getField(number);
    String current =
        event instanceof TurnEvent turn && turn.hasAccepted() ? turn.getAccepted().getAttemptId() : attempt;
    if (sequence <= last && current.equals(attempt)) {
      return false;
    }
    last = sequence;
    attempt = current;
    return true;
  }

  /** Returns the part of a response that has its sequence number; null for one without a number. */
  private static Message event(Message response) {
    if (response instanceof WatchSessionResponse watched) {
      return watched.hasTurnEvent() ? watched.getTurnEvent() : watched.hasRewound() ? watched.getRewound() : null;
    }
    FieldDescriptor field = response.getDescriptorForType().findFieldByName("event");
    return field == null || field.getJavaType() != FieldDescriptor.JavaType.MESSAGE
        ? response : (Message) response.getField(field);
  }

  /** Prepares the request that continues, and waits; throws the error if repeating does not help or has not helped. */
  @SuppressWarnings("unchecked")
  private void pauseAfter(CallException error) {
    failures++;
    boolean isForgotten = error.reason() == ErrorReason.ERROR_REASON_WORK_NOT_FOUND && last > 0;
    Duration hint = error.retryAfter() == null ? Duration.ZERO : error.retryAfter();
    boolean isBusy = error.code() == Status.Code.RESOURCE_EXHAUSTED && !hint.isZero()
        && hint.compareTo(LONGEST_HINT) <= 0;
    if (failures >= ATTEMPTS || !(error.isLostConnection() || isForgotten || isBusy)) {
      isEnded = true;
      throw error;
    }
    if (isForgotten) {
      last = 0; // the server lost the unfinished work, which starts again from its first event
    }
    Message.Builder changed = request.toBuilder();
    FieldDescriptor after = request.getDescriptorForType().findFieldByName("after_sequence");
    FieldDescriptor attempted = request.getDescriptorForType().findFieldByName("attempt_id");
    if (after != null) {
      changed.setField(after, last);
    }
    if (attempted != null) {
      changed.setField(attempted, attempt);
    }
    request = (Q) changed.build();
    double longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * Math.pow(2, failures - 1));
    double spread = longest * (0.5 + ThreadLocalRandom.current().nextDouble() / 2);
    try {
      Thread.sleep(Math.max(hint.toMillis(), (long) spread));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      isEnded = true;
      throw error;
    }
  }
}
