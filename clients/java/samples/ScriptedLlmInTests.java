import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import peripety.api.scenario.v1.CompileScenarioRequest;
import peripety.api.scenario.v1.ScenarioServiceGrpc;
import peripety.api.session.v1.*;
import peripety.client.Client;

/**
 * Tests a game whose model is scripted: the same words in every run, without a key and without cost. Start the server
 * with {@code MODEL_PROVIDER=scripted PERIPETY_SCRIPT=clients/samples/script.toml peripety serve}.
 */
public class ScriptedLlmInTests {
  public static void main(String[] arguments) throws Exception {
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"))) {
      ByteString spec = ByteString.copyFrom(Files.readAllBytes(Path.of("scenario.json")));
      var compile = CompileScenarioRequest.newBuilder().setSpec(spec).build();
      var compiled = client.follow(ScenarioServiceGrpc.getCompileScenarioMethod(), compile).last().getCompiled();
      var create = CreateSessionRequest.newBuilder().setScenarioId(compiled.getScenarioId()).build();
      Session session = client.sessions().createSession(create).getSession();
      for (var expected : List.of(
          List.of("I listen", "There is only the wind."), List.of("I go on", "The watch goes on."))) {
        TakeTurnRequest turn =
            TakeTurnRequest.newBuilder().setInput(expected.get(0)).addActions(Client.action("tend")).build();
        TurnEvent last = null;
        var played = client.play(session, turn);
        for (TurnEvent event : played) last = event;
        session = played.session();
        String narrative = last.getCommitted().getNarrative();
        System.out.println(expected.get(0) + ": " + narrative.lines().findFirst().orElse(""));
        if (!narrative.startsWith(expected.get(1))) {
          throw new AssertionError("expected " + expected.get(1));
        }
      }
    }
  }
}
