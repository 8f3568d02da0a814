import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.CompileScenarioResponse;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.session.v1.CreateSessionRequest;
import peripety.api.session.v1.Session;
import peripety.api.session.v1.TakeTurnRequest;
import peripety.api.session.v1.TurnEvent;
import peripety.client.Client;
import peripety.client.Turn;

/** Plays until the run ends, and prints each event as it arrives. */
public class StreamTurns {
  public static void main(String[] arguments) throws Exception {
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"))) {
      ByteString spec = ByteString.copyFrom(Files.readAllBytes(Path.of("scenario.json")));
      CompileScenarioRequest compile = CompileScenarioRequest.newBuilder().setSpec(spec).build();
      CreateSessionRequest.Builder create = CreateSessionRequest.newBuilder();
      var work = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile);
      for (CompileScenarioResponse response; work.hasNext(); ) {
        response = work.next();
        System.out.printf("%.0f %% %s%n", 100 * response.getProgress().getFraction(), response.getProgress().getMessage());
        create.setScenarioId(response.getCompiled().getScenarioId());
      }
      Session session = client.sessions().createSession(create.build()).getSession();
      while (session.getLegalActionsCount() > 0) {
        String action = session.getLegalActions(0).getActionId();
        Turn turn = client.play(session, TakeTurnRequest.newBuilder().addActions(Client.action(action)).build());
        for (TurnEvent event : turn) { // accepted: discard earlier events of the turn
          System.out.println(event.getSequence() + " " + event.getEventCase() + " " + event.getNarrativeChunk().getText());
        }
        session = turn.session();
      }
      System.out.println(session.getTurn() + " " + session.getStatus().getKind());
    }
  }
}
