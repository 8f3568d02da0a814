package peripety.client;

import java.util.Iterator;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TakeTurnResponse;
import peripety.api.session.v1.TurnEvent;

/** Events of a turn, as they happen. Iterate once; close it to stop early. */
public final class Turn implements Iterable<TurnEvent>, Iterator<TurnEvent>, AutoCloseable {
  private final EventStream<TakeTurnRequest, TakeTurnResponse> responses;
  private Session session;

  Turn(Session session, EventStream<TakeTurnRequest, TakeTurnResponse> responses) {
    this.session = session;
    this.responses = responses;
  }

  /**
   * Returns the session: after the committed event with its turn, status, hashes and legal actions, but without state,
   * because events have no state.
   */
  public Session session() {
    return session;
  }

  /** Reads the turn to its end, and returns the session after it. */
  public Session finish() {
    forEachRemaining(event -> { });
    return session;
  }

  @Override
  public Iterator<TurnEvent> iterator() {
    return this;
  }

  @Override
  public boolean hasNext() {
    return responses.hasNext();
  }

  @Override
  public TurnEvent next() {
    TurnEvent event = responses.next().getEvent();
    if (event.hasCommitted()) {
      TurnEvent.Committed end = event.getCommitted();
      session = session.toBuilder()
          .setTurn(event.getTurn())
          .setLastSequence(event.getSequence())
          .clearState()
          .setStateHash(end.getStateHash())
          .setChainHash(end.getChainHash())
          .setStatus(end.getStatus())
          .clearLegalActions()
          .addAllLegalActions(end.getLegalActionsList())
          .setNextSeatId(end.getNextSeatId())
          .setUpdateTime(end.getCommitTime())
          .build();
    }
    return event;
  }

  @Override
  public void close() {
    responses.close();
  }
}
