import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.session.v1.CreateSessionRequest;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TurnEvent;
import peripety.client.Client;
import peripety.client.Turn;

/** Compiles a scenario, starts a session and plays one turn. */
public class Quickstart {
  public static void main(String[] arguments) throws Exception {
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"))) {
      ByteString spec = ByteString.copyFrom(Files.readAllBytes(Path.of("scenario.json")));
      CompileScenarioRequest compile = CompileScenarioRequest.newBuilder().setSpec(spec).build();
      String scenarioId = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile).last()
          .getCompiled().getScenarioId();

      CreateSessionRequest create = CreateSessionRequest.newBuilder().setScenarioId(scenarioId).build();
      Session session = client.sessions().createSession(create).getSession();
      Turn turn = client.play(session, TakeTurnRequest.newBuilder().addActions(Client.action("tend")).build());
      for (TurnEvent event : turn) {
        System.out.print(event.getNarrativeChunk().getText());
      }
      System.out.printf("%nturn %d is stored, chain hash %s%n",
          turn.session().getTurn(), turn.session().getChainHash());
    }
  }
}
