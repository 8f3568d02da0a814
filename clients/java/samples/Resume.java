import com.google.protobuf.ByteString;
import java.net.*;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.*;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.session.v1.*;
import peripety.client.Client;

/** Loses the connection within a turn, and continues behind the last event. */
public class Resume {
  public static void main(String[] arguments) throws Exception {
    URI server = URI.create("tcp://" + System.getenv().getOrDefault("PERIPETY_ADDRESS", Client.DEFAULT_ADDRESS));
    BlockingQueue<Socket> connections = new LinkedBlockingQueue<>();
    ExecutorService threads = Executors.newCachedThreadPool(work -> { Thread t = new Thread(work); t.setDaemon(true); return t; });
    ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress()); // in front of the server
    threads.submit(() -> {
      for (Socket near; ; ) {
        connections.add(near = listener.accept());
        Socket far = new Socket(server.getHost(), server.getPort());
        Socket client = near;
        threads.submit(() -> client.getInputStream().transferTo(far.getOutputStream()));
        threads.submit(() -> { far.getInputStream().transferTo(client.getOutputStream()); return null; });
      }
    });
    try (Client client = Client.connect("127.0.0.1:" + listener.getLocalPort())) {
      ByteString spec = ByteString.copyFrom(Files.readAllBytes(Path.of("scenario.json")));
      var compile = CompileScenarioRequest.newBuilder().setSpec(spec).build();
      var compiled = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile).last().getCompiled();
      var create = CreateSessionRequest.newBuilder().setScenarioId(compiled.getScenarioId()).build();
      Session session = client.sessions().createSession(create).getSession();
      for (TurnEvent event : client.play(session, TakeTurnRequest.getDefaultInstance())) {
        System.out.println(event.getSequence() + " " + event.getEventCase().name().toLowerCase());
        if (connections.size() == 1) connections.peek().close(); // the first one; the second continues
      }
    }
  }
}
