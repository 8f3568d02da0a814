import com.google.protobuf.ByteString;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import peripety.api.scenario.v1.SpecItem;
import peripety.api.scenario.v1.SpecVerdict;
import peripety.api.session.v1.CreateSessionRequest;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.SessionServiceGrpc;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TurnEvent;
import peripety.api.session.v1.WatchSessionRequest;
import peripety.api.session.v1.WatchSessionResponse;
import peripety.client.Client;

/** Java side of {@code make bench-clients}. */
public class BenchClient {
  private static Client client;
  private static ExecutorService threads;

  public static void main(String[] arguments) throws Exception {
    List<ByteString> lines = Files.readAllLines(Path.of(arguments[2])).stream()
        .map(line -> ByteString.copyFrom(line, StandardCharsets.UTF_8)).toList();
    int sessions = Integer.parseInt(arguments[3]);
    int turns = Integer.parseInt(arguments[4]);
    int rounds = Integer.parseInt(arguments[5]);
    threads = Executors.newFixedThreadPool(sessions);
    client = Client.connect(arguments[0]);
    double[] best = new double[4];
    for (int round = 0; round < rounds; round++) {
      List<Session> opened = new ArrayList<>();
      for (int number = 0; number < sessions; number++) {
        CreateSessionRequest create = CreateSessionRequest.newBuilder().setScenarioId(arguments[1]).build();
        opened.add(client.sessions().createSession(create).getSession());
      }
      measure(best, 3, () -> openQuietly(opened));
      measure(best, 0, () -> together(opened.stream().map(session -> () -> play(session, turns))));
      measure(best, 1, () -> together(opened.stream().map(session -> () -> watch(session, turns))));
      measure(best, 2, () -> validate(lines));
    }
    client.close();
    threads.shutdown();
    System.out.printf("{\"turns\": %f, \"events\": %f, \"specifications\": %f, \"openings\": %f}%n",
        best[0], best[1], best[2], best[3]);
  }

  private static void measure(double[] best, int index, Callable<Integer> work) throws Exception {
    long started = System.nanoTime();
    int done = work.call();
    best[index] = Math.max(best[index], done * 1e9 / (System.nanoTime() - started));
  }

  private static int together(java.util.stream.Stream<Callable<Integer>> acts) throws Exception {
    int done = 0;
    for (Future<Integer> part : threads.invokeAll(acts.toList())) {
      done += part.get();
    }
    return done;
  }

  private static int openQuietly(List<Session> sessions) throws Exception {
    for (Session session : sessions) {
      CompletableFuture<Metadata> headers = new CompletableFuture<>();
      var call = client.channel().newCall(SessionServiceGrpc.getWatchSessionMethod(), CallOptions.DEFAULT);
      call.start(new ClientCall.Listener<WatchSessionResponse>() {
        @Override
        public void onHeaders(Metadata received) {
          headers.complete(received);
        }
      }, new Metadata());
      call.sendMessage(WatchSessionRequest.newBuilder().setSessionId(session.getSessionId()).build());
      call.halfClose();
      call.request(1);
      headers.get();
      call.cancel("opened", null);
    }
    return sessions.size();
  }

  private static int play(Session opened, int turns) {
    Session session = opened;
    for (int number = 0; number < turns; number++) {
      TakeTurnRequest turn = TakeTurnRequest.newBuilder().addActions(Client.action("hold")).build();
      session = client.play(session, turn).finish();
    }
    return turns;
  }

  private static int watch(Session session, int turns) {
    int events = 0;
    var request = WatchSessionRequest.newBuilder().setSessionId(session.getSessionId()).build();
    try (var responses = client.watch(request)) {
      while (responses.hasNext()) {
        events++;
        TurnEvent event = responses.next().getTurnEvent();
        if (event.hasCommitted() && event.getTurn() == session.getTurn() + turns) {
          break;
        }
      }
    }
    return events;
  }

  private static int validate(List<ByteString> lines) {
    Iterator<SpecItem> documents = IntStream.range(0, lines.size())
        .mapToObj(number -> SpecItem.newBuilder().setItemId(String.valueOf(number)).setSpec(lines.get(number)).build())
        .iterator();
    Iterator<SpecVerdict> verdicts = client.validate(documents, null);
    int accepted = 0;
    while (verdicts.hasNext()) {
      accepted += verdicts.next().getAccepted() ? 1 : 0;
    }
    return accepted;
  }
}
