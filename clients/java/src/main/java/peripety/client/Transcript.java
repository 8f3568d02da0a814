package peripety.client;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/**
 * A verified session.
 *
 * @param turns number of turns
 * @param chainHash chain hash after the last turn; proof only if you compare it with one from a trusted source
 * @param stateHash hash of the state after the last turn; null without turns
 * @param specHash hash of the specification
 */
public record Transcript(long turns, String chainHash, String stateHash, String specHash) {

  /** The first defect of a transcript. */
  public static final class DefectException extends Exception {
    private static final long serialVersionUID = 1L;
    private final long line;
    private final long turn;

    DefectException(long line, long turn, String problem) {
      super("line " + line + (turn == 0 ? "" : " (turn " + turn + ")") + ": " + problem + "; export the session again");
      this.line = line;
      this.turn = turn;
    }

    /** Returns the false line, from 1. */
    public long line() {
      return line;
    }

    /** Returns the turn of the line; 0 if the line is not a turn. */
    public long turn() {
      return turn;
    }
  }

  /**
   * Verifies an exported session without a server and without an engine: every line is canonical, every hash is the
   * computed one, and nothing was left out. It reads one line at a time.
   *
   * <p>It proves that the turns are those that led to the chain hash. Only a replay (ImportSession) proves that the
   * rules were followed.
   *
   * @throws DefectException the first false line
   * @throws IOException the error of the stream
   */
  public static Transcript verify(InputStream bundle) throws DefectException, IOException {
    Lines lines = new Lines(bundle);
    JsonObject header = lines.next(0);
    lines.check(isText(header, "kind", "peripety.session") && isNumber(header, "version", 1)
        && isText(header, "engine_version", "1.0") && isNumber(header, "rng_version", 1), 0,
        "not a session of a supported version");
    String specHash = text(header, "spec_hash");
    Double turns = number(header, "turns");
    lines.check(specHash != null && turns != null && number(header, "first_seed") != null, 0,
        "a key of the header is missing or has another type");
    for (String key : List.of("spec_hash", "certificate_hash")) {
      if (header.has(key) && !header.get(key).isJsonNull()) {
        lines.next(0);
        byte[] content = Arrays.copyOf(lines.line, lines.line.length - 1);
        lines.check(hex(sha256().digest(content)).equals(text(header, key)), 0,
            "SHA-256 of the line is not " + key + " of the header");
      }
    }
    JsonObject start = new JsonObject();
    start.add("seed", header.get("first_seed"));
    start.add("spec_hash", header.get("spec_hash"));
    String chain = hex(sha256().digest(canonical(start)));
    String stateHash = null;
    long turn = 0;
    while (!lines.isBeforeLast()) {
      turn++;
      JsonObject record = lines.nextTurn(turn, chain);
      chain = lines.chain;
      stateHash = text(record, "state_hash");
      lines.check(turn <= turns, turn, "more turns than the header declares");
    }
    if (turn != turns) {
      throw new DefectException(lines.number + 1, 0, "a turn is missing that the header declares");
    }
    if (!chain.equals(text(header, "chain_hash"))) {
      throw new DefectException(1, 0, "chain_hash: computed " + chain);
    }
    if (!Arrays.equals(lines.ahead, lines.seal())) {
      throw new DefectException(lines.number + 1, 0, "not the hash of the lines before it");
    }
    return new Transcript(turn, chain, stateHash, specHash);
  }

  /** Reads a bundle line by line, and hashes all lines read. */
  private static final class Lines {
    private final InputStream source;
    private final MessageDigest hash = sha256();
    private byte[] line;
    private byte[] ahead;
    private byte[] after;
    private long number;
    private String chain;

    Lines(InputStream source) throws IOException {
      this.source = source;
      ahead = read();
      after = read();
    }

    private byte[] read() throws IOException {
      ByteArrayOutputStream found = new ByteArrayOutputStream();
      for (int next = source.read(); next >= 0; next = source.read()) {
        found.write(next);
        if (next == '\n') {
          break;
        }
      }
      return found.toByteArray();
    }

    boolean isBeforeLast() {
      return after.length == 0;
    }

    void check(boolean isRight, long turn, String problem) throws DefectException {
      if (!isRight) {
        throw new DefectException(number, turn, problem);
      }
    }

    /** Returns the value of the next line, which must be an object in canonical form. */
    JsonObject next(long turn) throws DefectException, IOException {
      line = ahead;
      ahead = after;
      after = read();
      number++;
      hash.update(line);
      JsonElement value = null;
      try {
        value = JsonParser.parseString(new String(line, StandardCharsets.UTF_8));
      } catch (JsonParseException | NumberFormatException error) {
        // The check below names the line.
      }
      // Whatever the parser tolerates, such as comments and invalid UTF-8, is not the canonical form.
      boolean isCanonical = value != null && value.isJsonObject() && Arrays.equals(withNewline(canonical(value)), line);
      check(isCanonical, turn, "not an object in canonical JSON");
      return value.getAsJsonObject();
    }

    /** Returns the record of the next turn, and sets the chain hash after it. */
    JsonObject nextTurn(long turn, String before) throws DefectException, IOException {
      JsonObject value = next(turn);
      JsonElement record = value.get("record");
      JsonElement events = value.get("events");
      JsonElement end = events instanceof JsonArray list && !list.isEmpty() ? list.get(list.size() - 1) : null;
      boolean isTurn = record instanceof JsonObject && isNumber((JsonObject) record, "turn", turn)
          && end instanceof JsonObject && isText((JsonObject) end, "kind", "committed");
      check(isTurn, turn, "not the record of this turn up to its committed event");
      MessageDigest linked = sha256();
      linked.update(HexFormat.of().parseHex(before));
      chain = hex(linked.digest(canonical(record)));
      check(chain.equals(text((JsonObject) end, "chain_hash")), turn, "chain_hash: computed " + chain);
      for (String key : List.of("changes", "state_hash", "status")) {
        JsonElement recorded = ((JsonObject) record).get(key);
        JsonElement sent = ((JsonObject) end).get(key);
        boolean isSame = recorded != null && sent != null && Arrays.equals(canonical(recorded), canonical(sent));
        check(isSame, turn, key + " of the committed event differs from the record");
      }
      return (JsonObject) record;
    }

    /** Returns the last line of a bundle with the lines read so far. */
    byte[] seal() throws IOException {
      JsonObject seal = new JsonObject();
      seal.addProperty("kind", "peripety.session.end");
      seal.addProperty("lines", number);
      try {
        seal.addProperty("sha256", hex(((MessageDigest) hash.clone()).digest()));
      } catch (CloneNotSupportedException error) {
        throw new IOException("SHA-256 of this Java cannot be copied", error);
      }
      return withNewline(canonical(seal));
    }
  }

  private static byte[] withNewline(byte[] text) {
    byte[] line = Arrays.copyOf(text, text.length + 1);
    line[text.length] = '\n';
    return line;
  }

  private static String text(JsonObject object, String key) {
    return object.get(key) instanceof JsonPrimitive value && value.isString() ? value.getAsString() : null;
  }

  private static Double number(JsonObject object, String key) {
    return object.get(key) instanceof JsonPrimitive value && value.isNumber() ? value.getAsDouble() : null;
  }

  private static boolean isText(JsonObject object, String key, String expected) {
    return expected.equals(text(object, key));
  }

  private static boolean isNumber(JsonObject object, String key, double expected) {
    Double found = number(object, key);
    return found != null && found == expected;
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  /** Returns the canonical form of a JSON value (RFC 8785). */
  static byte[] canonical(JsonElement value) {
    StringBuilder text = new StringBuilder();
    write(text, value);
    return text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static void write(StringBuilder text, JsonElement value) {
    if (value instanceof JsonObject object) {
      List<String> names = new ArrayList<>(object.keySet());
      names.sort(null); // texts of Java compare by UTF-16 code units
      String separator = "{";
      for (String name : names) {
        writeText(text.append(separator), name);
        write(text.append(':'), object.get(name));
        separator = ",";
      }
      text.append(names.isEmpty() ? "{}" : "}");
    } else if (value instanceof JsonArray items) {
      String separator = "[";
      for (JsonElement item : items) {
        write(text.append(separator), item);
        separator = ",";
      }
      text.append(items.isEmpty() ? "[]" : "]");
    } else if (value instanceof JsonPrimitive primitive && primitive.isString()) {
      writeText(text, primitive.getAsString());
    } else if (value instanceof JsonPrimitive primitive && primitive.isNumber()) {
      text.append(numberText(primitive.getAsDouble()));
    } else {
      text.append(value); // true, false, null
    }
  }

  private static void writeText(StringBuilder text, String value) {
    text.append('"');
    for (int index = 0; index < value.length(); index++) {
      char letter = value.charAt(index);
      int escape = "\b\t\n\f\r\"\\".indexOf(letter);
      if (escape >= 0) {
        text.append('\\').append("btnfr\"\\".charAt(escape));
      } else if (letter < ' ') {
        text.append(String.format("\\u%04x", (int) letter));
      } else {
        text.append(letter);
      }
    }
    text.append('"');
  }

  /** Returns a number as ECMAScript writes it: the fewest digits that are read back as the same double. */
  static String numberText(double value) {
    if (value == 0) {
      return "0";
    }
    if (Double.isInfinite(value) || Double.isNaN(value)) {
      return "not finite";
    }
    BigDecimal exact = new BigDecimal(value);
    BigDecimal shortest = exact;
    for (int digits = 1; digits <= 17; digits++) {
      shortest = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
      if (shortest.doubleValue() == value) {
        break;
      }
    }
    shortest = shortest.stripTrailingZeros();
    String digits = shortest.unscaledValue().abs().toString();
    int exponent = digits.length() - shortest.scale() - 1;
    String sign = value < 0 ? "-" : "";
    if (exponent >= -7 + 1 && exponent < 21) {
      return sign + shortest.abs().toPlainString();
    }
    String fraction = digits.length() == 1 ? "" : "." + digits.substring(1);
    return sign + digits.charAt(0) + fraction + "e" + (exponent < 0 ? "-" : "+") + Math.abs(exponent);
  }
}
