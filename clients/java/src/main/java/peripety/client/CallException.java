package peripety.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import peripety.api.common.v1.ErrorReason;
import peripety.api.common.v1.FieldViolation;
import peripety.api.common.v1.ItemError;

/** Error of a call, or of one item of a batch. Decide by its reason. */
public final class CallException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Status.Code code;
  private final transient List<FieldViolation> violations;
  private final transient Map<String, String> metadata;
  private final String reasonName;
  private final Duration retryAfter;

  private CallException(Status.Code code, String reasonName, String message, List<FieldViolation> violations,
      Duration retryAfter, Map<String, String> metadata, Throwable cause) {
    super(message, cause);
    this.code = code;
    this.reasonName = reasonName;
    this.violations = List.copyOf(violations);
    this.retryAfter = retryAfter;
    this.metadata = Map.copyOf(metadata);
  }

  /** Returns the error of a stub's exception, with the details of the server. */
  public static CallException of(Throwable thrown) {
    if (thrown instanceof CallException known) {
      return known;
    }
    Status status = Status.fromThrowable(thrown);
    String reason = "";
    Duration retryAfter = null;
    Map<String, String> metadata = Map.of();
    List<FieldViolation> violations = new ArrayList<>();
    com.google.rpc.Status details = StatusProto.fromThrowable(thrown);
    try {
      for (Any detail : details == null ? List.<Any>of() : details.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          if (info.getDomain().equals("peripety")) {
            reason = info.getReason();
            metadata = info.getMetadataMap();
          }
        } else if (detail.is(BadRequest.class)) {
          for (BadRequest.FieldViolation violation : detail.unpack(BadRequest.class).getFieldViolationsList()) {
            violations.add(FieldViolation.newBuilder().setField(violation.getField())
                .setDescription(violation.getDescription()).build());
          }
        } else if (detail.is(RetryInfo.class)) {
          retryAfter = duration(detail.unpack(RetryInfo.class).getRetryDelay());
        }
      }
    } catch (InvalidProtocolBufferException error) {
      // Details that cannot be read are left out; the status counts.
    }
    String message = status.getDescription() == null ? status.getCode().name() : status.getDescription();
    if (reason.isEmpty()) {
      if (status.getCause() != null && status.getCause().getMessage() != null) {
        message += ": " + status.getCause().getMessage();
      }
      message = switch (status.getCode()) {
        case UNAVAILABLE -> "server does not respond (" + message + "); check that it runs at this address";
        case DEADLINE_EXCEEDED -> "server did not respond in time (" + message + "); set a later deadline";
        case UNIMPLEMENTED -> "server does not implement this call (" + message + "); it may be an older version";
        default -> message;
      };
    }
    return new CallException(status.getCode(), reason, message, violations, retryAfter, metadata, thrown);
  }

  /** Returns the error of one item of a batch. */
  public static CallException of(ItemError item) {
    Duration retryAfter = item.hasRetryAfter() ? duration(item.getRetryAfter()) : null;
    return new CallException(Status.fromCodeValue(item.getCode()).getCode(), item.getReason(), item.getMessage(),
        item.getViolationsList(), retryAfter, item.getMetadataMap(), null);
  }

  private static Duration duration(com.google.protobuf.Duration value) {
    return Duration.ofSeconds(value.getSeconds(), value.getNanos());
  }

  /** Returns the status code of the call. */
  public Status.Code code() {
    return code;
  }

  /** Returns the reason of the server; unspecified if it sent none, or one that this version does not know. */
  public ErrorReason reason() {
    try {
      return ErrorReason.valueOf("ERROR_REASON_" + reasonName);
    } catch (IllegalArgumentException error) {
      return ErrorReason.ERROR_REASON_UNSPECIFIED;
    }
  }

  /** Returns the reason as the server sent it, such as {@code STALE_TURN} or the code of a finding. */
  public String reasonName() {
    return reasonName;
  }

  /** Returns the invalid fields of the request. */
  public List<FieldViolation> violations() {
    return violations;
  }

  /** Returns the time to wait before a retry; null if the server sent none. */
  public Duration retryAfter() {
    return retryAfter;
  }

  /** Returns identifiers and limits that the message refers to. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /**
   * Returns true if the connection or the server was lost, so that the effect of the call is unknown. Send the same
   * request with the same request id again.
   */
  public boolean isLostConnection() {
    return switch (code) {
      case UNAVAILABLE -> true;
      case ABORTED, CANCELLED, DATA_LOSS, INTERNAL, UNKNOWN -> reasonName.isEmpty();
      default -> false;
    };
  }
}
