import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import peripety.api.policy.v1.DecideRequest;
import peripety.api.policy.v1.PolicyRequest;
import peripety.api.policy.v1.PolicySource;
import peripety.client.Client;

/** Decides on tool calls, and compares with what is expected. */
public class PolicyCheck {
  public static void main(String[] arguments) throws Exception {
    ByteString document = ByteString.copyFrom(Files.readAllBytes(Path.of("policy.json")));
    PolicySource policy = PolicySource.newBuilder().setDocument(document).build();
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"))) {
      for (JsonElement item : JsonParser.parseString(Files.readString(Path.of("policy_calls.json"))).getAsJsonArray()) {
        JsonObject call = item.getAsJsonObject();
        PolicyRequest request = PolicyRequest.newBuilder().setServerName("files")
            .setToolName(call.get("tool_name").getAsString())
            .setArguments(ByteString.copyFromUtf8(call.get("arguments").toString())).build();
        var decided = client.policies().decide(
            DecideRequest.newBuilder().setPolicy(policy).setRequest(request).build()).getResult();
        String decision = decided.getDecision().name().replace("DECISION_", "").toLowerCase();
        System.out.println(decision + ": " + request.getToolName() + " " + call.get("arguments") + ": "
            + decided.getReasonsList());
        if (!decision.equals(call.get("expected").getAsString())) {
          throw new AssertionError("expected " + call.get("expected"));
        }
      }
    }
  }
}
