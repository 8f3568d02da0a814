import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import peripety.api.scenario.v1.SpecItem;
import peripety.api.scenario.v1.SpecVerdict;
import peripety.client.CallException;
import peripety.client.Client;

/** Validates one document per line over one stream. */
public class BatchValidate {
  public static void main(String[] arguments) throws Exception {
    AtomicInteger number = new AtomicInteger();
    try (Client client = Client.connect(System.getenv("PERIPETY_ADDRESS"));
        Stream<String> lines = Files.lines(Path.of("batch.jsonl"))) { // read only as fast as the server validates
      Iterator<SpecItem> documents = lines.map(line -> SpecItem.newBuilder()
          .setItemId("line " + number.incrementAndGet()).setSpec(ByteString.copyFromUtf8(line)).build()).iterator();
      Iterator<SpecVerdict> verdicts = client.validate(documents, null);
      while (verdicts.hasNext()) {
        SpecVerdict verdict = verdicts.next();
        if (verdict.hasError()) {
          System.out.println(verdict.getItemId() + " not validated: " + CallException.of(verdict.getError()).getMessage());
        } else if (verdict.getAccepted()) {
          System.out.println(verdict.getItemId() + " accepted");
        } else {
          var finding = verdict.getFindings().getFindings(0);
          System.out.println(verdict.getItemId() + " rejected: " + finding.getCode() + " " + finding.getPath() + " "
              + finding.getMessage());
        }
      }
    }
  }
}
