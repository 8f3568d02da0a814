package peripety.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import peripety.api.common.v1.ErrorReason;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.GenerateScenarioRequest;
import peripety.api.scenario.v1.GenerateScenarioResponse;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.scenario.v1.SpecItem;
import peripety.api.scenario.v1.SpecVerdict;
import peripety.api.session.v1.CreateSessionRequest;
import peripety.api.session.v1.GetSessionRequest;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.SessionServiceGrpc;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TurnEvent;
import peripety.api.session.v1.WatchSessionRequest;
import peripety.api.session.v1.WatchSessionResponse;

/** The client against a real server, over good and bad connections. {@code make test-clients} starts the server. */
@EnabledIfEnvironmentVariable(named = "PERIPETY_ADDRESS", matches = ".+")
class ClientTest {
  private static final String ADDRESS = System.getenv("PERIPETY_ADDRESS");
  private static final Path SCENARIO = Path.of("../samples/scenario.json");

  private static Session newSession(Client client) throws IOException {
    CompileScenarioRequest compile =
        CompileScenarioRequest.newBuilder().setSpec(ByteString.copyFrom(Files.readAllBytes(SCENARIO))).build();
    String id = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile).last()
        .getCompiled().getScenarioId();
    CreateSessionRequest create = CreateSessionRequest.newBuilder().setScenarioId(id).setSeed(7).build();
    return client.sessions().createSession(create).getSession();
  }

  private static TakeTurnRequest tend() {
    return TakeTurnRequest.newBuilder().addActions(Client.action("tend")).setInput("I listen.").build();
  }

  /** Returns the events of the attempt that counts, without what differs from session to session. */
  private static List<TurnEvent> told(Iterable<TurnEvent> turn) {
    List<TurnEvent> found = new ArrayList<>();
    for (TurnEvent event : turn) {
      TurnEvent.Builder counted = event.toBuilder().clearSessionId();
      if (event.hasAccepted()) {
        found.clear();
        counted.setAccepted(TurnEvent.Accepted.getDefaultInstance());
      } else if (event.hasCommitted()) {
        counted.getCommittedBuilder().clearCommitTime().clearUsage(); // the prompt of a later session is cached
      }
      found.add(counted.build());
    }
    return found;
  }

  /** A proxy that breaks connections on command. */
  private static final class Proxy implements AutoCloseable {
    private final Process process;
    private final BufferedReader replies;
    private final Writer commands;
    final String address;

    Proxy() throws IOException {
      process = new ProcessBuilder(System.getenv("PERIPETY_PYTHON"), "-m", "support.servers.misbehaving_proxy", ADDRESS)
          .redirectError(ProcessBuilder.Redirect.INHERIT).start();
      replies = process.inputReader();
      commands = process.outputWriter();
      address = replies.readLine().replace("listening on ", "");
    }

    String send(String command) throws IOException {
      commands.write(command + "\n");
      commands.flush();
      return replies.readLine();
    }

    @Override
    public void close() {
      process.destroyForcibly();
    }
  }

  @Test
  void aTurnIsStreamedAndTheSessionIsAtTheNextOne() throws Exception {
    try (Client client = Client.connect(ADDRESS)) {
      Turn turn = client.play(newSession(client), tend());
      List<TurnEvent> events = told(turn);
      assertTrue(events.get(0).hasAccepted() && events.get(events.size() - 1).hasCommitted());
      GetSessionRequest get = GetSessionRequest.newBuilder().setSessionId(turn.session().getSessionId()).build();
      Session stored = client.sessions().getSession(get).getSession();
      assertEquals(stored.toBuilder().clearState().clearUsage().build(), turn.session().toBuilder().clearUsage().build());
    }
  }

  @Test
  void aTurnInAnotherThreadHasTheSameEvents() throws Exception {
    try (Client client = Client.connect(ADDRESS)) {
      List<TurnEvent> expected = told(client.play(newSession(client), tend()));
      Queue<TurnEvent> events = new ConcurrentLinkedQueue<>();
      Session after = client.playAsync(newSession(client), tend(), events::add, task -> new Thread(task).start()).get();
      assertEquals(expected, told(events));
      assertEquals(1, after.getTurn());
    }
  }

  @Test
  void aTurnInAnotherThreadIsCancelledWithItsFuture() throws Exception {
    try (Client client = Client.connect(ADDRESS); Proxy proxy = new Proxy();
        Client slow = Client.connect(proxy.address)) {
      proxy.send("delay 0.5");
      AtomicReference<Thread> reader = new AtomicReference<>();
      CompletableFuture<Session> after = slow.playAsync(newSession(client), tend(), event -> { }, task -> {
        reader.set(new Thread(task));
        reader.get().start();
      });
      after.cancel(true);
      reader.get().join(10_000);
      assertFalse(reader.get().isAlive());
      assertTrue(after.isCancelled());
    }
  }

  @Test
  void anExportedSessionHasTheChainHashOfTheServer() throws Exception {
    try (Client client = Client.connect(ADDRESS)) {
      Session session = newSession(client);
      for (int turn = 0; turn < 3; turn++) {
        session = client.play(session, tend()).finish();
      }
      Transcript verified = Transcript.verify(new ByteArrayInputStream(client.export(session.getSessionId())));
      assertEquals(session.getChainHash(), verified.chainHash());
      assertEquals(3, verified.turns());
    }
  }

  @Test
  void aLargeBatchHasAVerdictOnEachDocument() throws Exception {
    ByteString spec = ByteString.copyFrom(Files.readAllBytes(SCENARIO));
    Iterator<SpecItem> documents = IntStream.range(0, 1000).mapToObj(index -> SpecItem.newBuilder()
        .setItemId("" + index).setSpec(index % 10 == 0 ? ByteString.copyFromUtf8("{") : spec).build()).iterator();
    int[] counts = {0, 0};
    try (Client client = Client.connect(ADDRESS)) {
      Iterator<SpecVerdict> verdicts = client.validate(documents, null);
      while (verdicts.hasNext()) {
        counts[verdicts.next().getAccepted() ? 0 : 1]++;
      }
    }
    assertEquals(List.of(900, 100), List.of(counts[0], counts[1]));
  }

  @Test
  void aTurnThatIsCutAtAnyByteIsPlayedOnce() throws Exception {
    int cuts = Integer.parseInt(System.getenv().getOrDefault("PERIPETY_CUTS", "16"));
    Random random = new Random(7);
    int broken = 0;
    try (Client direct = Client.connect(ADDRESS); Proxy proxy = new Proxy()) {
      List<TurnEvent> expected = told(direct.play(newSession(direct), tend()));
      for (int cut = 0; cut < cuts; cut++) {
        String fault = cut % 4 == 3 ? "cut_request " + random.nextInt(400) : "cut " + random.nextInt(1500);
        Session session = newSession(direct);
        try (Client client = Client.connect(proxy.address)) {
          proxy.send(fault);
          Turn turn = client.play(session, tend());
          assertEquals(expected, told(turn), fault);
          assertEquals(1, turn.session().getTurn(), fault);
        }
        broken += proxy.send("state").equals("triggered") ? 1 : 0;
        proxy.send("clear");
      }
    }
    assertTrue(broken >= cuts / 2, broken + " of " + cuts + " connections broke");
  }

  @ParameterizedTest
  @ValueSource(strings = {"goaway 3", "goaway 6", "refuse 0", "refuse 3", "duplicate", "delay 0.01", "trickle"})
  void aTurnSurvivesWhatProxiesDo(String fault) throws Exception {
    try (Client direct = Client.connect(ADDRESS); Proxy proxy = new Proxy()) {
      List<TurnEvent> expected = told(direct.play(newSession(direct), tend()));
      try (Client client = Client.connect(proxy.address)) {
        for (int round = 0; round < 2; round++) { // the second turn uses what the first has left of the connection
          Session session = newSession(direct);
          proxy.send(fault);
          assertEquals(expected, told(client.play(session, tend())), fault);
          proxy.send("clear");
        }
      }
    }
  }

  @Test
  void aFrozenConnectionIsNoticedByPings() throws Exception {
    try (Client direct = Client.connect(ADDRESS); Proxy proxy = new Proxy();
        Client client = Client.connect(proxy.address)) {
      List<TurnEvent> expected = told(direct.play(newSession(direct), tend()));
      Session session = newSession(direct);
      proxy.send("freeze 300");
      assertEquals(expected, told(client.play(session, tend())));
    }
  }

  @Test
  void aSlowReaderGetsEveryEvent() throws Exception {
    try (Client client = Client.connect(ADDRESS)) {
      List<TurnEvent> expected = told(client.play(newSession(client), tend()));
      Iterator<TurnEvent> turn = client.play(newSession(client), tend());
      List<TurnEvent> slowly = new ArrayList<>();
      while (turn.hasNext()) {
        Thread.sleep(20);
        slowly.add(turn.next());
      }
      assertEquals(expected, told(slowly));
    }
  }

  @Test
  void aQuietStreamOpensBeforeItsFirstEvent() throws Exception {
    try (Client client = Client.connect(ADDRESS)) {
      AtomicReference<Metadata> headers = new AtomicReference<>();
      AtomicReference<Metadata> trailers = new AtomicReference<>();
      Channel channel = ClientInterceptors.intercept(
          client.channel(), MetadataUtils.newCaptureMetadataInterceptor(headers, trailers));
      String id = newSession(client).getSessionId();
      SessionServiceGrpc.newBlockingStub(channel).watchSession(WatchSessionRequest.newBuilder().setSessionId(id).build());
      for (int wait = 0; headers.get() == null && wait < 1000; wait++) {
        Thread.sleep(5);
      }
      assertNotNull(headers.get());
      assertNull(trailers.get());
    }
  }

  @Test
  void aLostServerIsATypedError() {
    try (Client client = Client.connect("127.0.0.1:1")) {
      Turn turn = client.play(Session.newBuilder().setSessionId("unknown").build(), tend());
      assertTrue(assertThrows(CallException.class, turn::hasNext).isLostConnection());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"clear", "cut 20", "cut_request 20", "refuse 3", "trickle"})
  void aRefusedTurnIsTheSameErrorOnAnyConnection(String fault) throws Exception {
    TakeTurnRequest turn = TakeTurnRequest.newBuilder().addActions(Client.action("unknown")).build();
    try (Client direct = Client.connect(ADDRESS); Proxy proxy = new Proxy();
        Client client = Client.connect(proxy.address)) {
      Session session = newSession(direct);
      proxy.send(fault);
      CallException refused = assertThrows(CallException.class, () -> told(client.play(session, turn)));
      assertEquals(Status.Code.INVALID_ARGUMENT, refused.code());
      assertEquals("actions[0].action_id", refused.violations().get(0).getField());
    }
  }

  @Test
  void aWatchContinuesOverCutsWithoutGaps() throws Exception {
    try (Client direct = Client.connect(ADDRESS); Proxy proxy = new Proxy();
        Client client = Client.connect(proxy.address)) {
      Session session = newSession(direct);
      for (int turn = 0; turn < 3; turn++) {
        session = direct.play(session, tend()).finish();
      }
      proxy.send("cut 300");
      List<Long> seen = new ArrayList<>();
      WatchSessionRequest request = WatchSessionRequest.newBuilder().setSessionId(session.getSessionId()).build();
      try (EventStream<?, WatchSessionResponse> responses = client.watch(request)) {
        while (seen.isEmpty() || seen.get(seen.size() - 1) < session.getLastSequence()) {
          WatchSessionResponse response = responses.next();
          if (response.hasTurnEvent()) {
            seen.add(response.getTurnEvent().getSequence());
            if (seen.size() % 5 == 0) {
              proxy.send("cut 100");
            }
          }
        }
      }
      assertEquals(LongStream.rangeClosed(1, session.getLastSequence()).boxed().toList(), seen);
    }
  }

  @Test
  void longWorkContinuesBehindItsLastEvent() throws Exception {
    try (Proxy proxy = new Proxy(); Client client = Client.connect(proxy.address)) {
      proxy.send("cut 700");
      GenerateScenarioRequest request =
          GenerateScenarioRequest.newBuilder().setDescription("Two players share one table.").build();
      EventStream<?, GenerateScenarioResponse> responses =
          client.follow(ScenarioServiceGrpc.getGenerateScenarioMethod(), request);
      long next = 1;
      while (responses.hasNext()) {
        assertEquals(next++, responses.next().getSequence());
      }
      assertTrue(next > 2);
    }
  }

  @Test
  void anUnknownSessionIsATypedError() {
    try (Client client = Client.connect(ADDRESS)) {
      GetSessionRequest request = GetSessionRequest.newBuilder().setSessionId("unknown").build();
      CallException failed = CallException.of(
          assertThrows(RuntimeException.class, () -> client.sessions().getSession(request)));
      assertEquals(Status.Code.NOT_FOUND, failed.code());
      assertEquals(ErrorReason.ERROR_REASON_UNKNOWN_SESSION, failed.reason());
      assertFalse(failed.getMessage().isEmpty() || failed.isLostConnection());
    }
  }

  @Test
  void aTokenIsNeverSentAsPlaintextToAnotherMachine() {
    IllegalArgumentException refused = assertThrows(IllegalArgumentException.class,
        () -> Client.connect("example.org:443", InsecureChannelCredentials.create(), () -> "secret"));
    assertTrue(refused.getMessage().startsWith("token: ") && !refused.getMessage().contains("secret"));
  }
}
