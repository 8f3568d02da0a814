import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.session.v1.*;
import peripety.client.CallException;
import peripety.client.Client;

/** Receives an unknown id, a stale turn and an invalid field, and decides by the reason. */
public class Errors {
  public static void main(String[] arguments) throws Exception {
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"))) {
      ByteString spec = ByteString.copyFrom(Files.readAllBytes(Path.of("scenario.json")));
      CompileScenarioRequest compile = CompileScenarioRequest.newBuilder().setSpec(spec).build();
      String scenarioId = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile).last()
          .getCompiled().getScenarioId();
      CreateSessionRequest create = CreateSessionRequest.newBuilder().setScenarioId(scenarioId).build();
      Session session = client.sessions().createSession(create).getSession();
      Session old = session.toBuilder().setTurn(8).build(); // as if another client had rewound the session
      for (Runnable call : List.<Runnable>of(
          () -> client.sessions().getSession(GetSessionRequest.newBuilder().setSessionId("unknown").build()),
          () -> client.play(old, TakeTurnRequest.getDefaultInstance()).finish(),
          () -> client.sessions().listSessions(ListSessionsRequest.newBuilder().setPageSize(-1).build()))) {
        try {
          call.run();
        } catch (RuntimeException error) {
          CallException failed = CallException.of(error);
          switch (failed.reason()) {
            case ERROR_REASON_UNKNOWN_SESSION -> System.out.println("gone, start a new game: " + failed.getMessage());
            case ERROR_REASON_STALE_TURN -> System.out.println("read the session again: " + failed.getMessage());
            default -> System.out.println("correct " + failed.violations().get(0).getField() + ": " + failed.getMessage());
          }
        }
      }
    }
  }
}
