package peripety.client;

import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import peripety.api.agent.v1.AgentServiceGrpc;
import peripety.api.common.v1.ActionCall;
import peripety.api.common.v1.ParamValue;
import peripety.api.gateway.v1.GatewayServiceGrpc;
import peripety.api.policy.v1.ApprovalServiceGrpc;
import peripety.api.policy.v1.PolicyServiceGrpc;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.scenario.v1.SpecItem;
import peripety.api.scenario.v1.SpecVerdict;
import peripety.api.scenario.v1.ValidationOptions;
import peripety.api.session.v1.ExportSessionRequest;
import peripety.api.session.v1.ExportSessionResponse;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.SessionServiceGrpc;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TurnEvent;
import peripety.api.session.v1.WatchSessionRequest;
import peripety.api.session.v1.WatchSessionResponse;
import peripety.api.testgen.v1.TestGenServiceGrpc;

/**
 * Client with the stubs of all services over one connection. Its methods may be called from several threads.
 *
 * <p>A request without a request id gets a new one, so that a retry has no second effect. Deadlines and retries follow
 * the service config.
 */
public final class Client implements AutoCloseable {
  /** Address of a server that was started without one. */
  public static final String DEFAULT_ADDRESS = "127.0.0.1:50051";

  static final int MAX_MESSAGE_BYTES = 4 << 20;

  private final ManagedChannel connection;
  private final Channel channel;

  private Client(ManagedChannel connection, ClientInterceptor... interceptors) {
    this.connection = connection;
    this.channel = ClientInterceptors.intercept(connection, interceptors);
  }

  /** Returns a client of the server at {@code host:port}, as plaintext. It connects at its first call. */
  public static Client connect(String address) {
    return connect(address, InsecureChannelCredentials.create(), null);
  }

  /**
   * Returns a client of the server at {@code host:port}; an empty address is {@link #DEFAULT_ADDRESS}.
   *
   * @param credentials {@code TlsChannelCredentials.create()} for TLS, or {@code InsecureChannelCredentials}
   * @param token function that returns the bearer token of each call; null for none
   * @throws IllegalArgumentException a token would be sent as plaintext to another machine
   */
  public static Client connect(String address, ChannelCredentials credentials, Supplier<String> token) {
    String target = address == null || address.isEmpty() ? DEFAULT_ADDRESS : address;
    boolean isLocal = target.startsWith("127.") || target.startsWith("localhost:") || target.startsWith("[::1]:");
    boolean isPlaintext = credentials instanceof InsecureChannelCredentials;
    if (token != null && isPlaintext && !isLocal) {
      throw new IllegalArgumentException(
          "token: would be sent as plaintext to another machine: " + target + "; use TlsChannelCredentials");
    }
    ManagedChannel connection = Grpc.newChannelBuilder(target, credentials)
        .defaultServiceConfig(serviceConfig())
        .enableRetry()
        .maxInboundMessageSize(MAX_MESSAGE_BYTES)
        .keepAliveTime(30, TimeUnit.SECONDS) // servers close connections that are pinged every 20 s or more often
        .keepAliveTimeout(10, TimeUnit.SECONDS)
        .build();
    ClientInterceptor ids = new RequestIds();
    return token == null ? new Client(connection, ids) : new Client(connection, ids, new Tokens(token));
  }

  @SuppressWarnings("unchecked")
  private static Map<String, ?> serviceConfig() {
    try (Reader text = new InputStreamReader(
        Client.class.getResourceAsStream("service-config.json"), StandardCharsets.UTF_8)) {
      return new Gson().fromJson(text, Map.class);
    } catch (IOException error) {
      throw new IllegalStateException("service-config.json is missing in the archive", error);
    }
  }

  /** Returns the channel, for stubs of your own, such as {@code SessionServiceGrpc.newStub(client.channel())}. */
  public Channel channel() {
    return channel;
  }

  /** Returns the stub for agent runs. */
  public AgentServiceGrpc.AgentServiceBlockingStub agents() {
    return AgentServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for calls that wait for a person; connect to the enforcement point. */
  public ApprovalServiceGrpc.ApprovalServiceBlockingStub approvals() {
    return ApprovalServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for language models. */
  public GatewayServiceGrpc.GatewayServiceBlockingStub gateway() {
    return GatewayServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for policies, and their decisions. */
  public PolicyServiceGrpc.PolicyServiceBlockingStub policies() {
    return PolicyServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for scenarios from texts. */
  public ScenarioServiceGrpc.ScenarioServiceBlockingStub scenarios() {
    return ScenarioServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for sessions of scenarios. */
  public SessionServiceGrpc.SessionServiceBlockingStub sessions() {
    return SessionServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the stub for generated tests. */
  public TestGenServiceGrpc.TestGenServiceBlockingStub tests() {
    return TestGenServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Plays the next turn of a session, and returns its events as they happen. The last one is {@code committed}, or
   * {@code rule_failed} if the turn was abandoned.
   *
   * <p>After a lost connection the turn continues with the same request id, so it is played once, and each event is
   * returned once. If the first attempt had no effect, {@code accepted} follows again: discard the earlier events.
   *
   * @param session the session as the server returned it; {@link Turn#session()} is the session after the turn
   * @param turn its session id and expected turn are set, and an empty request id and point of view
   */
  public Turn play(Session session, TakeTurnRequest turn) {
    TakeTurnRequest.Builder request = turn.toBuilder()
        .setSessionId(session.getSessionId()).setExpectedTurn(session.getTurn() + 1);
    if (turn.getPovEntityId().isEmpty()) {
      request.setPovEntityId(session.getPovEntityId());
    }
    return new Turn(session, follow(SessionServiceGrpc.getTakeTurnMethod(), request.build()));
  }

  /**
   * Plays the next turn as {@link #play} does, in a thread of an executor: for a game loop, which must not wait.
   *
   * @param events receives each event, in that thread
   * @return the session after the turn; cancel it to cancel the call
   */
  public CompletableFuture<Session> playAsync(
      Session session, TakeTurnRequest turn, Consumer<TurnEvent> events, Executor executor) {
    Turn played = play(session, turn);
    CompletableFuture<Session> after = CompletableFuture.supplyAsync(() -> {
      played.forEachRemaining(events);
      return played.session();
    }, executor);
    after.whenComplete((found, error) -> played.close());
    return after;
  }

  /**
   * Follows a session: recorded events first, then live events, without gaps, over lost connections and restarts of the
   * server. It ends with {@code closed} when the run has ended or the session was deleted.
   */
  public EventStream<WatchSessionRequest, WatchSessionResponse> watch(WatchSessionRequest request) {
    return follow(SessionServiceGrpc.getWatchSessionMethod(), request);
  }

  /**
   * Returns the responses of a call that streams numbered events, and continues it after a lost connection, without
   * repetitions. Use it for long work, whose responses include its progress, with a method such as
   * {@code ScenarioServiceGrpc.getGenerateScenarioMethod()}.
   */
  public <Q extends Message, R extends Message> EventStream<Q, R> follow(MethodDescriptor<Q, R> method, Q request) {
    return new EventStream<>(channel, method, request);
  }

  /**
   * Validates specifications over one stream, and returns a verdict on each, in any order. Documents are read only as
   * fast as the server validates them. A lost connection ends the verdicts with a {@link CallException}.
   *
   * @param options may be null
   */
  public Iterator<SpecVerdict> validate(Iterator<SpecItem> documents, ValidationOptions options) {
    return new Verdicts(channel, documents, options);
  }

  /** Returns a session as a bundle, for {@link Transcript#verify} and {@code ImportSession}. */
  public byte[] export(String sessionId) {
    ByteString bundle = ByteString.EMPTY;
    ExportSessionRequest request = ExportSessionRequest.newBuilder().setSessionId(sessionId).build();
    try (EventStream<?, ExportSessionResponse> chunks = follow(SessionServiceGrpc.getExportSessionMethod(), request)) {
      while (chunks.hasNext()) {
        bundle = bundle.concat(chunks.next().getChunk());
      }
    }
    return bundle.toByteArray();
  }

  /** Returns an action; give its parameters as names and values in turn: {@code action("rest", "hours", 2)}. */
  public static ActionCall action(String id, Object... params) {
    ActionCall.Builder call = ActionCall.newBuilder().setActionId(id);
    for (int index = 0; index + 1 < params.length; index += 2) {
      Object value = params[index + 1];
      ParamValue.Builder param = ParamValue.newBuilder();
      if (value instanceof Boolean flag) {
        param.setFlag(flag);
      } else if (value instanceof Number number) {
        param.setNumber(number.doubleValue());
      } else {
        param.setText(String.valueOf(value));
      }
      call.putParams((String) params[index], param.build());
    }
    return call.build();
  }

  /** Closes the connection. Running calls fail. */
  @Override
  public void close() {
    connection.shutdownNow();
  }

  /** Sets a new request id in each request that needs one and has none. */
  private static final class RequestIds implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        @SuppressWarnings("unchecked")
        public void sendMessage(Q message) {
          super.sendMessage(message instanceof Message request ? (Q) EventStream.withRequestId(request) : message);
        }
      };
    }
  }

  /** Sends a bearer token with each call. */
  private static final class Tokens implements ClientInterceptor {
    private static final Metadata.Key<String> KEY =
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    private final Supplier<String> token;

    Tokens(Supplier<String> token) {
      this.token = token;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          headers.put(KEY, "Bearer " + token.get());
          super.start(listener, headers);
        }
      };
    }
  }
}
