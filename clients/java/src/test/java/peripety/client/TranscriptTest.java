package peripety.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The golden transcripts of the conformance kit: each is verified, and each change of one is refused at its line. */
class TranscriptTest {
  private static final Path KIT =
      Path.of(System.getenv().getOrDefault("PERIPETY_TRANSCRIPTS", "../../tests/data/transcripts"));

  private static JsonObject index() throws Exception {
    return JsonParser.parseString(Files.readString(KIT.resolve("index.json"))).getAsJsonObject();
  }

  private static Transcript verify(byte[] bundle) throws Exception {
    return Transcript.verify(new ByteArrayInputStream(bundle));
  }

  @Test
  void everyGoldenTranscriptIsVerified() throws Exception {
    JsonObject index = index();
    assertTrue(index.size() > 20);
    for (String name : index.keySet()) {
      JsonObject entry = index.getAsJsonObject(name);
      Transcript verified = verify(Files.readAllBytes(KIT.resolve(name)));
      assertEquals(entry.get("turns").getAsLong(), verified.turns(), name);
      assertEquals(entry.get("chain_hash").getAsString(), verified.chainHash(), name);
      JsonElement state = entry.get("state_hash");
      assertEquals(state.isJsonNull() ? null : state.getAsString(), verified.stateHash(), name);
    }
  }

  @Test
  void everyTamperedTranscriptIsRefusedAtItsFirstFalseLine() throws Exception {
    JsonObject index = index();
    int refused = 0;
    for (String name : index.keySet()) {
      byte[] honest = Files.readAllBytes(KIT.resolve(name));
      for (JsonElement element : index.getAsJsonObject(name).getAsJsonArray("tampered")) {
        JsonObject change = element.getAsJsonObject();
        byte[] bundle = tamper(honest, change);
        Transcript.DefectException defect = assertThrows(Transcript.DefectException.class, () -> verify(bundle), name);
        assertEquals(change.get("first_false_line").getAsLong(), defect.line(), name + change);
        JsonElement turn = change.get("first_false_turn");
        assertEquals(turn == null || turn.isJsonNull() ? 0 : turn.getAsLong(), defect.turn(), name + change);
        refused++;
      }
    }
    assertTrue(refused > 200, "only " + refused);
  }

  private static byte[] tamper(byte[] bundle, JsonObject change) throws Exception {
    List<byte[]> lines = new ArrayList<>();
    for (int start = 0, end; start < bundle.length; start = end) {
      end = start;
      while (bundle[end++] != '\n') {
        // to the end of the line
      }
      lines.add(Arrays.copyOfRange(bundle, start, end));
    }
    int line = change.get("line").getAsInt() - 1;
    if (change.has("at") && !change.get("at").isJsonNull()) {
      int at = change.get("at").getAsInt();
      byte[] before = lines.get(line);
      ByteArrayOutputStream changed = new ByteArrayOutputStream();
      changed.write(before, 0, at);
      changed.writeBytes(change.get("insert").getAsString().getBytes(StandardCharsets.US_ASCII));
      int rest = at + change.get("delete").getAsInt();
      changed.write(before, rest, before.length - rest);
      lines.set(line, changed.toByteArray());
    } else if (change.has("swap_with") && !change.get("swap_with").isJsonNull()) {
      Collections.swap(lines, line, change.get("swap_with").getAsInt() - 1);
    } else {
      lines.remove(line);
    }
    boolean isResealed = change.has("is_resealed") && change.get("is_resealed").getAsBoolean();
    if (isResealed) {
      lines.remove(lines.size() - 1);
    }
    ByteArrayOutputStream result = new ByteArrayOutputStream();
    lines.forEach(result::writeBytes);
    if (isResealed) {
      String hash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(result.toByteArray()));
      result.writeBytes(("{\"kind\":\"peripety.session.end\",\"lines\":" + lines.size() + ",\"sha256\":\"" + hash
          + "\"}\n").getBytes(StandardCharsets.US_ASCII));
    }
    return result.toByteArray();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "\n", "{}\n", "{\"a\":NaN}\n", "[[[[\n", "null\n"})
  void aFileThatIsNotABundleIsRefused(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    assertEquals(1, assertThrows(Transcript.DefectException.class, () -> verify(bytes)).line());
  }

  @ParameterizedTest
  @CsvSource({"1,1", "-0.0,0", "0.30000000000000004,0.30000000000000004", "9007199254740992,9007199254740992",
      "1e20,100000000000000000000", "1e21,1e+21", "1.5e300,1.5e+300", "1e-6,0.000001", "1e-7,1e-7",
      "4.9e-324,5e-324", "2e-3,0.002", "-1.7976931348623157e308,-1.7976931348623157e+308"})
  void aNumberIsWrittenAsEcmascriptDoes(double value, String expected) {
    assertEquals(expected, Transcript.numberText(value));
  }
}
